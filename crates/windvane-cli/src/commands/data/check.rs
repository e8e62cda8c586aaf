//! `windvane data check`.

use crate::output;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use windvane_world::episodes::check;

/// Reads all of a data set and checks it: checksums, finite numbers, bounds, labels, and meta.json against columns and world.
#[derive(Args)]
#[command(after_help = "Example:
  windvane data check data/four-rooms")]
pub(crate) struct Check {
    /// The data set's folder
    data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let data = check(&self.data)?;
        if self.json {
            return output::json(&json!({"path": data.path(), "ok": true, "summary": data.summary()}));
        }
        output::say(&format!(
            "{}: {} episodes and {} transitions are sound",
            data.path().display(),
            data.episodes(),
            data.transitions()
        ));
        Ok(())
    }
}
