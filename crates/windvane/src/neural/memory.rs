//! A data set as the learner draws from it: held transitions of a group, and contexts as sets of tokens.

use super::config::NeuralPlan;
use super::features::{Features, moments};
use super::moves::Moves;
use crate::error::LearnError;
use rand::RngExt as _;
use windvane_world::Rng;
use windvane_world::episodes::{Episodes, Window};
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, ContextId};

/// Draws before a transition is taken whatever its action.
const TRIES: usize = 64;
/// How much louder than places actions and changes speak in a token: there are fewer of them.
pub(super) const LOUD: f32 = 4.0;
/// Transitions that the scale of changes is measured on.
const SAMPLE: usize = 4096;

/// A data set and how it is looked at.
#[derive(Debug)]
pub struct Memory {
    data: Episodes,
    features: Features,
    moves: Moves,
    repeat: usize,
    /// The usual size of a change of each coordinate over a held action.
    change: Vec<f32>,
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
        let moves = Moves::new(&data.spec().action, plan)?;
        let mut rng = stream(seed, "memory", &[]);
        let mut sample = Vec::new();
        let mut changes = Vec::new();
        let dims = data.spec().obs_dim();
        for _ in 0..SAMPLE {
            let Some(window) = data.sample_window(&mut rng, plan.repeat) else { break };
            let obs = data.observations(window.episode);
            let (from, to) = (window.start * dims, (window.start + plan.repeat) * dims);
            sample.extend_from_slice(&obs[from..from + dims]);
            changes.extend(obs[to..to + dims].iter().zip(&obs[from..]).map(|(to, from)| to - from));
        }
        let change = (0..dims)
            .map(|dim| moments(changes.iter().skip(dim).step_by(dims).copied()).1.max(1e-6))
            .collect();
        let features = Features::new(data.spec(), &plan.features, &sample, seed);
        Ok(Self { data, features, moves, repeat: plan.repeat, change })
    }

    /// The data set.
    pub fn data(&self) -> &Episodes {
        &self.data
    }

    /// What networks see of observations.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// What networks see of actions.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Steps that an action is held.
    pub fn repeat(&self) -> usize {
        self.repeat
    }

    /// The usual size of a change of each coordinate over a held action.
    pub fn change(&self) -> &[f32] {
        &self.change
    }

    /// Numbers in a token.
    pub fn token(&self) -> usize {
        self.features.width() + self.moves.width() + self.change.len()
    }

    /// Draws a group.
    pub fn group(&self, rng: &mut Rng) -> usize {
        rng.random_range(0..self.data.groups())
    }

    /// The group of a context; nothing for one that the data does not know, or whose contexts are not labelled.
    pub fn privileged_group(&self, context: ContextId) -> Option<usize> {
        let labels = self.data.privileged_context_labels()?;
        (0..self.data.groups())
            .find(|&group| self.data.group_episodes(group).any(|episode| labels.of(episode) == context))
    }

    /// Adds a transition of `group` to `rows`, drawn uniformly from those whose action is held.
    pub fn draw(&self, rng: &mut Rng, group: usize, rows: &mut Rows) {
        let start = rows.a.len();
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(window) = self.data.sample_group_window(rng, group, self.repeat) else { return };
            rows.a.truncate(start);
            self.push_held(window, &mut rows.a);
            let choice = self.moves.choice(&rows.a[start..]);
            if let Some(choice) = choice.or((tries == TRIES).then_some(0)) {
                rows.choice.push(choice as i64);
                return self.push_states(window, rows);
            }
        }
    }

    /// An observation drawn uniformly from all of a group's.
    pub fn state(&self, rng: &mut Rng, group: usize) -> Option<&[f32]> {
        let window = self.data.sample_group_window(rng, group, 1)?;
        let dims = self.change.len();
        Some(&self.data.observations(window.episode)[window.start * dims..][..dims])
    }

    /// A context of `group`: so many consecutive steps of one episode, or as many as there are.
    pub fn context(&self, rng: &mut Rng, group: usize, steps: usize) -> Vec<f32> {
        let mut tokens = Vec::new();
        let longest = self.data.group_episodes(group).map(|e| self.data.length(e)).max().unwrap_or(0);
        let steps = steps.min(longest);
        let Some(window) = self.data.sample_group_window(rng, group, steps) else { return tokens };
        let dims = self.change.len();
        let obs = &self.data.observations(window.episode)[window.start * dims..];
        let actions = self.data.actions(window.episode);
        self.push_tokens(steps, obs, |step| actions.get(window.start + step), &mut tokens);
        tokens
    }

    /// The tokens of a trajectory.
    pub fn tokens_of(&self, walk: &Trajectory) -> Vec<f32> {
        let mut tokens = Vec::new();
        self.push_tokens(walk.len(), walk.observations(), |step| walk.actions().get(step), &mut tokens);
        tokens
    }

    /// Adds a token for every `repeat` steps: the state, the mean action, the change.
    pub fn push_tokens<'a>(
        &self,
        steps: usize,
        obs: &[f32],
        action: impl Fn(usize) -> Action<'a>,
        tokens: &mut Vec<f32>,
    ) {
        let dims = self.change.len();
        for start in (0..(steps + 1).saturating_sub(self.repeat)).step_by(self.repeat) {
            let state = &obs[start * dims..][..dims];
            self.features.push(state, tokens);
            let place = tokens.len();
            self.moves.push((start..start + self.repeat).map(&action), tokens);
            self.push_change(state, &obs[(start + self.repeat) * dims..], tokens);
            tokens[place..].iter_mut().for_each(|x| *x *= LOUD);
        }
    }

    fn push_held(&self, window: Window, out: &mut Vec<f32>) {
        let actions = self.data.actions(window.episode);
        self.moves.push((window.start..window.start + self.repeat).map(|step| actions.get(step)), out);
    }

    fn push_states(&self, window: Window, rows: &mut Rows) {
        let dims = self.change.len();
        let obs = self.data.observations(window.episode);
        let end = window.start + self.repeat;
        let (state, next) = (&obs[window.start * dims..][..dims], &obs[end * dims..][..dims]);
        self.features.push(state, &mut rows.s);
        self.features.push(next, &mut rows.next);
        self.push_change(state, next, &mut rows.delta);
        rows.obs.extend_from_slice(state);
        let over = self.data.terminated(window.episode) && end == self.data.length(window.episode);
        rows.alive.push(f32::from(u8::from(!over)));
    }

    fn push_change(&self, from: &[f32], to: &[f32], out: &mut Vec<f32>) {
        out.extend(from.iter().zip(to).zip(&self.change).map(|((from, to), size)| (to - from) / size));
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
