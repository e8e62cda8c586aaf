//! A data set as the learner draws from it: held transitions of a group, and contexts as sets of tokens.

use super::config::NeuralPlan;
use super::lens::Lens;
use crate::error::LearnError;
use rand::RngExt as _;
use std::sync::Arc;
use windvane_world::episodes::{Episodes, Window};
use windvane_world::{ContextId, Rng};

/// Draws before a transition is taken whatever its action.
const TRIES: usize = 64;

/// A data set and how it is looked at.
#[derive(Debug)]
pub struct Memory {
    data: Episodes,
    lens: Arc<Lens>,
    /// The groups of the data that are learned from, and those that are kept back to measure on.
    learned: Vec<usize>,
    held_out: Vec<usize>,
}

/// Transitions over held actions, as networks see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Features of states, `[rows, features]`.
    pub s: Vec<f32>,
    /// Moves, `[rows, width]`.
    pub a: Vec<f32>,
    /// Moves as choices, `[rows]`; 0 for vectors.
    pub choice: Vec<i64>,
    /// Features of the states that followed, `[rows, features]`.
    pub next: Vec<f32>,
    /// Changes of the coordinates in their usual size, `[rows, dims]`.
    pub delta: Vec<f32>,
    /// Observations, `[rows, dims]`.
    pub obs: Vec<f32>,
    /// 0 where the dynamics ended the episode, else 1.
    pub alive: Vec<f32>,
}

/// Sets of tokens, one after the other and each filled up to the longest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sets {
    /// `[sets * longest, token]`.
    pub tokens: Vec<f32>,
    /// Number of real tokens of each.
    pub lengths: Vec<usize>,
    /// For each set the mean over its tokens of the features of a place, alone and times each number of the action and
    /// the change there: what was met where, `[sets, bag]`.
    pub bags: Vec<f32>,
}

impl Memory {
    /// Looks at `data` as `plan` says. An error if no episode is long enough, or a group has none.
    pub fn new(data: Episodes, plan: &NeuralPlan, seed: u64) -> Result<Self, LearnError> {
        let shortest = plan.belief.shortest.max(plan.repeat);
        let long_enough =
            |group| data.group_episodes(group).filter(|&e| data.length(e) >= shortest).count() >= 2;
        if let Some(group) = (0..data.groups()).find(|&group| !long_enough(group)) {
            let problem =
                format!("group {group} has fewer than 2 episodes of at least {shortest} transitions");
            return Err(LearnError::run(data.path(), problem));
        }
        let lens = Arc::new(Lens::new(&data, plan, seed)?);
        // Spread over the data, which may be in some order.
        let kept = (plan.held_out * data.groups() as f64) as usize;
        let is_held =
            |group: &usize| kept > 0 && (group + 1) * kept / data.groups() > group * kept / data.groups();
        let (held_out, learned) = (0..data.groups()).partition(is_held);
        Ok(Self { data, lens, learned, held_out })
    }

    /// The data set.
    pub fn data(&self) -> &Episodes {
        &self.data
    }

    /// How it is looked at.
    pub fn lens(&self) -> &Arc<Lens> {
        &self.lens
    }

    /// Number of groups that are learned from.
    pub fn groups(&self) -> usize {
        self.learned.len()
    }

    /// Draws a group.
    pub fn group(&self, rng: &mut Rng) -> usize {
        rng.random_range(0..self.learned.len())
    }

    /// The context of each group; nothing where contexts are not labelled.
    pub fn privileged_contexts(&self) -> Option<Vec<ContextId>> {
        let labels = self.data.privileged_context_labels()?;
        Some(self.learned.iter().map(|&group| labels.of(self.data.group_episodes(group).start)).collect())
    }

    /// Adds a transition of `group` to `rows`, drawn uniformly from those whose action is held.
    pub fn draw(&self, rng: &mut Rng, group: usize, rows: &mut Rows) {
        let start = rows.a.len();
        let mut tries = 0;
        loop {
            tries += 1;
            let window = self.data.sample_group_window(rng, self.learned[group], self.lens.repeat());
            let Some(window) = window else { return };
            rows.a.truncate(start);
            self.push_held(window, &mut rows.a);
            let choice = self.lens.moves().choice(&rows.a[start..]);
            if let Some(choice) = choice.or((tries == TRIES).then_some(0)) {
                rows.choice.push(choice as i64);
                return self.push_states(window, rows);
            }
        }
    }

