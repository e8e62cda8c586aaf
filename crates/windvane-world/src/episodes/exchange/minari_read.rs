//! Reading Minari data sets in its Arrow layout.

use super::About;
use super::ActionKind;
use super::arrow_file::{self, Leaf, Rows};
use super::stage::{Found, MOST_DIMS, Stage};
use crate::env::ContextId;
use crate::episodes::meta::{MOST_MOVES, Plan};
use crate::episodes::{ACTIONS, ActionSlice, OBSERVATIONS};
use crate::error::WorldError;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest file of one episode, and largest metadata.
const LARGEST: u64 = 1 << 30;

/// Reads all episodes of a data set, given by its folder or the `data` folder in it.
pub(super) fn read(path: &Path, stage: &mut Stage<'_>) -> Result<About, WorldError> {
    let folder = if path.join("data").is_dir() { path.join("data") } else { path.to_owned() };
    let meta_path = folder.join("metadata.json");
    let wrong = |field: &str, problem: String| WorldError::data(&meta_path, field, problem);
    let mut meta = read_json(&meta_path)?;
    if meta["data_format"] != "arrow" {
        let problem = format!(
            "is {}, expected \"arrow\"; write the data set with data_format=\"arrow\"",
            meta["data_format"]
        );
        return Err(wrong("data_format", problem));
    }
    let episodes =
        meta["total_episodes"].as_u64().ok_or_else(|| wrong("total_episodes", "is not a count".into()))?;
    let space = meta["action_space"]
        .as_str()
        .map(parse_json)
        .transpose()
        .map_err(|error| wrong("action_space", error))?;
    let space = space.unwrap_or(Value::Null);
    let start = space["start"].as_i64().unwrap_or(0);
    let mut about = About {
        name: meta["dataset_id"].as_str().unwrap_or("minari").to_owned(),
        moves: space["n"]
            .as_u64()
            .map(|n| n.min(MOST_MOVES as u64) as usize)
            .filter(|_| space["type"] == "Discrete"),
        action_bounds: bounds(&space),
        ..About::default()
    };
    for episode in 0..episodes {
        let names = read_episode(&folder.join(episode.to_string()), episode as usize, start.into(), stage)?;
        about.dims.get_or_insert(names);
    }
    if let Some(plan) = meta.get_mut("windvane_plan").map(Value::take) {
        let plan = serde_json::from_value::<Plan>(plan);
        about.plan = Some(plan.map_err(|error| wrong("windvane_plan", error.to_string()))?);
    }
    Ok(about)
}

/// Reads one episode and says what its dimensions are called.
fn read_episode(
    folder: &Path,
    episode: usize,
    start: i128,
    stage: &mut Stage<'_>,
) -> Result<Vec<String>, WorldError> {
    let (path, bytes) = read_parts(folder)?;
    let wrong = |problem: String| WorldError::data(&path, format!("episode {episode}"), problem);
    let columns = [OBSERVATIONS, ACTIONS, "terminations"];
    let batches = bytes
        .iter()
        .map(|bytes| arrow_file::read(bytes, &columns))
        .collect::<Result<Vec<_>, _>>()
        .map_err(wrong)?;
    let batches: Vec<Rows<'_>> = batches.into_iter().flatten().collect();
    let rows: usize = batches.iter().map(|batch| batch.count).sum();
    let length =
        rows.checked_sub(1).filter(|&length| length > 0).ok_or_else(|| wrong("has no transition".into()))?;
    let first = &batches[0];
    let width: usize = first.columns[0].iter().map(|leaf| leaf.width).sum();
    let size: usize = first.columns[1].iter().map(|leaf| leaf.width).sum();
    if width.max(size) > MOST_DIMS {
        return Err(wrong(format!("{} numbers a row, expected at most {MOST_DIMS}", width.max(size))));
    }
    let mut observations = Vec::with_capacity(rows * width);
    for batch in &batches {
        flatten(batch.count, &batch.columns[0], &mut observations);
    }
    let discrete = match (stage.action_kind(), &first.columns[1][..]) {
        (ActionKind::Auto, [leaf]) => leaf.is_integer() && leaf.is_scalar,
        (kind, _) => kind == ActionKind::Discrete,
    };
    let mut moves = Vec::new();
    let mut vectors = Vec::new();
    for batch in &batches {
        match &batch.columns[1][..] {
            [leaf] if discrete && leaf.width == 1 => {
                for row in 0..batch.count {
                    moves.push(leaf.integer(row) - start);
                }
            }
            _ if discrete => return Err(wrong("actions are vectors, expected moves".into())),
            leaves => flatten(batch.count, leaves, &mut vectors),
        }
    }
    // The last row only pads.
    moves.truncate(length);
    vectors.truncate(length * size);
    let moves: Vec<u32> = moves
        .into_iter()
        .map(|index| u32::try_from(index).map_err(|_| wrong(format!("action {index} is no move"))))
        .collect::<Result<_, _>>()?;
    let about = read_json(&folder.join("metadata.json"))?;
    let options = &about["options"];
    stage.push(&Found {
        observations: &observations,
        actions: if discrete {
            ActionSlice::Discrete(&moves)
        } else {
            ActionSlice::Continuous { size, values: &vectors }
        },
        terminated: flag_at(&batches, length - 1),
        group: group_of(folder, options, stage)?,
        context: options["context"].as_u64().map(ContextId),
        place: episode,
    })?;
    Ok(names_of(&first.columns[0]))
}

