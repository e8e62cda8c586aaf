//! `windvane bench`: what a training step costs, and what it costs elsewhere.

mod contender;
mod peers;
mod worker;

use crate::{output, table};
use anyhow::ensure;
use clap::{Args, ValueEnum};
use contender::{Contender, Timing};
use serde::Serialize;
use std::path::Path;
use windvane::bench::{self, Size, StepName};
use windvane::device::DeviceName;

/// Measures training steps: CPU time, memory, and the share of the matrix product's limit; with --peers against the same
/// steps in PyTorch and JAX.
///
/// Contenders are given the same weights and batch, and their first losses are compared; then they run in turn, so that
/// other work on the machine slows everyone alike. Reported are the fastest rounds.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane bench
  WINDVANE_PYTHON=.venv/bin/python windvane bench --peers --size small --threads 1,2 --json

bench/README.md says how to install the peers.")]
pub(crate) struct Bench {
    /// Run the twins in PyTorch and JAX too, where Python (WINDVANE_PYTHON, else python3) has them
    #[arg(long)]
    peers: bool,
    /// Only this size
    #[arg(long, value_enum)]
    size: Option<SizeChoice>,
    /// Only this step
    #[arg(long, value_enum)]
    step: Option<StepChoice>,
    /// Numbers of threads to measure with
    #[arg(long, value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// Rounds in which every contender runs once
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Where our own steps run
    #[arg(long, default_value_t)]
    device: DeviceName,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Be a contender: answer on stdin and stdout
    #[arg(long, hide = true)]
    worker: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum SizeChoice {
    /// Hidden width 256, batch 512, d = 100
    Small,
    /// Hidden width 1024, batch 1024, d = 150
    Paper,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum StepChoice {
    /// Forward-backward, one head per action
    FbDiscrete,
    /// Forward-backward with an actor
    FbContinuous,
    /// Belief encoder
    Belief,
    /// Acting on one observation
    Act,
}

/// One measured line.
#[derive(Serialize)]
struct Row {
    step: StepName,
    size: Size,
    stack: &'static str,
    threads: usize,
    /// CPU time of a step in its fastest round.
    cpu_ms: f64,
    cpu_ms_median: f64,
    wall_ms: f64,
    peak_mb: Option<f64>,
    /// CPU time against torch-eager.
    ratio: Option<f64>,
    /// Peak memory against torch-eager.
    memory_ratio: Option<f64>,
    /// Share of the matrix product's limit that the step's own products reach.
    product_share: Option<f64>,
    /// Largest relative difference of the first three losses from ours.
    loss_gap: f64,
}

/// The whole document.
#[derive(Serialize)]
struct Report {
    /// GFLOP/s of our matrix product, 512 x 512, on one thread.
    product_gflops: f64,
    rows: Vec<Row>,
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.worker {
            return worker::serve(self.chosen_step(), self.chosen_size(), self.threads[0], self.device);
        }
        ensure!(self.rounds > 0, "--rounds 0: expected at least 1");
        ensure!(!self.threads.contains(&0), "--threads 0: expected at least 1");
        let folder = tempfile::tempdir()?;
        let peers = if self.peers { peers::find(folder.path())? } else { Vec::new() };
        let mut rows = Vec::new();
        let mut limit: f64 = 0.0;
        for (step, size) in self.cases() {
            for &threads in &self.threads {
                rows.extend(self.measure(step, size, threads, &peers, folder.path(), &mut limit)?);
            }
        }
        let report = Report { product_gflops: limit, rows };
        if self.json { output::json(&report) } else { report.show() }
    }

    fn chosen_step(&self) -> StepName {
        self.step.map_or(StepName::FbDiscrete, StepChoice::name)
    }

    fn chosen_size(&self) -> Size {
        self.size.map_or(Size::Small, SizeChoice::size)
    }

    /// The belief encoder and acting have one size; the paper's is about F, B and the actor.
    fn cases(&self) -> Vec<(StepName, Size)> {
        let all = [
            (StepName::FbDiscrete, Size::Small),
            (StepName::FbContinuous, Size::Small),
            (StepName::Belief, Size::Small),
            (StepName::Act, Size::Small),
            (StepName::FbDiscrete, Size::Paper),
            (StepName::FbContinuous, Size::Paper),
        ];
        let wanted = |(step, size): &(StepName, Size)| {
            self.step.is_none_or(|choice| choice.name() == *step)
                && self.size.is_none_or(|choice| choice.size() == *size)
        };
        all.into_iter().filter(wanted).collect()
    }

    /// One case: all contenders in turn, round after round.
    fn measure(
        &self,
        step: StepName,
        size: Size,
        threads: usize,
        peers: &[peers::Peer],
        folder: &Path,
        limit: &mut f64,
    ) -> anyhow::Result<Vec<Row>> {
        let case = format!("{}, {}, {threads} threads", word(step), word(size));
        output::note(&format!("measuring {case}"));
        let file = folder.join("case.safetensors");
        std::fs::write(&file, bench::build(step, size, &DeviceName::Cpu.open()?)?.1.to_bytes()?)?;
        let mut contenders = vec![Contender::ours(&word(step), &word(size), threads, self.device)?];
        for peer in peers {
            match Contender::peer(peer, &word(step), &file, threads) {
                Ok(contender) => contenders.push(contender),
                Err(error) => output::note(&format!("{} does without {case}: {error:#}", peer.stack)),
            }
        }
        let mut rounds: Vec<Vec<Timing>> = vec![Vec::new(); contenders.len()];
        for _ in 0..self.rounds {
            for (contender, timings) in contenders.iter_mut().zip(&mut rounds) {
                timings.push(contender.run()?);
            }
            *limit = limit.max(contenders[0].product_gflops()?);
        }
        let losses = contenders[0].losses.clone();
        let mut rows = Vec::new();
        for (contender, mut timings) in contenders.into_iter().zip(rounds) {
            timings.sort_by(|a, b| a.cpu_ms.total_cmp(&b.cpu_ms));
            let (best, stack) = (timings[0], contender.stack);
            let gap = contender.losses.iter().zip(&losses).map(|(a, b)| ((a - b) / b.abs().max(1e-9)).abs());
            let loss_gap = gap.fold(0.0, f64::max);
            ensure!(loss_gap < 1e-3, "{case}: {stack} computes other losses: {:?}, ours {losses:?}", contender.losses);
            rows.push(Row {
                step,
                size,
                stack,
                threads,
                cpu_ms: best.cpu_ms,
                cpu_ms_median: timings[timings.len() / 2].cpu_ms,
                wall_ms: timings.iter().map(|t| t.wall_ms).fold(f64::INFINITY, f64::min),
                peak_mb: contender.finish()?,
                ratio: None,
                memory_ratio: None,
                product_share: best.gflop.map(|gflop| gflop / best.cpu_ms * 1e3 / *limit),
                loss_gap,
            });
        }
        if let Some(eager) = rows.iter().position(|row| row.stack == "torch-eager") {
            let (cpu, peak) = (rows[eager].cpu_ms, rows[eager].peak_mb);
            for row in &mut rows {
                row.ratio = Some(row.cpu_ms / cpu);
                row.memory_ratio = row.peak_mb.zip(peak).map(|(own, eager)| own / eager);
            }
        }
        Ok(rows)
    }
}

impl Report {
    fn show(&self) -> anyhow::Result<()> {
        let or_dash = |x: Option<f64>, digits: usize| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.digits$}"));
        let cells = |row: &Row| {
            vec![
                word(row.step),
                word(row.size),
                row.stack.to_owned(),
                row.threads.to_string(),
                format!("{:.3}", row.cpu_ms),
                format!("{:.3}", row.cpu_ms_median),
                format!("{:.3}", row.wall_ms),
                or_dash(row.ratio, 3),
                or_dash(row.product_share, 2),
                or_dash(row.peak_mb, 0),
                or_dash(row.memory_ratio, 2),
            ]
        };
        let header =
            ["step", "size", "stack", "threads", "cpu ms", "median", "wall ms", "ratio", "product share", "peak MB", "memory"];
        output::say(&table::render(&header, &self.rows.iter().map(cells).collect::<Vec<_>>()));
        output::say(&format!(
            "\nratio and memory: against torch-eager; product share: of {:.0} GFLOP/s, our matrix product on one thread",
            self.product_gflops
        ));
        Ok(())
    }
}

/// A name as the command line and the document spell it.
fn word(name: impl Serialize) -> String {
    serde_json::to_value(name).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

impl StepChoice {
    fn name(self) -> StepName {
        match self {
            Self::FbDiscrete => StepName::FbDiscrete,
            Self::FbContinuous => StepName::FbContinuous,
            Self::Belief => StepName::Belief,
            Self::Act => StepName::Act,
        }
    }
}

impl SizeChoice {
    fn size(self) -> Size {
        match self {
            Self::Small => Size::Small,
            Self::Paper => Size::Paper,
        }
    }
}
