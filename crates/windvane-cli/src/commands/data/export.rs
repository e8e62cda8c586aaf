//! `windvane data export`.

use crate::output;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use windvane_world::episodes::{Episodes, export_minari, export_npz};

/// Writes a data set for others: OGBench's .npz, or a Minari data set.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane data export data/four-rooms --format npz --out four-rooms.npz
  windvane data export data/four-rooms --format minari --id windvane/four-rooms-v0 --out ~/.minari/datasets")]
pub(crate) struct Export {
    /// The data set's folder
    data: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    format: Format,
    /// The .npz file to make, or the folder of Minari data sets to add to (`MINARI_DATASETS_PATH`)
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Minari's name for it; by default windvane/ENV-v0
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// NumPy archive as OGBench reads it
    Npz,
    /// Minari, Arrow layout
    Minari,
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let data = Episodes::open(&self.data)?;
        let path = match self.format {
            Format::Npz => {
                anyhow::ensure!(self.id.is_none(), "--id is for --format minari");
                export_npz(&data, &self.out)?;
                self.out
            }
            Format::Minari => {
                let id = self.id.unwrap_or_else(|| format!("windvane/{}-v0", data.spec().name));
                export_minari(&data, &self.out, &id)?
            }
        };
        if self.json {
            return output::json(&json!({"path": path, "summary": data.summary()}));
        }
        output::say(&format!("{}: {} episodes", path.display(), data.episodes()));
        Ok(())
    }
}