/// The files of an episode, in order, and the name of one of them for messages.
fn read_parts(folder: &Path) -> Result<(PathBuf, Vec<Vec<u8>>), WorldError> {
    let listing = |error| WorldError::io(folder, "listing the episode", error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(listing)? {
        let path = entry.map_err(listing)?.path();
        if path.extension().is_some_and(|extension| extension == "arrow") {
            paths.push(path);
        }
    }
    paths.sort();
    let first = paths.first().cloned();
    let first = first.ok_or_else(|| WorldError::data(folder, "episode", "there is no .arrow file in it"))?;
    let parts = paths.iter().map(|path| read_bytes(path)).collect::<Result<_, _>>()?;
    Ok((first, parts))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, WorldError> {
    let reading = |error| WorldError::io(path, "reading", error);
    let mut bytes = Vec::new();
    File::open(path).map_err(reading)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(reading)?;
    if bytes.len() as u64 > LARGEST {
        return Err(WorldError::data(path, "size", format!("more than {LARGEST} bytes")));
    }
    Ok(bytes)
}

/// Rows of all leaves side by side.
fn flatten(rows: usize, leaves: &[Leaf<'_>], out: &mut Vec<f32>) {
    for row in 0..rows {
        for leaf in leaves {
            out.extend((row * leaf.width..(row + 1) * leaf.width).map(|place| leaf.number(place) as f32));
        }
    }
}

/// The flag of a row, counted over all batches.
fn flag_at(batches: &[Rows<'_>], mut row: usize) -> bool {
    for batch in batches {
        if row < batch.count {
            return batch.columns[2].first().is_some_and(|leaf| leaf.integer(row * leaf.width) != 0);
        }
        row -= batch.count;
    }
    false
}

fn group_of(folder: &Path, options: &Value, stage: &Stage<'_>) -> Result<Option<String>, WorldError> {
    match stage.group_column() {
        Some(key) => match options.get(key) {
            Some(value) => Ok(Some(value.to_string())),
            None => Err(WorldError::data(
                folder.join("metadata.json"),
                key,
                "the episode's options have no such key",
            )),
        },
        None => Ok(options.get("group").map(Value::to_string)),
    }
}

/// `obs_0`, .. for a plain vector, `position[0]`, .. for the parts of a dictionary.
fn names_of(leaves: &[Leaf<'_>]) -> Vec<String> {
    let plain = leaves.len() == 1;
    let name = |leaf: &Leaf<'_>, place: usize| {
        let part = leaf.name.split_once('.').map_or("obs", |(_, part)| part);
        match (plain, leaf.width) {
            (true, _) => format!("obs_{place}"),
            (false, 1) => part.to_owned(),
            (false, _) => format!("{part}[{place}]"),
        }
    };
    leaves.iter().flat_map(|leaf| (0..leaf.width).map(move |place| name(leaf, place))).collect()
}

/// The bounds of a box, if all are finite.
fn bounds(space: &Value) -> Option<(Vec<f32>, Vec<f32>)> {
    let side = |name: &str| -> Option<Vec<f32>> {
        let finite = |bound: &Value| Some(bound.as_f64()? as f32).filter(|bound| bound.is_finite());
        space[name].as_array()?.iter().map(finite).collect()
    };
    side("low").zip(side("high"))
}

fn read_json(path: &Path) -> Result<Value, WorldError> {
    let bytes = read_bytes(path)?;
    let text = String::from_utf8(bytes).map_err(|_| WorldError::data(path, "JSON", "is not text"))?;
    parse_json(&text).map_err(|error| WorldError::data(path, "JSON", error))
}

/// Parses JSON as Python writes it: infinities and NaN, which JSON does not know, become null.
fn parse_json(text: &str) -> Result<Value, String> {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    let mut within = false;
    while let Some(c) = rest.chars().next() {
        let word =
            ["-Infinity", "Infinity", "NaN"].into_iter().find(|word| !within && rest.starts_with(word));
        if let Some(word) = word {
            clean.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        if within && c == '\\' {
            let end = rest.char_indices().nth(2).map_or(rest.len(), |(end, _)| end);
            clean.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        within ^= c == '"';
        clean.push(c);
        rest = &rest[c.len_utf8()..];
    }
    serde_json::from_str(&clean).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::parse_json;
    use serde_json::json;

    #[test]
    fn infinities_of_python_become_null_but_not_within_text() {
        let text = r#"{"low": [-Infinity, 1.5], "high": [Infinity, NaN], "name": "to \"Infinity\" and NaN"}"#;
        let expected = json!({"low": [null, 1.5], "high": [null, null], "name": "to \"Infinity\" and NaN"});
        assert_eq!(parse_json(text).unwrap(), expected);
        assert!(parse_json("{").is_err());
    }
}
