//! `meta.json`: what a data set is, where it came from, and what its columns must hold.

use crate::env::{ActionSpace, ContextId, EnvSpec};
use crate::error::WorldError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Name of the file.
pub(crate) const META_FILE: &str = "meta.json";
/// What `format` says.
const FORMAT: &str = "windvane-episodes";
/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// Largest `meta.json` that is read: a table of 100,000 contexts stays far below.
const LARGEST: u64 = 256 << 20;
/// The policy of data that came from elsewhere.
pub(crate) const IMPORTED: &str = "imported";
/// Most moves a discrete action space may have; beyond, somebody gave numbers that are no moves.
pub(crate) const MOST_MOVES: usize = 1 << 16;

/// What is known of a data set before its first episode is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The visible side of the environment: names and bounds of observations and actions.
    pub env: EnvSpec,
    /// How the data came about.
    pub provenance: Provenance,
    /// The hidden contexts, where they are known; then each episode is labelled with one of them.
    #[serde(default)]
    pub contexts: Vec<ContextEntry>,
}

/// How a data set came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program and its revision.
    pub generator: String,
    /// Who acted: a behaviour policy, or "imported".
    pub policy: String,
    /// The seed of everything random, where there was one.
    pub seed: Option<u64>,
    /// All settings that decided the content.
    pub config: serde_json::Value,
}

/// One row of the table of contexts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextEntry {
    /// The context.
    pub id: ContextId,
    /// What makes it what it is, for people and pictures ([`crate::Cmdp::describe`]).
    pub about: serde_json::Value,
}

/// One column's type, shape and checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnInfo {
    /// NumPy's name of the type.
    pub dtype: String,
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// XXH3 (128 bits, hexadecimal) of the array's bytes, the header not counted.
    pub xxh3_128: String,
}

/// The content of `meta.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Always "windvane-episodes".
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Number of episodes.
    pub episodes: usize,
    /// Number of transitions of all episodes.
    pub transitions: usize,
    /// Number of groups: episodes of one group share the same, possibly unknown, dynamics.
    pub groups: usize,
    /// What was known before the first episode.
    #[serde(flatten)]
    pub plan: Plan,
    /// Every column by name.
    pub columns: BTreeMap<String, ColumnInfo>,
}

impl Meta {
    pub(crate) fn new(
        plan: Plan,
        [episodes, transitions, groups]: [usize; 3],
        columns: BTreeMap<String, ColumnInfo>,
    ) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, episodes, transitions, groups, plan, columns }
    }

    /// Reads and validates the `meta.json` of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, WorldError> {
        let path = folder.join(META_FILE);
        let wrong = |field: &str, problem: String| WorldError::data(&path, field, problem);
        let value: serde_json::Value = read_json(&path)?;
        // Before anything else: the fields of another format or version may mean other things.
        if value["format"] != FORMAT {
            return Err(wrong("format", format!("is {}, expected \"{FORMAT}\"", value["format"])));
        }
        match value["version"].as_u64() {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) if version > u64::from(VERSION) => {
                return Err(wrong(
                    "version",
                    format!("is {version}, newer than {VERSION}; a newer windvane reads it"),
                ));
            }
            _ => return Err(wrong("version", format!("is {}, expected {VERSION}", value["version"]))),
        }
        let meta: Self =
            serde_json::from_value(value).map_err(|error| wrong("metadata", error.to_string()))?;
        check_spec(&meta.plan.env).map_err(|problem| wrong("env", problem))?;
        if meta.episodes == 0
            || meta.transitions < meta.episodes
            || !(1..=meta.episodes).contains(&meta.groups)
        {
            let counts = format!(
                "{} episodes, {} transitions and {} groups do not go together",
                meta.episodes, meta.transitions, meta.groups
            );
            return Err(wrong("episodes", counts));
        }
        if meta.episodes > u32::MAX as usize {
            return Err(wrong("episodes", format!("{} are more than 2^32", meta.episodes)));
        }
        Ok(meta)
    }
}

/// Where two JSON values first differ, and how: `plan.seed was 0, is 1`. Nothing if they are the same.
pub fn first_difference(was: &Value, now: &Value) -> Option<String> {
    difference_at("", was, now)
}

fn difference_at(at: &str, was: &Value, now: &Value) -> Option<String> {
    match (was, now) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.map(|key| (key, a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null)))
                .find_map(|(key, a, b)| {
                    difference_at(&format!("{at}{}{key}", if at.is_empty() { "" } else { "." }), a, b)
                })
        }
        _ if was == now => None,
        _ => {
            let short = |value: &Value| value.to_string().chars().take(60).collect::<String>();
            Some(format!("{at} was {}, is {}", short(was), short(now)))
        }
    }
}

/// Reads a JSON file of bounded size.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, WorldError> {
    let reading = |error| WorldError::io(path, "reading", error);
    let mut text = String::new();
    File::open(path).map_err(reading)?.take(LARGEST + 1).read_to_string(&mut text).map_err(reading)?;
    if text.len() as u64 > LARGEST {
        return Err(WorldError::data(path, "size", format!("more than {LARGEST} bytes of JSON")));
    }
    serde_json::from_str(&text).map_err(|error| WorldError::data(path, "JSON", error.to_string()))
}

/// Whether the spaces make sense; everything that sizes a buffer or a table is bounded here.
pub(crate) fn check_spec(spec: &EnvSpec) -> Result<(), String> {
    if spec.observation.is_empty() {
        return Err("observations have no dimension".into());
    }
    for dim in &spec.observation {
        if !(dim.low.is_finite() && dim.high.is_finite() && dim.low <= dim.high) {
            return Err(format!("dimension {:?} has bounds {} and {}", dim.name, dim.low, dim.high));
        }
    }
    let integer = spec.observation.iter().all(|dim| dim.integer);
    let states = |count: u64, dim: &crate::Dim| {
        let values = (f64::from(dim.high) - f64::from(dim.low)) as u64 + 1;
        count.checked_mul(values).filter(|&count| count <= 1 << 32)
    };
    if integer && spec.observation.iter().try_fold(1, states).is_none() {
        return Err("whole-number observations with more than 2^32 states".into());
    }
    match &spec.action {
        ActionSpace::Discrete { names } if names.is_empty() || names.len() > MOST_MOVES => {
            Err(format!("{} moves, expected 1 to {MOST_MOVES}", names.len()))
        }
        ActionSpace::Continuous { low, high } if low.is_empty() || low.len() != high.len() => {
            Err(format!("action bounds of {} and {} components", low.len(), high.len()))
        }
        ActionSpace::Continuous { low, high }
            if !low.iter().zip(high).all(|(l, h)| l.is_finite() && h.is_finite() && l <= h) =>
        {
            Err(format!("action bounds {low:?} to {high:?}"))
        }
        _ => Ok(()),
    }
}
