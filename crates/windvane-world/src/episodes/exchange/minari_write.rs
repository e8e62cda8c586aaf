//! Writing Minari data sets in its Arrow layout: a folder and two small files for each episode.

use crate::env::ActionSpace;
use crate::episodes::atomic::new_folder;
use crate::episodes::partial::refuse_existing;
use crate::episodes::{ActionSlice, Episodes};
use crate::error::WorldError;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int64Array, RecordBatch,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Minari refuses versions that it does not know by name.
const MINARI_VERSION: &str = "0.5.4";

/// Writes the data set `id` (for instance `windvane/four-rooms-v0`) below `root`, which is then what
/// `MINARI_DATASETS_PATH` must point at, and says where it is.
///
/// Rewards are zero: a windvane data set has none. Group and context of an episode stand in its `options`.
pub fn export_minari(data: &Episodes, root: &Path, id: &str) -> Result<PathBuf, WorldError> {
    check_id(id)?;
    let out = root.join(id);
    refuse_existing(&out)?;
    new_folder(&out, |folder| {
        let folder = folder.join("data");
        let mut bytes = 0;
        for episode in 0..data.episodes() {
            bytes += write_episode(data, episode, &folder.join(episode.to_string()))?;
        }
        write_json(&folder.join("metadata.json"), &metadata(data, id, bytes))
    })?;
    // Minari makes this file in every folder that data sets are grouped in.
    let namespace = out.parent().unwrap_or(root).join("namespace_metadata.json");
    if id.contains('/') && !namespace.exists() {
        write_json(&namespace, &json!({}))?;
    }
    Ok(out)
}

/// Minari's rule: `(namespace/)name-v(number)`, of letters, digits, `-` and `_`.
fn check_id(id: &str) -> Result<(), WorldError> {
    let letters = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    let version = id
        .rsplit_once("-v")
        .is_some_and(|(_, number)| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()));
    if version && id.split('/').all(letters) {
        return Ok(());
    }
    Err(WorldError::Invalid(format!(
        "{id:?} is no Minari id; expected for instance \"windvane/four-rooms-v0\""
    )))
}

fn metadata(data: &Episodes, id: &str, bytes: u64) -> Value {
    let spec = data.spec();
    let low: Vec<f32> = spec.observation.iter().map(|dim| dim.low).collect();
    let high: Vec<f32> = spec.observation.iter().map(|dim| dim.high).collect();
    let observation = box_space(&low, &high);
    let action = match &spec.action {
        ActionSpace::Discrete { names } => {
            json!({"type": "Discrete", "dtype": "int64", "start": 0, "n": names.len()})
        }
        ActionSpace::Continuous { low, high } => box_space(low, high),
    };
    json!({
        "total_episodes": data.episodes(),
        "total_steps": data.transitions(),
        "data_format": "arrow",
        "jpeg_encoding": true,
        // Spaces are JSON within JSON.
        "observation_space": observation.to_string(),
        "action_space": action.to_string(),
        "dataset_id": id,
        "minari_version": MINARI_VERSION,
        "dataset_size": (bytes as f64 / 1e5).round() / 10.0,
        "algorithm_name": data.meta().plan.provenance.policy,
        "description": format!("{}, written by {}", spec.name, data.meta().plan.provenance.generator),
        "windvane_plan": data.meta().plan,
    })
}

fn box_space(low: &[f32], high: &[f32]) -> Value {
    json!({"type": "Box", "dtype": "float32", "shape": [low.len()], "low": low, "high": high})
}

/// Writes one episode and says how many bytes it took.
fn write_episode(data: &Episodes, episode: usize, folder: &Path) -> Result<u64, WorldError> {
    let path = folder.join("part-0.arrow");
    let writing = |error: std::io::Error| WorldError::io(&path, format!("writing episode {episode}"), error);
    fs::create_dir_all(folder).map_err(writing)?;
    let batch = record_batch(data, episode)
        .map_err(|error| WorldError::data(&path, format!("episode {episode}"), error.to_string()))?;
    let write = || {
        let mut writer = FileWriter::try_new_buffered(File::create(&path)?, &batch.schema())?;
        writer.write(&batch)?;
        writer.finish()?;
        writer.flush()
    };
    write().map_err(|error| match error {
        ArrowError::IoError(_, error) => writing(error),
        other => writing(std::io::Error::other(other)),
    })?;
    let mut options = json!({"group": data.group(episode)});
    if let Some(labels) = data.privileged_context_labels() {
        options["context"] = json!(labels.of(episode).0);
    }
    let about = json!({"id": episode, "total_steps": data.length(episode), "options": options});
    write_json(&folder.join("metadata.json"), &about)?;
    fs::metadata(&path).map(|file| file.len()).map_err(writing)
}

/// All columns with one row more than transitions; the last row pads all but the observations.
fn record_batch(data: &Episodes, episode: usize) -> Result<RecordBatch, ArrowError> {
    let length = data.length(episode);
    let padded = |mut values: Vec<f32>, size: usize| {
        values.resize((length + 1) * size, 0.0);
        values
    };
    let actions: ArrayRef = match data.actions(episode) {
        ActionSlice::Discrete(moves) => {
            Arc::new(Int64Array::from_iter_values(moves.iter().map(|&index| i64::from(index)).chain([0])))
        }
        ActionSlice::Continuous { size, values } => rows_of(padded(values.to_vec(), size), size)?,
    };
    let last = |flag: bool| {
        BooleanArray::from((0..=length).map(|step| flag && step + 1 == length).collect::<Vec<_>>())
    };
    let terminated = data.terminated(episode);
    let columns: [(&str, ArrayRef); 5] = [
        ("observations", rows_of(data.observations(episode).to_vec(), data.spec().obs_dim())?),
        ("actions", actions),
        ("rewards", Arc::new(Float64Array::from(vec![0.0; length + 1]))),
        ("terminations", Arc::new(last(terminated))),
        ("truncations", Arc::new(last(!terminated))),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns.into_iter().map(|(_, column)| column).collect(),
    )
}

/// Vectors of `size` numbers.
fn rows_of(values: Vec<f32>, size: usize) -> Result<ArrayRef, ArrowError> {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    Ok(Arc::new(FixedSizeListArray::try_new(item, size as i32, Arc::new(Float32Array::from(values)), None)?))
}

fn write_json(path: &Path, value: &Value) -> Result<(), WorldError> {
    fs::write(path, value.to_string()).map_err(|error| WorldError::io(path, "writing", error))
}
