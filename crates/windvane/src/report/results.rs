//! The results of a sweep's folder, from its rows alone: statistics and figures.

use super::chart::{Format, measure};
use super::polar::{self, Rose};
use super::{curves, summary};
use crate::error::LearnError;
use crate::eval::BeliefMode;
use crate::planner::Planner;
use crate::stats::table::{self, COLUMNS, Line};
use crate::stats::{self, Estimate, bootstrap_pair, improvement};
use crate::sweep::ablation::{ABLATIONS, Ablation, MAIN};
use crate::sweep::paths::CurvePoint;
use crate::sweep::row::{REWARDS, SweepRewardRow};
use crate::sweep::unit::CURVE;
use crate::sweep::{Found, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use windvane_world::Split;
use windvane_world::picture::Picture;
use windvane_world::rng::stream;

/// Everything a sweep's folder holds in rows.
#[derive(Clone, Debug)]
pub struct Results {
    /// The folder.
    pub folder: PathBuf,
    /// The environment.
    pub env: String,
    /// The main experiment, a line for each setting and policy; empty if only ablations were run.
    pub main: Vec<Line>,
    /// The ablations that were run.
    pub ablations: Vec<AblationResults>,
    /// Learning curves of the main experiment.
    pub curve: Vec<CurvePoint>,
    /// Rows of tasks that are no goals.
    pub rewards: Vec<SweepRewardRow>,
    /// Mean returns of the main experiment, where tasks have no success; else none.
    pub returns: Vec<MeanReturn>,
    /// Returns by wind of the main experiment's first setting; empty for worlds without winds.
    pub roses: Vec<Rose>,
    /// What was wrong with the rows.
    pub warnings: Vec<String>,
}

/// What an ablation's rows say.
#[derive(Clone, Debug)]
pub struct AblationResults {
    /// Which it is.
    pub about: &'static Ablation,
    /// A line for each setting, policy and length of context.
    pub lines: Vec<Line>,
    /// Rows of tasks that are no goals.
    pub rewards: Vec<SweepRewardRow>,
}

impl AblationResults {
    /// What is varied, at this line.
    pub(super) fn value(&self, line: &Line) -> String {
        match self.about.name {
            "context" => line.context_steps.to_string(),
            "episode" => format!("{} steps from a random start", line.context_steps),
            _ => line.setting.split_once('=').map_or(line.setting.as_str(), |(_, value)| value).to_owned(),
        }
    }
}

/// The probability that one method is better than another on unseen contexts.
#[derive(Clone, Debug, Serialize)]
pub struct Improvement {
    /// The first.
    pub x: String,
    /// The second.
    pub y: String,
    /// The setting of both.
    pub setting: String,
    /// How likely the first is better.
    pub probability: Estimate,
}

/// The mean return of one policy at one task, belief frozen, F alone.
#[derive(Clone, Debug, Serialize)]
pub struct MeanReturn {
    /// The setting.
    pub setting: String,
    /// The method or reference policy.
    pub method: String,
    /// The task.
    pub task: String,
    /// In seen and in unseen contexts.
    pub splits: [Option<f64>; 2],
}

/// The mean returns behind rows, where any has a share of one.
fn mean_returns(rows: &[&Row]) -> Vec<MeanReturn> {
    let mut all: Vec<MeanReturn> = Vec::new();
    if rows.iter().all(|row| row.share.is_none()) {
        return all;
    }
    let frozen = |row: &&&Row| row.belief == BeliefMode::Frozen && row.planner == Planner::None;
    for row in rows.iter().filter(frozen) {
        let same = |mean: &MeanReturn| {
            (&mean.setting, &mean.method, &mean.task) == (&row.setting, &row.method, &row.task)
        };
        if all.iter().any(same) {
            continue;
        }
        let splits = [Split::Train, Split::Test].map(|split| {
            let own = rows.iter().filter(frozen).filter(|other| {
                other.split == split
                    && (&other.setting, &other.method, &other.task) == (&row.setting, &row.method, &row.task)
            });
            let returns: Vec<f64> = own.filter_map(|row| row.reward).collect();
            (!returns.is_empty()).then(|| stats::mean(&returns))
        });
        let Row { setting, method, task, .. } = (*row).clone();
        all.push(MeanReturn { setting, method, task, splits });
    }
    all
}

/// A figure of results.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// Its name, as `windvane figure` knows it.
    pub name: String,
    /// For a page and a screen.
    pub wide: Picture,
    /// For a phone.
    pub narrow: Picture,
    /// What it shows.
    pub caption: String,
}

