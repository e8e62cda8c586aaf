//! Runs as their folders tell of them: read only, nothing is opened for training and nothing is locked.

use anyhow::Context as _;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use windvane::stats::{self, Estimate, Scores};
use windvane_world::rng::stream;

/// Folders below the one asked for in which runs are looked for.
const DEEPEST: usize = 4;
/// The fields of a score row that say which scores belong together, in the order they are shown.
const KINDS: [&str; 3] = ["split", "belief", "planner"];

/// A run's folder.
pub(crate) struct Found {
    /// The folder.
    pub(crate) path: PathBuf,
    about: Value,
}

/// The success of one kind of play.
#[derive(Clone)]
pub(crate) struct Score {
    /// For instance "test frozen none": the split, the belief, the planner.
    pub(crate) kind: String,
    /// The mean, with the 95% interval of a bootstrap over contexts; without one there is no interval.
    pub(crate) success: Estimate,
    /// Contexts that were played in.
    pub(crate) contexts: usize,
}

impl Found {
    /// The run in a folder.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = path.join("run.json");
        let text = fs::read_to_string(&file)
            .with_context(|| format!("{}: expected a folder that `windvane train` made", path.display()))?;
        let about = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        Ok(Self { path: path.to_owned(), about })
    }

    /// All runs below a folder, by name.
    pub(crate) fn below(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let mut all = Vec::new();
        find_runs(folder, DEEPEST, &mut all)?;
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    /// The method's name.
    pub(crate) fn method(&self) -> String {
        let method = &self.about["method"];
        word(if method.is_object() { &method["name"] } else { method })
    }

    /// The environment's name.
    pub(crate) fn env(&self) -> String {
        word(&self.about["plan"]["env"])
    }

    /// The seed.
    pub(crate) fn seed(&self) -> String {
        word(&self.about["seed"])
    }

    /// Every setting by its full name, and the method and seed.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let mut all = vec![("method".to_owned(), self.method()), ("seed".to_owned(), self.seed())];
        flatten("", &self.about["plan"], &mut all);
        all
    }

    /// Where its training stands.
    pub(crate) fn state(&self) -> String {
        if self.path.join("model/config.json").is_file() {
            return "finished".to_owned();
        }
        let logs = ["agent", "belief"].map(|stage| (stage, self.path.join(format!("{stage}.jsonl"))));
        for (stage, log) in logs {
            let text = fs::read_to_string(log).unwrap_or_default();
            let last = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(row) = last {
                return format!("{stage} step {} of {}", word(&row["step"]), word(&row["of"]));
            }
        }
        "begun".to_owned()
    }

    /// The scores that were taken after training.
    pub(crate) fn scores(&self) -> Vec<Score> {
        let text = fs::read_to_string(self.path.join("scores.jsonl")).unwrap_or_default();
        let rows: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let kind = |row: &Value| {
            let words = KINDS.iter().filter_map(|field| row[field].as_str());
            words.collect::<Vec<_>>().join(" ")
        };
        let mut kinds: Vec<String> = Vec::new();
        for row in &rows {
            if !kinds.contains(&kind(row)) {
                kinds.push(kind(row));
            }
        }
        let score = |name: String| {
            let own: Vec<&Value> = rows.iter().filter(|row| kind(row) == name).collect();
            let scores = by_context(&own);
            let mut rng = stream(0, "bootstrap mean", &[]);
            let success = stats::bootstrap(&scores, &mut rng, |s| stats::mean_and_std(s).0);
            Score { kind: name, success, contexts: scores.len() }
        };
        kinds.into_iter().map(score).collect()
    }

    /// When a file in the folder last changed.
    pub(crate) fn changed(&self) -> Option<SystemTime> {
        let files = fs::read_dir(&self.path).ok()?.filter_map(|entry| entry.ok()?.metadata().ok());
        files.filter_map(|file| file.modified().ok()).max()
    }

    /// Bytes of all files below the folder.
    pub(crate) fn bytes(&self) -> u64 {
        fn below(folder: &Path) -> u64 {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let size = |entry: fs::DirEntry| match entry.metadata() {
                Ok(about) if about.is_dir() => below(&entry.path()),
                Ok(about) => about.len(),
                Err(_) => 0,
            };
            entries.map(size).sum()
        }
        below(&self.path)
    }
}

/// Adds the runs below a folder; what is inside a run is its own.
fn find_runs(folder: &Path, depth: usize, all: &mut Vec<Found>) -> anyhow::Result<()> {
    if folder.join("run.json").is_file() {
        all.push(Found::open(folder)?);
        return Ok(());
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries.flatten().filter(|_| depth > 0) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_runs(&entry.path(), depth - 1, all)?;
        }
    }
    Ok(())
}

/// The mean success of each task in each context: `[context][task]`.
fn by_context(rows: &[&Value]) -> Scores {
    let names = |field: &str| {
        let mut names: Vec<String> = rows.iter().map(|row| word(&row[field])).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let (contexts, tasks) = (names("context"), names("task"));
    let won = |row: &&&Value| match &row["success"] {
        Value::Bool(won) => f64::from(u8::from(*won)),
        share => share.as_f64().unwrap_or(0.0),
    };
    let score = |context: &String, task: &String| {
        let own = rows.iter().filter(|row| word(&row["context"]) == *context && word(&row["task"]) == *task);
        stats::mean(&own.map(|row| won(&row)).collect::<Vec<_>>())
    };
    contexts.iter().map(|context| tasks.iter().map(|task| score(context, task)).collect()).collect()
}

/// A value without quotes.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// Adds every leaf of a tree of settings by its full name.
fn flatten(path: &str, value: &Value, all: &mut Vec<(String, String)>) {
    match value {
        Value::Object(inner) => {
            let inner: &Map<String, Value> = inner;
            for (key, value) in inner {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{key}"), value, all);
            }
        }
        leaf => all.push((path.to_owned(), word(leaf))),
    }
}
