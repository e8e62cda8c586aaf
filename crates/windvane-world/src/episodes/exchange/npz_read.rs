//! Reading `.npz` logs: OGBench's, D4RL-like ones, windvane's own, and whatever a robot wrote with `np.savez`.

use super::About;
use super::ActionKind;
use super::archive::{Archive, Array};
use super::npz_write::PLAN_ARRAY;
use super::segments::{Ends, Layout, Segment, cut};
use super::stage::{Found, MOST_DIMS, Stage};
use crate::env::ContextId;
use crate::episodes::meta::MOST_MOVES;
use crate::episodes::{
    ACTIONS, ActionSlice, CONTEXT_IDS, EPISODE_OFFSETS, GROUP_IDS, OBSERVATIONS, TERMINATED,
};
use crate::error::WorldError;
use std::path::Path;

/// What an archive may say of its actions: bounds of each component, or the number of moves.
const ACTION_LOW: &str = "action_low";
const ACTION_HIGH: &str = "action_high";
const N_ACTIONS: &str = "n_actions";

/// Reads all episodes of an archive.
pub(super) fn read(path: &Path, stage: &mut Stage<'_>) -> Result<About, WorldError> {
    let mut archive = Archive::open(path, stage.folder())?;
    let observations = archive.required(OBSERVATIONS)?;
    let actions = archive.required(ACTIONS)?;
    let next = archive.array("next_observations")?;
    for array in [&observations, &actions].into_iter().chain(&next) {
        if array.width() > MOST_DIMS {
            return Err(array.error(format!("{} numbers a row, expected at most {MOST_DIMS}", array.width())));
        }
    }
    if let Some(next) = &next
        && (next.rows(), next.width()) != (observations.rows(), observations.width())
    {
        return Err(next.error("has another shape than observations"));
    }
    let terminals = archive.array("terminals")?;
    let timeouts = archive.array("timeouts")?;
    let offsets = archive.array(EPISODE_OFFSETS)?;
    let (layout, segments) = {
        let flags = end_flags(&observations, terminals.as_ref(), timeouts.as_ref())?;
        let offsets = offsets.map(|array| array.integers::<usize>(0..array.rows())).transpose()?;
        let ends = match (&offsets, &flags) {
            (Some(offsets), _) => Ends::Offsets(offsets),
            (None, Some(flags)) => Ends::Flags(flags),
            (None, None) => Ends::Nowhere,
        };
        cut(observations.rows(), actions.rows(), next.is_some(), &ends)
            .map_err(|problem| observations.error(problem))?
    };
    // With OGBench, "terminal" marks the end of the log and says nothing about the dynamics.
    let says_why = timeouts.is_some() || layout == Layout::Transitions;
    let ended = terminals.filter(|_| says_why).map(|array| array.flags());
    let extras = Extras {
        terminated: archive.array(TERMINATED)?.map(|array| array.flags()),
        contexts: archive.array(CONTEXT_IDS)?.map(|array| array.integers(0..array.rows())).transpose()?,
        groups: group_array(&mut archive, stage)?,
    };
    extras.check(&segments, &observations)?;
    let discrete = match stage.action_kind() {
        ActionKind::Auto => actions.is_integer() && actions.is_scalar(),
        kind => kind == ActionKind::Discrete,
    };
    let mut rows = Vec::new();
    let mut vectors = Vec::new();
    for (episode, segment) in segments.iter().enumerate() {
        let last = segment.observation + segment.length;
        rows.clear();
        observations.floats(segment.observation..last, &mut rows);
        match &next {
            Some(next) => {
                check_follows(&observations, next, segment)?;
                next.floats(last - 1..last, &mut rows);
            }
            None => observations.floats(last..last + 1, &mut rows),
        }
        let taken = segment.action..segment.action + segment.length;
        let moves: Vec<u32> = if discrete { actions.integers(taken.clone())? } else { Vec::new() };
        if discrete && moves.len() != segment.length {
            return Err(actions.error(format!("{} numbers a row, expected one move", actions.width())));
        }
        vectors.clear();
        let action_slice = if discrete {
            ActionSlice::Discrete(&moves)
        } else {
            actions.floats(taken, &mut vectors);
            ActionSlice::Continuous { size: actions.width(), values: &vectors }
        };
        let last_row = if layout == Layout::Transitions { last - 1 } else { last };
        stage.push(&Found {
            observations: &rows,
            actions: action_slice,
            terminated: match (&extras.terminated, &ended) {
                (Some(flags), _) => flags[episode],
                (None, Some(flags)) => flags[last_row],
                (None, None) => false,
            },
            group: extras.group(episode, segments.len(), segment)?,
            context: extras.contexts.as_ref().map(|contexts| ContextId(contexts[episode])),
            place: episode,
        })?;
    }
    let name = path.file_stem().map_or_else(|| "own".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let plan = match archive.array(PLAN_ARRAY)? {
        Some(array) => Some(
            serde_json::from_slice(array.bytes())
                .map_err(|error| array.error(format!("does not parse: {error}")))?,
        ),
        None => None,
    };
    let mut bound = |name: &str| -> Result<Option<Vec<f32>>, WorldError> {
        let Some(array) = archive.array(name)? else { return Ok(None) };
        let mut values = Vec::new();
        array.floats(0..array.rows(), &mut values);
        Ok(Some(values))
    };
    let action_bounds = bound(ACTION_LOW)?.zip(bound(ACTION_HIGH)?);
    let moves = match archive.array(N_ACTIONS)? {
        Some(array) => array.integers::<usize>(0..array.rows())?.first().map(|n| (*n).min(MOST_MOVES)),
        None => None,
    };
    Ok(About { name, moves, action_bounds, plan, ..About::default() })
}

/// The rows that end an episode, by either reason.
fn end_flags(
    observations: &Array,
    terminals: Option<&Array>,
    timeouts: Option<&Array>,
) -> Result<Option<Vec<bool>>, WorldError> {
    let mut flags: Option<Vec<bool>> = None;
    for array in terminals.into_iter().chain(timeouts) {
        if (array.rows(), array.width()) != (observations.rows(), 1) {
            return Err(array.error(format!(
                "{} rows of {}, expected one flag for each of {} observations",
                array.rows(),
                array.width(),
                observations.rows()
            )));
        }
        let these = array.flags();
        flags = Some(match flags {
            Some(before) => before.iter().zip(these).map(|(a, b)| *a || b).collect(),
            None => these,
        });
    }
    Ok(flags)
}

/// `next_observations` must be the following row, or the log is not one of consecutive steps.
fn check_follows(observations: &Array, next: &Array, segment: &Segment) -> Result<(), WorldError> {
    let (mut now, mut then) = (Vec::new(), Vec::new());
    let last = segment.observation + segment.length;
    observations.floats(segment.observation + 1..last, &mut now);
    next.floats(segment.observation..last - 1, &mut then);
    match now.iter().zip(&then).position(|(a, b)| a.to_bits() != b.to_bits()) {
        Some(place) => {
            let row = segment.observation + place / next.width();
            Err(next.error(format!("row {row} is not the observation of row {}; expected consecutive steps, or a flag at the end of each episode", row + 1)))
        }
        None => Ok(()),
    }
}

/// What may stand beside the rows, one value for each episode.
struct Extras {
    terminated: Option<Vec<bool>>,
    contexts: Option<Vec<u64>>,
    groups: Option<Array>,
}

/// The array that groups episodes: the one asked for, or the one that windvane exports.
fn group_array(archive: &mut Archive, stage: &Stage<'_>) -> Result<Option<Array>, WorldError> {
    match stage.group_column() {
        Some(name) => archive.required(name).map(Some),
        None => archive.array(GROUP_IDS),
    }
}

impl Extras {
    fn check(&self, segments: &[Segment], observations: &Array) -> Result<(), WorldError> {
        let lengths = [
            (TERMINATED, self.terminated.as_ref().map(Vec::len)),
            (CONTEXT_IDS, self.contexts.as_ref().map(Vec::len)),
        ];
        for (name, length) in lengths {
            if length.is_some_and(|length| length != segments.len()) {
                return Err(observations.error(format!(
                    "{name} has another length than there are episodes ({})",
                    segments.len()
                )));
            }
        }
        match &self.groups {
            Some(groups) if ![segments.len(), observations.rows()].contains(&groups.rows()) => Err(groups
                .error(format!(
                    "{} rows, expected one for each of {} episodes or {} observations",
                    groups.rows(),
                    segments.len(),
                    observations.rows()
                ))),
            _ => Ok(()),
        }
    }

    fn group(
        &self,
        episode: usize,
        episodes: usize,
        segment: &Segment,
    ) -> Result<Option<String>, WorldError> {
        let Some(groups) = &self.groups else { return Ok(None) };
        if groups.rows() == episodes {
            return Ok(Some(groups.text(episode)));
        }
        let first = groups.text(segment.observation);
        let constant = (1..segment.length).all(|step| groups.text(segment.observation + step) == first);
        if !constant {
            return Err(groups
                .error(format!("changes within episode {episode}; expected one group for each episode")));
        }
        Ok(Some(first))
    }
}
