//! `windvane compare`: runs side by side.

use crate::found::{Found, Score};
use crate::{output, table};
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use windvane::stats::Estimate;

/// Puts runs side by side: the settings that differ, and the scores with 95% intervals.
///
/// Intervals are those of a bootstrap over the contexts that were played in. They say how far the score of this one run
/// may be off, not how far another seed may be: for that, `windvane reproduce` trains several.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane compare runs/fb runs/bfb
  windvane compare runs/* --json")]
pub(crate) struct Compare {
    /// The runs' folders
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Names of rows, in order, with a cell for each run that has one.
type Rows<T> = Vec<(String, Vec<Option<T>>)>;

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runs = self.runs.iter().map(|path| Found::open(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut settings = side_by_side(&runs.iter().map(Found::settings).collect::<Vec<_>>());
        settings.retain(|(_, cells)| cells.iter().any(|cell| *cell != cells[0]));
        let named = |score: Score| (score.kind.clone(), score);
        let scores: Vec<Vec<(String, Score)>> =
            runs.iter().map(|run| run.scores().into_iter().map(named).collect()).collect();
        let scores = side_by_side(&scores);
        if self.json {
            return output::json(&json!({
                "runs": self.runs,
                "settings": document(&settings, |value| json!(value)),
                "scores": document(&scores, |score| json!({
                    "success": score.success.value,
                    "interval": [score.success.low, score.success.high],
                    "contexts": score.contexts,
                })),
            }));
        }
        let names: Vec<String> = self.runs.iter().map(|path| path.display().to_string()).collect();
        let header = |first: &'static str| -> Vec<&str> {
            std::iter::once(first).chain(names.iter().map(String::as_str)).collect()
        };
        if settings.is_empty() {
            output::say("no setting differs");
        } else {
            output::say(&table::render(&header("setting"), &lines(&settings, Clone::clone)));
        }
        if !scores.is_empty() {
            output::say("");
            output::say(&table::render(&header("success"), &lines(&scores, with_interval)));
        }
        Ok(())
    }
}

/// Lines up what several runs say under the same names.
fn side_by_side<T: Clone>(runs: &[Vec<(String, T)>]) -> Rows<T> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in runs.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |run: &Vec<(String, T)>, name: &String| {
        run.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
    };
    names.into_iter().map(|name| (name.clone(), runs.iter().map(|run| of(run, name)).collect())).collect()
}

fn lines<T>(rows: &Rows<T>, tell: impl Fn(&T) -> String) -> Vec<Vec<String>> {
    let cell = |cell: &Option<T>| cell.as_ref().map_or("-".to_owned(), &tell);
    rows.iter()
        .map(|(name, cells)| std::iter::once(name.clone()).chain(cells.iter().map(cell)).collect())
        .collect()
}

fn document<T>(rows: &Rows<T>, tell: impl Fn(&T) -> Value) -> Map<String, Value> {
    let cells = |cells: &Vec<Option<T>>| cells.iter().map(|cell| cell.as_ref().map(&tell)).collect();
    rows.iter().map(|(name, all)| (name.clone(), cells(all))).collect()
}

/// A score with its interval; a single context has none.
fn with_interval(score: &Score) -> String {
    match score.success {
        Estimate { value, low: Some(low), high: Some(high) } => format!("{value:.3} [{low:.3}, {high:.3}]"),
        Estimate { value, .. } => format!("{value:.3}"),
    }
}
