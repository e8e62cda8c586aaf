use super::super::mlp::Activation;
use super::super::{Expert, train};
use super::losses::{critic_loss, draw, policy_loss};
use super::*;
use crate::collect::{Behaviour, BehaviourPolicy, CollectConfig, collect};
use crate::env::{Split, Start};
use crate::registry::{WorldConfig, make};
use crate::rng::{Rng, stream};

/// Small networks without kinks, for states of 3 numbers and 2 actions.
fn smooth() -> [Mlp; 2] {
    networks(3, 2, 6).map(|net| Mlp { activation: Activation::Tanh, ..net })
}

fn uniform(count: usize, rng: &mut Rng) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// Parameters of a network, its biases too.
fn drawn(net: Mlp, rng: &mut Rng) -> Vec<f32> {
    let mut parameters = vec![0.0; net.parameters()];
    net.init(&mut parameters, 1.0, rng);
    parameters.iter_mut().for_each(|w| *w += 0.1 * gauss(rng));
    parameters
}

/// Compares a gradient with differences of the loss.
fn check(parameters: &[f32], mut loss: impl FnMut(&[f32], &mut [f32]) -> f32) {
    let mut exact = vec![0.0; parameters.len()];
    loss(parameters, &mut exact);
    assert!(exact.iter().any(|slope| slope.abs() > 0.05), "{exact:?}");
    for (place, exact) in exact.iter().enumerate() {
        let mut at = |step: f32| {
            let mut moved = parameters.to_vec();
            moved[place] += step;
            f64::from(loss(&moved, &mut vec![0.0; parameters.len()]))
        };
        let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
        assert!((slope - f64::from(*exact)).abs() < 2e-3, "parameter {place}: {slope} {exact}");
    }
}

#[test]
fn the_critic_s_gradient_is_the_slope_of_its_loss() {
    let [_, critic] = smooth();
    let mut rng = stream(0, "test", &[]);
    let (parameters, input, targets) =
        (drawn(critic, &mut rng), uniform(7 * 5, &mut rng), uniform(7, &mut rng));
    check(&parameters, |moved, gradient| critic_loss(critic, moved, &input, &targets, gradient));
}

#[test]
fn the_policy_s_gradient_is_the_slope_of_its_loss() {
    let [policy, critic] = smooth();
    let mut rng = stream(1, "test", &[]);
    let parameters = drawn(policy, &mut rng);
    // Far apart at every action, so that the smaller one stays the same: once the first, once the second.
    let one = drawn(critic, &mut rng);
    let mut two = drawn(critic, &mut rng);
    *two.last_mut().unwrap() += 5.0;
    let (states, draws) = (uniform(7 * 3, &mut rng), uniform(7 * 2, &mut rng));
    for critics in [[&one[..], &two], [&two, &one]] {
        check(&parameters, |moved, gradient| {
            policy_loss([policy, critic], moved, critics, &states, &draws, 0.3, gradient).0
        });
    }
}

#[test]
fn the_density_of_squashed_actions_adds_up_to_one() {
    // One action: the integral of p over draws equals that of p(a) da, by steps of the draw.
    let outputs = [0.4, -0.3];
    let step = 1e-3;
    let at = |draw_: f32| {
        let drawn = draw(&outputs, &[draw_], 1);
        (f64::from(drawn.actions[0]), f64::from(drawn.log_prob[0]).exp())
    };
    let total: f64 = (-6000..6000)
        .map(|place| {
            let here = place as f32 * step;
            (at(here + step).0 - at(here).0) * at(here + 0.5 * step).1
        })
        .sum();
    assert!((total - 1.0).abs() < 1e-2, "{total}");
}

/// One step, one state: the reward is 1 - |a - best|^2.
fn bandit(best: [f32; 2], rng: &mut Rng) -> Batch {
    let actions = uniform(64 * 2, rng);
    let reward = |a: &[f32]| 1.0 - (a[0] - best[0]).powi(2) - (a[1] - best[1]).powi(2);
    let rewards = actions.chunks(2).map(reward).collect();
    Batch { states: vec![1.0; 64 * 3], actions, rewards, next: vec![1.0; 64 * 3], alive: vec![0.0; 64] }
}

fn taught(seed: u64, steps: usize, entropy: f32) -> Agent {
    let mut rng = stream(seed, "test", &[]);
    let mut agent = Agent::new(networks(3, 2, 32), entropy, &mut rng);
    for _ in 0..steps {
        let batch = bandit([0.5, -0.3], &mut rng);
        agent.learn(&batch, &mut rng);
    }
    agent
}

