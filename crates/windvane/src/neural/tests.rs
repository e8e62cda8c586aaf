//! The neural learner against what is known exactly.

use super::agent::NeuralAgent;
use super::belief::NeuralBelief;
use super::belief_trainer::BeliefTrainer;
use super::config::{Form, NeuralPlan, Source};
use super::fb::{FbModel, Places};
use super::kept::NeuralCard;
use super::memory::Memory;
use super::pilot::NeuralBriefing;
use super::situations::{Listener, Situations};
use super::trainer::FbTrainer;
use crate::agent::{Acting, Agent as _, Outlook};
use crate::correction::CorrectionConfig;
use crate::deploy::Steer as _;
use crate::eval::BeliefMode;
use crate::methods::{self, Method, RewardIn};
use crate::nn::TensorFile;
use crate::phi::{PhiConfig, PhiTrainer};
use crate::train::Learner;
use burn::tensor::Device;
use proptest::prelude::*;
use rand::seq::SliceRandom as _;
use std::sync::Arc;
use windvane_world::collect::{CollectConfig, Policy, collect};
use windvane_world::grid::{ACTIONS, Dynamics, SuccessorMeasure, deterministic};
use windvane_world::protocol::{Game, play};
use windvane_world::registry::{WorldConfig, make};
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{ActionBuf, Cmdp, Reward, Split, Start, Task};

/// A small data set of `env` and how a small learner looks at it.
fn memory(env: &str, contexts: usize, episodes: usize, plan: &NeuralPlan) -> (Box<dyn Cmdp>, Arc<Memory>) {
    let world = make(env, &WorldConfig { seed: 1, train: Some(contexts), test: Some(2) }).unwrap();
    let config = CollectConfig {
        contexts: world.contexts(Split::Train).to_vec(),
        episodes,
        length: world.spec().horizon,
        start: Start::Random,
        seed: 1,
    };
    let folder = tempfile::tempdir().unwrap();
    let policy = Policy::default_for(&world.spec().action);
    let data = collect(&*world, &policy, &config, "test", &folder.path().join("data"), &|_| ()).unwrap();
    // The files are mapped: they stay readable when their folder is gone.
    let memory = Memory::new(data, plan, 1).unwrap();
    (world, Arc::new(memory))
}

fn small() -> NeuralPlan {
    let mut plan = NeuralPlan::default();
    plan.belief.dim = 8;
    plan.belief.width = 16;
    plan.belief.predictor = 32;
    plan.belief.batch = 4;
    plan.belief.queries = 4;
    plan.belief.cached = 6;
    plan.fb.dim = 8;
    plan.fb.preprocessor = vec![32];
    plan.fb.embedding = 16;
    plan.fb.trunk = vec![32];
    plan.fb.backward = vec![32];
    plan.fb.groups = 4;
    plan.fb.items = 4;
    plan
}

fn point() -> NeuralPlan {
    let mut plan = small();
    plan.repeat = 5;
    plan.features.fourier = 16;
    plan
}

fn trainer(plan: &NeuralPlan, memory: &Arc<Memory>, method: &Method) -> (FbTrainer, Listener) {
    let device = Device::flex();
    let belief =
        Arc::new(NeuralBelief::new(memory.lens(), memory.groups(), &plan.belief, 1, &device).unwrap());
    let (listener, situations) = Listener::train(method, memory, Some(&belief), plan, 1);
    let lens = memory.lens().clone();
    let model = match method.features {
        None => FbModel::new(lens, listener.width(), Some(belief), plan, 1, &device).unwrap(),
        Some(learner) => {
            let config = PhiConfig { dim: 6, steps: 3, batch: 8, ..PhiConfig::default() };
            let mut phi = PhiTrainer::new(learner, memory.clone(), &[16], config, 1, &device).unwrap();
            (0..config.steps).for_each(|step| drop(phi.train_step(step).unwrap()));
            FbModel::over(phi.phi(), lens, Some(belief), plan, 1, &device).unwrap()
        }
    };
    let cone = (method.name == "rfb").then(|| crate::latent::VonMisesFisher::new(plan.fb.dim, 50.0).unwrap());
    (FbTrainer::new(model, memory.clone(), Arc::new(situations), cone, plan, 1), listener)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_belief_knows_no_order_and_no_company(seed: u64, length in 1_usize..12, other in 1_usize..12, by_bayes: bool) {
        let plan = point();
        let (_, memory) = memory("pointmass", 2, 2, &plan);
        let belief = NeuralBelief::new(memory.lens(), memory.groups(), &plan.belief, 1, &Device::flex()).unwrap();
        let belief = belief.from_source(if by_bayes { Source::Codes } else { Source::Encoder });
        let mut rng = stream(seed, "test", &[]);
        let set = memory.context(&mut rng, 0, length * plan.repeat);
        let company = memory.context(&mut rng, 1, other * plan.repeat);
        prop_assert_eq!(set.len(), length * memory.lens().token());
        let mut tokens: Vec<&[f32]> = set.chunks_exact(memory.lens().token()).collect();
        tokens.shuffle(&mut rng);
        let shuffled = tokens.concat();
        let alone = belief.infer(&[set]);
        let together = belief.infer(&[company, shuffled]);
        for (a, b) in alone.iter().zip(&together[belief.dim()..]) {
            prop_assert!((a - b).abs() < 1e-4, "{} {}", a, b);
        }
    }
}

