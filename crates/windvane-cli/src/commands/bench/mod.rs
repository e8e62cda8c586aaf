//! `windvane bench`: what a training step costs, and what it costs elsewhere.

mod contender;
mod peers;
mod worker;

use crate::{bounds, output, table};
use anyhow::ensure;
use clap::{Args, ValueEnum};
use contender::{Contender, Timing};
use peers::Peer;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use windvane::bench::{self, Size, StepName};
use windvane::device::{DeviceName, Threads};

/// Losses of twins may differ by this much of their value; rounding alone makes about a tenth of it.
const SAME_LOSS: f64 = 1e-4;

/// Measures the training steps that `train` takes: CPU time, memory, and the share of the matrix product's limit; with --peers
/// against the same steps in PyTorch and JAX.
///
/// Contenders are given the same weights and batches, and their first losses are compared; then they run in turn, so that
/// other work on the machine slows everyone alike. Ratios are medians over rounds.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane bench
  WINDVANE_PYTHON=.venv/bin/python windvane bench --peers --size small --threads 1,2 --json

bench/README.md says how to install the peers.")]
pub(crate) struct Bench {
    /// Run the twins in PyTorch and JAX too, where Python (`WINDVANE_PYTHON`, else python3) has them
    #[arg(long)]
    peers: bool,
    /// Only this size
    #[arg(long, value_enum)]
    size: Option<SizeChoice>,
    /// Only this step
    #[arg(long, value_enum)]
    step: Option<StepChoice>,
    /// Numbers of threads to measure with, one after the other
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1",
          value_parser = bounds::count::<usize>(bounds::THREADS))]
    threads: Vec<usize>,
    /// Rounds in which every contender runs once
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Where our own steps run: cpu, vulkan, wgpu, cuda or metal
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
    /// Listed states as in the preset `standard`; networks with hidden width 256, batch 512, d = 100
    Small,
    /// Hidden width 1024, batch 1024, d = 150
    Paper,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum StepChoice {
    /// Belief encoder of listed states
    BeliefListed,
    /// Belief encoder over sets of transitions
    BeliefTransitions,
    /// Forward-backward on listed states
    FbListed,
    /// Forward-backward on observations, one head per action
    FbHeads,
    /// Forward-backward on observations, with an actor
    FbActor,
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
    /// CPU time against torch-eager in the same round; median over rounds.
    ratio: Option<f64>,
    /// Peak memory against torch-eager.
    memory_ratio: Option<f64>,
    /// Billions of multiplications and additions in the step's matrix products; known of ours only.
    gflop: Option<f64>,
    /// The share of the matrix product's limit that this is per CPU time.
    product_share: Option<f64>,
    /// Largest relative difference of the first three losses from ours.
    loss_gap: f64,
    /// CPU time of each round.
    #[serde(skip)]
    rounds: Vec<f64>,
}

/// What is measured at a time.
#[derive(Clone, Copy)]
struct Case {
    step: StepName,
    size: Size,
    threads: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(f, "{}, {}, {} thread{plural}", word(self.step), word(self.size), self.threads)
    }
}

/// The whole document.
#[derive(Serialize)]
struct Report {
    /// The limit: the best GFLOP/s that our matrix product of 512 x 512 reached between rounds, per CPU time.
    product_gflops: f64,
    rows: Vec<Row>,
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.worker {
            return worker::serve(self.chosen_step(), self.chosen_size(), self.threads[0], self.device);
        }
        // What cannot be is said before the first process starts.
        self.device.open()?;
        for &threads in &self.threads {
            Threads::new(threads)?;
        }
        let folder = tempfile::tempdir()?;
        let peers = if self.peers { peers::find(folder.path())? } else { Vec::new() };
        let mut report = Report { product_gflops: 0.0, rows: Vec::new() };
        for (step, size) in self.cases() {
            for &threads in &self.threads {
                self.measure(step, size, threads, &peers, folder.path(), &mut report)?;
            }
        }
        report.finish();
        if self.json {
            return output::json(&report);
        }
        report.show();
        Ok(())
    }

    fn chosen_step(&self) -> StepName {
        self.step.map_or(StepName::FbHeads, StepChoice::name)
    }

    fn chosen_size(&self) -> Size {
        self.size.map_or(Size::Small, SizeChoice::size)
    }

    /// Every step in every size, unless one was chosen.
    fn cases(&self) -> impl Iterator<Item = (StepName, Size)> {
        let sizes: &[SizeChoice] =
            self.size.as_ref().map_or(SizeChoice::value_variants(), std::slice::from_ref);
        let steps: &[StepChoice] =
            self.step.as_ref().map_or(StepChoice::value_variants(), std::slice::from_ref);
        let all = sizes.iter().flat_map(|size| steps.iter().map(|step| (step.name(), size.size())));
        all.filter(|(step, size)| step.comes_in(*size))
    }

    /// One case: all contenders in turn, round after round.
    fn measure(
        &self,
        step: StepName,
        size: Size,
        threads: usize,
        peers: &[Peer],
        folder: &Path,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let case = Case { step, size, threads };
        output::note(&format!("measuring {case}"));
        let file = folder.join("case.safetensors");
        if !peers.is_empty() {
            std::fs::write(&file, bench::twin_file(step, size, &DeviceName::Cpu.open()?)?.to_bytes()?)?;
        }
        let mut contenders = self.start(case, peers, &file)?;
        let mut rounds: Vec<Vec<Timing>> = vec![Vec::new(); contenders.len()];
        for _ in 0..self.rounds {
            for (contender, timings) in contenders.iter_mut().zip(&mut rounds) {
                timings.push(contender.run()?);
            }
            report.product_gflops = report.product_gflops.max(contenders[0].product_gflops()?);
        }
        let losses = contenders[0].losses.clone();
        let rows = contenders.into_iter().zip(rounds).map(|(contender, timings)| {
            let loss_gap = loss_gap(&contender.losses, &losses);
            let stack = contender.stack;
            Ok(Row::new(case, stack, timings, contender.finish()?, loss_gap))
        });
        let mut rows = rows.collect::<anyhow::Result<Vec<_>>>()?;
        compare(&mut rows);
        report.rows.append(&mut rows);
        Ok(())
    }

    /// Starts everyone whose first losses are ours; we come first.
    fn start(&self, case: Case, peers: &[Peer], file: &Path) -> anyhow::Result<Vec<Contender>> {
        let (step, size) = (word(case.step), word(case.size));
        let ours = Contender::ours(&step, &size, case.threads, self.device)?;
        let losses = ours.losses.clone();
        let mut contenders = vec![ours];
        for peer in peers {
            match Contender::peer(peer, &step, file, case.threads) {
                Ok(contender) => {
                    let (stack, theirs) = (contender.stack, &contender.losses);
                    let gap = loss_gap(theirs, &losses);
                    ensure!(gap < SAME_LOSS, "{case}: {stack} has other losses: {theirs:?}, ours {losses:?}");
                    contenders.push(contender);
                }
                Err(error) => output::note(&format!("{} does without {case}: {error:#}", peer.stack)),
            }
        }
        Ok(contenders)
    }
}

