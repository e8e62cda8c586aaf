//! `windvane report`: tables and page of a sweep, from its rows alone.

use super::figure;
use crate::{output, table};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use windvane::report::results::Results;
use windvane::train::checkpoint::write_atomically;

/// Makes tables and the report page of a sweep's folder anew, from its score rows alone.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane report results/four-rooms
  windvane report results/four-rooms --json
  windvane report /mnt/shared/four-rooms --out report.html      a folder that cannot be written")]
pub(crate) struct Report {
    /// The folder that `windvane reproduce` made
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// First draw the figures that look into trained agents, as `windvane reproduce` does
    #[arg(long)]
    figures: bool,
    /// Where the page goes; by default report.html in the folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print all statistics as one JSON document
    #[arg(long)]
    json: bool,
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.figures {
            figure::draw_inside(&self.folder)?;
        }
        let page = self.out.unwrap_or_else(|| self.folder.join("report.html"));
        write_and_say(&self.folder, &page, self.json)
    }
}

/// Writes the page of a folder to a file and prints its tables.
pub(crate) fn write_and_say(folder: &Path, page: &Path, as_json: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        folder.is_dir(),
        "{}: is no folder; expected one that `windvane reproduce` made",
        folder.display()
    );
    let results = Results::read(folder)?;
    results.warnings.iter().for_each(|warning| output::note(&format!("warning: {warning}")));
    write_atomically(page, results.page()?.as_bytes())?;
    if as_json {
        let ablations: Vec<_> = results.ablations.iter().map(|a| (a.about.name, &a.lines)).collect();
        return output::json(
            &json!({"env": results.env, "report": page, "main": results.statistics(), "ablations": ablations}),
        );
    }
    for setting in results.settings() {
        for shown in [vec![results.score_table(setting)], results.reward_tables(setting)].concat() {
            output::say(&format!("{}\n", shown.title));
            let header: Vec<&str> = shown.header.iter().map(String::as_str).collect();
            output::say(&table::render(&header, &shown.rows));
            output::say("");
        }
    }
    output::say(&format!("report: {}", page.display()));
    Ok(())
}