    /// An observation drawn uniformly from all of a group's.
    pub fn state(&self, rng: &mut Rng, group: usize) -> Option<&[f32]> {
        let window = self.data.sample_group_window(rng, self.learned[group], 1)?;
        let dims = self.data.spec().obs_dim();
        Some(&self.data.observations(window.episode)[window.start * dims..][..dims])
    }

    /// A context of `group`: so many consecutive steps of one episode, or as many as there are.
    pub fn context(&self, rng: &mut Rng, group: usize, steps: usize) -> Vec<f32> {
        self.tokens(rng, self.learned[group], steps)
    }

    /// A context of a group that is not learned from; of one that is if none is kept back.
    pub fn fresh_context(&self, rng: &mut Rng, steps: usize) -> Vec<f32> {
        let from = if self.held_out.is_empty() { &self.learned } else { &self.held_out };
        let group = from[rng.random_range(0..from.len())];
        self.tokens(rng, group, steps)
    }

    fn tokens(&self, rng: &mut Rng, group: usize, steps: usize) -> Vec<f32> {
        let mut tokens = Vec::new();
        let longest = self.data.group_episodes(group).map(|e| self.data.length(e)).max().unwrap_or(0);
        let steps = steps.min(longest);
        let Some(window) = self.data.sample_group_window(rng, group, steps) else { return tokens };
        let obs = &self.data.observations(window.episode)[window.start * self.data.spec().obs_dim()..];
        let actions = self.data.actions(window.episode);
        self.lens.push_tokens(steps, obs, |step| actions.get(window.start + step), &mut tokens);
        tokens
    }

    fn push_held(&self, window: Window, out: &mut Vec<f32>) {
        let actions = self.data.actions(window.episode);
        self.lens
            .moves()
            .push((window.start..window.start + self.lens.repeat()).map(|step| actions.get(step)), out);
    }

    fn push_states(&self, window: Window, rows: &mut Rows) {
        let (lens, dims) = (&self.lens, self.data.spec().obs_dim());
        let obs = self.data.observations(window.episode);
        let end = window.start + lens.repeat();
        let (state, next) = (&obs[window.start * dims..][..dims], &obs[end * dims..][..dims]);
        lens.features().push(state, &mut rows.s);
        lens.features().push(next, &mut rows.next);
        lens.push_change(state, next, &mut rows.delta);
        rows.obs.extend_from_slice(state);
        let over = self.data.terminated(window.episode) && end == self.data.length(window.episode);
        rows.alive.push(f32::from(u8::from(!over)));
    }
}

/// What a set of tokens met where; zeros for an empty set.
fn bag(set: &[f32], token: usize, features: usize) -> Vec<f32> {
    let mut bag = vec![0.0; features * (1 + token - features)];
    let share = token as f32 / set.len().max(1) as f32;
    for token in set.chunks_exact(token) {
        let (place, met) = token.split_at(features);
        let factors = std::iter::once(&1.0).chain(met);
        for (part, factor) in bag.chunks_exact_mut(features).zip(factors) {
            part.iter_mut().zip(place).for_each(|(to, x)| *to += share * factor * x);
        }
    }
    bag
}

impl Sets {
    /// Joins sets of tokens of width `token`, which begin with `features` features of a place.
    pub fn join(sets: &[Vec<f32>], token: usize, features: usize) -> Self {
        let lengths: Vec<usize> = sets.iter().map(|set| set.len() / token).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0).max(1);
        let mut tokens = Vec::with_capacity(sets.len() * longest * token);
        for (i, set) in sets.iter().enumerate() {
            tokens.extend_from_slice(set);
            tokens.resize((i + 1) * longest * token, 0.0);
        }
        let bags = sets.iter().flat_map(|set| bag(set, token, features)).collect();
        Self { tokens, lengths, bags }
    }
}
