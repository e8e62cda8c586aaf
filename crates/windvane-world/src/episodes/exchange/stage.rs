//! Imported episodes on their way: converted, checked and stored in nameless files until their bounds and
//! groups are known.

use super::{About, ActionKind, GroupBy, ImportConfig};
use crate::env::{ActionSpace, ContextId, Dim, EnvSpec};
use crate::episodes::meta::MOST_MOVES;
use crate::episodes::mmap::map;
use crate::episodes::{ACTIONS, ActionSlice, OBSERVATIONS};
use crate::error::WorldError;
use memmap2::Mmap;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Most dimensions of an observation or components of an action.
pub(super) const MOST_DIMS: usize = 1 << 16;

/// What is known of a staged episode besides its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    pub(super) length: usize,
    pub(super) terminated: bool,
    pub(super) context: Option<ContextId>,
    group: usize,
    /// First transition, counted over all episodes.
    start: usize,
}

/// One episode as a reader found it.
pub(super) struct Found<'a> {
    /// `[length + 1, dims]`.
    pub(super) observations: &'a [f32],
    /// `[length]` moves or `[length, k]` components.
    pub(super) actions: ActionSlice<'a>,
    pub(super) terminated: bool,
    /// What the source itself, or the column asked for, says about its group.
    pub(super) group: Option<String>,
    pub(super) context: Option<ContextId>,
    /// Where it is in its source, for messages.
    pub(super) place: usize,
}

/// Collects episodes.
pub(super) struct Stage<'a> {
    config: &'a ImportConfig,
    folder: PathBuf,
    observations: BufWriter<File>,
    actions: BufWriter<File>,
    ranges: Option<Ranges>,
    episodes: Vec<Info>,
    groups: HashMap<(usize, Option<String>), usize>,
    group_count: usize,
    transitions: usize,
    source: PathBuf,
    source_number: usize,
    many_sources: bool,
}

/// Smallest and largest values seen.
#[derive(Clone, Debug)]
struct Ranges {
    observations: Vec<(f32, f32)>,
    actions: ActionRange,
}

#[derive(Clone, Debug)]
enum ActionRange {
    Discrete(u32),
    Continuous(Vec<(f32, f32)>),
}

impl<'a> Stage<'a> {
    /// An empty stage; its files lie in `folder` but have no names, so nothing stays behind whatever happens.
    pub(super) fn new(folder: &Path, config: &'a ImportConfig) -> Result<Self, WorldError> {
        Ok(Self {
            config,
            folder: folder.to_owned(),
            observations: BufWriter::new(nameless(folder)?),
            actions: BufWriter::new(nameless(folder)?),
            ranges: None,
            episodes: Vec::new(),
            groups: HashMap::new(),
            group_count: 0,
            transitions: 0,
            source: PathBuf::new(),
            source_number: 0,
            many_sources: false,
        })
    }

