//! Doing all units of a sweep, several at once, each in a process of its own.

use crate::interrupt::{self, Stopped};
use crate::output;
use crate::progress::duration;
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use windvane::device::DeviceName;
use windvane::sweep::manifest::REFERENCE;
use windvane::sweep::unit::State;
use windvane::sweep::{Sweep, Unit};

/// Time between two polls.
const POLL: Duration = Duration::from_millis(250);
/// Looks between two measurements of progress.
const SELDOM: u32 = 8;
/// What children get to save when everything is stopped; killed, they lose what came after their last checkpoint.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two plain lines of progress where there is no bar.
const BETWEEN: Duration = Duration::from_secs(30);

/// A unit that is being done here.
struct Job {
    index: usize,
    child: Child,
    begun: Instant,
}

/// Where each unit stands, and how fast things go.
struct Board<'a> {
    sweep: &'a Sweep,
    done: Vec<bool>,
    failed: Vec<bool>,
    begun: Instant,
    /// The sum of all progress when this process began.
    before: f64,
    bar: ProgressBar,
    /// When progress was last said in a plain line.
    said: Instant,
}

/// Does all units of the manifest at `path`; returns the logs of those that failed.
pub(super) fn do_all(
    sweep: &Sweep,
    path: &Path,
    jobs: usize,
    threads: usize,
    device: DeviceName,
) -> anyhow::Result<Vec<String>> {
    let interrupt = interrupt::flag()?;
    let mut board = Board::new(sweep)?;
    let mut running: Vec<Job> = Vec::new();
    let mut waiting = false;
    for poll in 0_u32.. {
        board.reap(&mut running)?;
        let stop = interrupt.load(Ordering::Relaxed);
        while !stop && running.len() < jobs {
            let Some(index) = board.next(&running)? else { break };
            running.push(spawn(sweep, path, index, threads, device)?);
            // It takes its locks first; whoever looks next must see them.
            std::thread::sleep(POLL);
        }
        let left = board.left();
        if left == 0 || (stop && running.is_empty()) {
            break;
        }
        if running.is_empty() && !waiting {
            waiting = true;
            output::note(&format!("{left} units are being done elsewhere; waiting for them"));
        }
        if stop {
            stop_all(&mut running)?;
        }
        if poll % SELDOM == 0 {
            board.show(&running)?;
        }
        std::thread::sleep(POLL);
    }
    board.bar.finish_and_clear();
    anyhow::ensure!(!interrupt.load(Ordering::Relaxed), Stopped);
    let failed = (0..board.failed.len()).filter(|&i| board.failed[i]);
    Ok(failed.map(|i| log_of(sweep, i).display().to_string()).collect())
}

fn log_of(sweep: &Sweep, index: usize) -> std::path::PathBuf {
    sweep.place(&sweep.manifest.units[index]).join("log.txt")
}

fn spawn(
    sweep: &Sweep,
    path: &Path,
    index: usize,
    threads: usize,
    device: DeviceName,
) -> anyhow::Result<Job> {
    let log = log_of(sweep, index);
    std::fs::create_dir_all(log.parent().unwrap_or(Path::new(".")))?;
    let file = File::create(&log).with_context(|| log.display().to_string())?;
    let child = Command::new(crate::program::path()?)
        .args(["run", "--manifest"])
        .arg(path)
        .args(["--index", &index.to_string(), "--threads", &threads.to_string()])
        .args(["--device", &device.to_string()])
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .context("starting a unit")?;
    Ok(Job { index, child, begun: Instant::now() })
}

