//! Writing a data set: into `DIR.partial`, block by block, and renamed to `DIR` only when complete.
//!
//! A kill at any moment loses at most the episodes since the last commit: the same command goes on from there. A
//! finished folder is never touched again.

use super::check::bad_observation;
use super::growing::Growing;
use super::journal::{Entry, JOURNAL_FILE, Journal, Mark};
use super::meta::{META_FILE, Meta, Plan, check_spec};
use super::npy::Dtype;
use super::partial::{PLAN_FILE, claim, remove, sync_folder, write_json};
use super::{ACTIONS, CONTEXT_IDS, EPISODE_OFFSETS, Episodes, GROUP_IDS, OBSERVATIONS, TERMINATED};
use crate::env::{ActionSpace, Actions, ContextId, EnvSpec};
use crate::error::WorldError;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Whole episodes on their way to disk.
#[derive(Clone, Debug)]
pub struct Block {
    /// One row more than transitions for each episode.
    pub observations: Vec<f32>,
    /// One for each transition.
    pub actions: Actions,
    /// One for each episode.
    pub episodes: Vec<EpisodeInfo>,
}

/// What is written of an episode besides what happened in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeInfo {
    /// Number of transitions, at least one.
    pub length: usize,
    /// Whether the dynamics ended it (and not the clock).
    pub terminated: bool,
    /// Its group. Groups are numbered from 0 in the order they appear, and their episodes stand together.
    pub group: usize,
    /// Its hidden context: given exactly when the plan has a table of contexts.
    pub context: Option<ContextId>,
}

impl Block {
    /// An empty block for data of this kind.
    pub fn new(spec: &EnvSpec) -> Self {
        Self { observations: Vec::new(), actions: spec.action.actions(0), episodes: Vec::new() }
    }

    /// Empties it for the next episodes.
    pub fn clear(&mut self) {
        self.observations.clear();
        self.episodes.clear();
        match &mut self.actions {
            Actions::Discrete(moves) => moves.clear(),
            Actions::Continuous { values, .. } => values.clear(),
        }
    }
}

/// What to do about an unfinished folder left by an earlier run of the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// Keep its episodes and go on after them.
    Continue,
    /// Begin again.
    StartOver,
}

/// A data set that is being written.
pub struct Writer {
    out: PathBuf,
    partial: PathBuf,
    plan: Plan,
    contexts: HashSet<ContextId>,
    journal: Journal,
    columns: Vec<Growing>,
    done: Entry,
}

