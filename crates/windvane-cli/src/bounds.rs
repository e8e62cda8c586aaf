//! Bounds of what is typed: a number beyond them is a slip, and is refused before anything is allocated or done.

use clap::builder::RangedU64ValueParser;
use std::ops::RangeInclusive;

/// Threads, and processes at once.
pub(crate) const THREADS: RangeInclusive<u64> = 1..=1024;
/// Seeds of an experiment.
pub(crate) const SEEDS: RangeInclusive<u64> = 1..=1000;
/// Contexts of a world.
pub(crate) const CONTEXTS: RangeInclusive<u64> = 1..=100_000;
/// Steps of an episode, or of the trajectory that forms a belief.
pub(crate) const STEPS: RangeInclusive<u64> = 0..=100_000;
/// Episodes of each context and task.
pub(crate) const ROUNDS: RangeInclusive<u64> = 1..=1000;
/// Bellman sweeps.
pub(crate) const SWEEPS: RangeInclusive<u64> = 0..=10_000;

/// Reads a count within bounds.
pub(crate) fn count<T: TryFrom<u64> + Clone + Send + Sync>(
    bounds: RangeInclusive<u64>,
) -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(bounds)
}

/// Refuses more steps of context than memory holds: all trajectories of a split are in memory at once, one
/// for each context and episode.
pub(crate) fn context(steps: usize, rounds: u64) -> anyhow::Result<()> {
    const MOST: u64 = 1_000_000;
    let all = (steps as u64).saturating_mul(rounds);
    anyhow::ensure!(
        all <= MOST,
        "{rounds} episodes after {steps} steps of context each are {all} steps in every context; expected at most {MOST}"
    );
    Ok(())
}