    /// From here on, episodes are of this source.
    pub(super) fn begin_source(&mut self, path: &Path, one_of_many: bool) {
        path.clone_into(&mut self.source);
        self.source_number += 1;
        self.many_sources = one_of_many;
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn action_kind(&self) -> ActionKind {
        self.config.actions
    }

    /// The array or key that groups episodes, if one was asked for.
    pub(super) fn group_column(&self) -> Option<&str> {
        match &self.config.group_by {
            GroupBy::Column(name) => Some(name),
            _ => None,
        }
    }

    /// Takes an episode.
    pub(super) fn push(&mut self, found: &Found<'_>) -> Result<(), WorldError> {
        let length = found.actions.len();
        let dims = found.observations.len() / (length + 1);
        let wrong = |field: &str, problem: String| {
            WorldError::data(&self.source, field, format!("episode {}: {problem}", found.place))
        };
        if length == 0 {
            return Err(wrong(OBSERVATIONS, "has no transition".into()));
        }
        if let Some(place) = found.observations.iter().position(|value| !value.is_finite()) {
            let value = found.observations[place];
            return Err(wrong(
                OBSERVATIONS,
                format!("step {}, dimension {}: {value} is not a finite number", place / dims, place % dims),
            ));
        }
        let fresh = || Ranges {
            observations: vec![(f32::INFINITY, f32::NEG_INFINITY); dims],
            actions: match found.actions {
                ActionSlice::Discrete(_) => ActionRange::Discrete(0),
                ActionSlice::Continuous { size, .. } => {
                    ActionRange::Continuous(vec![(f32::INFINITY, f32::NEG_INFINITY); size])
                }
            },
        };
        let ranges = self.ranges.get_or_insert_with(fresh);
        if ranges.observations.len() != dims {
            return Err(wrong(
                OBSERVATIONS,
                format!("{dims} dimensions, expected {} as before", ranges.observations.len()),
            ));
        }
        widen(&mut ranges.observations, found.observations);
        let writing = |error| WorldError::io(&self.folder, "staging the import", error);
        match (&mut ranges.actions, found.actions) {
            (ActionRange::Discrete(most), ActionSlice::Discrete(moves)) => {
                *most = moves.iter().copied().fold(*most, u32::max);
                if *most as usize >= MOST_MOVES {
                    let problem = format!(
                        "move {most}, expected less than {MOST_MOVES}; for vectors say --actions continuous"
                    );
                    return Err(wrong(ACTIONS, problem));
                }
                self.actions.write_all(bytemuck::cast_slice(moves)).map_err(writing)?;
            }
            (ActionRange::Continuous(range), ActionSlice::Continuous { size, values })
                if range.len() == size =>
            {
                if let Some(place) = values.iter().position(|value| !value.is_finite()) {
                    let value = values[place];
                    return Err(wrong(
                        ACTIONS,
                        format!(
                            "step {}, component {}: {value} is not a finite number",
                            place / size,
                            place % size
                        ),
                    ));
                }
                widen(range, values);
                self.actions.write_all(bytemuck::cast_slice(values)).map_err(writing)?;
            }
            _ => return Err(wrong(ACTIONS, "are of another kind or size than before".into())),
        }
        self.observations.write_all(bytemuck::cast_slice(found.observations)).map_err(writing)?;
        let group = self.group_of(found.group.clone());
        self.episodes.push(Info {
            length,
            terminated: found.terminated,
            context: found.context,
            group,
            start: self.transitions,
        });
        self.transitions += length;
        Ok(())
    }

    fn group_of(&mut self, given: Option<String>) -> usize {
        let key = match (&self.config.group_by, given) {
            // The same value of a column is the same group, in whichever source.
            (GroupBy::Column(_), given) => Some((0, given)),
            (GroupBy::Auto, Some(given)) => Some((self.source_number, Some(given))),
            (GroupBy::Auto, None) if self.many_sources => Some((self.source_number, None)),
            (GroupBy::File, _) => Some((self.source_number, None)),
            (GroupBy::Auto | GroupBy::Episode, _) => None,
        };
        let next = self.group_count;
        let group = key.map_or(next, |key| *self.groups.entry(key).or_insert(next));
        self.group_count += usize::from(group == next);
        group
    }

    /// Everything that was pushed, ready to be read in any order.
    pub(super) fn finish(self) -> Result<Staged, WorldError> {
        let Some(ranges) = self.ranges else {
            return Err(WorldError::data(&self.source, "episodes", "there is no episode in it"));
        };
        let folder = self.folder;
        let view = |file: BufWriter<File>| {
            let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            map(&file)
        };
        let staging = |error| WorldError::io(&folder, "staging the import", error);
        Ok(Staged {
            observations: view(self.observations).map_err(staging)?,
            actions: view(self.actions).map_err(staging)?,
            ranges,
            episodes: self.episodes,
        })
    }
}

/// A file without a name, gone when closed.
pub(super) fn nameless(folder: &Path) -> Result<File, WorldError> {
    tempfile::tempfile_in(folder).map_err(|error| WorldError::io(folder, "staging the import", error))
}

fn widen(ranges: &mut [(f32, f32)], values: &[f32]) {
    for row in values.chunks_exact(ranges.len()) {
        for ((low, high), &value) in ranges.iter_mut().zip(row) {
            *low = low.min(value);
            *high = high.max(value);
        }
    }
}

/// All imported episodes.
pub(super) struct Staged {
    observations: Mmap,
    actions: Mmap,
    ranges: Ranges,
    episodes: Vec<Info>,
}

impl Staged {
    pub(super) fn info(&self, episode: usize) -> Info {
        self.episodes[episode]
    }

