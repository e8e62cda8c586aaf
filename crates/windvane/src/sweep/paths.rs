//! Where the parts of a unit are, and what their logs say.

use super::manifest::Unit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One evaluation on the way through a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The method.
    pub method: String,
    /// The setting.
    pub setting: String,
    /// The seed.
    pub seed: u64,
    /// Gradient steps of the agent so far.
    pub step: u64,
    /// CPU time of the agent's training so far.
    pub cpu_seconds: f64,
    /// Success, or return, on training contexts.
    pub train: f64,
    /// The same on unseen contexts.
    pub test: f64,
}

/// The lock of a file or folder that several units need.
pub(super) fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    path.with_file_name(name)
}

/// How far the training of a checkpoint is, by the last row of its log.
pub(super) fn logged(checkpoint: &Path) -> f64 {
    let Ok(text) = std::fs::read_to_string(checkpoint.with_extension("jsonl")) else { return 0.0 };
    let last = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let share = last.and_then(|row| Some(row["step"].as_f64()? / row["of"].as_f64()?.max(1.0)));
    share.unwrap_or(0.0).clamp(0.0, 1.0)
}

/// The evaluations in a training's log.
pub(super) fn curve(unit: &Unit, checkpoint: &Path) -> Vec<CurvePoint> {
    let text = std::fs::read_to_string(checkpoint.with_extension("jsonl")).unwrap_or_default();
    let point = |line: &str| {
        let row: Value = serde_json::from_str(line).ok()?;
        Some(CurvePoint {
            method: unit.method.clone(),
            setting: unit.setting.clone(),
            seed: unit.seed,
            step: row["step"].as_u64()?,
            cpu_seconds: row["cpu_seconds"].as_f64()?,
            train: row["train success"].as_f64().or_else(|| row["train return"].as_f64())?,
            test: row["test success"].as_f64().or_else(|| row["test return"].as_f64())?,
        })
    };
    text.lines().filter_map(point).collect()
}