#[test]
fn a_run_taken_up_again_goes_on_bit_for_bit() {
    let continuous = point();
    let compass = NeuralPlan { compass: 8, ..point() };
    let mut predictor = compass.clone();
    predictor.fb.forward = Form::Predictor;
    for (plan, name) in [
        (&continuous, "fb"),
        (&compass, "rfb"),
        (&predictor, "bfb"),
        (&compass, "oracle-id"),
        (&continuous, "hilp"),
        (&predictor, "lap"),
    ] {
        let (_, memory) = memory("pointmass", 2, 2, plan);
        let method = methods::find(name).unwrap();
        let (mut whole, _) = trainer(plan, &memory, method);
        let (mut first, _) = trainer(plan, &memory, method);
        (0..4).for_each(|step| drop(whole.train_step(step).unwrap()));
        (0..2).for_each(|step| drop(first.train_step(step).unwrap()));
        let mut file = TensorFile::default();
        first.save(&mut file);
        let (mut second, _) = trainer(plan, &memory, method);
        second.load(&file).unwrap();
        let last = (2..4).map(|step| second.train_step(step).unwrap()).last();
        let bytes = |learner: &FbTrainer| {
            let mut file = TensorFile::default();
            learner.save(&mut file);
            file.to_bytes().unwrap()
        };
        assert_eq!(bytes(&second), bytes(&whole), "{name}: {last:?}");
    }
    let (_, memory) = memory("pointmass", 2, 2, &compass);
    let belief = || BeliefTrainer::new(memory.clone(), &compass, 1, &Device::flex()).unwrap();
    let (mut whole, mut first, mut second) = (belief(), belief(), belief());
    (0..4).for_each(|step| drop(whole.train_step(step).unwrap()));
    (0..2).for_each(|step| drop(first.train_step(step).unwrap()));
    let mut file = TensorFile::default();
    first.save(&mut file);
    second.load(&file).unwrap();
    (2..4).for_each(|step| drop(second.train_step(step).unwrap()));
    let context = memory.context(&mut stream(1, "test", &[]), 0, 50);
    let context = [context];
    assert_eq!(second.belief().infer(&context), whole.belief().infer(&context));
}

#[test]
fn every_method_plays_frozen_and_online_with_moves_and_with_vectors() {
    for compass in [0, 8] {
        let plan = NeuralPlan { compass, ..point() };
        let (world, memory) = memory("pointmass", 2, 2, &plan);
        for method in methods::METHODS {
            let (trainer, listener) = trainer(&plan, &memory, method);
            let mut agent = NeuralAgent::new(trainer.model().clone(), listener, &memory, &plan, 1);
            if method.reward == RewardIn::Corrected {
                let config = CorrectionConfig { steps: 3, batch: 4, ..CorrectionConfig::default() };
                agent = agent.corrected_by(&memory, config, 1);
            }
            for (belief, split) in [(BeliefMode::Frozen, Split::Train), (BeliefMode::Online, Split::Test)] {
                let context = world.contexts(split)[0];
                let task = world.tasks(context).unwrap().remove(0);
                let game = Game { context, task, rng: stream(1, "game", &[]) };
                let mut env = world.instantiate(context).unwrap();
                let spec = world.spec();
                let act = |_: &[f32], rng: &mut _, action: &mut _| spec.action.sample(rng, action);
                let mut rng = stream(1, "walk", &[]);
                let walk = Trajectory::explore(&mut *env, spec, Start::Fixed, 50, &mut rng, act).unwrap();
                let mut team =
                    agent.players(&[&walk], &Acting { belief, outlook: Outlook::NONE, blend: 0.0 }).unwrap();
                let outcome = play(&*world, vec![game], &mut *team).unwrap()[0];
                assert!(outcome.success || outcome.steps == spec.horizon);
            }
        }
    }
}

