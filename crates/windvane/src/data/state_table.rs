//! What a data set of listed states says, state by state: which states occur, what can follow what, and how often.
//!
//! Nothing here knows about walls or grids. An action moves by few different steps (one ahead, or not at all): the
//! *outcomes* of a state and an action are the states that its steps lead to, wherever they were seen. So an unseen context
//! may open a way that was shut in all known ones. Where actions move by many different steps, outcomes are those seen in
//! the very state. A *token* is one outcome, and stands for "this action, here, led there".

use super::{EncoderConfig, split_groups};
use crate::error::{LearnError, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use windvane_world::discretizer::{Discretizer, StateStep};
use windvane_world::episodes::Episodes;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, ContextId, Dim, EnvSpec};

/// Marks a state of the listing that no episode visited.
const NEVER: u32 = u32::MAX;
/// Most different steps by which an action may move for its outcomes to be taken as the same everywhere.
const FEW_STEPS: usize = 5;

/// Listed states as their data shows them.
#[derive(Clone, Debug)]
pub struct StateTable {
    /// The environment as it shows itself, before it is discretized.
    pub(crate) world: EnvSpec,
    pub(crate) discretizer: Discretizer,
    /// From the discretizer's number of a state to ours, which counts visited states only.
    index: Vec<u32>,
    pub(crate) actions: usize,
    graph: TableGraph,
    /// `[states]`: how often each state was visited, as a share of all visits.
    pub(crate) rho: Vec<f32>,
    /// All transitions as tokens, episode after episode.
    pub(crate) tokens: Vec<u32>,
    /// Where those of each episode are among them.
    pub(crate) episodes: Vec<Range<usize>>,
    pub(crate) groups: Vec<Group>,
}

/// The visited states and what can follow what: what is exported of a table, besides how often each was met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableGraph {
    box_side: f64,
    /// The discretizer's number of each state.
    listed: Vec<u32>,
    /// Most outcomes any state and action has.
    width: usize,
    /// `[states * actions * width]`: the outcomes of each pair in order of state, the rest filled with the first.
    successors: Vec<u32>,
    /// `[states * actions]`: how many of them are real.
    outcomes: Vec<u8>,
}

/// Episodes that share the same unknown dynamics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Their numbers.
    pub episodes: Vec<usize>,
    /// How often they hold each token, `[vocabulary]`.
    pub counts: Vec<f32>,
    /// The context they are of, where that was recorded: for Oracle-ID, which is conditioned on it.
    pub(crate) privileged_context: Option<ContextId>,
}

impl StateTable {
    /// Reads a whole data set once. An error if its states cannot be listed, in `boxes` or without.
    pub fn of(data: &Episodes, config: &EncoderConfig, held_out: f64) -> Result<Self> {
        let discretizer = Discretizer::new(data.spec(), config.box_side)?;
        let spec = discretizer.spec().clone();
        let listed = spec.states().unwrap_or(0);
        let actions = spec.action.size(); // a discretizer's are discrete
        let (learned, _) = split_groups(data, held_out);
        let learned_episodes = learned.iter().flat_map(|&group| data.group_episodes(group));
        let trajectories: Vec<(usize, Vec<StateStep>)> =
            learned_episodes.map(|e| Ok((e, steps_of(data, &discretizer, e)?))).collect::<Result<_>>()?;

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
        let index = index_of(&visited, listed);
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
        let graph = TableGraph { box_side: config.box_side, listed: visited, width, successors, outcomes };
        let group = Group { counts: vec![0.0; graph.successors.len()], ..Group::default() };
        let mut table = Self::new(data.spec(), discretizer, graph, rho, vec![group; learned.len()]);
        for (number, (e, steps)) in trajectories.iter().enumerate() {
            let tokens: Vec<u32> = steps.iter().filter_map(|&step| table.token_of(step)).collect();
            let place = learned.binary_search(&data.group(*e)).unwrap_or(0); // groups are learned in order
            let group = &mut table.groups[place];
            group.episodes.push(number);
            group.privileged_context = data.privileged_context_labels().map(|labels| labels.of(*e));
            tokens.iter().for_each(|&token| group.counts[token as usize] += 1.0);
            table.episodes.push(table.tokens.len()..table.tokens.len() + tokens.len());
            table.tokens.extend(tokens);
        }
        Ok(table)
    }

