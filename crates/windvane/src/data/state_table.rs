//! What a data set of listed states says, state by state: which states occur, what can follow what, and how often.
//!
//! Nothing here knows about walls or grids. An action moves by few different steps (one ahead, or not at all): the
//! *outcomes* of a state and an action are the states that its steps lead to, wherever they were seen. So an unseen context
//! may open a way that was shut in all known ones. Where actions move by many different steps, outcomes are those seen in
//! the very state. A *token* is one outcome, and stands for "this action, here, led there".

use super::discretizer::{Discretizer, StateStep};
use super::{EncoderConfig, split_groups};
use crate::error::LearnError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use windvane_world::episodes::Episodes;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, ActionSpace, ContextId, EnvSpec};

/// Marks a state of the listing that no episode visited.
const NEVER: u32 = u32::MAX;
/// Most different steps by which an action may move for its outcomes to be taken as the same everywhere.
const FEW_STEPS: usize = 5;

/// Listed states as their data shows them.
#[derive(Clone, Debug)]
pub struct StateTable {
    /// The environment as it shows itself, before it is discretized.
    world: EnvSpec,
    discretizer: Discretizer,
    box_side: f64,
    /// From the discretizer's number of a state to ours, which counts visited states only.
    index: Vec<u32>,
    /// And back.
    listed: Vec<u32>,
    actions: usize,
    /// Most outcomes any state and action has.
    width: usize,
    /// `[states * actions * width]`: the outcomes of each pair in order of state, the rest filled with the first.
    successors: Vec<u32>,
    /// `[states * actions]`: how many of them are real.
    outcomes: Vec<u8>,
    /// `[states]`: how often each state was visited, as a share of all visits.
    rho: Vec<f32>,
    /// All transitions as tokens, episode after episode.
    tokens: Vec<u32>,
    episodes: Vec<Range<usize>>,
    groups: Vec<Group>,
}

/// What an exported table is without its data, besides how often states and outcomes were met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableCard {
    box_side: f64,
    listed: Vec<u32>,
    width: usize,
    successors: Vec<u32>,
    outcomes: Vec<u8>,
}

/// Episodes that share the same unknown dynamics.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Their numbers.
    pub episodes: Vec<usize>,
    /// Every token they hold, in order, with the number of times.
    pub counts: Vec<(u32, u32)>,
    /// The context they are of, where that was recorded: for Oracle-ID, which is told the answer.
    privileged_context: Option<ContextId>,
}

