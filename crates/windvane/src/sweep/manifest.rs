//! What a sweep is made of.

use super::ablation::{self, ABLATIONS};
use crate::config::Plan;
use crate::error::LearnError;
use crate::eval::EvalConfig;
use crate::methods;
use crate::train::checkpoint::write_atomically;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use windvane_world::Start;
use xxhash_rust::xxh3::xxh3_64;

/// Layout version of a manifest.
const VERSION: u32 = 1;

/// The "method" of the unit in which the reference policies play.
pub const REFERENCE: &str = "reference";

/// Settings that are younger than rows in folders of results, and the values at which everything is as before them. They are left out
/// of hashes, so that those rows stay what they are.
const LATER: [(&str, &str); 7] = [
    ("encoder", "\"states\""),
    ("hindsight_states", "1"),
    ("centred_goals", "false"),
    ("bc_hindsight", "0.0"),
    ("reward_sharpness", "0.0"),
    ("goal_evidence", "false"),
    ("thin", "0.0"),
];

/// What of a sweep's folder does not belong under version control: all but rows, manifests, figures and report.
const IGNORED: &str = "/data\n/beliefs\n/runs\nlock\n*.lock\nlog.txt\nattempts.json\n/slurm\n*.partial\n";

/// Everything a sweep runs. Units keep their numbers when others are added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Layout version.
    pub version: u32,
    /// The sweep's name: `main`, or that of an ablation.
    pub sweep: String,
    /// The environment.
    pub env: String,
    /// The settings that are compared.
    pub settings: Vec<Setting>,
    /// The runs.
    pub units: Vec<Unit>,
}

/// One way of training and scoring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The preset's name, or what is varied and its value: `kappa=50`.
    pub name: String,
    /// All of it.
    pub plan: Plan,
    /// Lengths of the context that scores are taken after.
    pub context_steps: Vec<usize>,
    /// Where the context begins, if not where the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_start: Option<Start>,
}

/// One run: done once, on its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// The name of its setting.
    pub setting: String,
    /// The method's name, or [`REFERENCE`].
    pub method: String,
    /// The seed.
    pub seed: u64,
}

impl Setting {
    /// Eight digits that tell these settings from all others.
    pub fn hash(&self) -> String {
        let text = text_of(&self.plan);
        digits(
            &LATER.iter().fold(text, |text, (name, usual)| text.replace(&format!("\"{name}\":{usual},"), "")),
        )
    }

    /// The plan's evaluation, with the context that this setting asks for, of `context_steps` steps.
    pub(crate) fn eval_after(&self, context_steps: usize) -> EvalConfig {
        let eval = self.plan.eval;
        EvalConfig { context_steps, context_start: self.context_start.unwrap_or(eval.context_start), ..eval }
    }
}

impl Unit {
    /// Its folder below the sweep's.
    pub fn name(&self) -> String {
        format!("{}/{}-{}", self.setting, self.method, self.seed)
    }
}

/// Eight digits that tell a value from all others.
pub(crate) fn hash_of(value: &impl Serialize) -> String {
    digits(&text_of(value))
}

fn text_of(value: &impl Serialize) -> String {
    // Plans and parts of plans have no keys that JSON cannot write.
    serde_json::to_string(value).unwrap_or_default()
}

fn digits(text: &str) -> String {
    format!("{:08x}", xxh3_64(text.as_bytes()) >> 32)
}

impl Manifest {
    /// All methods and the reference policies with all `seeds` in all settings, seed by seed.
    pub fn new(
        sweep: &str,
        env: &str,
        settings: Vec<Setting>,
        methods: &[String],
        seeds: Range<u64>,
    ) -> Result<Self, LearnError> {
        let bad = |origin: &str, problem: String| LearnError::Config { origin: origin.to_owned(), problem };
        if methods.is_empty() || settings.is_empty() {
            return Err(bad("--methods", "nothing is selected; expected at least one method".to_owned()));
        }
        if seeds.is_empty() {
            return Err(bad("--seeds", "0 seeds are no experiment; expected at least 1".to_owned()));
        }
        methods.iter().try_for_each(|name| methods::find(name).map(drop))?;
        let mut units = Vec::new();
        for seed in seeds {
            for setting in &settings {
                for method in std::iter::once(REFERENCE).chain(methods.iter().map(String::as_str)) {
                    let unit = Unit { setting: setting.name.clone(), method: method.to_owned(), seed };
                    if !units.contains(&unit) {
                        units.push(unit);
                    }
                }
            }
        }
        Ok(Self { version: VERSION, sweep: sweep.to_owned(), env: env.to_owned(), settings, units })
    }