#[test]
fn a_task_is_the_mean_of_rewarded_features_on_the_sphere() {
    let plan = NeuralPlan { compass: 8, ..point() };
    let (_, memory) = memory("pointmass", 2, 2, &plan);
    let (trainer, listener) = trainer(&plan, &memory, methods::find("fb").unwrap());
    let agent = NeuralAgent::new(trainer.model().clone(), listener, &memory, &plan, 1);
    let states = vec![(vec![1.0, 2.0], 2.0), (vec![15.0, 3.0], -1.0)];
    let [b0, b1] = [&states[0].0, &states[1].0].map(|obs| agent.model().backward(obs));
    let mut expected: Vec<f32> = b0.iter().zip(&b1).map(|(a, b)| 2.0 * a - b).collect();
    crate::latent::project(&mut expected);
    let near =
        |found: &[f32], expected: &[f32]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4);
    assert!(near(&agent.task(&Reward::Labelled { states, tolerance: 0.5 }), &expected));
    let goal = agent.task(&Reward::Goal { goal: vec![1.0, 2.0], tolerance: 1.0 });
    assert!(near(&goal, &b0));
    // A reward that is 1 everywhere asks for the mean of B over the data.
    let all = agent.task(&Reward::Function(Arc::new(|_| 1.0)));
    let mut mean = vec![0.0_f32; 8];
    let mut rng = stream(1, "labels", &[]);
    for _ in 0..10_000 {
        let group = memory.group(&mut rng);
        let b = agent.model().backward(memory.state(&mut rng, group).unwrap());
        mean.iter_mut().zip(b).for_each(|(m, b)| *m += b);
    }
    crate::latent::project(&mut mean);
    assert!(near(&all, &mean), "{all:?} {mean:?}");
}

#[test]
fn a_group_too_small_to_learn_from_is_refused() {
    let mut plan = small();
    plan.belief.shortest = 101;
    plan.belief.longest = 200;
    let world = make("doors", &WorldConfig { seed: 1, train: Some(2), test: Some(2) }).unwrap();
    let config = CollectConfig {
        contexts: world.contexts(Split::Train).to_vec(),
        episodes: 3,
        length: 100,
        start: Start::Random,
        seed: 1,
    };
    let folder = tempfile::tempdir().unwrap();
    let data =
        collect(&*world, &Policy::Uniform, &config, "test", &folder.path().join("data"), &|_| ()).unwrap();
    let error = Memory::new(data, &plan, 1).unwrap_err().to_string();
    assert!(error.contains("fewer than 2 episodes of at least 101"), "{error}");
}

/// The share of pairs that two lists put in the same order (Kendall), on a sample.
fn same_order(a: &[f64], b: &[f64]) -> f64 {
    let mut rng = stream(9, "pairs", &[]);
    let (mut same, mut all) = (0.0, 0.0);
    for _ in 0..20_000 {
        let [i, j] = [0, 0].map(|_: usize| rand::RngExt::random_range(&mut rng, 0..a.len()));
        if (b[i] - b[j]).abs() > 1e-9 {
            all += 1.0;
            same += f64::from(u8::from((a[i] > a[j]) == (b[i] > b[j])));
        }
    }
    same / all
}

