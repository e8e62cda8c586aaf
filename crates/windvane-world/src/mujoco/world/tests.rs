use super::*;
use crate::mujoco::Air;
use crate::protocol::{EvalEpisode, RandomPolicy, rollout};
use crate::registry::{WorldConfig, make};
use crate::rng::stream;
use std::collections::BTreeSet;

#[test]
fn splits_are_those_of_the_paper_and_of_composition_and_extrapolation() {
    let codes = |family: Family, split| -> Vec<u64> {
        family.contexts(split).into_iter().map(|context| context.0).collect()
    };
    let wind = Family::Wind { strength: 4.0, contacts: false };
    assert_eq!(codes(wind, Split::Train), (0..16).collect::<Vec<_>>());
    assert_eq!(codes(wind, Split::Test), [16, 17, 18, 19]);
    let flipped = |codes: &[u64]| codes.iter().map(|code| code.count_ones()).collect::<BTreeSet<_>>();
    assert_eq!(flipped(&codes(Family::FlipTwo, Split::Train)), BTreeSet::from([0, 1, 3, 4]));
    assert_eq!(codes(Family::FlipTwo, Split::Test), [3, 5, 6, 9, 10, 12]);
    assert_eq!(codes(Family::FlipMany, Split::Train).len(), 11);
    assert_eq!(flipped(&codes(Family::FlipMany, Split::Test)), BTreeSet::from([3, 4]));
    for family in [wind, Family::FlipTwo, Family::FlipMany, Family::Rotate] {
        let both = [Split::Train, Split::Test].map(|split| family.contexts(split));
        let hidden: Vec<Hidden> = both.iter().flatten().map(|&c| family.hidden(c).unwrap()).collect();
        let same = hidden.iter().enumerate().any(|(place, one)| hidden[..place].contains(one));
        assert!(!same, "{family:?}: no dynamics twice");
    }
}

#[test]
fn a_context_says_what_is_hidden() {
    let world = make("ant-wind", &WorldConfig::default()).unwrap();
    let about = world.describe(ContextId(5)).unwrap();
    let hidden: Hidden = serde_json::from_value(about).unwrap();
    assert!(hidden.wind[0].abs() < 1e-12 && (hidden.wind[1] - 4.0).abs() < 1e-12, "{hidden:?}");
    assert_eq!((hidden.viscosity, hidden.gears), (0.05, Gears::HEALTHY));
    let error = world.instantiate(ContextId(20)).err().unwrap().to_string();
    assert_eq!(error, "ant-wind: there is no context 20");
    let fault = make("ant-fault", &WorldConfig::default()).unwrap();
    let hidden: Hidden = serde_json::from_value(fault.describe(ContextId(0b0101)).unwrap()).unwrap();
    assert_eq!((hidden.viscosity, hidden.gears.legs), (0.0, [-1, 1, -1, 1]));
    let error = make("ant-wind", &WorldConfig { train: Some(17), ..WorldConfig::default() }).err().unwrap();
    assert_eq!(error.to_string(), "ant-wind: 17 train contexts asked for, but only 16 exist");
}

#[test]
fn a_fault_changes_what_an_action_does_and_nothing_else() {
    let world = make("ant-fault", &WorldConfig::default()).unwrap();
    let walk = |context, action: [f32; MOTORS]| {
        let mut env = world.instantiate(ContextId(context)).unwrap();
        let mut obs = vec![0.0; POSTURE];
        env.reset(Start::Fixed, &mut stream(3, "start", &[]), &mut obs).unwrap();
        (0..20).for_each(|_| {
            env.step(Action::Continuous(&action), &mut obs).unwrap();
        });
        obs
    };
    let action = [0.9, -0.3, 0.5, 0.2, -0.7, 0.1, 0.4, -0.6];
    let mut flipped = action;
    (flipped[2], flipped[3]) = (-action[2], -action[3]);
    assert_eq!(walk(0, action), walk(0b0010, flipped));
    assert_ne!(walk(0, action), walk(0b0010, action));
    assert_eq!(walk(0, [0.0; MOTORS]), walk(15, [0.0; MOTORS]));
}

#[test]
fn standing_still_earns_a_point_a_step() {
    let world = make("ant-fault", &WorldConfig::default()).unwrap();
    let mut env = world.instantiate(ContextId(0)).unwrap();
    let mut obs = vec![0.0; POSTURE];
    env.reset(Start::Fixed, &mut stream(3, "start", &[]), &mut obs).unwrap();
    let forward = world.tasks(ContextId(0)).unwrap().remove(0).reward;
    let mut earned = 0.0;
    for _ in 0..HORIZON {
        let step = env.step(Action::Continuous(&[0.0; MOTORS]), &mut obs).unwrap();
        assert!(!step.terminated);
        earned += forward.of(&obs) - step.cost;
    }
    assert!((245.0..258.0).contains(&earned), "{earned}");
}

