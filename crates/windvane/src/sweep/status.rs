//! How a sweep's folder stands, from its files alone.

use super::attempt::{Attempts, now};
use super::cost::{Costs, spent};
use super::manifest::{Manifest, Unit};
use super::unit::Sweep;
use crate::error::LearnError;
use crate::train::folder::Lock;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a unit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Its rows are there.
    Done,
    /// Someone holds its lock.
    Running,
    /// Nobody has begun it, or it was stopped or killed and can go on.
    Waiting,
    /// It failed, and nobody tries again unless asked to.
    Failed,
}

/// One unit.
#[derive(Clone, Debug, Serialize)]
pub struct UnitStatus {
    /// Its sweep.
    pub sweep: String,
    /// Its name.
    pub unit: String,
    /// Where it stands.
    pub standing: Standing,
    /// How far it is, from 0 to 1.
    pub progress: f64,
    /// How often it was begun.
    pub attempts: usize,
    /// CPU time spent.
    pub cpu_seconds: f64,
    /// CPU time left, about.
    pub cpu_seconds_left: Option<f64>,
    /// Where it was begun last.
    pub host: Option<String>,
    /// The scheduler's name of the job that began it last.
    pub job: Option<String>,
    /// Seconds since its last sign of life; signs come once a minute.
    pub seconds_silent: Option<u64>,
    /// What went wrong last, if anything did.
    pub last_words: Option<String>,
    /// CPU time a second of the attempt that goes on.
    #[serde(skip)]
    rate: f64,
}

/// All units of a folder.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The folder.
    pub folder: PathBuf,
    /// Units that are done.
    pub done: usize,
    /// Units that someone works on.
    pub running: usize,
    /// Units that can be begun.
    pub waiting: usize,
    /// Units that failed for good.
    pub failed: usize,
    /// CPU-hours spent.
    pub cpu_hours_spent: f64,
    /// CPU-hours left, about; nothing while too little is known.
    pub cpu_hours_left: Option<f64>,
    /// Seconds until the last unit is done, about, if as many go on side by side as now.
    pub seconds_left: Option<f64>,
    /// Every unit.
    pub units: Vec<UnitStatus>,
}

/// Looks at a folder again and again; what is done is read once.
#[derive(Debug)]
pub struct Monitor {
    folder: PathBuf,
    /// CPU time of done units.
    done: BTreeMap<(String, String), f64>,
}

impl Monitor {
    /// Someone who looks at a folder that `windvane reproduce` made.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), done: BTreeMap::new() }
    }

    /// How things stand now.
    pub fn poll(&mut self) -> Result<Status, LearnError> {
        let (mut units, mut costs) = (Vec::new(), Costs::default());
        let mut left: Vec<(usize, Unit)> = Vec::new();
        for manifest in Manifest::all(&self.folder)? {
            let sweep = Sweep { folder: self.folder.clone(), manifest };
            for unit in &sweep.manifest.units {
                let status = self.unit(&sweep, unit)?;
                match status.standing {
                    Standing::Done => costs.add(unit, status.cpu_seconds),
                    _ => left.push((units.len(), unit.clone())),
                }
                units.push(status);
            }
        }
        for (index, unit) in left {
            let status = &mut units[index];
            let own = (status.progress > 0.05).then(|| status.cpu_seconds / status.progress);
            let whole = costs.of(&unit).or(own).or_else(|| costs.guess(&unit));
            status.cpu_seconds_left = whole.map(|whole| whole * (1.0 - status.progress));
        }
        Ok(Status::of(&self.folder, units))
    }

    fn unit(&mut self, sweep: &Sweep, unit: &Unit) -> Result<UnitStatus, LearnError> {
        let place = sweep.place(unit);
        let attempts = Attempts::read(&place);
        let key = (sweep.manifest.sweep.clone(), unit.name());
        if !self.done.contains_key(&key) && sweep.is_done(unit)? {
            self.done.insert(key.clone(), spent(sweep, unit)?);
        }
        let done = self.done.get(&key).copied();
        let standing = match done {
            Some(_) => Standing::Done,
            None if Lock::is_held(&place.join("lock"))? => Standing::Running,
            None if attempts.given_up() => Standing::Failed,
            None => Standing::Waiting,
        };
        let last = attempts.0.last();
        let rate = match last.map(|last| (last.cpu_seconds, last.seen.saturating_sub(last.began))) {
            Some((cpu, wall)) if wall > 0 => cpu / wall as f64,
            _ => 1.0, // too young to have been measured
        };
        let unended = standing != Standing::Running && standing != Standing::Done;
        Ok(UnitStatus {
            sweep: sweep.manifest.sweep.clone(),
            unit: unit.name(),
            standing,
            progress: if done.is_some() { 1.0 } else { sweep.progress(unit)? },
            attempts: attempts.0.len(),
            cpu_seconds: done.unwrap_or_else(|| attempts.cpu_seconds()),
            cpu_seconds_left: done.map(|_| 0.0),
            host: last.map(|last| last.host.clone()),
            job: last.and_then(|last| last.job.clone()),
            seconds_silent: last.map(|last| now().saturating_sub(last.seen)),
            last_words: unended.then(|| attempts.last_words()).flatten(),
            rate,
        })
    }
}

impl Status {
    fn of(folder: &Path, units: Vec<UnitStatus>) -> Self {
        let all = |standing| units.iter().filter(move |unit| unit.standing == standing);
        let count = |standing| all(standing).count();
        // Those that failed are not waited for.
        let to_do = || all(Standing::Running).chain(all(Standing::Waiting));
        let known: Option<Vec<f64>> = to_do().map(|unit| unit.cpu_seconds_left).collect();
        let left = known.as_ref().map(|left| left.iter().fold(0.0, |sum, more| sum + more));
        let longest = known.iter().flatten().copied().fold(0.0, f64::max);
        let rate: f64 = all(Standing::Running).map(|unit| unit.rate).sum();
        let each = rate / (count(Standing::Running) as f64).max(1.0);
        let seconds_left = match left {
            Some(0.0) => Some(0.0),
            Some(left) if rate > 0.0 => Some((left / rate).max(longest / each)),
            _ => None,
        };
        Self {
            folder: folder.to_owned(),
            done: count(Standing::Done),
            running: count(Standing::Running),
            waiting: count(Standing::Waiting),
            failed: count(Standing::Failed),
            cpu_hours_spent: units.iter().map(|unit| unit.cpu_seconds).sum::<f64>() / 3600.0,
            cpu_hours_left: left.map(|left| left / 3600.0),
            seconds_left,
            units,
        }
    }
}
