//! Any reward: tasks that are no goals.
//!
//! The score of tasks is what was gained over random actions, as a share of what the best policy on the true map gains. On a grid
//! with a frozen belief an agent is a table of actions, so its discounted return from every cell is computed, not sampled.
//! Elsewhere returns are sums of rewards of episodes from random starts.

use super::{BeliefMode, EvalConfig, episode, evaluate_tasks, explore};
use crate::agent::{Agent, TaskPolicy};
use crate::error::LearnError;
use crate::planner::Planner;
use crate::planner::graph::argmax;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use windvane_world::grid::{ACTIONS, RewardKind, RewardTask};
use windvane_world::protocol::{RandomPolicy, rollout_from};
use windvane_world::rng::stream;
use windvane_world::{Cmdp, ContextId, Reward, SampledTask, Split, Start};

/// Tasks of each kind in each context.
const EACH: usize = 2;

/// What an agent gained on the tasks of one kind in one context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewardRow {
    /// Contexts seen in training, or not.
    pub split: Split,
    /// The context.
    pub context: u64,
    /// The kind of reward.
    pub kind: RewardKind,
    /// How rewards become actions.
    pub task_policy: TaskPolicy,
    /// Who chose actions.
    pub planner: Planner,
    /// Length of the random trajectory seen before.
    pub context_steps: usize,
    /// Return (discounted on grids) beyond random actions', summed over tasks, starts and rounds.
    pub gained: f64,
    /// The same of the best policy on the true map.
    pub possible: f64,
}

/// Whether there are such tasks for this agent.
pub fn has_reward_tasks(world: &dyn Cmdp, agent: &Agent) -> Result<bool, LearnError> {
    if world.grid().is_some() {
        return Ok(agent.listed().is_some());
    }
    let Some(&context) = world.contexts(Split::Train).first() else { return Ok(false) };
    Ok(!world.reward_tasks(context, &mut stream(0, "rewards", &[]), 1)?.is_empty())
}

/// Scores an agent, its belief frozen, on every context of a split; no rows where there are no such tasks.
pub fn evaluate_rewards(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    config: &EvalConfig,
    seed: u64,
) -> Result<Vec<RewardRow>, LearnError> {
    let Some(grid) = world.grid() else { return sampled_rewards(world, agent, split, config, seed) };
    let Some(model) = agent.listed() else { return Ok(Vec::new()) };
    let table = &model.table;
    let gamma = f64::from(model.config.gamma);
    let mut obs = vec![0.0; world.spec().obs_dim()];
    let mut place = |state: usize| {
        table.write_obs(state, &mut obs);
        (world.spec().state_of(&obs).unwrap_or(0), obs.clone())
    };
    let places: Vec<(usize, Vec<f32>)> = (0..table.states()).map(&mut place).collect();
    let mut rows = Vec::new();
    for &context in world.contexts(split).iter().take(config.contexts) {
        let layout = grid.layout(context)?;
        let tasks = RewardTask::draw(layout, &mut stream(seed, "rewards", &[context.0]), EACH);
        let vector = |task: &RewardTask| {
            let states = places.iter().map(|(cell, obs)| (obs.clone(), task.reward[*cell] as f32)).collect();
            agent.task(&Reward::Labelled { states, tolerance: 0.5 })
        };
        let z: Vec<f32> = tasks.iter().flat_map(vector).collect();
        let mut gains = vec![[0.0; 2]; tasks.len()];
        for round in 0..config.rounds {
            let trajectory = explore(world, context, config, seed, round)?;
            let dynamics = agent.known_after(context, &trajectory).dynamics.repeat(tasks.len());
            let q = agent.listed_values(model, &dynamics, &z, config.planner, config.task_policy);
            for ((task, q), gain) in tasks.iter().zip(q.chunks_exact(table.pairs())).zip(&mut gains) {
                let mut choice = vec![0; layout.cells()];
                for ((cell, _), q) in places.iter().zip(q.chunks_exact(ACTIONS)) {
                    choice[*cell] = argmax(q);
                }
                let [gained, possible] = task.gain(layout, &choice, gamma);
                *gain = [gain[0] + gained, gain[1] + possible];
            }
        }
        let gains = tasks.iter().map(|task| task.kind).zip(gains).collect::<Vec<_>>();
        rows.extend(rows_of(&gains, split, context, config));
    }
    Ok(rows)
}

