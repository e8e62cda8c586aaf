//! `windvane figure`: one figure of results, data or agents.

use crate::output;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use windvane::device::Threads;
use windvane::report::INSIDE;
use windvane::report::figure::{Inside, figure};
use windvane::sweep::ablation::MAIN;
use windvane::sweep::row::SCORES;
use windvane::sweep::{Manifest, Sweep};
use windvane::train::checkpoint::write_atomically;

/// The file that says which runs the figures of a sweep were drawn from.
const DRAWN: &str = "drawn-from.txt";

/// Draws one figure: of a sweep's rows, of its data, or of what its agents think.
///
/// From rows: summary, learning, profiles, winds (ants), ablation-context, ablation-layouts, ablation-kappa, ablation-forward. From data and
/// agents: layouts, occupancy, qmap, directions, beliefs, hidden, gaits (ants), cones, theory.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane figure summary results/four-rooms --out summary.svg
  windvane figure qmap results/four-rooms --out qmap.png
  windvane figure beliefs runs/bfb --out beliefs.svg
  windvane figure theory results/doors --out theory.png --json")]
pub(crate) struct Figure {
    /// Which
    #[arg(value_name = "NAME")]
    name: String,
    /// A sweep's folder, or for figures of agents a run's
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// File to make, .svg or .png; it must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Pixels of a PNG for each unit of the SVG
    #[arg(long, value_name = "SCALE", default_value_t = 2.0)]
    scale: f32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Figure {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (picture, numbers) = Threads::new(1)?.run(|| figure(&self.name, &self.path))?;
        picture.save(&self.out, self.scale)?;
        if self.json {
            return output::json(&json!({"path": self.out, "numbers": numbers}));
        }
        output::say(&self.out.display().to_string());
        Ok(())
    }
}

/// Draws every figure that looks into data and agents into the folder of a sweep; what cannot be drawn is said. Figures of
/// the same runs are not drawn twice.
pub(crate) fn draw_inside(folder: &Path) -> anyhow::Result<()> {
    let stamp = folder.join("figures").join(DRAWN);
    let runs = scored_runs(folder)?;
    if std::fs::read_to_string(&stamp).is_ok_and(|before| before == runs) {
        return Ok(());
    }
    let inside = match Inside::open(folder) {
        Ok(inside) => inside,
        Err(error) => {
            output::note(&format!("figures of agents are not drawn: {error}"));
            return Ok(());
        }
    };
    let place = folder.join("figures");
    std::fs::create_dir_all(&place)?;
    for (name, _) in INSIDE {
        match inside.draw(name) {
            Ok((picture, _)) => {
                write_atomically(&place.join(format!("{name}.svg")), picture.svg().as_bytes())?;
            }
            Err(error) => output::note(&format!("{error}")),
        }
    }
    Ok(write_atomically(&stamp, runs.as_bytes())?)
}

/// The runs of a sweep's main experiment that have their scores, a line each.
fn scored_runs(folder: &Path) -> anyhow::Result<String> {
    let manifest = Manifest::path(folder, MAIN);
    if !manifest.exists() {
        return Ok(String::new());
    }
    let sweep = Sweep::open(&manifest)?;
    let scored = sweep.manifest.units.iter().filter(|unit| sweep.place(unit).join(SCORES).exists());
    let runs = scored.map(|unit| sweep.run_folder(unit)).collect::<Result<Vec<_>, _>>()?;
    Ok(runs.iter().filter_map(|run| run.file_name()?.to_str()).collect::<Vec<_>>().join("\n"))
}