    /// All manifests in a folder, by name.
    pub fn all(folder: &Path) -> Result<Vec<Self>, LearnError> {
        let entries = std::fs::read_dir(folder).map_err(LearnError::io(folder, "looking for manifests"))?;
        let names = std::iter::once(ablation::MAIN).chain(ABLATIONS.iter().map(|ablation| ablation.name));
        let names: Vec<PathBuf> = names.map(|name| Self::path(folder, name)).collect();
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| names.contains(path));
        paths.sort();
        if paths.is_empty() {
            let problem = "no manifest in it; expected a folder that `windvane reproduce` made";
            return Err(LearnError::run(folder, problem));
        }
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// Where the manifest of a sweep is.
    pub fn path(folder: &Path, sweep: &str) -> PathBuf {
        folder.join(format!("{sweep}.json"))
    }

    /// Reads a manifest.
    pub fn read(path: &Path) -> Result<Self, LearnError> {
        let text = std::fs::read_to_string(path).map_err(LearnError::io(path, "reading the manifest"))?;
        let manifest: Self = serde_json::from_str(&text)
            .map_err(|e| LearnError::run(path, format!("not a manifest of `windvane reproduce`: {e}")))?;
        if manifest.version != VERSION {
            let problem = format!("manifest version {}; this program reads {VERSION}", manifest.version);
            return Err(LearnError::run(path, problem));
        }
        Ok(manifest)
    }

    /// What is there already in the folder, with this manifest added to it; its settings must be the same.
    pub fn merged(mut self, folder: &Path) -> Result<Self, LearnError> {
        let path = Self::path(folder, &self.sweep);
        if path.exists() {
            let mut there = Self::read(&path)?;
            let other = |setting: &&Setting| {
                there.env != self.env
                    || there.settings.iter().any(|old| old.name == setting.name && old != *setting)
            };
            if let Some(setting) = self.settings.iter().find(other) {
                let problem = format!(
                    "holds another sweep of {} (\"{}\" with other settings); choose another folder",
                    there.env, setting.name
                );
                return Err(LearnError::run(&path, problem));
            }
            let known = |s: &Setting, there: &Self| there.settings.iter().any(|old| old.name == s.name);
            let news: Vec<Setting> = self.settings.into_iter().filter(|s| !known(s, &there)).collect();
            there.settings.extend(news);
            let news: Vec<Unit> = self.units.into_iter().filter(|u| !there.units.contains(u)).collect();
            there.units.extend(news);
            self = there;
        }
        Ok(self)
    }

    /// Writes the manifest into the folder of its sweep, [merged](Self::merged) with one that is there already.
    pub fn write(self, folder: &Path) -> Result<Self, LearnError> {
        let path = Self::path(folder, &self.sweep);
        let merged = self.merged(folder)?;
        std::fs::create_dir_all(folder).map_err(LearnError::io(folder, "making the folder"))?;
        write_atomically(&folder.join(".gitignore"), IGNORED.as_bytes())?;
        let text =
            serde_json::to_string_pretty(&merged).map_err(|e| LearnError::run(&path, e.to_string()))?;
        write_atomically(&path, text.as_bytes())?;
        Ok(merged)
    }

    /// The setting of a unit.
    pub fn setting(&self, unit: &Unit) -> Result<&Setting, LearnError> {
        self.settings.iter().find(|setting| setting.name == unit.setting).ok_or_else(|| {
            let problem = format!("unit {} has no setting of that name", unit.name());
            LearnError::Config { origin: format!("manifest {}", self.sweep), problem }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Sweep;

    #[test]
    fn rows_in_results_are_of_the_settings_that_their_manifest_names_whatever_came_later() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/four-rooms");
        let sweep = Sweep::open(&Manifest::path(&folder, ablation::MAIN)).unwrap();
        let belief_fb = sweep.manifest.units.iter().filter(|unit| unit.method == "bfb");
        assert_eq!(belief_fb.filter(|unit| sweep.is_done(unit).unwrap()).count(), 5);
    }
}
