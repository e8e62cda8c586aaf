//! Any reward: tasks that are no goals, scored by exact returns.
//!
//! On a grid with a frozen belief an agent is a table of actions, so its discounted return from every cell is computed, not
//! sampled. The score of tasks is what was gained over random actions, as a share of what the best policy on the true map gains.

use super::{EvalConfig, explore};
use crate::agent::{Agent, TaskPolicy};
use crate::error::LearnError;
use crate::planner::Planner;
use crate::planner::graph::argmax;
use serde::{Deserialize, Serialize};
use windvane_world::grid::{ACTIONS, RewardKind, RewardTask};
use windvane_world::rng::stream;
use windvane_world::{Cmdp, Reward, Split};

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
    /// Discounted return beyond random actions', summed over tasks, starts and rounds.
    pub gained: f64,
    /// The same of the best policy on the true map.
    pub possible: f64,
}

/// Whether there are such tasks for this agent: its states are those of a grid.
pub fn has_reward_tasks(world: &dyn Cmdp, agent: &Agent) -> bool {
    world.grid().is_some() && agent.listed().is_some()
}

/// Scores an agent, its belief frozen, on every context of a split; no rows where there are no such tasks.
pub fn evaluate_rewards(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    config: &EvalConfig,
    seed: u64,
) -> Result<Vec<RewardRow>, LearnError> {
    let (Some(grid), Some(model)) = (world.grid(), agent.listed()) else { return Ok(Vec::new()) };
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
        for kind in RewardKind::ALL {
            let of_kind = || tasks.iter().zip(&gains).filter(|(task, _)| task.kind == kind);
            if of_kind().next().is_some() {
                rows.push(RewardRow {
                    split,
                    context: context.0,
                    kind,
                    task_policy: config.task_policy,
                    planner: config.planner,
                    context_steps: config.context_steps,
                    gained: of_kind().map(|(_, gain)| gain[0]).sum(),
                    possible: of_kind().map(|(_, gain)| gain[1]).sum(),
                });
            }
        }
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