impl StateTable {
    /// Reads a whole data set once. An error if its states cannot be listed, in `boxes` or without.
    pub fn of(data: &Episodes, config: &EncoderConfig, held_out: f64) -> Result<Self, LearnError> {
        let discretizer = Discretizer::new(data.spec(), config)?;
        let spec = discretizer.spec().clone();
        let listed = spec.states().unwrap_or(0);
        let actions = match &spec.action {
            ActionSpace::Discrete { names } => names.len(),
            ActionSpace::Continuous { .. } => 0, // no discretizer has them
        };
        let (learned, _) = split_groups(data, held_out);
        let learned_episodes = learned.iter().flat_map(|&group| data.group_episodes(group));
        let trajectories: Vec<(usize, Vec<StateStep>)> = learned_episodes
            .map(|e| Ok((e, trajectory(data, &discretizer, e)?)))
            .collect::<Result<_, LearnError>>()?;

        let mut visits = vec![0_u64; listed];
        let mut seen = vec![BTreeSet::new(); listed * actions];
        for (_, steps) in &trajectories {
            let mut here = None;
            for &StateStep { from, action, to } in steps {
                visits[from] += u64::from(here != Some(from));
                visits[to] += 1;
                here = Some(to);
                seen[from * actions + action].insert(to as u32);
            }
        }
        let visited: Vec<u32> = (0..listed as u32).filter(|&s| visits[s as usize] > 0).collect();
        let mut index = vec![NEVER; listed];
        visited.iter().enumerate().for_each(|(i, &s)| index[s as usize] = i as u32);
        let total: u64 = visits.iter().sum();
        let rho = visited.iter().map(|&s| (visits[s as usize] as f64 / total as f64) as f32).collect();

        spread_steps(&spec, actions, &visited, &index, &mut seen);

        let width = seen.iter().map(BTreeSet::len).max().unwrap_or(1).max(1);
        let mut successors = Vec::with_capacity(visited.len() * actions * width);
        let mut outcomes = Vec::with_capacity(visited.len() * actions);
        for (i, &s) in visited.iter().enumerate() {
            for a in 0..actions {
                let next = &seen[s as usize * actions + a];
                // What was never tried is taken to change nothing.
                let first = next.first().map_or(i as u32, |&n| index[n as usize]);
                let row = next.iter().map(|&n| index[n as usize]);
                successors.extend(row.chain(std::iter::repeat(first)).take(width));
                outcomes.push(next.len() as u8);
            }
        }
        let mut table = Self {
            world: data.spec().clone(),
            discretizer,
            box_side: config.box_side,
            index,
            listed: visited,
            actions,
            width,
            successors,
            outcomes,
            rho,
            tokens: Vec::new(),
            episodes: Vec::new(),
            groups: vec![Group::default(); learned.len()],
        };
        for (number, (e, steps)) in trajectories.iter().enumerate() {
            let start = table.tokens.len();
            let tokens: Vec<u32> = steps.iter().filter_map(|&led| table.token_of(led)).collect();
            table.tokens.extend(tokens);
            table.episodes.push(start..table.tokens.len());
            let place = learned.binary_search(&data.group(*e)).unwrap_or(0); // groups are learned in order
            let group = &mut table.groups[place];
            group.episodes.push(number);
            group.privileged_context = data.privileged_context_labels().map(|labels| labels.of(*e));
        }
        for group in &mut table.groups {
            let mut counts = BTreeMap::new();
            for &e in &group.episodes {
                for &token in &table.tokens[table.episodes[e].clone()] {
                    *counts.entry(token).or_insert(0) += 1;
                }
            }
            group.counts = counts.into_iter().collect();
        }
        Ok(table)
    }

    /// What it is without its data, the share of visits of each state, and how often each group met each token,
    /// `[groups * vocabulary]`.
    pub(crate) fn export(&self) -> (TableCard, Vec<f32>, Vec<f32>) {
        let mut counts = vec![0.0; self.groups.len() * self.vocabulary()];
        for (group, row) in self.groups.iter().zip(counts.chunks_exact_mut(self.vocabulary())) {
            group.counts.iter().for_each(|&(token, count)| row[token as usize] = count as f32);
        }
        let card = TableCard {
            box_side: self.box_side,
            listed: self.listed.clone(),
            width: self.width,
            successors: self.successors.clone(),
            outcomes: self.outcomes.clone(),
        };
        (card, self.rho.clone(), counts)
    }

    /// The table that was kept, of a world that looks like `env`; it has no episodes.
    pub(crate) fn import(
        card: TableCard,
        env: &EnvSpec,
        rho: &[f32],
        counts: &[f32],
    ) -> Result<Self, LearnError> {
        let wrong = |problem: &str| LearnError::Config { origin: "table".into(), problem: problem.into() };
        let TableCard { box_side, listed, width, successors, outcomes } = card;
        let config = EncoderConfig { box_side, ..EncoderConfig::default() };
        let discretizer = Discretizer::new(env, &config)?;
        let (all, actions) = (discretizer.spec().states().unwrap_or(0), discretizer.spec().action.size());
        let pairs = listed.len() * actions;
        let fits = !listed.is_empty()
            && listed.iter().all(|&s| (s as usize) < all)
            && (1..=usize::from(u8::MAX)).contains(&width)
            && outcomes.len() == pairs
            && outcomes.iter().all(|&count| usize::from(count) <= width)
            && successors.len() == pairs * width
            && successors.iter().all(|&s| (s as usize) < listed.len())
            && rho.len() == listed.len()
            && counts.len().is_multiple_of(successors.len());
        if !fits {
            return Err(wrong("its parts do not fit each other and the environment"));
        }
        let mut index = vec![NEVER; all];
        listed.iter().enumerate().for_each(|(i, &s)| index[s as usize] = i as u32);
        let group = |row: &[f32]| {
            let met = row.iter().enumerate().filter(|(_, count)| **count > 0.0);
            Group {
                episodes: Vec::new(),
                counts: met.map(|(token, count)| (token as u32, *count as u32)).collect(),
                privileged_context: None,
            }
        };
        let groups = counts.chunks_exact(successors.len()).map(group).collect();
        Ok(Self {
            world: env.clone(),
            discretizer,
            box_side,
            index,
            listed,
            actions,
            width,
            successors,
            outcomes,
            rho: rho.to_vec(),
            tokens: Vec::new(),
            episodes: Vec::new(),
            groups,
        })
    }

