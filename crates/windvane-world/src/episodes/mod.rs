//! Data sets: episodes in columns, memory-mapped, with windows that never cross an episode.
//!
//! A data set is a folder. Every column is a `.npy` file that `numpy.load(.., mmap_mode="r")` opens:
//!
//! | column | shape | type | holds |
//! |---|---|---|---|
//! | `observations` | `[transitions + episodes, dims]` | f32 | one row more than transitions for each episode |
//! | `actions` | `[transitions]` or `[transitions, k]` | u32 or f32 | moves, or vectors |
//! | `episode_offsets` | `[episodes + 1]` | i64 | first transition of each episode, and the total |
//! | `group_ids` | `[episodes]` | i64 | episodes of one group share the same, possibly unknown, dynamics |
//! | `terminated` | `[episodes]` | bool | whether the dynamics ended the episode, and not the clock |
//! | `context_ids` | `[episodes]` | u64 | the hidden context; optional, for evaluation and Oracle-ID only |
//!
//! The transitions of episode `e` are `episode_offsets[e] .. episode_offsets[e + 1]`; because each episode before it has
//! one observation more, its observations begin at row `episode_offsets[e] + e`. Groups are numbered from 0 in the order
//! they appear and their episodes stand together. `meta.json` holds the rest: see [`Meta`].

mod atomic;
mod check;
mod column;
mod exchange;
mod growing;
mod journal;
mod lookup;
mod meta;
mod mmap;
mod npy;
mod partial;
mod sample;
mod trajectories;
mod writer;

pub(crate) use atomic::new_file;
pub use check::{Summary, check};
pub(crate) use exchange::read_rows;
pub use exchange::{ActionKind, GroupBy, ImportConfig, export_minari, export_npz, import, read_observations};
pub(crate) use meta::read_json;
pub use meta::{ColumnInfo, ContextEntry, Meta, Plan, Provenance, VERSION, first_difference};
pub(crate) use partial::{finished_plan, plan_difference};
pub use sample::{Batch, Window};
pub use trajectories::read_trajectories;
pub use writer::{Block, EpisodeInfo, Leftover, Writer};

use crate::env::{Action, ActionSpace, ContextId, EnvSpec};
use crate::error::WorldError;
use column::Column;
use lookup::Lookup;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) const OBSERVATIONS: &str = "observations";
pub(crate) const ACTIONS: &str = "actions";
pub(crate) const EPISODE_OFFSETS: &str = "episode_offsets";
pub(crate) const GROUP_IDS: &str = "group_ids";
pub(crate) const TERMINATED: &str = "terminated";
pub(crate) const CONTEXT_IDS: &str = "context_ids";

/// An open data set. Opening reads headers and offsets only; the rest is read when it is looked at.
#[derive(Debug)]
pub struct Episodes {
    path: PathBuf,
    meta: Meta,
    observations: Column<f32>,
    actions: ActionColumn,
    offsets: Column<i64>,
    groups: Column<i64>,
    terminated: Column<u8>,
    contexts: Option<Column<u64>>,
    lookup: Lookup,
    longest: usize,
}

#[derive(Debug)]
enum ActionColumn {
    Discrete(Column<u32>),
    Continuous(Column<f32>),
}

/// Consecutive actions, borrowed from a data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActionSlice<'a> {
    /// Indices of named moves.
    Discrete(&'a [u32]),
    /// Vectors, one after the other.
    Continuous {
        /// Components of each.
        size: usize,
        /// All components.
        values: &'a [f32],
    },
}

impl<'a> ActionSlice<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Discrete(moves) => moves.len(),
            Self::Continuous { size, values } => values.len() / size,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The action at place `index`.
    pub fn get(&self, index: usize) -> Action<'a> {
        match self {
            Self::Discrete(moves) => Action::Discrete(moves[index]),
            Self::Continuous { size, values } => {
                Action::Continuous(&values[index * size..(index + 1) * size])
            }
        }
    }

    /// All of them, in order.
    pub fn all(&self) -> Vec<Action<'a>> {
        (0..self.len()).map(|index| self.get(index)).collect()
    }

    /// Those in a range.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        match *self {
            Self::Discrete(moves) => Self::Discrete(&moves[range]),
            Self::Continuous { size, values } => {
                Self::Continuous { size, values: &values[range.start * size..range.end * size] }
            }
        }
    }
}

