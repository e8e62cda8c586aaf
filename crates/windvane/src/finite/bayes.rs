//! The exact Bayes planner under the evaluation protocol: the same contexts and games as the agents'.

use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, explore};
use windvane_world::grid::{GridWorld, Planner, Prior};
use windvane_world::protocol::{Game, rollout};
use windvane_world::rng::stream;
use windvane_world::{Cmdp, Split};

/// The share of games on unseen layouts that it wins, with the uniform prior over all layouts that exist.
pub(super) fn success(
    world: &dyn Cmdp,
    grid: &GridWorld,
    mode: BeliefMode,
    config: &EvalConfig,
    seed: u64,
) -> Result<f64, LearnError> {
    let prior = Prior::new(grid.layouts());
    let (mut won, mut all) = (0_usize, 0_usize);
    for &context in world.contexts(Split::Test).iter().take(config.contexts) {
        for round in 0..config.rounds {
            let walk = explore(world, context, config, seed, round)?;
            let mut belief = prior.posterior();
            belief.observe_all(world.spec(), walk.transitions());
            for task in world.tasks(context)? {
                let game = Game { context, task, rng: stream(seed, "game", &[context.0, round]) };
                let outcome = match mode {
                    BeliefMode::Frozen => {
                        rollout(world, game, &mut Planner::new(world.spec(), belief.dynamics()))?
                    }
                    BeliefMode::Online => {
                        rollout(world, game, &mut Planner::new(world.spec(), belief.clone()))?
                    }
                };
                won += usize::from(outcome.success);
                all += 1;
            }
        }
    }
    Ok(won as f64 / all.max(1) as f64)
}
