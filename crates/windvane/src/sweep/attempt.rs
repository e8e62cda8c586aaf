//! Who worked on a unit, when, and how it ended: a small file beside its rows.
//!
//! A process that is killed cannot say so. Its attempt stays without an end, and as nobody holds the unit's lock any more,
//! everyone can tell. While a unit is worked on its attempt is written anew once a minute, with the CPU time so far.

use crate::error::LearnError;
use crate::train::checkpoint::write_atomically;
use crate::train::folder::host;
use cpu_time::ProcessTime;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The file of a unit's attempts.
pub const ATTEMPTS: &str = "attempts.json";
/// Time between two signs of life.
const BEAT: Duration = Duration::from_mins(1);

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The rows are written.
    Done,
    /// It was asked to stop, or others were making what it needs.
    Stopped,
    /// With an error.
    Failed,
}

/// One attempt at a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The machine.
    pub host: String,
    /// The process there.
    pub pid: u32,
    /// The scheduler's name of the job: `123_4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Gradient steps in its checkpoints when it began.
    pub steps: u64,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// The last sign of life.
    pub seen: u64,
    /// CPU time until then.
    pub cpu_seconds: f64,
    /// How it ended; nothing while it goes on, or if it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<How>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It failed, and no other attempt follows on its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
}

/// All attempts at a unit, in order; only who holds its lock writes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempts(pub Vec<Attempt>);

impl Attempts {
    /// The attempts in a unit's folder; none if nobody tried, or if the file is of another program.
    pub fn read(place: &Path) -> Self {
        // On NFS a file that is replaced while it is read may turn stale: look again.
        let look = |_| Some(serde_json::from_str(&std::fs::read_to_string(place.join(ATTEMPTS)).ok()?));
        (0..3).filter_map(look).find_map(Result::ok).unwrap_or_default()
    }

    /// CPU time of all attempts, as far as it is known.
    pub fn cpu_seconds(&self) -> f64 {
        // A sum of nothing is -0, which would be printed.
        self.0.iter().map(|attempt| attempt.cpu_seconds).sum::<f64>() + 0.0
    }

    /// Attempts that began with so many gradient steps, failed or were killed, and so got no further.
    pub fn fruitless(&self, steps: u64) -> usize {
        let bad = |attempt: &&Attempt| matches!(attempt.how, None | Some(How::Failed));
        self.0.iter().filter(bad).filter(|attempt| attempt.steps == steps).count()
    }

    /// The last error, or that the last attempt was killed.
    pub fn last_words(&self) -> Option<String> {
        let last = self.0.iter().rev().find(|attempt| attempt.how != Some(How::Stopped))?;
        match last.how {
            Some(How::Failed) => last.error.clone(),
            None => Some(format!("killed on {}, process {}", last.host, last.pid)),
            _ => None,
        }
    }

    /// Whether the unit is not tried again on its own.
    pub fn given_up(&self) -> bool {
        self.0.last().is_some_and(|attempt| attempt.given_up)
    }

    /// Notes in a unit's folder that it is not tried again on its own.
    pub(super) fn give_up(place: &Path) -> Result<(), LearnError> {
        let mut attempts = Self::read(place);
        if let Some(last) = attempts.0.last_mut() {
            last.given_up = true;
        }
        write(&place.join(ATTEMPTS), &attempts)
    }

    /// Forgets the attempts in a unit's folder, so that it is tried again.
    pub fn forget(place: &Path) -> Result<(), LearnError> {
        let path = place.join(ATTEMPTS);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(LearnError::io(&path, "removing")(e)),
            _ => Ok(()),
        }
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Writes an attempt while it goes on.
#[derive(Debug)]
pub(super) struct Recorder {
    end: Sender<(How, Option<String>)>,
    thread: JoinHandle<Result<(), LearnError>>,
}

impl Recorder {
    /// Adds an attempt to those in a unit's folder.
    pub(super) fn begin(place: &Path, mut attempts: Attempts, steps: u64) -> Result<Self, LearnError> {
        let var = |name: &str| std::env::var(name).ok();
        let task = || Some(format!("{}_{}", var("SLURM_ARRAY_JOB_ID")?, var("SLURM_ARRAY_TASK_ID")?));
        let (began, job) = (now(), task().or_else(|| var("SLURM_JOB_ID")));
        let (host, pid) = (host(), std::process::id());
        let (seen, cpu_seconds, how, error, given_up) = (began, 0.0, None, None, false);
        attempts.0.push(Attempt { host, pid, job, steps, began, seen, cpu_seconds, how, error, given_up });
        let path = place.join(ATTEMPTS);
        write(&path, &attempts)?;
        let (end, ended) = channel::<(How, Option<String>)>();
        let clock = ProcessTime::now();
        let beat = move || {
            loop {
                let ended = ended.recv_timeout(BEAT);
                if let Some(last) = attempts.0.last_mut() {
                    last.seen = now();
                    last.cpu_seconds = (clock.elapsed().as_secs_f64() * 1e3).round() / 1e3;
                    if let Ok((how, error)) = &ended {
                        (last.how, last.error) = (Some(*how), error.clone());
                    }
                }
                match (ended, write(&path, &attempts)) {
                    // A beat that could not be written is followed by others.
                    (Err(RecvTimeoutError::Timeout), _) => {}
                    (_, written) => return written,
                }
            }
        };
        Ok(Self { end, thread: std::thread::spawn(beat) })
    }

    /// The attempt ended.
    pub(super) fn end(self, how: How, error: Option<String>) -> Result<(), LearnError> {
        // The thread lives until it receives this.
        let _ = self.end.send((how, error));
        self.thread.join().unwrap_or(Ok(()))
    }
}

fn write(path: &Path, attempts: &Attempts) -> Result<(), LearnError> {
    let text = serde_json::to_string_pretty(attempts).map_err(|e| LearnError::run(path, e.to_string()))?;
    write_atomically(path, text.as_bytes())
}
