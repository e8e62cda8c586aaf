//! The learner on listed states against what is known exactly.

use super::agent::{FiniteAgent, Listener};
use super::belief::{BeliefConfig, BeliefTrainer, FiniteBelief};
use super::exam::Examiner;
use super::fb::{FbConfig, FbTrainer};
use super::memory::Memory;
use super::play::evidence_of;
use super::situations::{Situations, TaskDraw};
use super::survey::Survey;
use super::sweeps;
use super::target::{Dynamics as Source, Goal, Group, Reward as Stakes};
use super::view::BoxConfig;
use crate::agent::Outlook;
use crate::broken::{Broken, told_apart};
use crate::eval::{EvalConfig, explore};
use crate::nn::TensorFile;
use crate::train::Learner as _;
use burn::tensor::Device;
use proptest::prelude::*;
use rand::seq::SliceRandom as _;
use std::sync::Arc;
use windvane_world::collect::{CollectConfig, Policy, collect};
use windvane_world::grid::{
    ACTIONS, Dynamics, Failure, GridWorld, Objective, Plan, SuccessorMeasure, deterministic,
};
use windvane_world::registry::{WorldConfig, make};
use windvane_world::rng::stream;
use windvane_world::{Cmdp, Reward, Split, Start};

/// A world and what random episodes say of it.
pub(super) fn surveyed(env: &str, contexts: usize, episodes: usize) -> (Box<dyn Cmdp>, Arc<Survey>) {
    let world = make(env, &WorldConfig { seed: 3, train: Some(contexts), test: Some(2) }).unwrap();
    let config = CollectConfig {
        contexts: world.contexts(Split::Train).to_vec(),
        episodes,
        length: 100,
        start: Start::Random,
        seed: 3,
    };
    let folder = tempfile::tempdir().unwrap();
    let data =
        collect(&*world, &Policy::Uniform, &config, "test", &folder.path().join("data"), &|_| ()).unwrap();
    let survey = Arc::new(Survey::of(&data, &BoxConfig::default()).unwrap());
    (world, survey)
}

/// The cell of each state.
pub(super) fn cells(world: &dyn Cmdp, survey: &Survey) -> Vec<usize> {
    let mut obs = vec![0.0; world.spec().obs_dim()];
    let cell = |state: usize| {
        survey.write_state(state, &mut obs);
        world.spec().state_of(&obs).unwrap()
    };
    (0..survey.states()).map(cell).collect()
}

/// The true dynamics of the first training context, as a belief that knows them would decode them.
pub(super) fn truth(world: &dyn Cmdp, survey: &Survey) -> Vec<f32> {
    let grid = world.grid().unwrap();
    let layout = grid.layout(world.contexts(Split::Train)[0]).unwrap();
    let cells = cells(world, survey);
    let p = |token: usize| {
        let pair = token / survey.width();
        let real = token % survey.width() < survey.outcomes(pair);
        let next = cells[survey.successors()[token] as usize];
        f32::from(u8::from(real && layout.step(cells[pair / ACTIONS], pair % ACTIONS) == next))
    };
    (0..survey.vocabulary()).map(p).collect()
}

fn small_belief(survey: &Survey) -> FiniteBelief {
    let config = BeliefConfig { width: 16, ..BeliefConfig::default() };
    FiniteBelief::new(survey, config, 1, &Device::flex()).unwrap()
}

#[test]
fn a_way_that_was_shut_in_all_known_contexts_can_still_be_told() {
    let (world, survey) = surveyed("doors", 2, 20);
    let cells = cells(&*world, &survey);
    let side = world.grid().unwrap().layouts()[0].side();
    for (state, &cell) in cells.iter().enumerate() {
        for action in 0..ACTIONS {
            let ahead = windvane_world::grid::ahead(side, cell, action);
            let Some(next) = ahead.and_then(|ahead| cells.iter().position(|&c| c == ahead)) else { continue };
            assert!(survey.token(state, action, next).is_some(), "from {cell} by {action}");
            assert!(survey.token(state, action, state).is_some(), "staying in {cell} under {action}");
        }
    }
    assert_eq!(survey.width(), 2, "one ahead, or not at all");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn a_belief_is_of_a_set(seed in 0_u64..1000, length in 0_usize..60) {
        let (_, survey) = surveyed("doors", 2, 3);
        let belief = small_belief(&survey);
        let mut tokens: Vec<u32> = survey.episode(0)[..length].to_vec();
        let infer = |tokens: &[u32]| {
            let mut evidence = vec![0.0; survey.states() * 2];
            tokens.iter().for_each(|&token| survey.add_evidence(token as usize, &mut evidence));
            belief.infer(&evidence)
        };
        let before = infer(&tokens);
        let again: Vec<u32> = tokens.iter().chain(&tokens).copied().collect();
        prop_assert_eq!(&infer(&again), &before, "repetition says nothing new");
        tokens.shuffle(&mut stream(seed, "shuffle", &[]));
        prop_assert_eq!(infer(&tokens), before, "order says nothing");
    }
}