impl Episodes {
    /// Opens the data set in a folder and validates its structure: version, headers, sizes, offsets, groups.
    ///
    /// Content (checksums, finite numbers, ranges) is what [`check`] validates.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorldError> {
        let path = path.as_ref();
        let meta = Meta::read(path)?;
        let (episodes, transitions) = (meta.episodes, meta.transitions);
        let rows = transitions.checked_add(episodes).ok_or_else(|| {
            WorldError::data(path.join(meta::META_FILE), "transitions", "more than fit a 64-bit machine")
        })?;
        let observations = Column::open(path, OBSERVATIONS, &[rows, meta.plan.env.obs_dim()])?;
        let actions = match &meta.plan.env.action {
            ActionSpace::Discrete { .. } => {
                ActionColumn::Discrete(Column::open(path, ACTIONS, &[transitions])?)
            }
            ActionSpace::Continuous { low, .. } => {
                ActionColumn::Continuous(Column::open(path, ACTIONS, &[transitions, low.len()])?)
            }
        };
        // Offsets have one row more than there are episodes; both counts come from a file, so no overflow either.
        let offsets = Column::open(path, EPISODE_OFFSETS, &[episodes.saturating_add(1)])?;
        let groups = Column::open(path, GROUP_IDS, &[episodes])?;
        let terminated = Column::open(path, TERMINATED, &[episodes])?;
        let labelled = !meta.plan.contexts.is_empty();
        let contexts = labelled.then(|| Column::open(path, CONTEXT_IDS, &[episodes])).transpose()?;
        let longest = check_offsets(path, offsets.values(), transitions)?;
        check_groups(path, groups.values(), meta.groups)?;
        let lookup = Lookup::new(offsets.values());
        let path = path.to_owned();
        Ok(Self { path, meta, observations, actions, offsets, groups, terminated, contexts, lookup, longest })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What `meta.json` says.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The visible side of the environment.
    pub fn spec(&self) -> &EnvSpec {
        &self.meta.plan.env
    }

    /// Number of episodes.
    pub fn episodes(&self) -> usize {
        self.meta.episodes
    }

    /// Number of transitions of all episodes.
    pub fn transitions(&self) -> usize {
        self.meta.transitions
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.meta.groups
    }

    /// Transitions of the longest episode.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The transitions of an episode, counted over the whole data set.
    pub fn span(&self, episode: usize) -> Range<usize> {
        let offsets = self.offsets.values();
        offsets[episode] as usize..offsets[episode + 1] as usize
    }

    /// Number of transitions of an episode.
    pub fn length(&self, episode: usize) -> usize {
        self.span(episode).len()
    }

    /// The observations of an episode, `[length + 1, dims]`.
    pub fn observations(&self, episode: usize) -> &[f32] {
        let span = self.span(episode);
        let dims = self.spec().obs_dim();
        &self.observations.values()[(span.start + episode) * dims..(span.end + episode + 1) * dims]
    }

