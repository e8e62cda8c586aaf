//! Everything about a data set that opening it does not look at.

use super::column::{Column, Element};
use super::growing::hex;
use super::meta::{IMPORTED, META_FILE, Plan};
use super::{
    ACTIONS, ActionColumn, CONTEXT_IDS, EPISODE_OFFSETS, Episodes, GROUP_IDS, OBSERVATIONS, TERMINATED,
};
use crate::env::Dim;
use crate::error::WorldError;
use crate::registry::{WORLDS, WorldConfig, make};
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// A data set in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of episodes.
    pub episodes: usize,
    /// Number of transitions.
    pub transitions: usize,
    /// Number of groups.
    pub groups: usize,
    /// Number of labelled contexts; 0 if episodes carry no labels.
    pub contexts: usize,
    /// Transitions of the shortest episode.
    pub shortest: usize,
    /// Transitions of an episode on average.
    pub mean_length: f64,
    /// Transitions of the longest episode.
    pub longest: usize,
    /// Episodes that the dynamics ended.
    pub terminated: usize,
    /// Bytes of all columns.
    pub bytes: usize,
}

impl Episodes {
    /// The data set in numbers.
    pub fn summary(&self) -> Summary {
        let actions = match &self.actions {
            ActionColumn::Discrete(column) => column.bytes().len(),
            ActionColumn::Continuous(column) => column.bytes().len(),
        };
        let labels = self.contexts.as_ref().map_or(0, |column| column.bytes().len());
        let per_episode =
            self.offsets.bytes().len() + self.groups.bytes().len() + self.terminated.bytes().len();
        Summary {
            episodes: self.episodes(),
            transitions: self.transitions(),
            groups: self.groups(),
            contexts: self.meta().plan.contexts.len(),
            shortest: (0..self.episodes()).map(|episode| self.length(episode)).min().unwrap_or(0),
            mean_length: self.transitions() as f64 / self.episodes() as f64,
            longest: self.longest(),
            terminated: (0..self.episodes()).filter(|&episode| self.terminated(episode)).count(),
            bytes: self.observations.bytes().len() + actions + per_episode + labels,
        }
    }

    /// The smallest and largest value of each observation dimension.
    pub fn observed_range(&self) -> Vec<(f32, f32)> {
        let mut range = vec![(f32::INFINITY, f32::NEG_INFINITY); self.spec().obs_dim()];
        for row in self.observations.values().chunks_exact(range.len()) {
            for ((low, high), &value) in range.iter_mut().zip(row) {
                *low = low.min(value);
                *high = high.max(value);
            }
        }
        range
    }
}

/// Opens a data set and reads all of it once: checksums, finite numbers, bounds, labels, and whether `meta.json` says the
/// same as the columns and, for data collected here, as the world.
pub fn check(path: impl AsRef<Path>) -> Result<Episodes, WorldError> {
    let data = Episodes::open(path)?;
    check_listed(&data)?;
    checksum(&data, OBSERVATIONS, &data.observations)?;
    match &data.actions {
        ActionColumn::Discrete(column) => checksum(&data, ACTIONS, column)?,
        ActionColumn::Continuous(column) => checksum(&data, ACTIONS, column)?,
    }
    checksum(&data, EPISODE_OFFSETS, &data.offsets)?;
    checksum(&data, GROUP_IDS, &data.groups)?;
    checksum(&data, TERMINATED, &data.terminated)?;
    if let Some(column) = &data.contexts {
        checksum(&data, CONTEXT_IDS, column)?;
    }
    check_observations(&data)?;
    check_actions(&data)?;
    check_flags(&data)?;
    check_labels(&data)?;
    check_world(&data)?;
    Ok(data)
}

fn meta_error(data: &Episodes, field: &str, problem: impl Into<String>) -> WorldError {
    WorldError::data(data.path().join(META_FILE), field, problem)
}

/// Every column that the metadata lists must be one that is read.
fn check_listed(data: &Episodes) -> Result<(), WorldError> {
    let known = [OBSERVATIONS, ACTIONS, EPISODE_OFFSETS, GROUP_IDS, TERMINATED];
    let labels = data.contexts.as_ref().map(|_| CONTEXT_IDS);
    match data.meta().columns.keys().find(|name| !known.iter().chain(&labels).any(|known| known == name)) {
        Some(name) if name == CONTEXT_IDS => {
            Err(meta_error(data, "contexts", "the table is empty, but there is a column of context_ids"))
        }
        Some(name) => Err(meta_error(data, "columns", format!("\"{name}\" is no column of a data set"))),
        None => Ok(()),
    }
}

