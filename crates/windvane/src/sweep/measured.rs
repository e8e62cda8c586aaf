//! The paper's whole table as [work](super::simulate::Work): every sweep of an environment, with costs measured in a folder.

use super::ablation::{self, ABLATIONS};
use super::manifest::{Manifest, REFERENCE, Unit};
use super::paths::CurvePoint;
use super::row::Found;
use super::simulate::{Prints, Product, Work};
use super::unit::{CURVE, Sweep};
use crate::config::Plan;
use crate::error::LearnError;
use crate::methods::{self, Method};
use std::path::Path;

/// CPU seconds of what rows do not tell, as measured on the standard presets: collecting data, scoring one context length of
/// one mode, the reference policies at one context length (2-core virtual machine, 2026).
const UNTOLD: [(&str, f64, f64, f64); 3] =
    [("doors", 0.2, 1.0, 0.1), ("four-rooms", 0.3, 2.8, 0.2), ("pointmass", 0.2, 0.9, 0.1)];

/// What each thing leaves in the folder, as measured on the same: data, a belief, an agent, rows. A checkpoint (0.3 MB of a
/// belief, 16 MB of an agent) is written twenty times.
const PRINTS: [Prints; 4] = [
    Prints { files: 8.0, stored: 1.3e7, written: 1.3e7 },
    Prints { files: 4.0, stored: 3e5, written: 6e6 },
    Prints { files: 5.0, stored: 1.6e7, written: 3.3e8 },
    Prints { files: 5.0, stored: 1e5, written: 1e5 },
];

/// CPU seconds of one trained unit, as its rows and its curve tell.
#[derive(Clone, Debug)]
struct Known {
    unit: Unit,
    belief: f64,
    agent: f64,
}

/// The work of an environment's whole table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The environment.
    pub env: String,
    /// All units.
    pub work: Vec<Work>,
    /// Units whose setting and method were measured; the others have the mean of their method, or of all.
    pub measured: usize,
    /// CPU-hours of everything, each thing made once.
    pub cpu_hours: f64,
}

impl Table {
    /// The main experiment and all ablations with `seeds` seeds, with the costs of the units done in `folder`.
    pub fn of(folder: &Path, seeds: u64) -> Result<Self, LearnError> {
        let known = known(folder)?;
        let env = Found::below(folder)?.rows[0].1.env.clone();
        let base = Plan::preset(&env, "standard")?;
        let mut table = Self { env: env.clone(), ..Self::default() };
        for name in std::iter::once(ablation::MAIN).chain(ABLATIONS.iter().map(|ablation| ablation.name)) {
            let settings = ablation::settings(name, "standard", &base)?;
            let manifest = Manifest::new(
                name,
                &env,
                settings,
                &ablation::usual_methods(name, &base.clone().value()),
                0..seeds,
            )?;
            let sweep = Sweep { folder: folder.to_owned(), manifest };
            for unit in &sweep.manifest.units {
                table.add(&sweep, unit, &known)?;
            }
        }
        let mut made = std::collections::BTreeMap::new();
        for product in table.work.iter().flat_map(|work| &work.needs) {
            made.entry(&product.name).or_insert(product.seconds);
        }
        table.cpu_hours = made.values().sum::<f64>() / 3600.0;
        Ok(table)
    }

    fn add(&mut self, sweep: &Sweep, unit: &Unit, known: &[Known]) -> Result<(), LearnError> {
        let untold = UNTOLD.iter().find(|(env, ..)| *env == self.env).unwrap_or(&UNTOLD[1]);
        let &(_, collecting, scoring, reference) = untold;
        let lengths = sweep.manifest.setting(unit)?.context_steps.len() as f64;
        let [data, belief, agent, rows] = PRINTS;
        let product =
            |path: &Path, seconds, prints| Product { name: path.display().to_string(), seconds, prints };
        let place = sweep.place(unit);
        let Some(run) = sweep.run_of(unit)? else {
            self.work.push(Work { needs: vec![product(&place, reference * lengths, rows)] });
            return Ok(());
        };
        let alike = |k: &&Known| (&k.unit.setting, &k.unit.method) == (&unit.setting, &unit.method);
        let here = known.iter().any(|k| alike(&k));
        self.measured += usize::from(here);
        let agent_seconds = mean(known.iter().filter(|k| alike(k)), |k| k.agent)
            .or_else(|| mean(known.iter().filter(|k| k.unit.method == unit.method), |k| k.agent))
            .or_else(|| mean(known.iter(), |k| k.agent));
        let believed = known.iter().filter(|k| k.belief > 0.0);
        let belief_seconds = mean(believed.clone().filter(|k| k.unit.setting == unit.setting), |k| k.belief)
            .or_else(|| mean(believed, |k| k.belief));
        let mut needs = vec![product(&run.data, collecting, data)];
        if run.needs_belief() {
            needs.push(product(&run.belief, belief_seconds.unwrap_or(0.0), belief));
        }
        needs.push(product(&sweep.run_folder(unit)?, agent_seconds.unwrap_or(0.0), agent));
        let exact = Unit { method: REFERENCE.to_owned(), ..unit.clone() };
        needs.push(product(&sweep.place(&exact), reference * lengths, rows));
        let modes = if run.method.believes() { 2.0 } else { 1.0 };
        needs.push(product(&place, scoring * modes * lengths, rows));
        self.work.push(Work { needs });
        Ok(())
    }
}

fn mean<'a>(known: impl Iterator<Item = &'a Known>, of: impl Fn(&Known) -> f64) -> Option<f64> {
    let values: Vec<f64> = known.map(of).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// What the done units of a folder cost.
fn known(folder: &Path) -> Result<Vec<Known>, LearnError> {
    let mut all: Vec<Known> = Vec::new();
    for (sweep, row) in Found::below(folder)?.rows {
        let unit = Unit { setting: row.setting, method: row.method, seed: row.seed };
        if row.cpu_seconds == 0.0 || all.iter().any(|known| known.unit == unit) {
            continue; // a reference policy, or another row of the same unit
        }
        let curve = folder.join(sweep).join(unit.name()).join(CURVE);
        let curve = std::fs::read_to_string(curve).unwrap_or_default();
        let last = curve.lines().rev().find_map(|line| serde_json::from_str::<CurvePoint>(line).ok());
        let believes = methods::find(&unit.method).is_ok_and(Method::believes);
        let agent = match last {
            Some(last) if believes => last.cpu_seconds.min(row.cpu_seconds),
            _ => row.cpu_seconds,
        };
        all.push(Known { belief: row.cpu_seconds - agent, agent, unit });
    }
    if all.is_empty() {
        let problem = "no trained unit is done in it; expected one with measured costs";
        return Err(LearnError::run(folder, problem));
    }
    Ok(all)
}
