//! Out-of-distribution scores: whether a context looks like any that was learned from. Half of it is predicted from the other.

use super::{StateEvidence, TransitionSet};
use crate::data::Replay;
use crate::nn::read;
use rand::RngExt as _;
use windvane_world::Rng;
use windvane_world::rng::stream;

/// Fewest transitions that can be divided into halves that say something.
pub(super) const FEWEST: usize = 4;
/// The least chance that an outcome is given, so that one of them cannot decide alone.
pub(super) const LEAST: f64 = 1e-3;
/// Contexts that the calibration is made of.
const CONTEXTS: u64 = 200;

/// Scores of contexts of a table's groups, each as if its group had never been met, smallest first.
pub(crate) fn calibrate_listed(belief: &StateEvidence) -> Vec<f32> {
    let table = &belief.table;
    calibration(0, |rng| {
        let group = rng.random_range(0..table.groups.len());
        let episodes = &table.groups[group].episodes;
        let tokens = table.episode(*episodes.get(rng.random_range(0..episodes.len().max(1)))?);
        let length = rng.random_range(FEWEST.min(tokens.len())..=tokens.len());
        let tokens: Vec<Option<u32>> = tokens[..length].iter().map(|token| Some(*token)).collect();
        belief.ood_of_tokens(&tokens, Some(group)).map(|score| score as f32)
    })
}

/// Scores of contexts of held-out groups, of learned ones if none is held out, smallest first.
pub(crate) fn calibrate(belief: &TransitionSet, replay: &Replay, seed: u64) -> Vec<f32> {
    calibration(seed, |rng| {
        let steps = rng.random_range(belief.config.min_context..=belief.config.max_context);
        let rows = replay.draw_held_out_context(rng, steps);
        belief.ood_of_tokens(&read(replay.tokens(replay.rows(&rows))))
    })
}

/// What `score` gives for many contexts, smallest first.
fn calibration(seed: u64, score: impl Fn(&mut Rng) -> Option<f32>) -> Vec<f32> {
    let contexts = 0..CONTEXTS;
    let mut scores: Vec<f32> = contexts.filter_map(|i| score(&mut stream(seed, "ood", &[i]))).collect();
    scores.sort_unstable_by(f32::total_cmp);
    scores
}