#[test]
fn memory_recognises_a_group_and_notices_when_none_fits() {
    let (_, survey) = surveyed("doors", 4, 30);
    let memory = Memory::of(&survey);
    for (number, group) in survey.groups().iter().enumerate() {
        let mut evidence = vec![0.0; survey.states() * 2];
        group.counts.iter().for_each(|&(token, _)| survey.add_evidence(token as usize, &mut evidence));
        let recalled = memory.recall(&evidence, &[]);
        assert_eq!(recalled.fit, 1.0, "nothing contradicts its own group");
        assert!(recalled.alone > 0.8, "no other fits as well");
        for (seen, (mean, odds)) in evidence.chunks_exact(2).zip(recalled.mean.iter().zip(&recalled.odds)) {
            let sign = if seen[0] > 0.0 { 1.0 } else { -seen[1] };
            assert!(sign == 0.0 || mean * sign > 0.8, "{sign} recalled as {mean}");
            assert!(sign == 0.0 || odds * sign > 1.5, "{sign} recalled with odds {odds}");
        }
        assert!(memory.recall(&evidence, &[number]).fit < 1.0, "the others contradict it");
        // A world where everything is the other way round is none of them.
        evidence.chunks_exact_mut(2).for_each(|seen| seen.swap(0, 1));
        evidence.chunks_exact_mut(2).filter(|seen| seen[0] == seen[1]).for_each(|seen| seen[0] = 0.0);
        assert!(memory.recall(&evidence, &[]).fit < 0.2);
    }
    let nothing = memory.recall(&vec![0.0; survey.states() * 2], &[]);
    assert_eq!(nothing.fit, 1.0, "nothing seen fits all");
    assert!((nothing.alone - 0.25).abs() < 1e-6, "four of them");
}

#[test]
fn sweeps_on_the_true_dynamics_are_value_iteration() {
    let (world, survey) = surveyed("four-rooms", 1, 60);
    let grid: &GridWorld = world.grid().unwrap();
    let context = world.contexts(Split::Train)[0];
    let (p, cells) = (truth(&*world, &survey), cells(&*world, &survey));
    let layout = grid.layout(context).unwrap();
    for task in world.tasks(context).unwrap() {
        let reward: Vec<f32> = (0..survey.states())
            .map(|state| {
                let mut obs = vec![0.0; 2];
                survey.write_state(state, &mut obs);
                task.reward.of(&obs)
            })
            .collect();
        let mut v = vec![0.0; survey.states()];
        let sweeps = Outlook { lookahead: 400, retry: 1.0 };
        let q = sweeps::optimise(&survey, &p, &reward, 0.95, sweeps, &mut v);
        let exact = Plan::solve(&Dynamics::of(layout), &Objective::of(&task, world.spec()).unwrap(), 0.95);
        for (state, &cell) in cells.iter().enumerate().filter(|(_, cell)| layout.is_free(**cell)) {
            let q = &q[state * ACTIONS..][..ACTIONS];
            let best = q.iter().copied().fold(f32::MIN, f32::max);
            let chosen = exact.best(cell);
            assert!(q[chosen] >= best - 1e-4 * best.abs(), "{cell}: {q:?}, the plan takes {chosen}");
        }
    }
}

