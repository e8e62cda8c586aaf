//! `windvane export`: a trained agent as one folder.

use crate::output;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use windvane::agent::export;

/// Copies the agent of a finished run into a folder of its own: config.json, model.safetensors and a model card.
///
/// The folder needs neither the run nor its data. `windvane adapt` uses it, `windvane::Agent::load` opens it in Rust, and any
/// safetensors reader finds its weights by name.
#[derive(Args)]
#[command(after_help = "Example:
  windvane export runs/robot --out models/robot")]
pub(crate) struct Export {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The agent's folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        export::export(&self.run, &self.out)?;
        if self.json {
            return output::json(&json!({"out": self.out}));
        }
        output::say(&format!("{}: config.json, model.safetensors, README.md", self.out.display()));
        Ok(())
    }
}
