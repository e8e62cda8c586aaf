//! `windvane quickstart`: the whole story on Randomized-Doors, from nothing to a page, in minutes.

use super::reproduce;
use crate::bounds;
use clap::Args;
use std::path::PathBuf;
use windvane::config::Plan;
use windvane::device::DeviceName;
use windvane::sweep::ablation::{self, MAIN};
use windvane::sweep::{Manifest, Sweep};

/// The world, the preset and the methods that show the point.
const ENV: &str = "doors";
const PRESET: &str = "quick";
const METHODS: [&str; 3] = ["fb", "bfb", "rfb"];

/// Shows the point in minutes: trains FB, Belief-FB and Rotation-FB on Randomized-Doors and plays unseen layouts.
///
/// Collects data, trains the belief and the three methods, scores them on layouts they learned from and on unseen ones
/// beside the exact ceilings, and writes a page with figures: `windvane reproduce doors --preset quick` with one seed.
#[derive(Args)]
#[command(after_help = "Example:
  windvane quickstart --out runs/quickstart

Stopped or killed, the same command goes on where it was.")]
pub(crate) struct Quickstart {
    /// Folder for data, models, scores and the page
    #[arg(long, value_name = "DIR", default_value = "runs/quickstart")]
    out: PathBuf,
    /// Methods at once; by default one for each core
    #[arg(long, value_name = "J", value_parser = bounds::count::<usize>(bounds::THREADS))]
    jobs: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Quickstart {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = ablation::settings(MAIN, PRESET, &Plan::preset(ENV, PRESET)?)?;
        let methods = METHODS.map(str::to_owned);
        let manifest = Manifest::new(MAIN, ENV, settings, &methods, 1)?.write(&self.out)?;
        let sweep = Sweep { folder: self.out, manifest };
        let jobs = self.jobs.unwrap_or_else(reproduce::usual_jobs);
        reproduce::do_and_report(&sweep, jobs, 1, DeviceName::Cpu, self.json)
    }
}
