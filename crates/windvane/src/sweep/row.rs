//! Score rows: what every table and figure of results is made of.

use crate::error::LearnError;
use crate::eval::rewards::RewardRow;
use crate::eval::{BeliefMode, ScoreRow};
use crate::planner::Planner;
use crate::run::Run;
use crate::train::checkpoint::write_atomically;
use serde::{Deserialize, Serialize, Serializer};
use std::path::{Path, PathBuf};
use windvane_world::Split;

/// The file of a unit's rows.
pub const SCORES: &str = "scores.jsonl";

/// The episodes of one task in one context, played by one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The environment.
    pub env: String,
    /// The setting: a preset, or what an ablation varies and its value.
    pub setting: String,
    /// The method, or a reference policy.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Contexts seen in training, or not.
    pub split: Split,
    /// The context.
    pub context: u64,
    /// The task.
    pub task: String,
    /// Whether the belief went on learning.
    pub belief: BeliefMode,
    /// Length of the random trajectory seen before; 0 also for policies that need none.
    pub context_steps: usize,
    /// Who chose actions: F alone (`none`) or the planner (`sweeps`).
    #[serde(default)]
    pub planner: Planner,
    /// Episodes, each after another random trajectory; rows of earlier versions call them games.
    #[serde(alias = "games")]
    pub episodes: u64,
    /// The share that reached their goal within the horizon.
    #[serde(serialize_with = "short")]
    pub success: f64,
    /// The mean sum of rewards, where it is not the share of successes.
    #[serde(
        rename = "return",
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "short_or_none"
    )]
    pub reward: Option<f64>,
    /// Where a task has no success: the return as a share of that of the policy that knows the context, in the same episodes.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "short_or_none")]
    pub share: Option<f64>,
    /// The mean number of steps taken.
    #[serde(serialize_with = "short")]
    pub steps: f64,
    /// Steps that a policy that knows the map takes; nothing where none is known.
    pub optimal_steps: Option<usize>,
    /// What the best exact policy with the same information reaches in the same episodes; nothing where none is known.
    #[serde(serialize_with = "short_or_none")]
    pub ceiling: Option<f64>,
    /// Hash of all settings.
    pub config: String,
    /// The program's revision.
    pub revision: String,
    /// Gradient steps of belief and agent; like the next two, not there for reference policies.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gradient_steps: u64,
    /// CPU time of their training.
    #[serde(default, skip_serializing_if = "is_zero", serialize_with = "seconds")]
    pub cpu_seconds: f64,
    /// Wall time of their training.
    #[serde(default, skip_serializing_if = "is_zero", serialize_with = "seconds")]
    pub wall_seconds: f64,
}

/// Whether a value is that of someone who trains nothing.
fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Seconds, to a tenth.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn seconds<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 10.0).round() / 10.0)
}

/// Four decimals are enough, and keep rows small.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn short<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e4).round() / 1e4)
}

#[expect(clippy::ref_option, reason = "the signature serde asks for")]
fn short_or_none<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => short(value, serializer),
        None => serializer.serialize_none(),
    }
}

impl Row {
    /// A row of a run with everything but its episodes.
    pub fn blank(run: &Run, setting: &str, revision: &str) -> Result<Self, LearnError> {
        let cost = run.cost()?;
        Ok(Self {
            env: run.plan.env.clone(),
            setting: setting.to_owned(),
            method: run.method.name.to_owned(),
            seed: run.seed,
            split: Split::Train,
            context: 0,
            task: String::new(),
            belief: BeliefMode::Frozen,
            context_steps: 0,
            planner: Planner::None,
            episodes: 0,
            success: 0.0,
            reward: None,
            share: None,
            steps: 0.0,
            optimal_steps: None,
            ceiling: None,
            config: format!("{:016x}", crate::stage::hash(&run.plan)?),
            revision: revision.to_owned(),
            gradient_steps: cost.gradient_steps,
            cpu_seconds: cost.cpu_seconds,
            wall_seconds: cost.wall_seconds,
        })
    }

    /// Episodes as one row each of a context and task, in their order; the rest is as `like` says.
    pub fn of_episodes(episodes: &[ScoreRow], like: &Self) -> Vec<Self> {
        let same = |a: &ScoreRow, b: &ScoreRow| (a.context, &a.task) == (b.context, &b.task);
        let row = |episodes: &[ScoreRow]| {
            let mean = |value: &dyn Fn(&ScoreRow) -> f64| {
                episodes.iter().map(value).sum::<f64>() / episodes.len() as f64
            };
            let success = mean(&|episode| f64::from(u8::from(episode.success)));
            Self {
                split: episodes[0].split,
                context: episodes[0].context,
                task: episodes[0].task.clone(),
                belief: episodes[0].belief,
                context_steps: episodes[0].context_steps,
                planner: episodes[0].planner,
                episodes: episodes.len() as u64,
                success,
                reward: Some(mean(&|episode| f64::from(episode.reward))).filter(|reward| *reward != success),
                steps: mean(&|episode| episode.steps as f64),
                optimal_steps: episodes[0].optimal_steps,
                ..like.clone()
            }
        };
        episodes.chunk_by(same).map(row).collect()
    }