    fn new(
        world: &EnvSpec,
        discretizer: Discretizer,
        graph: TableGraph,
        rho: Vec<f32>,
        groups: Vec<Group>,
    ) -> Self {
        Self {
            world: world.clone(),
            index: index_of(&graph.listed, discretizer.spec().states().unwrap_or(0)),
            actions: discretizer.spec().action.size(),
            discretizer,
            graph,
            rho,
            tokens: Vec::new(),
            episodes: Vec::new(),
            groups,
        }
    }

    /// Its graph, and how often each group met each token, `[groups * vocabulary]`.
    pub(crate) fn export(&self) -> (TableGraph, Vec<f32>) {
        (self.graph.clone(), self.groups.iter().flat_map(|group| &group.counts).copied().collect())
    }

    /// An exported table, of an environment that looks like `env`; it has no episodes.
    pub(crate) fn import(graph: TableGraph, env: &EnvSpec, rho: Vec<f32>, counts: &[f32]) -> Result<Self> {
        let wrong = |problem: String| LearnError::config("table", problem);
        let discretizer = Discretizer::new(env, graph.box_side).map_err(|e| wrong(e.to_string()))?;
        let TableGraph { listed, width, successors, outcomes, .. } = &graph;
        let (all, actions) = (discretizer.spec().states().unwrap_or(0), discretizer.spec().action.size());
        let pairs = listed.len() * actions;
        let fits = !listed.is_empty()
            && listed.iter().all(|&s| (s as usize) < all)
            && (1..=usize::from(u8::MAX)).contains(width)
            && outcomes.len() == pairs
            && outcomes.iter().all(|&count| usize::from(count) <= *width)
            && successors.len() == pairs * width
            && successors.iter().all(|&s| (s as usize) < listed.len())
            && rho.len() == listed.len()
            && counts.len().is_multiple_of(successors.len())
            && counts.iter().all(|count| *count >= 0.0);
        if !fits {
            return Err(wrong("its parts do not fit each other and the environment".into()));
        }
        let group = |counts: &[f32]| Group { counts: counts.to_vec(), ..Group::default() };
        let groups = counts.chunks_exact(successors.len()).map(group).collect();
        Ok(Self::new(env, discretizer, graph, rho, groups))
    }

    /// The token of a step; nothing if its states were never visited or no step of the action leads there.
    fn token_of(&self, StateStep { from, action, to }: StateStep) -> Option<u32> {
        let [from, to] = [self.visited(from)?, self.visited(to)?];
        let pair = from * self.actions + action;
        let place = self.outcomes(pair).iter().position(|&outcome| outcome as usize == to)?;
        Some((pair * self.graph.width + place) as u32)
    }