/// The rows of one context from what was gained on each of its tasks, and could have been.
fn rows_of(
    gains: &[(RewardKind, [f64; 2])],
    split: Split,
    context: ContextId,
    config: &EvalConfig,
) -> impl Iterator<Item = RewardRow> {
    let row = move |kind: RewardKind| {
        let of_kind = || gains.iter().filter(|(of, _)| *of == kind).map(|(_, gain)| gain);
        of_kind().next().map(|_| RewardRow {
            split,
            context: context.0,
            kind,
            task_policy: config.task_policy,
            planner: config.planner,
            context_steps: config.context_steps,
            gained: of_kind().map(|gain| gain[0]).sum(),
            possible: of_kind().map(|gain| gain[1]).sum(),
        })
    };
    RewardKind::ALL.into_iter().filter_map(row)
}

/// The same where returns have to be sampled.
fn sampled_rewards(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    config: &EvalConfig,
    seed: u64,
) -> Result<Vec<RewardRow>, LearnError> {
    let contexts: Vec<ContextId> = world.contexts(split).iter().copied().take(config.contexts).collect();
    let drawn = contexts
        .par_iter()
        .map(|context| Ok(world.reward_tasks(*context, &mut stream(seed, "rewards", &[context.0]), EACH)?))
        .collect::<Result<Vec<_>, LearnError>>()?;
    let tasks = |context: ContextId| {
        let place = contexts.iter().position(|other| *other == context);
        Ok(place.map(|i| drawn[i].iter().map(|task| task.task.clone()).collect()).unwrap_or_default())
    };
    let trajectory = |context, round| explore(world, context, config, seed, round);
    let mode = BeliefMode::Frozen;
    let scored =
        evaluate_tasks(world, agent, split, mode, config, seed, trajectory, (Start::Random, tasks))?.0;
    let mut scored = scored.into_iter();
    let mut obs = vec![0.0; world.spec().obs_dim()];
    let mut rows = Vec::new();
    for (&context, tasks) in contexts.iter().zip(&drawn) {
        let mut gains = Vec::with_capacity(tasks.len());
        for SampledTask { kind, task, best } in tasks {
            let mut gain = [0.0; 2];
            for (round, row) in (0..config.rounds).zip(scored.by_ref()) {
                let begun = episode(context, task, round, seed);
                world.instantiate(context)?.reset(Start::Random, &mut begun.rng.clone(), &mut obs)?;
                let mut random = RandomPolicy(world.spec().action.clone());
                let by_chance = rollout_from(world, begun, Start::Random, &mut random)?.reward;
                gain[0] += f64::from(row.reward - by_chance);
                gain[1] += f64::from(best(&obs) - by_chance);
            }
            gains.push((*kind, gain));
        }
        rows.extend(rows_of(&gains, split, context, config));
    }
    Ok(rows)
}

/// The score of each kind, the ratio of sums over contexts, and last their mean.
pub fn reward_scores<'a>(rows: impl Iterator<Item = &'a RewardRow> + Clone) -> Vec<(&'static str, f64)> {
    let mut scores = Vec::new();
    for kind in RewardKind::ALL {
        let of_kind = rows.clone().filter(|row| row.kind == kind);
        let [gained, possible] =
            of_kind.fold([0.0, 0.0], |sum, row| [sum[0] + row.gained, sum[1] + row.possible]);
        if possible > 0.0 {
            scores.push((kind.title(), gained / possible));
        }
    }
    let mean = scores.iter().map(|(_, score)| score).sum::<f64>() / scores.len().max(1) as f64;
    scores.push(("mean", mean));
    scores
}