impl Results {
    /// Reads all rows below `folder`.
    pub fn read(folder: &Path) -> Result<Self, LearnError> {
        let found = Found::below(folder)?;
        let env = found.rows[0].1.env.clone();
        if let Some((_, other)) = found.rows.iter().find(|(_, row)| row.env != env) {
            let problem = format!(
                "holds rows of {env} and of {}; expected one environment, give each a folder of its own",
                other.env
            );
            return Err(LearnError::run(folder, problem));
        }
        let main = found.of_sweep(MAIN);
        let first = |row: &&&Row| main.first().is_some_and(|first| first.setting == row.setting);
        let roses = polar::roses(&main.iter().filter(first).copied().collect::<Vec<_>>());
        let ablations = ABLATIONS.iter().map(|about| AblationResults {
            about,
            lines: table::lines(&found.of_sweep(about.name)),
            rewards: unit_rows(&folder.join(about.name), REWARDS),
        });
        Ok(Self {
            folder: folder.to_owned(),
            main: table::lines(&main),
            ablations: ablations.filter(|results| !results.lines.is_empty()).collect(),
            curve: unit_rows(&folder.join(MAIN), CURVE),
            rewards: unit_rows(&folder.join(MAIN), REWARDS),
            returns: mean_returns(&main),
            roses,
            warnings: found.warnings,
            env,
        })
    }

    /// The settings of the main experiment.
    pub fn settings(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for line in &self.main {
            if !names.contains(&line.setting.as_str()) {
                names.push(&line.setting);
            }
        }
        names
    }

    /// The main experiment's lines of one setting.
    pub fn lines_of(&self, setting: &str) -> Vec<&Line> {
        self.main.iter().filter(|line| line.setting == setting).collect()
    }

    /// How likely each method of a setting is better than each other on unseen contexts, belief frozen.
    pub fn improvements(&self, setting: &str) -> Vec<Improvement> {
        let lines = self.lines_of(setting);
        let learned: Vec<_> = lines.iter().filter(|line| line.is_learned()).collect();
        let mut all = Vec::new();
        for x in &learned {
            for y in learned.iter().filter(|y| y.method != x.method) {
                let (Some(a), Some(b)) = (&x.cells[1], &y.cells[1]) else { continue };
                let mut rng = stream(0, "improvement", &[]);
                all.push(Improvement {
                    x: x.method.clone(),
                    y: y.method.clone(),
                    setting: setting.to_owned(),
                    probability: bootstrap_pair(&a.scores, &b.scores, &mut rng, improvement),
                });
            }
        }
        all
    }

