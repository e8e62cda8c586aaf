//! What units cost, as measured on those that are done.

use super::attempt::Attempts;
use super::manifest::{Manifest, REFERENCE, Unit};
use super::row;
use super::unit::Sweep;
use crate::error::LearnError;
use std::path::Path;

/// Measured CPU times of units.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    known: Vec<(Unit, f64)>,
}

impl Costs {
    /// The costs of all done units in a folder, of all its sweeps.
    pub fn measured(folder: &Path) -> Result<Self, LearnError> {
        let mut costs = Self::default();
        if !folder.is_dir() {
            return Ok(costs);
        }
        for manifest in Manifest::all(folder).unwrap_or_default() {
            let sweep = Sweep { folder: folder.to_owned(), manifest };
            for unit in &sweep.manifest.units {
                if sweep.is_done(unit)? {
                    costs.add(unit, spent(&sweep, unit)?);
                }
            }
        }
        Ok(costs)
    }

    /// Adds what a unit cost; nothing is learned from one that trained nothing.
    pub fn add(&mut self, unit: &Unit, cpu_seconds: f64) {
        if cpu_seconds > 0.0 {
            self.known.push((unit.clone(), cpu_seconds));
        }
    }

    /// What a unit costs, about: the mean of those with its setting and method, else of those with its method; nothing if
    /// there are none.
    pub fn of(&self, unit: &Unit) -> Option<f64> {
        let alike = self.mean(|known| (&known.setting, &known.method) == (&unit.setting, &unit.method));
        alike.or_else(|| self.mean(|known| known.method == unit.method))
    }

    /// As [`of`](Self::of), or the mean of all units that are trained.
    pub fn guess(&self, unit: &Unit) -> Option<f64> {
        let trained = || self.mean(|known| known.method != REFERENCE);
        self.of(unit).or_else(|| if unit.method == REFERENCE { None } else { trained() })
    }

    fn mean(&self, like: impl Fn(&Unit) -> bool) -> Option<f64> {
        let costs: Vec<f64> =
            self.known.iter().filter(|(unit, _)| like(unit)).map(|(_, cost)| *cost).collect();
        (!costs.is_empty()).then(|| costs.iter().sum::<f64>() / costs.len() as f64)
    }
}

/// CPU time that went into a unit: as its attempts say, else as its rows do.
pub(super) fn spent(sweep: &Sweep, unit: &Unit) -> Result<f64, LearnError> {
    let place = sweep.place(unit);
    let tried = Attempts::read(&place).cpu_seconds();
    if tried > 0.0 || !place.join(row::SCORES).exists() {
        return Ok(tried);
    }
    let (rows, _) = row::read(&place.join(row::SCORES))?;
    Ok(rows.first().map_or(0.0, |row| row.cpu_seconds))
}
