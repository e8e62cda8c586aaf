//! The true regret of a trained agent, and what the theorem allows.

use crate::agent::{Agent, Known};
use crate::error::LearnError;
use crate::eval::explore;
use crate::fb::ListedModel;
use crate::fb::config::ForwardForm;
use crate::planner::graph::argmax;
use crate::run::Run;
use serde::Serialize;
use windvane_world::grid::{ACTIONS, Dynamics, GridWorld, Objective, Plan, SuccessorMeasure, deterministic};
use windvane_world::{Cmdp, ContextId, Reward, Split};

/// The true regret of a run's policy for one goal in one context, and what the theorem allows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Regret {
    /// The method.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Seen in training, or not.
    pub split: Split,
    /// The context.
    pub context: u64,
    /// The mean of Q* - Q over states and actions.
    pub regret: f64,
    /// The largest error of F B over states and actions, in L2(rho).
    pub error: f64,
    /// `3 R error / (1 - gamma)`, R = 1.
    pub bound: f64,
}

/// The regrets of a run on the first `contexts` contexts of each split, for each of their goals, acting on F alone.
pub fn regrets(
    run: &Run,
    world: &dyn Cmdp,
    grid: &GridWorld,
    agent: &Agent,
    contexts: usize,
) -> Result<Vec<Regret>, LearnError> {
    let mut all = Vec::new();
    let Some(model) = agent.listed() else { return Ok(all) };
    for split in [Split::Train, Split::Test] {
        for &context in world.contexts(split).iter().take(contexts) {
            let known = agent.known_after(context, &explore(world, context, &run.plan.eval, run.seed, 0)?);
            for &goal in grid.goals(context)? {
                let (regret, error) = regret_of(world, grid, (agent, model), &known, context, goal)?;
                let gamma = f64::from(model.config.gamma);
                all.push(Regret {
                    method: run.method.name.to_owned(),
                    seed: run.seed,
                    split,
                    context: context.0,
                    regret,
                    error,
                    bound: 3.0 * error / (1.0 - gamma),
                });
            }
        }
    }
    Ok(all)
}

fn regret_of(
    world: &dyn Cmdp,
    grid: &GridWorld,
    (agent, model): (&Agent, &ListedModel),
    known: &Known,
    context: ContextId,
    goal: usize,
) -> Result<(f64, f64), LearnError> {
    let (layout, table, config) = (grid.layout(context)?, &model.table, &model.config);
    let (states, gamma) = (table.states(), f64::from(config.gamma));
    let obs = |cell: usize| {
        let mut obs = vec![0.0; world.spec().obs_dim()];
        world.spec().write_state(cell, &mut obs);
        obs
    };
    let cells: Vec<Option<usize>> = (0..layout.cells()).map(|cell| table.state(&obs(cell))).collect();
    let z = agent.task(&Reward::Goal { goal: obs(goal), tolerance: 0.5 });
    let q = model.action_values(&known.dynamics, &z);
    let greedy = |cell: usize| cells[cell].map_or(0, |state| argmax(&q[state * ACTIONS..][..ACTIONS]));
    let dynamics = Dynamics::of(layout);
    let measure = SuccessorMeasure::of(&dynamics, &deterministic(layout.cells(), greedy), gamma);
    let reward: Vec<f64> = (0..layout.cells()).map(|cell| f64::from(u8::from(cell == goal))).collect();
    let best = Plan::solve(&dynamics, &Objective::Collect(reward), gamma);
    // Shares of discounted time as densities of a successor measure over uniform states.
    let rows = model.measure(&known.dynamics, &z);
    let width = rows.len() / states / if config.forward == ForwardForm::Paper { ACTIONS } else { 1 };
    let density = |row: usize, to: usize| f64::from(rows[row * width + to]) * states as f64 / (1.0 - gamma);
    let ours = |state: usize, action: usize, to: usize| match config.forward {
        ForwardForm::Paper => density(state * ACTIONS + action, to),
        ForwardForm::Predictor => {
            let pair = state * ACTIONS + action;
            let tokens = pair * table.width()..(pair + 1) * table.width();
            let outcomes = known.dynamics[tokens.clone()].iter().zip(&table.successors()[tokens]);
            outcomes.filter(|(p, _)| **p > 1e-6).map(|(p, &s)| f64::from(*p) * density(s as usize, to)).sum()
        }
    };
    let (mut regret, mut count, mut worst) = (0.0, 0.0, 0.0_f64);
    for cell in layout.free_cells() {
        let Some(state) = cells[cell] else { continue };
        for action in 0..ACTIONS {
            let after = measure.after(cell, action);
            regret += best.moves()[cell * ACTIONS + action] - after[goal];
            count += 1.0;
            let mut reached = vec![0.0; states];
            for (state, m) in cells.iter().zip(after) {
                if let Some(state) = state {
                    reached[*state] = *m;
                }
            }
            let rho = 1.0 / states as f64;
            let error: f64 = if model.has_given_features() {
                0.0
            } else {
                let off = |(to, m): (usize, &f64)| rho * (ours(state, action, to) - m / rho).powi(2);
                reached.iter().enumerate().map(off).sum()
            };
            worst = worst.max(error.sqrt());
        }
    }
    Ok((regret / f64::max(count, 1.0), worst))
}
