//! Drawing from a data set: random transitions, and windows of consecutive ones that never cross an episode.

use super::{ActionSlice, Episodes};
use crate::env::Actions;
use crate::rng::Rng;
use rand::{Rng as _, RngExt as _};
use std::ops::Range;

/// Draws before a window is looked for by counting instead.
const TRIES: usize = 64;

/// Consecutive transitions of one episode; their number is fixed by whoever drew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The episode.
    pub episode: usize,
    /// Its first transition, counted within the episode.
    pub start: usize,
}

/// Transitions in buffers that are used again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// States, `[rows, dims]`.
    pub observations: Vec<f32>,
    /// Actions, `[rows]` moves or `[rows, k]` components.
    pub actions: Actions,
    /// States that followed, `[rows, dims]`.
    pub next_observations: Vec<f32>,
    /// Whether the dynamics ended the episode there, so that nothing follows.
    pub terminated: Vec<bool>,
    /// The episode of each row.
    pub episodes: Vec<u32>,
    /// The runs of consecutive transitions that were copied; a buffer that is reused.
    runs: Vec<Run>,
}

/// Where consecutive transitions of one episode begin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Run {
    /// First transition, counted over the whole data set.
    first: usize,
    episode: usize,
}

impl Batch {
    /// Number of transitions.
    pub fn rows(&self) -> usize {
        self.episodes.len()
    }
}

impl Episodes {
    /// An empty batch for data of this kind, with room for `rows` transitions.
    pub fn batch(&self, rows: usize) -> Batch {
        let numbers = rows * self.spec().obs_dim();
        Batch {
            observations: Vec::with_capacity(numbers),
            actions: self.spec().action.actions(rows),
            next_observations: Vec::with_capacity(numbers),
            terminated: Vec::with_capacity(rows),
            episodes: Vec::with_capacity(rows),
            runs: Vec::with_capacity(rows),
        }
    }

    /// Fills `batch` with `rows` transitions, each drawn uniformly from all.
    ///
    /// # Panics
    /// If the batch was made for actions of another kind.
    pub fn sample_batch(&self, rng: &mut Rng, rows: usize, batch: &mut Batch) {
        let offsets = self.offsets.values();
        let transitions = self.transitions() as u128;
        batch.runs.clear();
        // Random numbers come cheaper by the dozen.
        let mut draws = [0_u64; 128];
        while batch.runs.len() < rows {
            let draws = &mut draws[..(rows - batch.runs.len()).min(128)];
            rng.fill_bytes(bytemuck::cast_slice_mut(draws));
            batch.runs.extend(draws.iter().map(|&draw| {
                // The upper half of the product is uniform up to one part in 2^64 / transitions: nothing to notice.
                let first = ((u128::from(draw) * transitions) >> 64) as usize;
                Run { first, episode: self.lookup.find(offsets, first) }
            }));
        }
        self.gather(1, batch);
    }

    /// Fills `batch` with the transitions of windows of `n`, one window after the other: `[windows, n, ..]`.
    ///
    /// # Panics
    /// If a window does not lie within its episode, or the batch was made for actions of another kind.
    pub fn fill_windows(&self, windows: &[Window], n: usize, batch: &mut Batch) {
        assert!(n > 0, "a window has at least one transition");
        batch.runs.clear();
        batch.runs.extend(windows.iter().map(|window| {
            let span = self.span(window.episode);
            assert!(window.start + n <= span.len(), "{window:?} of {n} leaves its episode of {}", span.len());
            Run { first: span.start + window.start, episode: window.episode }
        }));
        self.gather(n, batch);
    }

    /// Copies runs of `n` transitions, column by column: with all places known beforehand, the memory is asked for
    /// many of them at a time.
    fn gather(&self, n: usize, batch: &mut Batch) {
        let Batch { observations, actions, next_observations, terminated, episodes, runs } = batch;
        let dims = self.spec().obs_dim();
        let rows = runs.iter().map(|run| (run.first + run.episode) * dims);
        copy_runs(self.observations.values(), rows, n * dims, [(0, observations), (dims, next_observations)]);
        match (actions, self.all_actions()) {
            (Actions::Discrete(to), ActionSlice::Discrete(from)) => {
                copy_runs(from, runs.iter().map(|run| run.first), n, [(0, to)]);
            }
            (Actions::Continuous { values, .. }, ActionSlice::Continuous { size, values: from }) => {
                copy_runs(from, runs.iter().map(|run| run.first * size), n * size, [(0, values)]);
            }
            _ => panic!("the batch was made for actions of another kind"),
        }
        let flags = self.terminated.values();
        terminated.clear();
        terminated.resize(runs.len() * n, false);
        episodes.resize(runs.len() * n, 0);
        let rows = terminated.chunks_exact_mut(n).zip(episodes.chunks_exact_mut(n));
        for ((terminated, episodes), run) in rows.zip(&*runs) {
            // In this order, because most data have no such episode and their offsets need not be looked up.
            terminated[n - 1] = flags[run.episode] != 0 && self.span(run.episode).end == run.first + n;
            episodes.fill(run.episode as u32);
        }
    }