/// On the average of three layouts, where a door may be a wall, with rewards everywhere.
#[test]
fn a_second_try_is_a_new_one_or_refused_for_good_as_in_the_exact_plan() {
    let (world, survey) = surveyed("doors", 3, 60);
    let side = world.grid().unwrap().layouts()[0].side();
    let (p, cells, gamma) = (survey.average(), cells(&*world, &survey), 0.9);
    let reward: Vec<f32> = (0..survey.states()).map(|state| ((state * 5) % 7) as f32 - 2.0).collect();
    let mut success = vec![0.0; side * side * ACTIONS];
    let mut collect = vec![0.0; side * side];
    for (state, &cell) in cells.iter().enumerate() {
        collect[cell] = f64::from(reward[state]);
        for action in 0..ACTIONS {
            let tokens = (state * ACTIONS + action) * survey.width()..;
            let outcomes = p[tokens.clone()].iter().zip(&survey.successors()[tokens]).take(survey.width());
            let gone = outcomes.filter(|(_, next)| **next as usize != state).map(|(p, _)| f64::from(*p));
            success[cell * ACTIONS + action] = gone.sum();
        }
    }
    assert!(success.iter().any(|p| *p > 0.1 && *p < 0.9), "some doors are doubtful");
    let (dynamics, objective) = (Dynamics::new(side, success).unwrap(), Objective::Collect(collect));
    for (retry, failure) in [(1.0, Failure::Chance), (0.0, Failure::Lasts)] {
        let mut v = vec![0.0; survey.states()];
        let outlook = Outlook { lookahead: 300, retry };
        let q = sweeps::optimise(&survey, &p, &reward, gamma, outlook, &mut v);
        let exact = Plan::solve_where(failure, &dynamics, &objective, f64::from(gamma));
        for (pair, q) in q.iter().enumerate() {
            let exact = exact.moves()[cells[pair / ACTIONS] * ACTIONS + pair % ACTIONS];
            assert!((f64::from(*q) - exact).abs() < 1e-3, "{failure:?}, {pair}: {q}, exactly {exact}");
        }
    }
}

#[test]
fn a_policy_is_greedy_when_cold_and_shares_ties_when_warm() {
    let q = [1.0, 2.0, 2.0, 0.0];
    let mut policy = [0.0; 4];
    sweeps::policy(4, &q, 0.0, &mut policy);
    assert_eq!(policy, [0.0, 1.0, 0.0, 0.0]);
    sweeps::policy(4, &q, 0.02, &mut policy);
    assert!((policy[1] - 0.5).abs() < 1e-6 && policy[1] == policy[2], "{policy:?}");
    assert!((policy.iter().sum::<f32>() - 1.0).abs() < 1e-6);
}

#[test]
fn the_exact_successor_measure_is_what_the_target_aims_at() {
    let (world, survey) = surveyed("doors", 1, 60);
    let layout = world.grid().unwrap().layout(world.contexts(Split::Train)[0]).unwrap();
    let (p, cells, states) = (truth(&*world, &survey), cells(&*world, &survey), survey.states());
    let gamma = 0.9;
    // B is the identity and U nothing: after many sweeps the target is the exact measure of its own greedy policy.
    let b: Vec<f32> = (0..states * states).map(|i| f32::from(u8::from(i / states == i % states))).collect();
    let stakes = Stakes::new(&b, survey.rho(), states);
    let goal = states / 2;
    let z = &b[goal * states..][..states];
    let nothing = vec![0.0; states * states];
    let group = Group {
        survey: &survey,
        f: vec![&nothing],
        b: &b,
        z,
        reward: &stakes,
        gamma,
        temperature: 0.0,
        goal: Goal::Measure,
    };
    let density = group.aim(Source::Decoded { p: &p, sweeps: 300 }).density;
    let (mut v, mut q) = (vec![0.0; states], vec![0.0; survey.pairs()]);
    let _ =
        sweeps::optimise(&survey, &p, &stakes.of(z), gamma, Outlook { lookahead: 300, retry: 1.0 }, &mut v);
    sweeps::expected(&survey, &p, &v, &mut q);
    let mut best = vec![0; states];
    sweeps::greedy(ACTIONS, &q, &mut best);
    let state_of = |cell: usize| cells.iter().position(|&c| c == cell);
    let policy = deterministic(layout.cells(), |cell| state_of(cell).map_or(0, |state| best[state] as usize));
    let exact = SuccessorMeasure::of(&Dynamics::of(layout), &policy, f64::from(gamma));
    for (s, &cell) in cells.iter().enumerate().filter(|(_, cell)| layout.is_free(**cell)) {
        let after = exact.after(cell, best[s] as usize);
        for (t, &to) in cells.iter().enumerate() {
            let now = f64::from(u8::from(s == t)) + f64::from(gamma) * after[to];
            let ours = f64::from(density[s * states + t] * survey.rho()[t]);
            assert!((ours - now).abs() < 1e-3, "from {cell} to {to}: {ours}, exactly {now}");
        }
    }
}

