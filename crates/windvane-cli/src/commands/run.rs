//! `windvane run`: units of a sweep.

use crate::interrupt::{self, Stopped};
use crate::watch::Bars;
use crate::{bounds, output, revision};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use windvane::device::{DeviceName, Threads};
use windvane::sweep::task::TaskEnded;
use windvane::sweep::unit::Bench;
use windvane::sweep::{Ended, Sweep};

/// The exit code that says to schedulers that another try may help (`EX_TEMPFAIL` of sysexits.h).
const AGAIN: i32 = 75;
/// The exit code of a task that was asked to stop: the same as if the signal itself had ended it.
const TERMINATED: i32 = 143;

/// Does one unit of a sweep: trains what is not trained yet and writes its score rows.
///
/// A unit that is done is left alone, one that another process is doing is skipped, one that was stopped or killed goes on
/// where it was. Any number of processes, on any machines that share the folder, may do units of one manifest at once.
///
/// With `--tries` it works as a task of a scheduler: several units in turn; while others work on those, or on what they need
/// first, it does other units that nobody has begun; it ends when its own are done. Its exit code is then 0 if they are, 75 if
/// another try may help, 143 if it was asked to stop, and 1 if a unit was given up.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane reproduce four-rooms --out results/four-rooms --plan-only
  windvane run --manifest results/four-rooms/main.json --index 3
  windvane run --manifest results/four-rooms/main.json --index 3,4,5 --tries 3")]
pub(crate) struct RunUnit {
    /// The manifest that `windvane reproduce` wrote
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,
    /// Which of its units, from 0; with --tries several, separated by commas
    #[arg(long, value_name = "I", value_delimiter = ',', required = true)]
    index: Vec<usize>,
    /// Give a unit up after N attempts that failed or were killed without getting further
    #[arg(long, value_name = "N")]
    tries: Option<usize>,
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
        let indices = &self.index;
        anyhow::ensure!(
            indices.len() == 1 || self.tries.is_some(),
            "--index has {} units; expected one, or --tries",
            indices.len()
        );
        anyhow::ensure!(self.tries != Some(0), "--tries is 0; expected at least 1");
        let unit = sweep.unit(indices[0])?;
        let device = self.device.open()?;
        let interrupt = interrupt::flag()?;
        let (mut watch, tries) = (Bars, self.tries);
        let threads = Threads::new(self.threads)?;
        let revision = revision::REVISION;
        if tries.is_some() {
            let ended = threads.run(|| {
                let mut bench =
                    Bench { device: &device, progress: &mut watch, interrupt, revision, waits: false, tries };
                sweep.task(indices, &mut bench, &mut |text| output::note(text))
            })?;
            return self.end_task(&ended);
        }
        let ended = threads.run(|| {
            let mut bench =
                Bench { device: &device, progress: &mut watch, interrupt, revision, waits: true, tries };
            sweep.run(unit, &mut bench)
        })?;
        let word = match ended {
            Ended::Done => "done",
            Ended::Already => "was done before",
            Ended::Elsewhere | Ended::Blocked => "is being done elsewhere; skipped",
            Ended::Interrupted => anyhow::bail!(Stopped),
            Ended::GivenUp => "is given up",
        };
        if self.json {
            return output::json(&json!({"unit": unit, "ended": word, "rows": sweep.place(unit)}));
        }
        output::say(&format!("{}: {word}", unit.name()));
        Ok(())
    }

    /// Tells the scheduler, by the exit code, how its task ended.
    fn end_task(&self, ended: &TaskEnded) -> anyhow::Result<()> {
        if ended.interrupted {
            output::note(&Stopped.to_string());
            std::process::exit(TERMINATED);
        }
        let TaskEnded { again, given_up, .. } = ended;
        if self.json {
            output::json(&json!({"again": again, "given_up": given_up}))?;
        }
        if !again.is_empty() {
            output::note(&format!("to be tried again: {}", again.join(", ")));
            std::process::exit(AGAIN);
        }
        anyhow::ensure!(given_up.is_empty(), "given up: {}", given_up.join(", "));
        Ok(())
    }
}