/// On one layout, F B after a short training puts states into nearly the order of the exact successor measure of the
/// agent's own policy, and the policy reaches goals.
#[test]
fn on_one_layout_the_forward_backward_product_follows_the_exact_successor_measure() {
    let mut plan = NeuralPlan::default();
    plan.fb.dim = 48;
    plan.fb.preprocessor = vec![96];
    plan.fb.embedding = 64;
    plan.fb.trunk = vec![128];
    plan.fb.backward = vec![96];
    plan.fb.groups = 16;
    plan.fb.items = 16;
    plan.fb.steps = 3000;
    plan.fb.rate = 2e-3;
    plan.fb.gamma = 0.9;
    plan.fb.tau = 0.1;
    plan.fb.ortho = 10.0;
    plan.fb.value = 1000.0;
    plan.fb.ensemble = 1;
    let (world, memory) = memory("doors", 1, 100, &plan);
    let (mut trainer, listener) = trainer(&plan, &memory, methods::find("fb").unwrap());
    for step in 0..plan.fb.steps {
        trainer.train_step(step).unwrap();
    }
    let agent = NeuralAgent::new(trainer.model().clone(), listener, &memory, &plan, 1);
    let context = world.contexts(Split::Train)[0];
    let layout = world.grid().unwrap().layout(context).unwrap();
    let spec = world.spec();
    let cells: Vec<usize> = layout.free_cells().collect();
    let obs_of = |cell: usize| {
        let mut obs = vec![0.0; 2];
        spec.write_state(cell, &mut obs);
        obs
    };
    let goal = cells[cells.len() - 1];
    let z = agent.task(&Reward::Goal { goal: obs_of(goal), tolerance: 0.5 });
    let obs: Vec<f32> = cells.iter().flat_map(|&cell| obs_of(cell)).collect();
    let places = Places {
        features: agent.lens().features_of(&obs),
        obs: obs.clone(),
        told: z.clone(),
        beliefs: Vec::new(),
        groups: 1,
    };
    let (greedy, _) = agent.model().greedy(&places, &z);
    let choice = |cell: usize| cells.iter().position(|&c| c == cell).map_or(0, |i| greedy[i]);
    let policy = deterministic(layout.cells(), choice);
    let exact = SuccessorMeasure::of(&Dynamics::of(layout), &policy, f64::from(plan.fb.gamma));
    let values = agent.model().values(&agent.model().heads(&agent.model().params.weights(), &places), &z, 1);
    let to_goal = |i: usize| exact.after(cells[i / ACTIONS], i % ACTIONS)[goal];
    let exact_values: Vec<f64> = (0..values.len()).map(to_goal).collect();
    let found: Vec<f64> = values.iter().map(|q| f64::from(*q)).collect();
    let order = same_order(&found, &exact_values);
    assert!(order > 0.9, "same order in {order} of pairs");
    // From the start to every cell.
    let tasks = cells.iter().map(|&cell| Task {
        name: "cell".into(),
        reward: Reward::Goal { goal: obs_of(cell), tolerance: 0.5 },
    });
    let games: Vec<Game> = tasks
        .enumerate()
        .map(|(i, task)| Game { context, task, rng: stream(2, "game", &[i as u64]) })
        .collect();
    let mut env = world.instantiate(context).unwrap();
    let act = |_: &[f32], rng: &mut _, action: &mut _| spec.action.sample(rng, action);
    let mut rng = stream(1, "walk", &[]);
    let walk = Trajectory::explore(&mut *env, spec, Start::Fixed, 50, &mut rng, act).unwrap();
    let walks = vec![&walk; games.len()];
    let acting = Acting { belief: BeliefMode::Frozen, outlook: Outlook::NONE, blend: 0.0 };
    let outcomes = play(&*world, games, &mut *agent.players(&walks, &acting).unwrap()).unwrap();
    let won = outcomes.iter().filter(|outcome| outcome.success).count() as f64 / outcomes.len() as f64;
    assert!(won > 0.8, "won {won}");
}

/// DDPG on Pointmass: after some steps the actor's actions are worth more than random ones.
#[test]
fn the_actor_climbs_the_value() {
    let mut plan = point();
    plan.fb.groups = 8;
    plan.fb.items = 16;
    plan.fb.steps = 300;
    plan.actor.rate = 1e-3;
    let (_, memory) = memory("pointmass", 1, 8, &plan);
    let (mut trainer, _) = trainer(&plan, &memory, methods::find("fb").unwrap());
    let mut gains = Vec::new();
    for step in 0..plan.fb.steps {
        let metrics = trainer.train_step(step).unwrap();
        let find = |name: &str| metrics.iter().find(|(n, _)| *n == name).map(|(_, v)| *v).unwrap();
        gains.push(find("actor"));
    }
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    assert!(mean(&gains[250..]) > mean(&gains[..50]), "{gains:?}");
}

