//! `windvane quickstart`: the whole story on Randomized-Doors, or on pendulums, from nothing to a page, in minutes.

use super::reproduce;
use crate::bounds;
use clap::Args;
use std::path::PathBuf;
use windvane::config::Plan;
use windvane::device::DeviceName;
use windvane::sweep::ablation::{self, MAIN};
use windvane::sweep::{Manifest, Sweep};

/// The worlds (the second with continuous actions), the preset and the methods that show the point.
const ENVS: [&str; 2] = ["doors", "pendulum"];
const PRESET: &str = "quick";
const METHODS: [&str; 3] = ["fb", "bfb", "rfb"];

/// Shows the point in minutes: trains FB, Belief-FB and Rotation-FB on Randomized-Doors and plays unseen layouts.
///
/// Collects data, trains the belief and the three methods, scores them on layouts they learned from and on unseen ones
/// beside the exact ceilings, and writes a page with figures: `windvane reproduce doors --preset quick` with one seed. With
/// --continuous, the same on pendulums whose mass, length and sign of the motor are hidden: FB, who knows none of it, is
/// right for one of the two signs at best; a belief is all that is needed.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane quickstart --out runs/quickstart
  windvane quickstart --continuous --out runs/pendulum

Stopped or killed, the same command goes on where it was.")]
pub(crate) struct Quickstart {
    /// Continuous control: pendulums instead of Randomized-Doors
    #[arg(long)]
    continuous: bool,
    /// Folder for data, models, scores and the page [default: runs/quickstart, or runs/quickstart-continuous]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Methods at once; by default one for each core
    #[arg(long, value_name = "J", value_parser = bounds::count::<usize>(bounds::THREADS))]
    jobs: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Quickstart {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (env, usual) = if self.continuous {
            (ENVS[1], "runs/quickstart-continuous")
        } else {
            (ENVS[0], "runs/quickstart")
        };
        let folder = self.out.unwrap_or_else(|| usual.into());
        let settings = ablation::settings(MAIN, PRESET, &Plan::preset(env, PRESET)?)?;
        let methods = METHODS.map(str::to_owned);
        let manifest = Manifest::new(MAIN, env, settings, &methods, 0..1)?.write(&folder)?;
        let sweep = Sweep { folder, manifest };
        let jobs = self.jobs.unwrap_or_else(reproduce::usual_jobs);
        reproduce::do_and_report(&sweep, jobs, 1, DeviceName::Cpu, self.json)
    }
}