    /// The token of a transition between visited states; nothing if no episode ever saw that outcome.
    pub fn token(&self, state: usize, action: usize, next: usize) -> Option<u32> {
        let pair = state * self.actions + action;
        let row = &self.successors[pair * self.width..][..usize::from(self.outcomes[pair])];
        row.iter().position(|&s| s as usize == next).map(|k| (pair * self.width + k) as u32)
    }

    /// The token of a move; nothing if its states were never visited or no step of the action leads there.
    pub fn token_of(&self, led: StateStep) -> Option<u32> {
        let [from, to] = [self.visited(led.from)?, self.visited(led.to)?];
        self.token(from, led.action, to)
    }

    /// The moves of a trajectory.
    pub(crate) fn steps_of(&self, trajectory: &Trajectory) -> Vec<StateStep> {
        steps_between(
            &self.discretizer,
            trajectory.observations(),
            |step| trajectory.actions().get(step),
            trajectory.len(),
        )
    }

    /// The tokens of a trajectory.
    pub fn tokens_of(&self, trajectory: &Trajectory) -> Vec<u32> {
        self.steps_of(trajectory).into_iter().filter_map(|led| self.token_of(led)).collect()
    }

    /// Our number of a state of the discretizer.
    fn visited(&self, state: usize) -> Option<usize> {
        Some(self.index[state]).filter(|&index| index != NEVER).map(|index| index as usize)
    }

    /// The number of the state seen as `obs`; nothing if no episode visited it.
    pub fn state(&self, obs: &[f32]) -> Option<usize> {
        self.visited(self.discretizer.state_of(obs)?)
    }

    /// The visited state nearest to `obs`, for the rare step onto a cell that the data never entered.
    pub fn nearest(&self, obs: &[f32]) -> usize {
        let mut place = vec![0.0; self.spec().obs_dim()];
        let mut distance = |s: usize| {
            self.discretizer.write_obs(self.listed[s] as usize, &mut place);
            place.iter().zip(obs).map(|(a, b)| (a - b).abs()).sum::<f32>()
        };
        let near = |s: &usize, t: &usize| distance(*s).total_cmp(&distance(*t));
        self.state(obs).or_else(|| (0..self.states()).min_by(near)).unwrap_or(0)
    }

    /// Writes the place of a visited state among the others: its coordinates in [`StateTable::spec`].
    pub fn write_state(&self, state: usize, place: &mut [f32]) {
        self.discretizer.write_place(self.listed[state] as usize, place);
    }

    /// Writes what the world shows in a visited state.
    pub fn write_obs(&self, state: usize, obs: &mut [f32]) {
        self.discretizer.write_obs(self.listed[state] as usize, obs);
    }

    /// How the world is seen as a finite one.
    pub fn discretizer(&self) -> &Discretizer {
        &self.discretizer
    }

    /// The environment as it shows itself, before it is discretized.
    pub fn world_spec(&self) -> &EnvSpec {
        &self.world
    }

    /// The visible side of the environment, as a finite one.
    pub fn spec(&self) -> &EnvSpec {
        self.discretizer.spec()
    }

    /// Number of visited states.
    pub fn states(&self) -> usize {
        self.listed.len()
    }

    /// Number of actions.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Number of pairs of state and action.
    pub fn pairs(&self) -> usize {
        self.states() * self.actions
    }

    /// Most outcomes of a pair.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of tokens, places for outcomes that do not exist included: `pairs * width`.
    pub fn vocabulary(&self) -> usize {
        self.successors.len()
    }

    /// The state each token leads to.
    pub fn successors(&self) -> &[u32] {
        &self.successors
    }

    /// How many outcomes a pair has.
    pub fn outcomes(&self, pair: usize) -> usize {
        usize::from(self.outcomes[pair])
    }