#[test]
fn a_fall_ends_the_game_and_bad_actions_are_refused() {
    let world = make("ant-wind", &WorldConfig::default()).unwrap();
    let context = ContextId(0);
    let steps: Vec<usize> = (0..5)
        .map(|number| {
            let task = world.tasks(context).unwrap().remove(0);
            let episode = EvalEpisode { context, task, rng: stream(number, "episode", &[]) };
            rollout(&*world, episode, &mut RandomPolicy(world.spec().action.clone())).unwrap().steps
        })
        .collect();
    assert!(steps.iter().any(|&steps| steps < HORIZON), "{steps:?}");
    let mut env = world.instantiate(context).unwrap();
    let mut obs = vec![0.0; POSTURE];
    env.reset(Start::Fixed, &mut stream(0, "start", &[]), &mut obs).unwrap();
    let error = env.step(Action::Continuous(&[2.0; MOTORS]), &mut obs).unwrap_err().to_string();
    assert!(error.contains("8 numbers from"), "{error}");
}

#[test]
fn ants_in_lockstep_do_what_single_ants_do_falls_and_costs_included() {
    let world = make("ant-wind", &WorldConfig::default()).unwrap();
    let contexts = &world.contexts(Split::Train)[..3];
    let mut batch = world.batch(contexts).unwrap();
    let mut singles: Vec<_> = contexts.iter().map(|&context| world.instantiate(context).unwrap()).collect();
    let mut together = vec![0.0; contexts.len() * POSTURE];
    let mut alone = together.clone();
    for (index, single) in singles.iter_mut().enumerate() {
        let row = POSTURE * index..POSTURE * (index + 1);
        let rng = || stream(5, "start", &[index as u64]);
        batch.reset(index, Start::Fixed, &mut rng(), &mut together[row.clone()]);
        single.reset(Start::Fixed, &mut rng(), &mut alone[row]).unwrap();
    }
    let (mut rng, mut action) = (stream(5, "actions", &[]), world.spec().action.buffer());
    let mut fell = false;
    for _ in 0..HORIZON {
        let mut actions = world.spec().action.actions(contexts.len());
        let mut steps = vec![Step::default(); contexts.len()];
        let mut expected = Vec::new();
        for (single, obs) in singles.iter_mut().zip(alone.chunks_exact_mut(POSTURE)) {
            world.spec().action.sample(&mut rng, &mut action);
            actions.push(action.as_action());
            expected.push(single.step(action.as_action(), obs).unwrap());
        }
        batch.step_told(&actions, &mut together, &mut steps).unwrap();
        assert_eq!((&together, &steps), (&alone, &expected));
        fell |= steps.iter().any(|step| step.terminated);
    }
    assert!(fell, "no ant fell, so nothing was seen of falls");
}

#[test]
fn contact_forces_are_observed_where_they_are_asked_for() {
    let world = make("ant-wind-contacts", &WorldConfig::default()).unwrap();
    assert_eq!((world.spec().obs_dim(), world.spec().observation[104].name.as_str()), (105, "contact_13_fz"));
    let mut env = world.instantiate(ContextId(0)).unwrap();
    let mut obs = vec![0.0; FULL];
    env.reset(Start::Fixed, &mut stream(0, "start", &[]), &mut obs).unwrap();
    let mut felt = false;
    for _ in 0..60 {
        env.step(Action::Continuous(&[0.0; MOTORS]), &mut obs).unwrap();
        felt |= obs[POSTURE..].iter().any(|force| *force != 0.0);
    }
    assert!(felt);
}

#[test]
fn a_diverging_simulation_names_context_and_step() {
    let world = AntWorld::new("ant-wind", Family::Wind { strength: 4.0, contacts: false }, [16, 4]).unwrap();
    let mut ant = Ant::new(&world.model, Air::STILL, Integrator::RungeKutta).unwrap();
    let positions = ant.positions().try_into().unwrap();
    ant.place(&positions, &[1e11; 14]);
    let (spec, gears) = (world.spec.clone(), Gears::HEALTHY);
    let mut env = AntEnv { spec, context: ContextId(3), gears, ant, steps: 16 };
    let mut obs = vec![0.0; POSTURE];
    let error = env.step(Action::Continuous(&[0.0; MOTORS]), &mut obs).unwrap_err().to_string();
    let start = "ant-wind: context 3, step 17: the simulation diverged: its velocities";
    assert!(error.starts_with(start), "{error}");
    env.reset(Start::Fixed, &mut stream(0, "start", &[]), &mut obs).unwrap();
    env.step(Action::Continuous(&[0.0; MOTORS]), &mut obs).unwrap();
}
