//! Does the policy change with the context? Beliefs of training contexts are swapped, and what changes is counted.

use super::{Finding, Limits};
use crate::agent::{Agent, Known, Model};
use crate::data::Replay;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, evaluate_after, explore, mean_return};
use crate::planner::Planner;
use crate::planner::graph::argmax;
use rand::RngExt as _;
use windvane_world::rng::stream;
use windvane_world::{Cmdp, ContextId, Split};

/// Contexts whose beliefs are swapped.
const CONTEXTS: usize = 12;
/// States and tasks that actions are compared on.
const STATES: usize = 64;
const TASKS: usize = 8;
/// A continuous action is another one if it differs by more than this share of its range.
const DIFFERENT: f32 = 0.1;

/// In an environment: how many actions change when a training context is taken for another one, and what that costs.
pub(super) fn in_world(
    agent: &Agent,
    world: &dyn Cmdp,
    eval: &EvalConfig,
    seed: u64,
) -> Result<Vec<Finding>, LearnError> {
    let contexts: Vec<ContextId> = world.contexts(Split::Train).iter().copied().take(CONTEXTS).collect();
    if agent.belief().is_none() || contexts.len() < 2 {
        return Ok(Vec::new());
    }
    let trajectory = |context: ContextId, round| explore(world, context, eval, seed, round);
    let trajectories =
        contexts.iter().map(|&context| trajectory(context, 0)).collect::<Result<Vec<_>, _>>()?;
    let known: Vec<Known> = contexts
        .iter()
        .zip(&trajectories)
        .map(|(&context, trajectory)| agent.known_after(context, trajectory))
        .collect();
    let config = EvalConfig { contexts: contexts.len(), planner: Planner::None, ..*eval };
    let run = |turn: usize| {
        let from = |context: ContextId, round| {
            let place = contexts.iter().position(|c| *c == context).unwrap_or(0);
            trajectory(contexts[(place + turn) % contexts.len()], round)
        };
        let (split, belief) = (Split::Train, BeliefMode::Frozen);
        let (rows, _) = evaluate_after(world, agent, split, belief, &config, seed, from)?;
        Ok::<_, LearnError>(mean_return(&rows))
    };
    let (right, wrong) = (run(0)?, run(1)?);
    let lost = (right - wrong) / right.abs().max(1e-9);
    let what = format!(
        "return lost with the belief of another training context ({right:.2} to {wrong:.2}), as a share"
    );
    let mut findings = changed(agent, &known, seed);
    findings.push(Finding::report("context", what, lost));
    Ok(findings)
}

/// Of data alone: how many actions change between beliefs of different groups.
pub(super) fn in_data(agent: &Agent, replay: &Replay, seed: u64) -> Vec<Finding> {
    let Some(belief) = agent.predictor().filter(|_| agent.belief().is_some()) else { return Vec::new() };
    let groups = replay.groups().min(CONTEXTS);
    let known = (0..groups).map(|group| {
        let mut rng = stream(seed, "swap", &[group as u64]);
        let rows = replay.draw_context(&mut rng, group, agent.settings.belief.max_context);
        let tokens = crate::nn::read(replay.tokens(replay.rows(&rows)));
        let h = belief.infer_tokens(&[&tokens]).mean;
        Known { input: agent.conditioner.centred(&h), belief: h, dynamics: Vec::new() }
    });
    changed(agent, &known.collect::<Vec<_>>(), seed)
}

/// The share of actions, over visited states and goals, that change from one context's belief to the next.
fn changed(agent: &Agent, known: &[Known], seed: u64) -> Vec<Finding> {
    if known.len() < 2 {
        return Vec::new();
    }
    let actions: Vec<Vec<f32>> = known.iter().map(|known| choices(agent, known, seed)).collect();
    let (mut different, mut all) = (0_usize, 0_usize);
    for (one, other) in actions.iter().zip(actions.iter().cycle().skip(1)) {
        different += one.iter().zip(other).filter(|(a, b)| (*a - *b).abs() > DIFFERENT * 2.0).count();
        all += one.len();
    }
    let share = different as f64 / all.max(1) as f64;
    let what = "actions that change with the belief of another context, as a share";
    let advice =
        "the policy ignores the belief: train F longer, or the contexts do not matter for what it does";
    vec![Finding::at_least("context", what, share, Limits { good: 0.05, fair: 0.005 }, advice)]
}

/// What the policy does in some visited states for some goals: numbers of actions, or their components between -1 and 1.
fn choices(agent: &Agent, known: &Known, seed: u64) -> Vec<f32> {
    let mut rng = stream(seed, "swap states", &[]);
    let count = agent.visited.shares.len();
    let dims = agent.spec().obs_dim();
    let mut all = Vec::new();
    for _ in 0..TASKS {
        let mut pick = || rng.random_range(0..count);
        let goal = pick();
        let z = &agent.visited.b[goal * agent.dim()..][..agent.dim()];
        match &agent.model {
            Model::Listed(model) => {
                let q = model.action_values(&known.dynamics, z);
                all.extend(q.chunks_exact(model.table.actions).map(|q| argmax(q) as f32));
            }
            Model::Observations(model) => {
                let obs: Vec<f32> = (0..STATES)
                    .flat_map(|_| &agent.visited.states[pick() * dims..][..dims])
                    .copied()
                    .collect();
                let states = model.states(&obs, &[(known, z)]);
                match model.n_choices() {
                    Some(n) => {
                        all.extend(model.action_values(&states).chunks_exact(n).map(|q| argmax(q) as f32));
                    }
                    None => all.extend(model.actions(&states)),
                }
            }
        }
    }
    all
}
