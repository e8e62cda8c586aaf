//! `windvane status`: how a sweep stands, from its files alone.

use crate::{interrupt, output};
use clap::Args;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use windvane::sweep::status::{self, Monitor, Standing, UnitStatus};

/// Time between two polls.
const POLL: Duration = Duration::from_secs(5);
/// Clears a terminal.
const CLEAR: &str = "\x1b[2J\x1b[H";
/// Waiting units that are named.
const NAMED: usize = 8;

/// Tells how a sweep stands: units done, running, waiting and failed, CPU-hours spent and left, when it will end.
///
/// Everything is read from the folder: it works on any machine that sees it, whoever runs the units, and changes nothing.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane status results/four-rooms
  windvane status results/four-rooms --watch
  windvane status results/four-rooms --json | jq .seconds_left")]
pub(crate) struct Status {
    /// The folder that `windvane reproduce` made
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Look again every five seconds until nothing is left to do
    #[arg(long)]
    watch: bool,
    /// Fail unless every unit is done
    #[arg(long)]
    check: bool,
    /// Print one JSON document; with --watch one a line
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.folder.is_dir(),
            "{}: is no folder; expected one that `windvane reproduce` made",
            self.folder.display()
        );
        let mut monitor = Monitor::new(&self.folder);
        let interrupt = if self.watch { Some(interrupt::flag()?) } else { None };
        loop {
            let status = monitor.poll()?;
            let over = status.running + status.waiting == 0;
            match (self.json, self.watch) {
                (true, true) => output::say(&serde_json::to_string(&status)?),
                (true, false) => output::json(&status)?,
                (false, true) => output::say(&format!("{CLEAR}{}", words(&status))),
                (false, false) => output::say(&words(&status)),
            }
            let stop = || interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed));
            if !self.watch || over || stop() {
                let missing = status.units.iter().filter(|unit| unit.standing != Standing::Done);
                let missing: Vec<&str> = missing.map(|unit| unit.unit.as_str()).collect();
                anyhow::ensure!(
                    !self.check || missing.is_empty(),
                    "{} of {} units are not done: {}",
                    missing.len(),
                    status.units.len(),
                    missing.join(", ")
                );
                return Ok(());
            }
            for _ in 0..20 {
                if !stop() {
                    std::thread::sleep(POLL / 20);
                }
            }
        }
    }
}

/// A status for people.
fn words(status: &status::Status) -> String {
    let status::Status { done, running, waiting, failed, .. } = status;
    let mut lines = vec![
        format!(
            "{}: {} units: {done} done, {running} running, {waiting} waiting, {failed} failed",
            status.folder.display(),
            status.units.len()
        ),
        format!(
            "CPU-hours: {:.2} spent, {}; {}",
            status.cpu_hours_spent,
            status
                .cpu_hours_left
                .map_or("left unknown yet".to_owned(), |left| format!("about {left:.2} left")),
            match status.seconds_left {
                Some(0.0) => "nothing left to do".to_owned(),
                Some(seconds) => format!("end in about {}", duration(seconds)),
                None => "end unknown: nothing is running, or nothing was measured yet".to_owned(),
            }
        ),
    ];
    let all = |standing| status.units.iter().filter(move |unit| unit.standing == standing);
    for unit in all(Standing::Running) {
        let silent = unit.seconds_silent.unwrap_or(0);
        // Signs of life come once a minute; a machine that is gone may keep its locks for a while.
        let silent =
            if silent > 180 { format!("  silent for {}", duration(silent as f64)) } else { String::new() };
        lines.push(format!("running  {}  {:.0}%{}{silent}", name(unit), 100.0 * unit.progress, place(unit)));
    }
    let tried = |unit: &&UnitStatus| unit.attempts > 0;
    for unit in all(Standing::Waiting).filter(tried).take(NAMED) {
        let why = unit.last_words.as_deref().unwrap_or("stopped and saved");
        lines.push(format!("waiting  {}  {:.0}%  {why}", name(unit), 100.0 * unit.progress));
    }
    for unit in all(Standing::Failed) {
        let why = unit.last_words.as_deref().unwrap_or("it said nothing");
        lines.push(format!(
            "FAILED   {}  after {} attempts{}: {why}",
            name(unit),
            unit.attempts,
            place(unit)
        ));
    }
    lines.join("\n")
}

fn name(unit: &UnitStatus) -> String {
    format!("{}/{}", unit.sweep, unit.unit)
}

fn place(unit: &UnitStatus) -> String {
    let host = unit.host.as_ref().map(|host| format!("  on {host}")).unwrap_or_default();
    host + &unit.job.as_ref().map(|job| format!(", job {job}")).unwrap_or_default()
}

/// A time for people.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}
