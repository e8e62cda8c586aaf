//! `windvane runs`: what runs there are.

use crate::found::Found;
use crate::{output, table};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Lists the runs below a folder: method, environment, seed, state of the training, scores, age and size.
///
/// Scores are shares of goals reached by F alone with the belief frozen, on contexts seen in training and on unseen ones; "-" where
/// none were taken (the runs of `reproduce` have theirs in its score rows).
#[derive(Args)]
#[command(after_help = "Examples:
  windvane runs
  windvane runs results/four-rooms --json")]
pub(crate) struct Runs {
    /// The folder
    #[arg(value_name = "DIR", default_value = "runs")]
    folder: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Runs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runs = Found::below(&self.folder)?;
        if self.json {
            let document: Vec<Value> = runs.iter().map(document).collect();
            return output::json(&json!({ "runs": document }));
        }
        if runs.is_empty() {
            output::note(&format!("{}: no runs below it", self.folder.display()));
            return Ok(());
        }
        let header = ["run", "method", "env", "seed", "state", "seen", "unseen", "age", "size"];
        output::say(&table::render(&header, &runs.iter().map(line).collect::<Vec<_>>()));
        Ok(())
    }
}

/// Seconds since a file of the run last changed.
fn age(run: &Found) -> Option<u64> {
    run.changed()?.elapsed().ok().map(|age| age.as_secs())
}

fn line(run: &Found) -> Vec<String> {
    let scores = run.scores();
    let of = |split: &str| {
        let kind = scores.iter().find(|score| score.kind == format!("{split} frozen none"));
        kind.map_or("-".to_owned(), |score| format!("{:.3}", score.success.value))
    };
    vec![
        run.path.display().to_string(),
        run.method(),
        run.env(),
        run.seed(),
        run.state(),
        of("train"),
        of("test"),
        age(run).map_or("-".to_owned(), span),
        size(run.bytes()),
    ]
}

fn document(run: &Found) -> Value {
    let scores = run.scores();
    let scores = scores.iter().map(|score| (score.kind.clone(), json!(score.success.value)));
    json!({
        "path": run.path,
        "method": run.method(),
        "env": run.env(),
        "seed": run.seed().parse::<u64>().ok(),
        "state": run.state(),
        "scores": scores.collect::<serde_json::Map<String, Value>>(),
        "age_seconds": age(run),
        "bytes": run.bytes(),
    })
}

/// A time in its largest unit.
fn span(seconds: u64) -> String {
    match seconds {
        s if s < 60 => format!("{s} s"),
        s if s < 3600 => format!("{} min", s / 60),
        s if s < 86_400 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86_400),
    }
}

/// Bytes in their largest unit.
fn size(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 1e6 => format!("{:.0} kB", b / 1e3),
        b if b < 1e9 => format!("{:.0} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::{size, span};

    #[test]
    fn times_and_sizes_are_told_in_their_largest_unit() {
        assert_eq!([5, 61, 7300, 200_000].map(span), ["5 s", "1 min", "2 h", "2 d"]);
        assert_eq!([1_500, 3_400_000, 2_500_000_000].map(size), ["2 kB", "3 MB", "2.5 GB"]);
    }
}