impl Writer {
    /// Begins, or goes on with, the data set `out`, which must not exist yet.
    ///
    /// Nothing is returned when an earlier run had finished everything but its last renaming, which is then done.
    pub fn begin(out: &Path, plan: Plan, leftover: Leftover) -> Result<Option<Self>, WorldError> {
        check_spec(&plan.env).map_err(|problem| WorldError::data(out, "env", problem))?;
        let (partial, finished) = claim(out, &plan)?;
        let (mut journal, entry) = Journal::open(&partial)?;
        if finished {
            let writer = Self::over(out, partial, plan, journal, Vec::new(), Entry::default());
            writer.rename()?;
            return Ok(None);
        }
        remove(&partial.join(META_FILE))?;
        write_json(&partial, PLAN_FILE, &plan)?;
        let done = match leftover {
            Leftover::Continue => entry.unwrap_or_default(),
            Leftover::StartOver => {
                journal.push(&Entry::default())?;
                Entry::default()
            }
        };
        let columns = columns_of(&plan)
            .into_iter()
            .map(|(name, dtype, row)| {
                let mark = done.columns.get(name).cloned().unwrap_or_default();
                Growing::open(&partial, name, dtype, &row, &mark)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut writer = Self::over(out, partial, plan, journal, columns, done);
        if writer.done.columns.is_empty() {
            writer.append_to(EPISODE_OFFSETS, &0_i64.to_le_bytes())?;
        }
        Ok(Some(writer))
    }

    fn over(
        out: &Path,
        partial: PathBuf,
        plan: Plan,
        journal: Journal,
        columns: Vec<Growing>,
        done: Entry,
    ) -> Self {
        let contexts = plan.contexts.iter().map(|context| context.id).collect();
        Self { out: out.to_owned(), partial, plan, contexts, journal, columns, done }
    }

    /// Episodes written so far, those of an earlier run included.
    pub fn episodes(&self) -> usize {
        self.done.episodes
    }

    /// Transitions written so far, those of an earlier run included.
    pub fn transitions(&self) -> usize {
        self.done.transitions
    }

    /// Adds whole episodes; they count once [`Self::commit`] returns.
    pub fn append(&mut self, block: &Block) -> Result<(), WorldError> {
        self.check(block)?;
        self.append_to(OBSERVATIONS, bytemuck::cast_slice(&block.observations))?;
        match &block.actions {
            Actions::Discrete(moves) => self.append_to(ACTIONS, bytemuck::cast_slice(moves))?,
            Actions::Continuous { values, .. } => self.append_to(ACTIONS, bytemuck::cast_slice(values))?,
        }
        let mut end = self.done.transitions as i64;
        let offsets = block.episodes.iter().map(|episode| {
            end += episode.length as i64;
            end
        });
        let offsets: Vec<i64> = offsets.collect();
        let groups: Vec<i64> = block.episodes.iter().map(|episode| episode.group as i64).collect();
        let terminated: Vec<u8> = block.episodes.iter().map(|episode| u8::from(episode.terminated)).collect();
        self.append_to(EPISODE_OFFSETS, bytemuck::cast_slice(&offsets))?;
        self.append_to(GROUP_IDS, bytemuck::cast_slice(&groups))?;
        self.append_to(TERMINATED, &terminated)?;
        if !self.contexts.is_empty() {
            let contexts: Vec<u64> = block.episodes.iter().filter_map(|e| e.context.map(|id| id.0)).collect();
            self.append_to(CONTEXT_IDS, bytemuck::cast_slice(&contexts))?;
        }
        self.done.episodes += block.episodes.len();
        self.done.transitions = end as usize;
        if let Some(last) = block.episodes.last() {
            self.done.groups = last.group + 1;
            self.done.context = last.context;
        }
        Ok(())
    }

    /// Waits until all appended episodes are on disk; from then on a kill does not lose them.
    pub fn commit(&mut self) -> Result<(), WorldError> {
        for column in &mut self.columns {
            let mark: Mark = column.sync()?;
            self.done.columns.insert(column.name().to_owned(), mark);
        }
        self.journal.push(&self.done)
    }

    /// Completes the data set, gives it its name and opens it.
    pub fn finish(mut self) -> Result<Episodes, WorldError> {
        if self.done.episodes == 0 {
            return Err(WorldError::data(&self.out, "episodes", "there is none to write"));
        }
        let columns =
            std::mem::take(&mut self.columns).into_iter().map(Growing::finish).collect::<Result<_, _>>()?;
        let counts = [self.done.episodes, self.done.transitions, self.done.groups];
        write_json(&self.partial, META_FILE, &Meta::new(self.plan.clone(), counts, columns))?;
        remove(&self.partial.join(PLAN_FILE))?;
        self.rename()?;
        Episodes::open(&self.out)
    }

    /// The last step: with `meta.json` in place and `plan.json` gone, the folder only lacks its name.
    fn rename(&self) -> Result<(), WorldError> {
        remove(&self.partial.join(JOURNAL_FILE))?;
        sync_folder(&self.partial)?;
        std::fs::rename(&self.partial, &self.out)
            .map_err(|error| WorldError::io(&self.out, "renaming the finished data set", error))?;
        sync_folder(self.out.parent().unwrap_or(Path::new(".")))
    }

    fn append_to(&mut self, name: &str, bytes: &[u8]) -> Result<(), WorldError> {
        self.columns
            .iter_mut()
            .filter(|column| column.name() == name)
            .try_for_each(|column| column.append(bytes))
    }

    /// The gate: no block gets past it that would make the data set inconsistent.
    fn check(&self, block: &Block) -> Result<(), WorldError> {
        let wrong = |field: &str, problem: String| Err(WorldError::data(&self.out, field, problem));
        let transitions: usize = block.episodes.iter().map(|episode| episode.length).sum();
        let rows = transitions + block.episodes.len();
        let dims = self.plan.env.obs_dim();
        if block.observations.len() != rows * dims {
            return wrong(
                OBSERVATIONS,
                format!("{} numbers for {rows} rows of {dims}", block.observations.len()),
            );
        }
        let kind = match (&block.actions, &self.plan.env.action) {
            (Actions::Discrete(_), ActionSpace::Discrete { .. }) => true,
            (Actions::Continuous { size, .. }, ActionSpace::Continuous { low, .. }) => *size == low.len(),
            _ => false,
        };
        if !kind || block.actions.len() != transitions {
            return wrong(ACTIONS, format!("{} actions for {transitions} transitions", block.actions.len()));
        }
        let first_row = self.done.transitions + self.done.episodes;
        if let Some(problem) = bad_observation(&self.plan.env.observation, &block.observations, first_row) {
            return wrong(OBSERVATIONS, problem);
        }
        if let Some(place) = (0..transitions).find(|&t| !self.plan.env.action.contains(block.actions.get(t)))
        {
            let error = self.plan.env.action.reject(&self.plan.env.name, block.actions.get(place));
            return wrong(ACTIONS, format!("row {}: {error}", self.done.transitions + place));
        }
        let (mut groups, mut context) = (self.done.groups, self.done.context);
        for episode in &block.episodes {
            if episode.length == 0 {
                return wrong(EPISODE_OFFSETS, "an episode without transitions".into());
            }
            if episode.context.map_or(!self.contexts.is_empty(), |id| !self.contexts.contains(&id)) {
                return wrong(CONTEXT_IDS, format!("{:?} is not in the table of contexts", episode.context));
            }
            match episode.group {
                group if group == groups => groups += 1,
                group if group + 1 == groups && context == episode.context => {}
                group if group + 1 == groups => {
                    return wrong(CONTEXT_IDS, format!("group {group} holds more than one context"));
                }
                group => {
                    let problem = format!("group {group} follows {groups} groups; they must stand together");
                    return wrong(GROUP_IDS, problem);
                }
            }
            context = episode.context;
        }
        Ok(())
    }
}

/// Name, type and row shape of every column.
fn columns_of(plan: &Plan) -> Vec<(&'static str, Dtype, Vec<usize>)> {
    let action = match &plan.env.action {
        ActionSpace::Discrete { .. } => (ACTIONS, Dtype::U32, vec![]),
        ActionSpace::Continuous { low, .. } => (ACTIONS, Dtype::F32, vec![low.len()]),
    };
    let mut columns = vec![
        (OBSERVATIONS, Dtype::F32, vec![plan.env.obs_dim()]),
        action,
        (EPISODE_OFFSETS, Dtype::I64, vec![]),
        (GROUP_IDS, Dtype::I64, vec![]),
        (TERMINATED, Dtype::Bool, vec![]),
    ];
    if !plan.contexts.is_empty() {
        columns.push((CONTEXT_IDS, Dtype::U64, vec![]));
    }
    columns
}
