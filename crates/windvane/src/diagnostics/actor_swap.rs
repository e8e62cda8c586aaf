//! Is the actor as good as its F? The best of a few candidate actions on the same F acts in its place.

use super::{Finding, Limits};
use crate::agent::{Agent, Model};
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, evaluate, mean_return};
use crate::planner::Planner;
use windvane_world::{Cmdp, Split};

/// Contexts that both act in.
const CONTEXTS: usize = 4;

/// What the actor earns in training contexts, beside the best of candidates on the same F. Where F is wrong about actions that
/// the data do not have, the candidates fall for it and earn less.
pub(super) fn findings(
    agent: &Agent,
    world: &dyn Cmdp,
    eval: &EvalConfig,
    seed: u64,
) -> Result<Vec<Finding>, LearnError> {
    let Model::Observations(model) = &agent.model else { return Ok(Vec::new()) };
    if model.actor.is_none() {
        return Ok(Vec::new());
    }
    let mut by_candidates = agent.clone();
    by_candidates.model = Model::Observations(model.without_actor());
    let contexts = CONTEXTS.min(world.contexts(Split::Train).len());
    let config = EvalConfig { contexts, planner: Planner::None, ..*eval };
    let earned = |agent: &Agent| {
        let rows = evaluate(world, agent, Split::Train, BeliefMode::Frozen, &config, seed)?;
        Ok::<_, LearnError>(mean_return(&rows))
    };
    let (actor, candidates) = (earned(agent)?, earned(&by_candidates)?);
    let what = format!(
        "return gained by the actor over the best of {} candidates on the same F ({candidates:.2} to {actor:.2}), as a share",
        model.codec.actions.candidates().len()
    );
    let gained = (actor - candidates) / actor.abs().max(candidates.abs()).max(1e-9);
    let advice = "the actor lags behind F: train longer, or raise actor.rate";
    Ok(vec![Finding::at_least("actor", what, gained, Limits { good: -0.05, fair: -0.2 }, advice)])
}