/// Tells all children to stop and waits for them; those who take too long are killed, which their work survives.
fn stop_all(running: &mut Vec<Job>) -> anyhow::Result<()> {
    let begun = Instant::now();
    running.iter().for_each(|job| ask_to_stop(&job.child));
    while !running.is_empty() {
        for place in (0..running.len()).rev() {
            if begun.elapsed() > PATIENCE {
                running[place].child.kill()?;
            }
            if running[place].child.try_wait()?.is_some() {
                running.swap_remove(place);
            }
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Sends SIGTERM; one that has ended needs none. Elsewhere than on Unix only patience helps.
#[cfg_attr(not(unix), expect(unused_variables, reason = "there are no signals"))]
fn ask_to_stop(child: &Child) {
    #[cfg(unix)]
    if let Ok(id) = i32::try_from(child.id()) {
        use nix::sys::signal::{Signal, kill};
        let _ = kill(nix::unistd::Pid::from_raw(id), Signal::SIGTERM);
    }
}

impl<'a> Board<'a> {
    fn new(sweep: &'a Sweep) -> anyhow::Result<Self> {
        let units = &sweep.manifest.units;
        let done = units.iter().map(|u| Ok(sweep.state(u)? == State::Done)).collect::<anyhow::Result<_>>()?;
        let bar = ProgressBar::new(1000);
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {msg}") {
            bar.set_style(style);
        }
        let failed = vec![false; units.len()];
        let begun = Instant::now();
        let mut board = Self { sweep, done, failed, begun, before: 0.0, bar, said: begun };
        board.before = board.progress()?;
        Ok(board)
    }

    /// Units that are neither done nor failed.
    fn left(&self) -> usize {
        self.done.iter().zip(&self.failed).filter(|(done, failed)| !**done && !**failed).count()
    }

    /// The first unit that nobody is doing.
    fn next(&mut self, running: &[Job]) -> anyhow::Result<Option<usize>> {
        for index in 0..self.done.len() {
            if self.done[index] || self.failed[index] || running.iter().any(|job| job.index == index) {
                continue;
            }
            match self.sweep.state(&self.sweep.manifest.units[index])? {
                State::Free => return Ok(Some(index)),
                State::Done => self.done[index] = true,
                State::Busy => {}
            }
        }
        Ok(None)
    }

    /// Takes in the units that ended.
    fn reap(&mut self, running: &mut Vec<Job>) -> anyhow::Result<()> {
        for place in (0..running.len()).rev() {
            let Some(status) = running[place].child.try_wait()? else { continue };
            let Job { index, begun, .. } = running.swap_remove(place);
            let unit = &self.sweep.manifest.units[index];
            let seconds = begun.elapsed().as_secs();
            if !status.success() {
                self.failed[index] = !interrupt::asked();
                if self.failed[index] {
                    self.say(&format!(
                        "{} FAILED after {seconds} s: {}",
                        unit.name(),
                        last_words(self.sweep, index)
                    ));
                }
            } else if self.sweep.state(unit)? == State::Done {
                self.done[index] = true;
                let all = self.done.len();
                let count = self.done.iter().filter(|done| **done).count();
                let left = self.time_left()?;
                self.say(&format!("[{count}/{all}] {} done in {seconds} s; {left}", unit.name()));
            }
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| output::note(text));
    }

    /// The work of all units.
    fn all(&self) -> f64 {
        self.sweep.manifest.units.iter().map(weight).sum()
    }

    /// The sum of all units' progress.
    fn progress(&self) -> anyhow::Result<f64> {
        let mut sum = 0.0;
        for (unit, done) in self.sweep.manifest.units.iter().zip(&self.done) {
            sum += weight(unit) * if *done { 1.0 } else { self.sweep.progress(unit)? };
        }
        Ok(sum)
    }

    fn time_left(&self) -> anyhow::Result<String> {
        let now = self.progress()?;
        let gained = now - self.before;
        if gained < 0.02 {
            return Ok("time left unknown yet".to_owned());
        }
        let seconds = self.begun.elapsed().as_secs_f64() / gained * (self.all() - now);
        Ok(format!("about {} left", duration(seconds)))
    }

    fn show(&mut self, running: &[Job]) -> anyhow::Result<()> {
        let mut parts = Vec::new();
        for job in running {
            let unit = &self.sweep.manifest.units[job.index];
            parts.push(format!("{} {:.0}%", unit.name(), 100.0 * self.sweep.progress(unit)?));
        }
        let count = self.done.iter().filter(|done| **done).count();
        let share = self.progress()? / self.all().max(1e-9);
        self.bar.set_position((1000.0 * share) as u64);
        let left = self.time_left()?;
        let words = format!("{count}/{} units  {}  {left}", self.done.len(), parts.join("  "));
        if self.bar.is_hidden() && self.said.elapsed() > BETWEEN {
            self.said = Instant::now();
            output::note(&words);
        }
        self.bar.set_message(words);
        Ok(())
    }
}

/// How much work a unit is, about: reference policies are quick.
fn weight(unit: &Unit) -> f64 {
    if unit.method == REFERENCE { 0.03 } else { 1.0 }
}

/// The last line that a unit wrote.
fn last_words(sweep: &Sweep, index: usize) -> String {
    let text = std::fs::read_to_string(log_of(sweep, index)).unwrap_or_default();
    text.trim_end().lines().last().unwrap_or("it said nothing").to_owned()
}