/// Oracle-ID is told nothing of a context it was not trained in.
#[test]
fn an_unseen_context_is_told_as_zeros() {
    let plan = NeuralPlan { compass: 8, ..point() };
    let (world, memory) = memory("pointmass", 2, 2, &plan);
    let method = methods::find("oracle-id").unwrap();
    let (listener, situations): (Listener, Situations) = Listener::train(method, &memory, None, &plan, 1);
    let [seen, unseen] = [Split::Train, Split::Test].map(|split| world.contexts(split)[1]);
    assert_eq!(listener.told(seen).0, [0.0, 1.0]);
    assert_eq!(listener.told(unseen).0, [0.0, 0.0]);
    assert_eq!(situations.conditions, [1.0, 0.0, 0.0, 1.0]);
}

/// Row by row, an agent that was kept and read back does what the batch does.
#[test]
fn an_agent_that_was_kept_acts_as_it_did() {
    for (compass, form) in [(0, Form::Paper), (8, Form::Paper), (8, Form::Predictor)] {
        let mut plan = NeuralPlan { compass, ..point() };
        plan.fb.forward = form;
        let (_, memory) = memory("pointmass", 2, 2, &plan);
        for name in ["fb", "rfb"] {
            let (trainer, listener) = trainer(&plan, &memory, methods::find(name).unwrap());
            let agent = NeuralAgent::new(trainer.model().clone(), listener, &memory, &plan, 1);
            let mut file = TensorFile::default();
            let card = agent.calibrated(&memory, 1).kept(&mut file);
            let file = TensorFile::from_bytes(&file.to_bytes().unwrap()).unwrap();
            let card: NeuralCard = serde_json::from_str(&serde_json::to_string(&card).unwrap()).unwrap();
            card.check(memory.lens().spec()).unwrap();
            let agent = Arc::new(NeuralAgent::of_kept(card, &file, &Device::flex()).unwrap());
            let z = agent.task(&Reward::Goal { goal: vec![6.0, 6.0], tolerance: 1.0 });
            let mut rng = stream(1, "test", &[]);
            let h = agent.listener.beliefs(&[Vec::new()]);
            let mut told = agent.listener.conditions(&h);
            told.extend_from_slice(&z);
            let mut pilot = NeuralBriefing::new(agent.clone(), &[]).steer(z.clone(), Outlook::NONE);
            for _ in 0..20 {
                let obs = memory.state(&mut rng, 0).unwrap().to_vec();
                let places = Places {
                    features: agent.lens().features_of(&obs),
                    obs: obs.clone(),
                    told: told.clone(),
                    beliefs: h.clone(),
                    groups: 1,
                };
                let (choice, vector) = trainer.model().greedy(&places, &z);
                let expected = agent.lens().moves().action(choice[0], &vector);
                pilot.restart();
                match (pilot.act(&obs), expected) {
                    (ActionBuf::Continuous(a), ActionBuf::Continuous(b)) => {
                        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
                    }
                    (a, b) => assert_eq!(a, b),
                }
            }
        }
    }
}

/// Beliefs from a refreshed pilot stay finite, bounded and follow what is met.
#[test]
fn an_online_belief_follows_what_is_met_and_forgets_nothing_it_was_given() {
    let plan = NeuralPlan { compass: 8, ..point() };
    let (_, memory) = memory("pointmass", 2, 2, &plan);
    let (trainer, listener) = trainer(&plan, &memory, methods::find("bfb").unwrap());
    let agent = Arc::new(NeuralAgent::new(trainer.model().clone(), listener, &memory, &plan, 1));
    let z = agent.task(&Reward::Goal { goal: vec![6.0, 6.0], tolerance: 1.0 });
    let nothing = NeuralBriefing::new(agent.clone(), &[]);
    let before = nothing.doubt();
    let mut pilot = nothing.steer(z, Outlook::NONE);
    let mut obs = vec![4.0, 4.0];
    for step in 0..400 {
        let action = pilot.act(&obs);
        let next = vec![obs[0] + 0.1, 4.0 + (step % 3) as f32];
        pilot.observe(&obs, &action, &next);
        obs = next;
    }
    let after = pilot.doubt();
    assert_eq!((before.transitions, after.transitions), (0, plan.belief.longest / plan.repeat));
    assert!(after.belief != before.belief && after.belief.iter().all(|x| x.is_finite()));
}