/// The largest relative difference of two contenders' first losses.
fn loss_gap(losses: &[f64], ours: &[f64]) -> f64 {
    let gaps = losses.iter().zip(ours).map(|(theirs, ours)| ((theirs - ours) / ours.abs().max(1e-9)).abs());
    gaps.fold(0.0, f64::max)
}

/// Sets the rows of one case against torch-eager, if it is among them.
fn compare(rows: &mut [Row]) {
    let Some(eager) = rows.iter().find(|row| row.stack == "torch-eager") else { return };
    let (rounds, peak) = (eager.rounds.clone(), eager.peak_mb);
    for row in rows {
        let mut ratios: Vec<f64> = row.rounds.iter().zip(&rounds).map(|(own, eager)| own / eager).collect();
        ratios.sort_by(f64::total_cmp);
        row.ratio = ratios.get(ratios.len() / 2).copied();
        row.memory_ratio = row.peak_mb.zip(peak).map(|(own, eager)| own / eager);
    }
}

impl Row {
    fn new(
        case: Case,
        stack: &'static str,
        mut timings: Vec<Timing>,
        peak_mb: Option<f64>,
        loss_gap: f64,
    ) -> Self {
        let rounds = timings.iter().map(|t| t.cpu_ms).collect();
        timings.sort_by(|a, b| a.cpu_ms.total_cmp(&b.cpu_ms));
        let Case { step, size, threads } = case;
        Self {
            step,
            size,
            stack,
            threads,
            cpu_ms: timings[0].cpu_ms,
            cpu_ms_median: timings[timings.len() / 2].cpu_ms,
            wall_ms: timings.iter().map(|t| t.wall_ms).fold(f64::INFINITY, f64::min),
            peak_mb,
            ratio: None,
            memory_ratio: None,
            gflop: timings[0].gflop,
            product_share: None,
            loss_gap,
            rounds,
        }
    }
}

impl Report {
    /// Sets every row against the limit, which is known only in the end.
    fn finish(&mut self) {
        for row in &mut self.rows {
            row.product_share = row.gflop.map(|gflop| gflop / row.cpu_ms * 1e3 / self.product_gflops);
        }
    }

    fn show(&self) {
        let or_dash =
            |x: Option<f64>, digits: usize| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.digits$}"));
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
        let header = [
            "step",
            "size",
            "stack",
            "threads",
            "cpu ms",
            "median",
            "wall ms",
            "ratio",
            "product share",
            "peak MB",
            "memory",
        ];
        output::say(&table::render(&header, &self.rows.iter().map(cells).collect::<Vec<_>>()));
        output::say(&format!(
            "\nratio and memory: against torch-eager; product share: of {:.0} GFLOP/s, our matrix product on one thread",
            self.product_gflops
        ));
    }
}

/// A name as the command line and the document spell it.
fn word(name: impl Serialize) -> String {
    serde_json::to_value(name).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

impl StepChoice {
    fn name(self) -> StepName {
        match self {
            Self::BeliefListed => StepName::BeliefListed,
            Self::BeliefTransitions => StepName::BeliefTransitions,
            Self::FbListed => StepName::FbListed,
            Self::FbHeads => StepName::FbHeads,
            Self::FbActor => StepName::FbActor,
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