/// What was collected in a world of ours must have its spaces, and its contexts must be what their numbers say.
fn check_world(data: &Episodes) -> Result<(), WorldError> {
    let Plan { env, provenance, contexts } = &data.meta().plan;
    if provenance.policy == IMPORTED || !WORLDS.iter().any(|entry| entry.name == env.name) {
        return Ok(());
    }
    let world = make(&env.name, &WorldConfig::default())?;
    if env != world.spec() {
        let expected = serde_json::to_string(world.spec()).unwrap_or_default();
        let problem = format!("is not the environment called {}; expected {expected}", env.name);
        return Err(meta_error(data, "env", problem));
    }
    for entry in contexts {
        let about =
            world.describe(entry.id).map_err(|error| meta_error(data, "contexts", error.to_string()))?;
        // Numbers as a file gives them back: the last bit of one may be another.
        let about: serde_json::Value = serde_json::from_str(&about.to_string()).unwrap_or(about);
        if about != entry.about {
            let problem = format!("context {} is not described as {} describes it", entry.id.0, env.name);
            return Err(meta_error(data, "contexts", problem));
        }
    }
    Ok(())
}

fn column_error(data: &Episodes, name: &str, problem: String) -> WorldError {
    WorldError::data(data.path().join(format!("{name}.npy")), name, problem)
}

fn checksum<T: Element>(data: &Episodes, name: &str, column: &Column<T>) -> Result<(), WorldError> {
    let Some(info) = data.meta().columns.get(name) else {
        return Err(meta_error(data, name, "the metadata does not list this column"));
    };
    let (dtype, bytes) = (T::DTYPE.name(), column.bytes().len());
    let listed = info.shape.iter().try_fold(T::DTYPE.size(), |size, &axis| size.checked_mul(axis));
    if info.dtype != dtype || listed != Some(bytes) {
        let problem = format!(
            "listed as {} of shape {:?}, but the column holds {} numbers of {dtype}",
            info.dtype,
            info.shape,
            bytes / T::DTYPE.size()
        );
        return Err(meta_error(data, name, problem));
    }
    let mut hash = Xxh3::new();
    // In parts, so that a large column passes through memory without staying there.
    column.bytes().chunks(1 << 20).for_each(|part| hash.update(part));
    let found = hex(&hash);
    if found != info.xxh3_128 {
        let problem = format!(
            "the checksum is {found}, the metadata says {}; the file was changed or damaged",
            info.xxh3_128
        );
        return Err(column_error(data, name, problem));
    }
    Ok(())
}

/// What is wrong with the first observation out of bounds, if one is; rows are counted from `first_row`.
pub(super) fn bad_observation(dims: &[Dim], values: &[f32], first_row: usize) -> Option<String> {
    // NaN is in no range.
    let is_bad = |dim: &Dim, value: f32| {
        !(dim.low..=dim.high).contains(&value) || (dim.integer && value.fract() != 0.0)
    };
    values.chunks_exact(dims.len()).enumerate().find_map(|(row, values)| {
        let (dim, value) = dims.iter().zip(values).find(|(dim, value)| is_bad(dim, **value))?;
        let kind = if dim.integer { "a whole number" } else { "a number" };
        let Dim { name, low, high, .. } = dim;
        Some(format!("row {}, {name}: {value}, expected {kind} from {low} to {high}", first_row + row))
    })
}

fn check_observations(data: &Episodes) -> Result<(), WorldError> {
    match bad_observation(&data.spec().observation, data.observations.values(), 0) {
        Some(problem) => Err(column_error(data, OBSERVATIONS, problem)),
        None => Ok(()),
    }
}

fn check_actions(data: &Episodes) -> Result<(), WorldError> {
    let space = &data.spec().action;
    let actions = data.all_actions();
    match (0..actions.len()).find(|&row| !space.contains(actions.get(row))) {
        Some(row) => {
            let error = space.reject(&data.spec().name, actions.get(row));
            Err(column_error(data, ACTIONS, format!("row {row}: {error}")))
        }
        None => Ok(()),
    }
}

fn check_flags(data: &Episodes) -> Result<(), WorldError> {
    match data.terminated.values().iter().position(|&flag| flag > 1) {
        Some(row) => Err(column_error(
            data,
            TERMINATED,
            format!("row {row}: {}, expected 0 or 1", data.terminated.values()[row]),
        )),
        None => Ok(()),
    }
}

fn check_labels(data: &Episodes) -> Result<(), WorldError> {
    let Some(labels) = data.privileged_context_labels() else { return Ok(()) };
    let mut known = HashSet::new();
    for context in &data.meta().plan.contexts {
        if !known.insert(context.id) {
            let problem = format!("context {} stands in the table twice", context.id.0);
            return Err(meta_error(data, "contexts", problem));
        }
    }
    for episode in 0..data.episodes() {
        let context = labels.of(episode);
        if !known.contains(&context) {
            return Err(column_error(
                data,
                CONTEXT_IDS,
                format!("row {episode}: context {} is not in the table", context.0),
            ));
        }
        if episode > 0 && data.group(episode) == data.group(episode - 1) && context != labels.of(episode - 1)
        {
            let problem = format!("row {episode}: group {} holds more than one context", data.group(episode));
            return Err(column_error(data, CONTEXT_IDS, problem));
        }
    }
    Ok(())
}
