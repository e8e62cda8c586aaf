//! Whether a context looks like any that was learned from: half of it is predicted from the other half.

use super::agent::NeuralAgent;
use super::memory::Memory;
use rand::RngExt as _;
use windvane_world::rng::stream;

/// Contexts that the usual surprise is measured on.
const CONTEXTS: u64 = 200;
/// Fewest tokens that can be divided into halves that say something.
const FEWEST: usize = 4;
/// Surprise beyond the usual counts no more than this: one wild transition must not decide alone.
const MOST: f32 = 100.0;

/// How far off the predictor is on every second token of `set` with the belief of the others: the mean squared error in usual
/// changes. Nothing without a belief, or if there are too few tokens.
pub(super) fn of(agent: &NeuralAgent, set: &[f32]) -> Option<f32> {
    let belief = agent.listener.belief()?;
    let width = agent.lens().token();
    if set.len() / width < FEWEST {
        return None;
    }
    let half = |first: usize| -> Vec<f32> {
        set.chunks_exact(width).skip(first).step_by(2).flatten().copied().collect()
    };
    let h = belief.infer(&[half(0)]);
    let misses = belief.misses(&half(1), &h);
    Some(misses.iter().map(|miss| miss.min(MOST)).sum::<f32>() / misses.len() as f32)
}

/// How surprising contexts are that were not learned from, least first.
pub(super) fn usual(agent: &NeuralAgent, memory: &Memory, seed: u64) -> Vec<f32> {
    let config = &agent.plan.belief;
    let surprise = |i: u64| {
        let mut rng = stream(seed, "surprise", &[i]);
        let steps = rng.random_range(config.shortest..=config.longest);
        of(agent, &memory.fresh_context(&mut rng, steps))
    };
    let mut usual: Vec<f32> = (0..CONTEXTS).filter_map(surprise).collect();
    usual.sort_unstable_by(f32::total_cmp);
    usual
}