#[test]
fn one_layout_is_learned() {
    let (world, survey) = surveyed("four-rooms", 1, 100);
    let config = FbConfig { steps: 300, ..FbConfig::default() };
    let states = survey.states();
    let situations = Situations {
        width: states,
        conditions: vec![0.0; states],
        dynamics: survey.average(),
        groups: vec![0],
        ..Situations::default()
    };
    let mut trainer =
        FbTrainer::new(survey.clone(), situations, TaskDraw::Sphere, config, 1, &Device::flex()).unwrap();
    let exact = |trainer: &FbTrainer, lookahead: usize| {
        let agent = FiniteAgent::new(survey.clone(), Listener::Deaf, trainer.model().clone());
        let eval = EvalConfig { lookahead, ..EvalConfig::default() };
        let grid = world.grid().unwrap();
        Examiner { world: &*world, grid, agent: &agent, eval, seed: 0 }.exactness(1, 20).unwrap()
    };
    let before = exact(&trainer, 0).optimal_share();
    for step in 0..config.steps {
        trainer.train_step(step).unwrap();
    }
    let (alone, ahead) = (exact(&trainer, 0), exact(&trainer, 32));
    assert!(alone.optimal_share() > before + 0.25, "F alone: {alone:?}, before: {before}");
    assert!(ahead.optimal_share() > 0.995, "with lookahead: {ahead:?}");
    assert!(ahead.error < 0.5 * alone.error, "{} {}", ahead.error, alone.error);
}

/// An agent on Doors whose belief was trained for a few seconds, its F not at all.
fn believer() -> (Box<dyn Cmdp>, Arc<Survey>, FiniteAgent) {
    let (world, survey) = surveyed("doors", 8, 30);
    let config = BeliefConfig { width: 16, steps: 150, batch: 32, ..BeliefConfig::default() };
    let mut trainer = BeliefTrainer::new(survey.clone(), config, 1, &Device::flex()).unwrap();
    for step in 0..config.steps {
        trainer.train_step(step).unwrap();
    }
    let model = super::model::FbModel::new(&survey, survey.states(), FbConfig::default(), 1, &Device::flex())
        .unwrap();
    let listener = Listener::Belief(Arc::new(trainer.belief().clone()));
    let agent = FiniteAgent::new(survey.clone(), listener, model);
    (world, survey, agent)
}

#[test]
fn a_trained_belief_knows_the_walls_it_has_met() {
    let (world, survey, agent) = believer();
    let cells = cells(&*world, &survey);
    let (mut right, mut all) = (0, 0);
    for &context in world.contexts(Split::Test) {
        let layout = world.grid().unwrap().layout(context).unwrap();
        let eval = EvalConfig { context_steps: 300, ..EvalConfig::default() };
        let evidence = evidence_of(&agent, &explore(&*world, context, &eval, 0, 0).unwrap());
        let h = agent.situations(&evidence).axes;
        let met = |state: &usize| evidence[state * 2] + evidence[state * 2 + 1] > 0.0;
        for state in (0..survey.states()).filter(met) {
            right += usize::from((h[state] > 0.0) == layout.is_free(cells[state]));
            all += 1;
        }
    }
    assert!(right as f64 >= 0.97 * f64::from(all), "{right} of {all}");
}

#[test]
fn a_belief_notices_broken_dynamics_and_survives_its_folder() {
    let (world, survey, agent) = believer();
    let eval = EvalConfig { context_steps: 80, rounds: 6, ..EvalConfig::default() };
    for broken in [Broken::Mirrored, Broken::Turned] {
        let area = told_apart(&*world, &agent, broken, &eval, 0).unwrap().unwrap();
        assert!(area > 0.95, "{broken:?}: {area}");
    }
    // What was kept values actions as before.
    let mut file = TensorFile::default();
    let card = agent.kept(&mut file);
    let file = TensorFile::from_bytes(&file.to_bytes().unwrap()).unwrap();
    let card = serde_json::from_str(&serde_json::to_string(&card).unwrap()).unwrap();
    let again = FiniteAgent::of_kept(card, world.spec(), &file, &Device::flex()).unwrap();
    assert_eq!(again.usual.len(), 200);
    let walk = explore(&*world, world.contexts(Split::Test)[0], &eval, 0, 0).unwrap();
    let z = agent.task(&Reward::Goal { goal: vec![7.0, 4.0], tolerance: 0.5 });
    let values = |agent: &FiniteAgent| {
        agent.action_values(
            &agent.situations(&evidence_of(agent, &walk)),
            &z,
            Outlook { lookahead: 8, retry: 0.5 },
        )
    };
    assert_eq!(values(&again), values(&agent));
    assert_eq!(values(&agent).len(), survey.pairs());
}