    /// A window of `n` transitions, uniform over all that exist; nothing if no episode is that long.
    pub fn sample_window(&self, rng: &mut Rng, n: usize) -> Option<Window> {
        self.window_within(rng, 0..self.episodes(), None, n)
    }

    /// A window from *another* episode of the same group, uniform over all such; nothing if there is none.
    pub fn sample_sibling_window(&self, rng: &mut Rng, episode: usize, n: usize) -> Option<Window> {
        self.window_within(rng, self.group_episodes(self.group(episode)), Some(episode), n)
    }

    /// A window from one group, uniform over all that exist in it; nothing if there is none.
    pub fn sample_group_window(&self, rng: &mut Rng, group: usize, n: usize) -> Option<Window> {
        self.window_within(rng, self.group_episodes(group), None, n)
    }

    /// A window of `n` from `episodes` but for `except`, uniform over all that exist.
    fn window_within(
        &self,
        rng: &mut Rng,
        episodes: Range<usize>,
        except: Option<usize>,
        n: usize,
    ) -> Option<Window> {
        // A point of the rectangle (episode, start) is as likely as any other, so the first one that is a window is
        // uniform over windows. With episodes of one length, that is the first point drawn.
        let widest = (self.longest() + 1).checked_sub(n).filter(|&starts| starts > 0 && n > 0)?;
        let count = |episode: usize| {
            if Some(episode) == except { 0 } else { (self.length(episode) + 1).saturating_sub(n) }
        };
        if episodes.is_empty() {
            return None;
        }
        for _ in 0..TRIES {
            let window =
                Window { episode: rng.random_range(episodes.clone()), start: rng.random_range(0..widest) };
            if window.start < count(window.episode) {
                return Some(window);
            }
        }
        // Windows are rare or absent: count them, and take one by its number.
        let total: usize = episodes.clone().map(count).sum();
        let mut number = (total > 0).then(|| rng.random_range(0..total))?;
        for episode in episodes {
            if number < count(episode) {
                return Some(Window { episode, start: number });
            }
            number -= count(episode);
        }
        None
    }
}

/// Copies the runs of `count` elements that begin at `starts`, one after the other, once for each `(shift, to)` with
/// the beginning shifted.
fn copy_runs<T: Copy + Default, const K: usize>(
    from: &[T],
    starts: impl ExactSizeIterator<Item = usize>,
    count: usize,
    mut to: [(usize, &mut Vec<T>); K],
) {
    for (_, to) in &mut to {
        to.resize(starts.len() * count, T::default());
    }
    // Short runs of a known length are a move or two; of an unknown one, each would be a call.
    match count {
        1 => copy_short::<T, 1, K>(from, starts, to),
        2 => copy_short::<T, 2, K>(from, starts, to),
        3 => copy_short::<T, 3, K>(from, starts, to),
        4 => copy_short::<T, 4, K>(from, starts, to),
        _ => {
            for (place, start) in starts.enumerate() {
                for (shift, to) in &mut to {
                    let start = start + *shift;
                    to[place * count..(place + 1) * count].copy_from_slice(&from[start..start + count]);
                }
            }
        }
    }
}

fn copy_short<T: Copy, const N: usize, const K: usize>(
    from: &[T],
    starts: impl Iterator<Item = usize>,
    to: [(usize, &mut Vec<T>); K],
) {
    let mut to = to.map(|(shift, to)| (shift, to.as_chunks_mut::<N>().0));
    for (place, start) in starts.enumerate() {
        for (shift, to) in &mut to {
            let start = start + *shift;
            to[place].copy_from_slice(&from[start..start + N]);
        }
    }
}