    /// The group of each episode.
    pub(super) fn groups(&self) -> impl Iterator<Item = usize> {
        self.episodes.iter().map(|episode| episode.group)
    }

    /// The labels there are.
    pub(super) fn labels(&self) -> impl Iterator<Item = ContextId> {
        self.episodes.iter().filter_map(|episode| episode.context)
    }

    pub(super) fn all_labelled(&self) -> bool {
        self.episodes.iter().all(|episode| episode.context.is_some())
    }

    pub(super) fn observations(&self, episode: usize) -> &[f32] {
        let dims = self.ranges.observations.len();
        let info = self.episodes[episode];
        let first = info.start + episode;
        &bytemuck::cast_slice(&self.observations)[first * dims..(first + info.length + 1) * dims]
    }

    pub(super) fn actions(&self, episode: usize) -> ActionSlice<'_> {
        let info = self.episodes[episode];
        let span = info.start..info.start + info.length;
        match &self.ranges.actions {
            ActionRange::Discrete(_) => {
                ActionSlice::Discrete(bytemuck::cast_slice(&self.actions)).slice(span)
            }
            ActionRange::Continuous(range) => {
                ActionSlice::Continuous { size: range.len(), values: bytemuck::cast_slice(&self.actions) }
                    .slice(span)
            }
        }
    }

    /// Names and bounds from what the source says and what was seen.
    pub(super) fn infer_spec(&self, about: &About) -> Result<EnvSpec, WorldError> {
        let name = |place: usize| match &about.dims {
            Some(names) if names.len() == self.ranges.observations.len() => names[place].clone(),
            _ => format!("obs_{place}"),
        };
        let dim = |(place, &(low, high)): (usize, &(f32, f32))| Dim {
            name: name(place),
            low,
            high,
            integer: false,
        };
        let action = match &self.ranges.actions {
            ActionRange::Discrete(most) => {
                let moves = about.moves.unwrap_or(0).max(*most as usize + 1);
                ActionSpace::Discrete { names: (0..moves).map(|index| index.to_string()).collect() }
            }
            ActionRange::Continuous(seen) => {
                let (low, high) = action_bounds(about, seen)?;
                ActionSpace::Continuous { low, high }
            }
        };
        Ok(EnvSpec {
            name: about.name.clone(),
            observation: self.ranges.observations.iter().enumerate().map(dim).collect(),
            action,
            horizon: self.episodes.iter().map(|episode| episode.length).max().unwrap_or(1),
        })
    }
}

/// The source's bounds if it has any and keeps them; else -1 to 1, the custom of the field, if the data do; else the data's.
fn action_bounds(about: &About, seen: &[(f32, f32)]) -> Result<(Vec<f32>, Vec<f32>), WorldError> {
    if let Some((low, high)) = &about.action_bounds {
        let within = low.len() == seen.len()
            && seen
                .iter()
                .zip(low.iter().zip(high))
                .all(|(seen, (low, high))| low <= &seen.0 && &seen.1 <= high);
        if !within {
            return Err(WorldError::Invalid(format!(
                "{}: actions leave the bounds that the source declares: {low:?} to {high:?}",
                about.name
            )));
        }
        return Ok((low.clone(), high.clone()));
    }
    if seen.iter().all(|&(low, high)| low >= -1.0 && high <= 1.0) {
        return Ok((vec![-1.0; seen.len()], vec![1.0; seen.len()]));
    }
    Ok(seen.iter().copied().unzip())
}