    /// The tokens of consecutive steps of the world, nothing for a step that no episode ever saw; `obs` has one row more than there
    /// are actions.
    pub(crate) fn tokens_between<'a>(
        &'a self,
        obs: &[f32],
        actions: &[Action<'_>],
    ) -> impl Iterator<Item = Option<u32>> + use<'a> {
        self.discretizer.steps(obs, actions).into_iter().map(|step| self.token_of(step))
    }

    /// The tokens of a trajectory.
    pub fn tokens_of(&self, trajectory: &Trajectory) -> Vec<u32> {
        self.tokens_between(trajectory.observations(), &trajectory.actions().all()).flatten().collect()
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
            self.discretizer.write_obs(self.graph.listed[s] as usize, &mut place);
            place.iter().zip(obs).map(|(a, b)| (a - b).abs()).sum::<f32>()
        };
        let near = |s: &usize, t: &usize| distance(*s).total_cmp(&distance(*t));
        self.state(obs).or_else(|| (0..self.states()).min_by(near)).unwrap_or(0)
    }

    /// Writes the place of a visited state among the others: its coordinates in [`StateTable::spec`].
    pub fn write_state(&self, state: usize, place: &mut [f32]) {
        self.spec().write_state(self.graph.listed[state] as usize, place);
    }

    /// The coordinates of a visited state, each one-hot.
    pub(crate) fn one_hot(&self, state: usize) -> Vec<f32> {
        let mut place = vec![0.0; self.spec().obs_dim()];
        self.write_state(state, &mut place);
        let coordinates = self.spec().observation.iter().zip(place);
        let one_hot = |(dim, x): (&Dim, f32)| {
            let value = (x - dim.low) as usize;
            (0..dim.values().unwrap_or(0)).map(move |other| f32::from(u8::from(other == value)))
        };
        coordinates.flat_map(one_hot).collect()
    }

    /// The places of all visited states, `[states * dims]`.
    pub(crate) fn places(&self) -> Vec<f32> {
        let mut places = vec![0.0; self.states() * self.spec().obs_dim()];
        let rows = places.chunks_exact_mut(self.spec().obs_dim());
        rows.enumerate().for_each(|(state, place)| self.write_state(state, place));
        places
    }

    /// Whether a token stands for an outcome, or fills up the places of its pair.
    pub(crate) fn is_outcome(&self, token: usize) -> bool {
        token % self.width() < self.outcomes(token / self.width()).len().max(1)
    }

    /// The state that a token leaves.
    pub(crate) fn leaves(&self, token: usize) -> usize {
        token / self.width() / self.actions
    }

    /// Writes what the world shows in a visited state.
    pub fn write_obs(&self, state: usize, obs: &mut [f32]) {
        self.discretizer.write_obs(self.graph.listed[state] as usize, obs);
    }

    /// The visible side of the environment, as a finite one.
    pub fn spec(&self) -> &EnvSpec {
        self.discretizer.spec()
    }

    /// Number of visited states.
    pub fn states(&self) -> usize {
        self.graph.listed.len()
    }

    /// Number of pairs of state and action.
    pub fn pairs(&self) -> usize {
        self.states() * self.actions
    }

    /// Most outcomes of a pair.
    pub fn width(&self) -> usize {
        self.graph.width
    }

    /// Number of tokens, places for outcomes that do not exist included: `pairs * width`.
    pub fn vocabulary(&self) -> usize {
        self.graph.successors.len()
    }

    /// The state each token leads to.
    pub fn successors(&self) -> &[u32] {
        &self.graph.successors
    }

    /// The states that a pair can lead to.
    pub fn outcomes(&self, pair: usize) -> &[u32] {
        &self.graph.successors[pair * self.graph.width..][..usize::from(self.graph.outcomes[pair])]
    }

    /// The transitions of an episode as tokens.
    pub fn episode(&self, number: usize) -> &[u32] {
        &self.tokens[self.episodes[number].clone()]
    }
}

/// The place of each of `all` states among the `visited` ones.
fn index_of(visited: &[u32], all: usize) -> Vec<u32> {
    let mut index = vec![NEVER; all];
    visited.iter().enumerate().for_each(|(i, &s)| index[s as usize] = i as u32);
    index
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

/// One episode as steps between states of the discretizer.
fn steps_of(data: &Episodes, discretizer: &Discretizer, episode: usize) -> Result<Vec<StateStep>> {
    let observations = data.observations(episode);
    for (row, obs) in observations.chunks_exact(discretizer.spec().obs_dim()).enumerate() {
        if discretizer.state_of(obs).is_none() {
            let problem =
                format!("observations: episode {episode}, row {row}: {obs:?} is none of the listed states");
            return Err(LearnError::Run { path: data.path().to_owned(), problem });
        }
    }
    Ok(discretizer.steps(observations, &data.actions(episode).all()))
}
