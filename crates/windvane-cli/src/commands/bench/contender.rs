//! One contender: a process of its own, so that its memory is its own; a line of input starts each round.

use super::peers::Peer;
use anyhow::{Context as _, anyhow};
use serde::Deserialize;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use windvane::device::DeviceName;

/// A round should last about this long: long enough for the clocks, short enough to take turns.
const ROUND_MS: f64 = 400.0;

/// A running contender.
pub(super) struct Contender {
    pub(super) stack: &'static str,
    /// Of the first three steps.
    pub(super) losses: Vec<f64>,
    /// Steps in a round; known after the first.
    steps: Option<usize>,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// One round: means over its steps.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Timing {
    pub(super) cpu_ms: f64,
    pub(super) wall_ms: f64,
    /// Billions of multiplications and additions in matrix products; only Windvane reports them.
    pub(super) gflop: Option<f64>,
}

#[derive(Deserialize)]
struct First {
    losses: Vec<f64>,
}

#[derive(Deserialize)]
struct Limit {
    product_gflops: f64,
}

#[derive(Deserialize)]
struct Last {
    peak_mb: Option<f64>,
}

impl Contender {
    /// Ourselves.
    pub(super) fn ours(step: &str, size: &str, threads: usize, device: DeviceName) -> anyhow::Result<Self> {
        let mut command = Command::new(crate::program::path()?);
        command.args(["bench", "--worker", "--step", step, "--size", size]);
        command.args(["--threads", &threads.to_string(), "--device", &device.to_string()]);
        Self::start("windvane", command)
    }

    /// A twin.
    pub(super) fn peer(peer: &Peer, step: &str, file: &Path, threads: usize) -> anyhow::Result<Self> {
        let mut command = Command::new(&peer.python);
        command
            .arg(&peer.script)
            .args(["--step", step, "--threads", &threads.to_string(), "--file"])
            .arg(file);
        if peer.compile {
            command.arg("--compile");
        }
        // What a twin's compiler has to say is of no interest unless it fails, and then its last line is.
        command.env("TORCH_LOGS", "-all").env("PYTHONWARNINGS", "ignore");
        Self::start(peer.stack, command)
    }

    fn start(stack: &'static str, mut command: Command) -> anyhow::Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().with_context(|| format!("{stack} could not be started"))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            unreachable!("both are pipes, as asked for above");
        };
        let output = BufReader::new(output);
        let mut contender = Self { stack, losses: Vec::new(), steps: None, process, input, output };
        contender.losses = contender.read::<First>()?.losses;
        Ok(contender)
    }

    /// Runs one round.
    pub(super) fn run(&mut self) -> anyhow::Result<Timing> {
        if self.steps.is_none() {
            // Twins that compile do so in their first steps; these settle how many steps make a round.
            let first = self.ask::<Timing>("run 2")?;
            self.steps = Some((ROUND_MS / first.cpu_ms).clamp(2.0, 20_000.0) as usize);
        }
        self.ask(&format!("run {}", self.steps.unwrap_or(1)))
    }

    /// What our matrix product reaches right now.
    pub(super) fn product_gflops(&mut self) -> anyhow::Result<f64> {
        Ok(self.ask::<Limit>("product")?.product_gflops)
    }

    /// Ends the process; its peak memory.
    pub(super) fn finish(mut self) -> anyhow::Result<Option<f64>> {
        let peak = self.ask::<Last>("peak")?.peak_mb;
        drop(self.input);
        self.process.wait()?;
        Ok(peak)
    }

    fn ask<T: for<'a> Deserialize<'a>>(&mut self, line: &str) -> anyhow::Result<T> {
        writeln!(self.input, "{line}").with_context(|| format!("{} has ended", self.stack))?;
        self.read()
    }

    fn read<T: for<'a> Deserialize<'a>>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            return Err(anyhow!("{} ended before it answered; its own words are above", self.stack));
        }
        serde_json::from_str(&line).with_context(|| format!("{} answered {line:?}", self.stack))
    }
}
