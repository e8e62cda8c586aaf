//! The true regret of a trained agent, and what the theorem allows.

use crate::agent::Outlook;
use crate::error::LearnError;
use crate::eval::explore;
use crate::finite::agent::FiniteAgent;
use crate::finite::nets::Forward;
use crate::finite::play::evidence_of;
use crate::finite::situations::Situations;
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
    agent: &FiniteAgent,
    contexts: usize,
) -> Result<Vec<Regret>, LearnError> {
    let mut all = Vec::new();
    for split in [Split::Train, Split::Test] {
        for &context in world.contexts(split).iter().take(contexts) {
            let walk = explore(world, context, &run.plan.eval, run.seed, 0)?;
            let situation = agent.situations_in(&[context], &evidence_of(agent, &walk));
            for &goal in grid.goals(context)? {
                let (regret, error) = regret_of(world, grid, agent, &situation, context, goal)?;
                let gamma = f64::from(agent.model().config().gamma);
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
    agent: &FiniteAgent,
    situation: &Situations,
    context: ContextId,
    goal: usize,
) -> Result<(f64, f64), LearnError> {
    let (layout, survey, config) = (grid.layout(context)?, agent.survey(), agent.model().config());
    let (states, dim, gamma) = (survey.states(), config.nets.dim, f64::from(config.gamma));
    let obs = |cell: usize| {
        let mut obs = vec![0.0; world.spec().obs_dim()];
        world.spec().write_state(cell, &mut obs);
        obs
    };
    let z = agent.task(&Reward::Goal { goal: obs(goal), tolerance: 0.5 });
    let q = agent.action_values(situation, &z, Outlook::NONE);
    let cells: Vec<Option<usize>> = (0..layout.cells()).map(|cell| survey.state(&obs(cell))).collect();
    let greedy = |cell: usize| {
        let q = cells[cell].map_or(&[0.0; ACTIONS][..], |state| &q[state * ACTIONS..][..ACTIONS]);
        (1..ACTIONS).fold(0, |best, a| if q[a] > q[best] { a } else { best })
    };
    let dynamics = Dynamics::of(layout);
    let measure = SuccessorMeasure::of(&dynamics, &deterministic(layout.cells(), greedy), gamma);
    let reward: Vec<f64> = (0..layout.cells()).map(|cell| f64::from(u8::from(cell == goal))).collect();
    let best = Plan::solve(&dynamics, &Objective::Collect(reward), gamma);
    // F B in density, `[states * actions, states]`, or U B, `[states, states]`, to be led through the predictor.
    let f = agent.model().forward(situation.conditions.clone(), z.clone());
    let b = agent.model().backward();
    let density = |row: usize, to: usize| -> f64 {
        let (f, b) = (&f[row * dim..][..dim], &b[to * dim..][..dim]);
        f.iter().zip(b).map(|(f, b)| f64::from(*f) * f64::from(*b)).sum()
    };
    let ours = |state: usize, action: usize, to: usize| match config.nets.forward {
        Forward::Paper => density(state * ACTIONS + action, to),
        Forward::Predictor => {
            let tokens =
                (state * ACTIONS + action) * survey.width()..(state * ACTIONS + action + 1) * survey.width();
            let outcomes = situation.dynamics[tokens.clone()].iter().zip(&survey.successors()[tokens]);
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
            let mut error = 0.0;
            let mut reached = vec![0.0; states];
            cells.iter().zip(after).for_each(|(state, m)| {
                if let Some(state) = state {
                    reached[*state] = *m;
                }
            });
            for (to, m) in reached.iter().enumerate() {
                let rho = f64::from(survey.rho()[to]);
                error += rho * (ours(state, action, to) - m / rho).powi(2);
            }
            worst = worst.max(error.sqrt());
        }
    }
    Ok((regret / f64::max(count, 1.0), worst))
}