    /// The actions of an episode.
    pub fn actions(&self, episode: usize) -> ActionSlice<'_> {
        self.all_actions().slice(self.span(episode))
    }

    /// The observations of all episodes, `[transitions + episodes, dims]`.
    pub fn all_observations(&self) -> &[f32] {
        self.observations.values()
    }

    /// The first transition of each episode, and the total.
    pub fn offsets(&self) -> &[i64] {
        self.offsets.values()
    }

    /// The group of each episode.
    pub fn group_ids(&self) -> &[i64] {
        self.groups.values()
    }

    /// For each episode, 1 where the dynamics ended it.
    pub fn terminated_flags(&self) -> &[u8] {
        self.terminated.values()
    }

    /// Whether the dynamics ended the episode, and not the clock: nothing follows its last observation.
    pub fn terminated(&self, episode: usize) -> bool {
        self.terminated.values()[episode] != 0
    }

    /// The group of an episode.
    pub fn group(&self, episode: usize) -> usize {
        self.groups.values()[episode] as usize
    }

    /// The episodes of a group; they stand together.
    pub fn group_episodes(&self, group: usize) -> Range<usize> {
        let groups = self.groups.values();
        let group = group as i64;
        groups.partition_point(|&other| other < group)..groups.partition_point(|&other| other <= group)
    }

    /// The episode that a transition, counted over the whole data set, belongs to.
    ///
    /// # Panics
    /// If there is no such transition.
    pub fn episode_of(&self, transition: usize) -> usize {
        self.lookup.find(self.offsets.values(), transition)
    }

    /// The hidden context of each episode, where it was recorded.
    ///
    /// For evaluation and for Oracle-ID, which is conditioned on it; no other method may look.
    pub fn privileged_context_labels(&self) -> Option<PrivilegedLabels<'_>> {
        self.contexts.as_ref().map(|column| PrivilegedLabels(column.values()))
    }

    /// The actions of all episodes.
    pub fn all_actions(&self) -> ActionSlice<'_> {
        match &self.actions {
            ActionColumn::Discrete(column) => ActionSlice::Discrete(column.values()),
            ActionColumn::Continuous(column) => {
                ActionSlice::Continuous { size: self.spec().action.size(), values: column.values() }
            }
        }
    }
}

/// The answer that learners must find by themselves.
#[derive(Clone, Copy, Debug)]
pub struct PrivilegedLabels<'a>(&'a [u64]);

impl<'a> PrivilegedLabels<'a> {
    /// The contexts of all episodes.
    pub fn all(&self) -> &'a [u64] {
        self.0
    }

    /// The context of an episode.
    pub fn of(&self, episode: usize) -> ContextId {
        ContextId(self.0[episode])
    }
}

/// Offsets must begin at 0, grow by at least one and end at the number of transitions; the longest step is returned.
fn check_offsets(path: &Path, offsets: &[i64], transitions: usize) -> Result<usize, WorldError> {
    let wrong = |problem| Err(WorldError::data(path.join("episode_offsets.npy"), EPISODE_OFFSETS, problem));
    if offsets[0] != 0 {
        return wrong(format!("begin at {}, expected 0", offsets[0]));
    }
    let mut longest = 0;
    for (episode, pair) in offsets.windows(2).enumerate() {
        // Both lie within 0 and the total as long as no step goes down, so the difference cannot overflow.
        if pair[1] <= pair[0] {
            return wrong(format!(
                "episode {episode} goes from {} to {}; expected at least one transition",
                pair[0], pair[1]
            ));
        }
        longest = longest.max(pair[1] - pair[0]);
    }
    let end = offsets[offsets.len() - 1];
    if usize::try_from(end) != Ok(transitions) {
        return wrong(format!("end at {end}, but there are {transitions} transitions"));
    }
    Ok(longest as usize)
}

/// Groups must count up from 0 without gaps.
fn check_groups(path: &Path, groups: &[i64], count: usize) -> Result<(), WorldError> {
    let wrong = |problem| Err(WorldError::data(path.join("group_ids.npy"), GROUP_IDS, problem));
    let mut last = -1;
    for (episode, &group) in groups.iter().enumerate() {
        if group != last && group != last + 1 {
            return wrong(format!(
                "episode {episode} is of group {group} after group {last}; expected {last} or {}",
                last + 1
            ));
        }
        last = group;
    }
    if usize::try_from(last + 1) != Ok(count) {
        return wrong(format!("there are {} groups, but the metadata says {count}", last + 1));
    }
    Ok(())
}