#[test]
fn a_bandit_s_best_action_is_found() {
    let agent = taught(0, 3000, -4.0);
    let mut pass = Pass::default();
    agent.policy.forward(agent.gait(), &[1.0; 3], &mut pass);
    let actions = draw(pass.output(), &[0.0; 2], 2).actions;
    assert!((actions[0] - 0.5).abs() < 0.1 && (actions[1] + 0.3).abs() < 0.1, "{actions:?}");
    assert_ne!(taught(0, 5, -4.0).parameters, taught(1, 5, -4.0).parameters);
}

#[test]
fn the_temperature_moves_toward_the_wanted_entropy() {
    // The entropy of two actions at first is near 1; at most it is 2 ln 2.
    let first = taught(0, 0, 0.0).temperature();
    let (cold, hot) = (taught(0, 300, -8.0).temperature(), taught(0, 300, 1.3).temperature());
    assert!(cold < 0.95 * first && hot > 1.02 * first, "{cold} {first} {hot}");
}

#[test]
fn falls_are_the_end_and_cuts_are_not() {
    let agent = taught(0, 0, 0.0);
    let mut batch = bandit([0.0; 2], &mut stream(3, "test", &[]));
    let draws = vec![0.0; 64 * 2];
    assert_eq!(agent.targets(&batch, &draws), batch.rewards);
    batch.alive.fill(1.0);
    assert!(
        agent.targets(&batch, &draws).iter().zip(&batch.rewards).all(|(targets, reward)| targets != reward)
    );
}

#[test]
fn the_ring_keeps_the_newest_rows_and_comes_back_as_it_was() {
    let mut ring = Replay::<1>::new(5);
    (0..12).for_each(|x| ring.push([x as f32]));
    assert_eq!(ring.numbers(), [10.0, 11.0, 7.0, 8.0, 9.0]);
    assert_eq!(Replay::restored(ring.numbers(), 5, 12), ring);
    let mut short = Replay::<1>::new(5);
    (0..3).for_each(|x| short.push([x as f32]));
    assert_eq!(Replay::restored(short.numbers(), 5, 3), short);
    let drawn: Vec<f32> = ring.sample(500, &mut stream(0, "test", &[])).map(|row| row[0]).collect();
    assert!((7..12).all(|x| drawn.contains(&(x as f32))), "{drawn:?}");
}

#[test]
fn training_goes_on_from_what_was_saved_to_the_same_bits() {
    let airs = [Air { wind: [4.0, 0.0], viscosity: 0.05 }, Air { wind: [0.0, 4.0], viscosity: 0.05 }];
    let (model, folder) = (AntModel::load().unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path().join("ant.expert.part");
    let config = Config { seed: 5, updates: 3, learner: Learner::SacTargets };
    let mut whole = Trainer::new(&model, &airs, &config).unwrap();
    begin_section(&mut whole.pupils, config.seed, 0);
    whole.update(1, 0.3).unwrap();
    whole.update(2, 0.6).unwrap();
    let untaught = Trainer::new(&model, &airs, &config).unwrap().agent;
    assert_ne!(whole.agent.parameters, untaught.parameters);
    saved::save(&path, saved::key(&airs, &config), &whole.saved(2)).unwrap();
    let mut resumed = Trainer::new(&model, &airs, &config).unwrap();
    let other = Config { learner: Learner::Sac, ..config.clone() };
    assert_eq!(saved::load(&path, saved::key(&airs, &other)), None, "another training");
    assert_eq!(resumed.restore(saved::load(&path, saved::key(&airs, &config)).unwrap()), 2);
    let ended = [&mut whole, &mut resumed].map(|trainer| {
        begin_section(&mut trainer.pupils, config.seed, 1);
        (trainer.update(3, 1.0).unwrap(), trainer.saved(3), trainer.gait())
    });
    assert!(ended[0] == ended[1], "other bits");
}

#[test]
fn data_are_collected_from_such_an_expert_and_from_no_other() {
    let world = make("ant-wind", &WorldConfig::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let whole = train(&*world, &Config { seed: 5, updates: 1, learner: Learner::Sac }, &mut |_| {}).unwrap();
    let path = folder.path().join("data.expert");
    whole.save(&path).unwrap();
    assert!(Expert::load(&path).unwrap() == whole);
    let config = CollectConfig {
        contexts: world.contexts(Split::Train)[..2].to_vec(),
        episodes: 6,
        length: 20,
        start: Start::Fixed,
        seed: 3,
    };
    let collected = |learner: Learner| {
        let policy = BehaviourPolicy::Expert { learner, pure: false };
        collect(&*world, &policy, &config, "tests", &folder.path().join("data"), &|_| {})
    };
    let error = collected(Learner::Ppo).err().unwrap().to_string();
    assert!(error.contains("was taught by sac, not by ppo"), "{error}");
    let data = collected(Learner::Sac).unwrap();
    assert_eq!(data.meta().plan.provenance.policy, whole.name());
    assert!(whole.name().starts_with("expert:sac "), "{}", whole.name());
    assert_ne!(data.observations(0), data.observations(1), "qualities differ");
}
