use super::*;
use crate::batch::tests::{a_batch_does_what_single_environments_do, bad_actions_move_nothing};
use crate::protocol::{EvalEpisode, rollout};
use crate::registry::make;
use proptest::prelude::*;

/// The share of held-out pendulums that `given` swings up and holds.
fn upright(world: &dyn Cmdp, contexts: &[ContextId], given: impl Fn(ContextId) -> ContextId) -> f64 {
    let succeeds = |&context: &ContextId| {
        let task = world.tasks(context).unwrap().remove(0);
        let episode = EvalEpisode { context, task, rng: rng::stream(1, "episode", &[context.0]) };
        rollout(world, episode, world.oracle(given(context)).unwrap().unwrap().as_mut()).unwrap().success
    };
    contexts.iter().filter(|context| succeeds(context)).count() as f64 / contexts.len() as f64
}

#[test]
fn who_knows_the_pendulum_holds_it_and_who_knows_the_wrong_sign_never_does() {
    let world = make("pendulum", &WorldConfig { seed: 3, train: Some(0), test: Some(200) }).unwrap();
    let contexts = world.contexts(Split::Test);
    assert_eq!(upright(&*world, contexts, |context| context), 1.0);
    assert_eq!(upright(&*world, contexts, |context| ContextId(context.0 ^ 1)), 0.0);
}

#[test]
fn a_rod_of_one_metre_and_one_kilogram_moves_as_gymnasium_s() {
    // Pendulum-v1 of Gymnasium 1.4.0 from (2.5, -0.7) under torques of 1.5 and -2, three frames each.
    let body = Body { sign: 1.0, mass: 1.0, length: 1.0 };
    let first = body.step(State { angle: 2.5, speed: -0.7 }, 0.75);
    let second = body.step(first, -1.0);
    let expected =
        [[2.596_289_174_410_697, 1.303_436_049_714_361], [2.809_238_927_629_676, 1.430_648_454_631_352]];
    for (at, [angle, speed]) in [first, second].into_iter().zip(expected) {
        assert!((at.angle - angle).abs() < 1e-12 && (at.speed - speed).abs() < 1e-12, "{at:?}");
    }
}

#[test]
fn a_reversed_motor_mirrors_what_an_action_does() {
    let at = State { angle: 1.0, speed: 0.5 };
    let [ahead, reversed] = [1.0, -1.0].map(|sign| Body { sign, mass: 0.8, length: 1.2 });
    assert_eq!(ahead.step(at, 0.6), reversed.step(at, -0.6));
    assert_ne!(ahead.step(at, 0.6), ahead.step(at, -0.6));
}

#[test]
fn a_context_says_mass_length_and_sign() {
    let world = make("pendulum", &WorldConfig::default()).unwrap();
    let about = world.describe(ContextId(2 * (30 + 61 * 5) + 1)).unwrap();
    assert_eq!(about, json!({ "kind": "pendulum", "sign": -1.0, "mass": 1.0, "length": 0.75 }));
    let error = world.instantiate(ContextId(2 * BODIES)).err().unwrap().to_string();
    assert_eq!(error, "pendulum: 7442 is not the code of a pendulum");
    let error = make("pendulum", &WorldConfig { seed: 0, train: Some(3721), test: Some(1) }).err().unwrap();
    assert!(error.to_string().contains("only 3721 differ"), "{error}");
}

#[test]
fn pendulums_in_lockstep_do_what_single_ones_do() {
    a_batch_does_what_single_environments_do("pendulum");
    bad_actions_move_nothing("pendulum", &Actions::Continuous { size: 1, values: vec![0.0, 0.0, 1.01] });
    bad_actions_move_nothing("pendulum", &Actions::Discrete(vec![0; 3]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn held_out_pendulums_are_unseen_with_either_sign(seed: u64, train in 0_usize..80, test in 0_usize..80) {
        let world = make("pendulum", &WorldConfig { seed, train: Some(train), test: Some(test) }).unwrap();
        let both = world.contexts(Split::Train).iter().chain(world.contexts(Split::Test));
        prop_assert_eq!(both.map(|context| context.0 / 2).collect::<HashSet<_>>().len(), train + test);
        let reversed = world.contexts(Split::Train).iter().filter(|context| context.0 % 2 == 1).count();
        prop_assert_eq!(reversed, train / 2);
    }

    #[test]
    fn observations_stay_within_the_stated_range(seed: u64, torque in -1.0_f32..=1.0) {
        let world = make("pendulum", &WorldConfig { seed, train: Some(1), test: Some(0) }).unwrap();
        let mut env = world.instantiate(world.contexts(Split::Train)[0]).unwrap();
        let mut obs = [0.0; 3];
        env.reset(Start::Random, &mut rng::stream(seed, "test", &[]), &mut obs).unwrap();
        for _ in 0..200 {
            env.step(Action::Continuous(&[torque]), &mut obs).unwrap();
            let dims = world.spec().observation.iter();
            prop_assert!(dims.zip(obs).all(|(dim, value)| (dim.low..=dim.high).contains(&value)));
        }
    }
}
