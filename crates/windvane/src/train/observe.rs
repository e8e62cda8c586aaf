//! Those who watch a training: a log of rows, TensorBoard, and whoever draws a progress bar.

use super::Scores;
use super::tensorboard::EventFile;
use crate::error::LearnError;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

/// Where a training stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// Steps taken.
    pub step: u64,
    /// Steps to take.
    pub steps: u64,
    /// CPU time so far, resumed parts included.
    pub cpu_seconds: f64,
    /// Wall time so far, resumed parts included.
    pub wall_seconds: f64,
}

/// Watches a training without touching it.
pub trait Observer {
    /// The loop starts, or goes on, here.
    fn begin(&mut self, at: &At) -> Result<(), LearnError> {
        let _ = at;
        Ok(())
    }
    /// Means of the step metrics since the last row.
    fn logged(&mut self, at: &At, metrics: &Scores) -> Result<(), LearnError>;
    /// Scores of an evaluation.
    fn evaluated(&mut self, at: &At, scores: &Scores) -> Result<(), LearnError>;
}

/// An observer that nobody asks.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Observer for Nobody {
    fn logged(&mut self, _: &At, _: &Scores) -> Result<(), LearnError> {
        Ok(())
    }

    fn evaluated(&mut self, _: &At, _: &Scores) -> Result<(), LearnError> {
        Ok(())
    }
}

/// One JSON object a row.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: Option<File>,
}

impl JsonLines {
    /// Logs to `path`. When a run is resumed, rows beyond its checkpoint are dropped: they will be written again.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None }
    }

    fn row(&mut self, kind: &str, at: &At, metrics: &Scores) -> Result<(), LearnError> {
        let mut row = Map::new();
        row.insert("kind".into(), kind.into());
        row.insert("step".into(), at.step.into());
        row.insert("of".into(), at.steps.into());
        row.insert("cpu_seconds".into(), rounded(at.cpu_seconds));
        row.insert("wall_seconds".into(), rounded(at.wall_seconds));
        row.extend(metrics.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        let Some(file) = &mut self.file else { return Ok(()) };
        writeln!(file, "{}", Value::Object(row)).map_err(LearnError::io(&self.path, "writing the log"))
    }
}

/// Seconds to the millisecond.
pub(super) fn rounded(seconds: f64) -> Value {
    ((seconds * 1e3).round() / 1e3).into()
}

impl Observer for JsonLines {
    fn begin(&mut self, at: &At) -> Result<(), LearnError> {
        let length =
            keep_rows_up_to(&self.path, at.step).map_err(LearnError::io(&self.path, "reading the log"))?;
        let doing = "opening the log";
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        let file = file.map_err(LearnError::io(&self.path, doing))?;
        file.set_len(length).map_err(LearnError::io(&self.path, doing))?;
        self.file = Some(file);
        Ok(())
    }

    fn logged(&mut self, at: &At, metrics: &Scores) -> Result<(), LearnError> {
        self.row("train", at, metrics)
    }

    fn evaluated(&mut self, at: &At, scores: &Scores) -> Result<(), LearnError> {
        self.row("eval", at, scores)
    }
}

/// The length of the log's part that ends with the last whole row at or before `step`.
fn keep_rows_up_to(path: &Path, step: u64) -> std::io::Result<u64> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(e),
    };
    let mut length = 0;
    let mut reader = BufReader::new(file);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let row = serde_json::from_str::<Value>(&line).ok().filter(|_| line.ends_with('\n'));
        let Some(at) = row.and_then(|row| row.get("step")?.as_u64()) else { break };
        if at > step {
            break;
        }
        length += line.len() as u64;
        line.clear();
    }
    Ok(length)
}

/// Scalars for TensorBoard.
#[derive(Debug)]
pub struct TensorBoard {
    folder: PathBuf,
    file: Option<EventFile>,
}

impl TensorBoard {
    /// Writes event files into `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), file: None }
    }

    fn scalars(&mut self, group: &str, at: &At, metrics: &Scores) -> Result<(), LearnError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let tags: Vec<String> = metrics.iter().map(|(name, _)| format!("{group}/{name}")).collect();
        let values = tags.iter().map(String::as_str).zip(metrics.iter().map(|(_, value)| *value));
        file.scalars(at.step, values).map_err(LearnError::io(&self.folder, "writing TensorBoard events"))
    }
}

impl Observer for TensorBoard {
    fn begin(&mut self, _: &At) -> Result<(), LearnError> {
        let file = EventFile::create(&self.folder);
        self.file = Some(file.map_err(LearnError::io(&self.folder, "starting TensorBoard events"))?);
        Ok(())
    }

    fn logged(&mut self, at: &At, metrics: &Scores) -> Result<(), LearnError> {
        self.scalars("train", at, metrics)
    }

    fn evaluated(&mut self, at: &At, scores: &Scores) -> Result<(), LearnError> {
        self.scalars("eval", at, scores)
    }
}
