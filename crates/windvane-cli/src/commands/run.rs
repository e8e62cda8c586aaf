//! `windvane run`: one unit of a sweep.

use crate::interrupt::{self, Stopped};
use crate::watch::Bars;
use crate::{bounds, output, revision};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use windvane::device::{DeviceName, Threads};
use windvane::sweep::unit::Bench;
use windvane::sweep::{Ended, Sweep};

/// Does one unit of a sweep: trains what is not trained yet and writes its score rows.
///
/// A unit that is done is left alone, one that another process is doing is skipped, one that was stopped or killed goes on
/// where it was. Any number of processes, on any machines that share the folder, may do units of one manifest at once.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane reproduce four-rooms --out results/four-rooms --plan-only
  windvane run --manifest results/four-rooms/main.json --index 3
  sbatch --array=0-11 --wrap 'windvane run --manifest results/four-rooms/main.json --index $SLURM_ARRAY_TASK_ID'")]
pub(crate) struct RunUnit {
    /// The manifest that `windvane reproduce` wrote
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,
    /// Which of its units, from 0
    #[arg(long, value_name = "I")]
    index: usize,
    /// Where tensors live: cpu, vulkan, wgpu, cuda or metal
    #[arg(long, default_value_t = DeviceName::Cpu)]
    device: DeviceName,
    /// Threads; two units of one thread side by side get farther than one of two
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = bounds::count::<usize>(bounds::THREADS))]
    threads: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl RunUnit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let sweep = Sweep::open(&self.manifest)?;
        let unit = sweep.unit(self.index)?;
        let interrupt = interrupt::flag()?;
        let device = self.device.open()?;
        let mut watch = Bars;
        let ended = Threads::new(self.threads)?.run(|| {
            let mut bench =
                Bench { device: &device, watch: &mut watch, interrupt, revision: revision::REVISION };
            sweep.run(unit, &mut bench)
        })?;
        let word = match ended {
            Ended::Done => "done",
            Ended::Already => "was done before",
            Ended::Elsewhere => "is being done elsewhere; skipped",
            Ended::Interrupted => anyhow::bail!(Stopped),
        };
        if self.json {
            return output::json(&json!({"unit": unit, "ended": word, "rows": sweep.place(unit)}));
        }
        output::say(&format!("{}: {word}", unit.name()));
        Ok(())
    }
}