    /// The share of visits of each state.
    pub fn rho(&self) -> &[f32] {
        &self.rho
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All transitions as tokens, episode after episode.
    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Where the tokens of an episode are among all.
    pub(crate) fn episode_span(&self, number: usize) -> Range<usize> {
        self.episodes[number].clone()
    }

    /// The transitions of an episode as tokens.
    pub fn episode(&self, number: usize) -> &[u32] {
        &self.tokens[self.episodes[number].clone()]
    }

    /// Writes what a set of tokens (`bag [vocabulary]`, marked by 1) says of each state, `[states * 2]`: 1 if it was entered
    /// (or left), and 1 if it was refused, that is, was the only state that a move without effect could have led to.
    pub fn write_evidence(&self, bag: &[f32], evidence: &mut [f32]) {
        evidence.fill(0.0);
        for token in (0..bag.len()).filter(|&token| bag[token] > 0.0) {
            self.add_evidence(token, evidence);
        }
    }

    /// Adds what one more token says.
    pub fn add_evidence(&self, token: usize, evidence: &mut [f32]) {
        let pair = token / self.width;
        let from = pair / self.actions;
        let outcomes = &self.successors[pair * self.width..][..usize::from(self.outcomes[pair])];
        let entered = self.successors[token] as usize;
        evidence[from * 2] = 1.0;
        evidence[entered * 2] = 1.0;
        // Of several ways not taken, nobody knows which was shut.
        let mut others = outcomes.iter().filter(|&&s| s as usize != from);
        if let (true, Some(&other), None) = (entered == from, others.next(), others.next()) {
            evidence[other as usize * 2 + 1] = 1.0;
        }
    }

    /// Makes dynamics `p [vocabulary]` agree with `evidence [states * 2]` of the same context, as far as what was met once
    /// stays so (`persistence`, 0 to 1): a state that was entered can be entered, one that was blocked cannot.
    pub(crate) fn trust(&self, p: &mut [f32], evidence: &[f32], persistence: f32) {
        if persistence == 0.0 {
            return;
        }
        for (pair, p) in p.chunks_exact_mut(self.width).enumerate() {
            for way in 0..self.outcomes(pair) {
                let to = self.successors[pair * self.width + way] as usize;
                let met = match evidence[to * 2..][..2] {
                    _ if to == pair / self.actions => continue,
                    [entered, _] if entered > 0.0 => 1.0,
                    [_, blocked] if blocked > 0.0 => 0.0,
                    _ => continue,
                };
                let sure = p[way] + persistence * (met - p[way]);
                let rest = (1.0 - sure) / (1.0 - p[way]).max(1e-6);
                p.iter_mut().for_each(|p| *p *= rest);
                p[way] = sure;
            }
        }
    }

    /// Writes the dynamics that `counts` of tokens show: the share of each outcome, `[vocabulary]`, and zeros for pairs
    /// without counts.
    pub fn write_shares(&self, counts: &[(u32, u32)], shares: &mut [f32]) {
        shares.fill(0.0);
        for same_pair in counts.chunk_by(|x, y| x.0 as usize / self.width == y.0 as usize / self.width) {
            let total: u32 = same_pair.iter().map(|&(_, n)| n).sum();
            same_pair.iter().for_each(|&(token, n)| shares[token as usize] = n as f32 / total as f32);
        }
    }

    /// The dynamics that a group's data shows, `[vocabulary]`; the `average` where it tried nothing.
    pub fn dynamics_of(&self, group: usize, average: &[f32]) -> Vec<f32> {
        let mut shares = vec![0.0; self.vocabulary()];
        self.write_shares(&self.groups[group].counts, &mut shares);
        self.fill_untried(&mut shares, average);
        shares
    }

    /// Fills in the `average` where dynamics `shares [vocabulary]` have nothing.
    pub(crate) fn fill_untried(&self, shares: &mut [f32], average: &[f32]) {
        for (own, average) in shares.chunks_exact_mut(self.width).zip(average.chunks_exact(self.width)) {
            if own.iter().all(|p| *p == 0.0) {
                own.copy_from_slice(average);
            }
        }
    }

    /// How likely each state is to be entered from beside it by dynamics `p [vocabulary]`, the best way in, `[states]`.
    pub fn enterable(&self, p: &[f32]) -> Vec<f32> {
        let mut open = vec![0.0_f32; self.states()];
        for (token, (p, &to)) in p.iter().zip(&self.successors).enumerate() {
            let pair = token / self.width;
            if token % self.width < self.outcomes(pair) && to as usize != pair / self.actions {
                open[to as usize] = open[to as usize].max(*p);
            }
        }
        open
    }

    /// The context of a group, where contexts are labelled.
    pub fn privileged_context(&self, group: usize) -> Option<ContextId> {
        self.groups[group].privileged_context
    }

    /// The group of a context; nothing for one that the data does not know, or whose contexts are not labelled.
    pub fn privileged_group(&self, context: ContextId) -> Option<usize> {
        self.groups.iter().position(|group| group.privileged_context == Some(context))
    }

    /// The average dynamics of the whole data set, `[vocabulary]`; each group counts alike.
    pub fn average(&self) -> Vec<f32> {
        let (mut sums, mut shares) = (vec![0.0; self.vocabulary()], vec![0.0; self.vocabulary()]);
        for group in &self.groups {
            self.write_shares(&group.counts, &mut shares);
            sums.iter_mut().zip(&shares).for_each(|(sum, share)| *sum += share);
        }
        for (pair, row) in sums.chunks_exact_mut(self.width).enumerate() {
            let total: f32 = row.iter().sum();
            if total > 0.0 {
                row.iter_mut().for_each(|x| *x /= total);
            } else {
                // What was never tried is taken to change nothing, if that is possible.
                let state = (pair / self.actions) as u32;
                let stay =
                    self.successors[pair * self.width..][..self.width].iter().position(|&s| s == state);
                row[stay.unwrap_or(0)] = 1.0;
            }
        }
        sums
    }
}

/// Adds to the outcomes `seen` of each state and action those that the action's steps elsewhere lead to, if they are few.
fn spread_steps(spec: &EnvSpec, actions: usize, visited: &[u32], index: &[u32], seen: &mut [BTreeSet<u32>]) {
    let place = |state: u32| {
        let mut obs = vec![0.0; spec.obs_dim()];
        spec.write_state(state as usize, &mut obs);
        obs
    };
    for action in 0..actions {
        let mut steps: BTreeSet<Vec<i32>> = BTreeSet::new();
        for &state in visited {
            let from = place(state);
            for &next in &seen[state as usize * actions + action] {
                steps.insert(place(next).iter().zip(&from).map(|(to, from)| (to - from) as i32).collect());
            }
        }
        if steps.len() > FEW_STEPS {
            continue;
        }
        for &state in visited {
            let from = place(state);
            let led = steps.iter().filter_map(|step| {
                let to: Vec<f32> = from.iter().zip(step).map(|(from, step)| from + *step as f32).collect();
                spec.state_of(&to).filter(|&next| index[next] != NEVER)
            });
            seen[state as usize * actions + action].extend(led.map(|next| next as u32));
        }
    }
}

/// One episode as moves between states of the discretizer.
fn trajectory(
    data: &Episodes,
    discretizer: &Discretizer,
    episode: usize,
) -> Result<Vec<StateStep>, LearnError> {
    let observations = data.observations(episode);
    for (row, obs) in observations.chunks_exact(discretizer.spec().obs_dim()).enumerate() {
        if discretizer.state_of(obs).is_none() {
            let problem =
                format!("observations: episode {episode}, row {row}: {obs:?} is none of the listed states");
            return Err(LearnError::Run { path: data.path().to_owned(), problem });
        }
    }
    let actions = data.actions(episode);
    Ok(steps_between(discretizer, observations, |step| actions.get(step), data.length(episode)))
}

/// The moves of so many steps; `observations` has one row more.
fn steps_between<'a>(
    discretizer: &Discretizer,
    observations: &[f32],
    actions: impl Fn(usize) -> Action<'a>,
    steps: usize,
) -> Vec<StateStep> {
    let dim = discretizer.spec().obs_dim();
    let mut found = Vec::with_capacity(steps);
    for (step, pair) in observations.windows(2 * dim).step_by(dim).take(steps).enumerate() {
        let (obs, next) = pair.split_at(dim);
        discretizer.add_steps(obs, actions(step), next, &mut found);
    }
    found
}