    /// What is impossible about it, if anything is: shares beyond 0 to 1, episodes of no length or number.
    fn impossible(&self) -> Option<String> {
        let share = |name: &str, value: f64| {
            (!(0.0..=1.0).contains(&value)).then(|| format!("\"{name}\" is {value}, expected 0 to 1"))
        };
        let positive = |name: &str, value: f64| {
            let fits = value.is_finite() && value >= 0.0;
            (!fits).then(|| format!("\"{name}\" is {value}, expected a number of at least 0"))
        };
        share("success", self.success)
            .or_else(|| share("ceiling", self.ceiling.unwrap_or(0.0)))
            .or_else(|| positive("steps", self.steps))
            .or_else(|| positive("cpu_seconds", self.cpu_seconds))
            .or_else(|| positive("wall_seconds", self.wall_seconds))
            .or_else(|| (self.episodes == 0).then(|| "\"episodes\" is 0, expected at least 1".to_owned()))
    }

    /// What it scored: its success, or its share of what can be had where there is none.
    pub fn score(&self) -> f64 {
        self.share.unwrap_or(self.success)
    }

    /// Whether two rows tell of the same episodes by different policies.
    pub fn same_episodes(&self, other: &Self) -> bool {
        (self.seed, self.split, self.context, &self.task)
            == (other.seed, other.split, other.context, &other.task)
    }
}

/// Name of a file of rows of tasks that are no goals.
pub const REWARDS: &str = "rewards.jsonl";

/// A row of tasks that are no goals, with what it was made by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRewardRow {
    /// The setting's name.
    pub setting: String,
    /// The method.
    pub method: String,
    /// The run's seed.
    pub seed: u64,
    /// What was gained.
    #[serde(flatten)]
    pub row: RewardRow,
    /// The settings, as a hash.
    pub config: String,
    /// The program's revision.
    pub revision: String,
}

impl SweepRewardRow {
    /// A row of the run that `like` is of.
    pub(crate) fn new(row: RewardRow, like: &Row) -> Self {
        let Row { setting, method, seed, config, revision, .. } = like.clone();
        Self { setting, method, seed, row, config, revision }
    }
}

/// Rows with what was wrong on the way.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The rows, each with the name of its sweep.
    pub rows: Vec<(String, Row)>,
    /// Lines that are no rows, and other things to know.
    pub warnings: Vec<String>,
}

impl Found {
    /// All rows below a sweep's folder; an error if there are none.
    pub fn below(folder: &Path) -> Result<Self, LearnError> {
        let mut files = Vec::new();
        score_files(folder, 3, &mut files)?;
        files.sort();
        let mut found = Self::default();
        for file in files {
            let sweep = file.strip_prefix(folder).ok().and_then(|path| path.components().next());
            let sweep = sweep.map_or(String::new(), |part| part.as_os_str().to_string_lossy().into_owned());
            let (rows, bad) = read(&file)?;
            found.warnings.extend(bad.iter().map(|line| {
                format!("{}: line {line} is no row and is skipped; reproduce redoes it", file.display())
            }));
            if let Some((row, problem)) = rows.iter().find_map(|row| Some((row, row.impossible()?))) {
                let Row { method, seed, context, task, .. } = row;
                let problem = format!("{problem} (row of {method}, seed {seed}, context {context}, {task})");
                return Err(LearnError::run(&file, problem));
            }
            found.rows.extend(rows.into_iter().map(|row| (sweep.clone(), row)));
        }
        if found.rows.is_empty() {
            let problem = "no score rows below it; expected a folder that `windvane reproduce` made";
            return Err(LearnError::run(folder, problem));
        }
        Ok(found)
    }

    /// The rows of one sweep.
    pub fn of_sweep(&self, sweep: &str) -> Vec<&Row> {
        self.rows.iter().filter(|(name, _)| name == sweep).map(|(_, row)| row).collect()
    }
}

/// Finds `scores.jsonl` below a folder, up to `depth` folders deep.
fn score_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), LearnError> {
    let entries = std::fs::read_dir(folder).map_err(LearnError::io(folder, "looking for score rows"))?;
    for entry in entries {
        let path = entry.map_err(LearnError::io(folder, "looking for score rows"))?.path();
        if path.is_dir() && depth > 0 {
            score_files(&path, depth - 1, files)?;
        } else if path.file_name().is_some_and(|name| name == SCORES) {
            files.push(path);
        }
    }
    Ok(())
}

/// The rows of a file, and the numbers of lines that are none: half-written, or by another program.
pub fn read(path: &Path) -> Result<(Vec<Row>, Vec<usize>), LearnError> {
    let bytes = std::fs::read(path).map_err(LearnError::io(path, "reading score rows"))?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut rows, mut bad) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Row>(line) {
            // Rows of earlier versions say how many sweeps the planner took before acting.
            Ok(row) if line.contains("\"lookahead\":") => rows.push(Row { planner: Planner::Sweeps, ..row }),
            Ok(row) => rows.push(row),
            Err(_) => bad.push(number + 1),
        }
    }
    Ok((rows, bad))
}

/// Writes lines of JSON, all or none.
pub fn write<T: Serialize>(path: &Path, rows: &[T]) -> Result<(), LearnError> {
    let mut text = String::new();
    for row in rows {
        text += &serde_json::to_string(row).map_err(|e| LearnError::run(path, e.to_string()))?;
        text.push('\n');
    }
    write_atomically(path, text.as_bytes())
}