    /// All figures that rows can give.
    pub fn figures(&self) -> Vec<Drawing> {
        let mut all = Vec::new();
        let mut add = |name: String, caption: String, draw: &dyn Fn(Format) -> Picture| {
            let [wide, narrow] = [Format::Wide, Format::Narrow].map(draw);
            all.push(Drawing { name, wide, narrow, caption });
        };
        // The first setting's figures have plain names.
        let named = |what: &str, number: usize, setting: &str| {
            if number == 0 { what.to_owned() } else { format!("{what}-{setting}") }
        };
        for (number, setting) in self.settings().into_iter().enumerate() {
            let lines = self.lines_of(setting);
            let learned: Vec<&Line> = lines.iter().copied().filter(|line| line.is_learned()).collect();
            let whiskers = if learned.iter().any(|line| line.seeds > 1) {
                " Whiskers are intervals of a bootstrap over seeds within tasks."
            } else {
                ""
            };
            let caption = format!(
                "{setting}: {}, {}.{whiskers} Diamonds, where there are any, are the paper's values.",
                measure(&self.env),
                summary::protocol(&learned)
            );
            let draw = |format| summary::draw(&self.env, &lines, format);
            add(named("summary", number, setting), caption, &draw);
        }
        if !self.roses.is_empty() {
            let caption = "Returns by the direction of the wind, and as shares of the expert's; rings are unseen winds.";
            add("winds".to_owned(), caption.to_owned(), &|format| {
                polar::draw(&self.env, &self.roses, format)
            });
        }
        for results in self.ablations.iter().filter(|results| results.about.drawn) {
            let several = results.lines.iter().any(|line| line.seeds > 1);
            let bands = if several { " Bands are 95% bootstrap intervals." } else { "" };
            let caption = format!("Ablation, F alone: {}.{bands}", results.about.about);
            let draw = |format| curves::ablation(results, &self.env, format);
            add(format!("ablation-{}", results.about.name), caption, &draw);
        }
        for (number, setting) in self.settings().into_iter().enumerate() {
            let lines = self.lines_of(setting);
            let points: Vec<&CurvePoint> = self.curve.iter().filter(|p| p.setting == setting).collect();
            if !points.is_empty() {
                let several = lines.iter().any(|line| line.is_learned() && line.seeds > 1);
                let bands = if several { " Bands are from the lowest to the highest seed." } else { "" };
                let caption = format!(
                    "{setting}: scores while the agents are trained, on the belief that was trained before.{bands}"
                );
                let played = [0, 1].map(|column| lines.iter().any(|line| line.cells[column].is_some()));
                let draw = |format| curves::learning(&self.env, &points, played, format);
                add(named("learning", number, setting), caption, &draw);
            }
            let caption = format!(
                "{setting}: share of seeds and tasks with a score above each threshold; the further right and up, the \
                 better."
            );
            let draw = |format| curves::profiles(&self.env, &lines, format);
            add(named("profiles", number, setting), caption, &draw);
        }
        all
    }
}

/// All rows in files of one name below a sweep's folder, unit after unit.
fn unit_rows<T: DeserializeOwned>(folder: &Path, name: &str) -> Vec<T> {
    let mut files: Vec<PathBuf> = Vec::new();
    let folders = |of: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(of).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    for setting in folders(folder) {
        files.extend(folders(&setting).into_iter().map(|unit| unit.join(name)));
    }
    files.sort();
    let text = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    text.flat_map(|text| text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect::<Vec<_>>())
        .collect()
}

/// All statistics of one setting of the main experiment, for machines.
#[derive(Debug, Serialize)]
pub struct Statistics<'a> {
    /// The setting.
    pub setting: &'a str,
    /// Names of the columns of each line: belief and split.
    pub columns: Vec<String>,
    /// The lines.
    pub lines: Vec<&'a Line>,
    /// Probabilities of improvement.
    pub improvements: Vec<Improvement>,
    /// Thresholds of the performance profiles.
    pub thresholds: Vec<f64>,
    /// Performance profiles on unseen contexts, belief frozen: the method and its shares.
    pub profiles: Vec<(&'a str, Vec<f64>)>,
}

impl Results {
    /// All statistics of the main experiment.
    pub fn statistics(&self) -> Vec<Statistics<'_>> {
        let column = |(belief, split): &(crate::eval::BeliefMode, Split)| {
            format!("{belief:?} {split:?}").to_lowercase()
        };
        let thresholds: Vec<f64> = (0..20).map(|i| (f64::from(i) + 0.5) / 20.0).collect();
        let of = |setting| {
            let lines = self.lines_of(setting);
            let learned = self.main.iter().filter(|line| line.setting == setting && line.is_learned());
            let scores = learned.filter_map(|line| Some((line.method.as_str(), line.cells[1].as_ref()?)));
            let profiles = scores.map(|(name, cell)| (name, stats::profile(&cell.scores, &thresholds)));
            Statistics {
                setting,
                columns: COLUMNS.iter().map(column).collect(),
                profiles: profiles.collect(),
                thresholds: thresholds.clone(),
                improvements: self.improvements(setting),
                lines,
            }
        };
        self.settings().into_iter().map(of).collect()
    }
}
