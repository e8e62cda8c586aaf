//! An agent as one folder: `config.json`, `model.safetensors`, `README.md`. A finished run holds one, and it can be copied out.

use super::{Agent, AgentSettings, Belief, Model, card};
use crate::agent::task::Visited;
use crate::belief::{BeliefEncoder as _, StateEvidence, TransitionSet};
use crate::data::state_table::TableGraph;
use crate::data::{Codec, StateTable};
use crate::device::DeviceName;
use crate::error::{LearnError, Result};
use crate::fb::conditioning::Conditioner;
use crate::fb::networks::Backward;
use crate::fb::{ListedModel, ObservationModel};
use crate::features::correction::{Corrector, ExportedCorrector};
use crate::features::{Phi, PhiShape};
use crate::methods::{self, Method};
use crate::nn::{NnError, TensorFile};
use crate::train::checkpoint::write_atomically;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use windvane_world::EnvSpec;

/// What `format` says.
const FORMAT: &str = "windvane-agent";
/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 3;
/// The files.
const CONFIG: &str = "config.json";
const MODEL: &str = "model.safetensors";
const CARD: &str = "README.md";
/// Largest `config.json` that is read.
const LARGEST: u64 = 64 << 20;

/// What `config.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Config {
    format: String,
    version: u32,
    /// The program that wrote it.
    pub(super) generator: String,
    /// The training that it is the result of.
    identity: String,
    pub(super) method: Method,
    pub(super) env: EnvSpec,
    pub(super) seed: u64,
    settings: AgentSettings,
    states: ExportedStates,
    conditioner: Conditioner,
    /// Features that were learned beforehand.
    features: Option<PhiShape>,
    correction: Option<ExportedCorrector>,
}

/// What is known of states.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExportedStates {
    Listed {
        table: TableGraph,
        belief: bool,
        given_features: bool,
    },
    Observations {
        codec: Codec,
        /// Groups that the belief or predictor has embeddings of; nothing where there is none.
        groups: Option<usize>,
    },
}

impl Agent {
    /// Writes the agent into a folder. `identity` names the training that it is the result of, `generator` the program.
    pub(crate) fn save(
        &self,
        out: &Path,
        identity: &str,
        generator: &str,
        about_data: Option<&str>,
    ) -> Result<()> {
        std::fs::create_dir_all(out).map_err(LearnError::io(out, "making the folder"))?;
        let mut file = TensorFile::default();
        let config = self.describe(&mut file, identity, generator);
        write_atomically(&out.join(MODEL), &file.to_bytes()?)?;
        write_atomically(&out.join(CARD), card::text(&config, &file, about_data).as_bytes())?;
        let text = serde_json::to_string_pretty(&config).map_err(|e| LearnError::run(out, e.to_string()))?;
        // Last, so that a folder with settings is complete.
        write_atomically(&out.join(CONFIG), text.as_bytes())
    }

    fn describe(&self, file: &mut TensorFile, identity: &str, generator: &str) -> Config {
        let mut put = |name: &str, values: &[f32], width: usize| {
            let shape = [values.len() / width.max(1), width];
            file.insert_values(name.to_owned(), values.to_vec(), shape);
        };
        if !self.calibration.is_empty() {
            put("ood/calibration", &self.calibration, self.calibration.len());
        }
        if let Conditioner::Belief { mean, .. } = &self.conditioner {
            put("conditioner/mean", mean, mean.len());
        }
        let mut features = None;
        let states = match &self.model {
            Model::Listed(model) => {
                let (table, counts) = model.table.export();
                put("states/rho", &model.table.rho, model.table.states());
                put("states/counts", &counts, model.table.vocabulary());
                if model.has_given_features() {
                    put("features/given", &self.visited.b, self.dim());
                }
                model.params.save(file, "fb/");
                ExportedStates::Listed {
                    table,
                    belief: self.belief.is_some(),
                    given_features: model.has_given_features(),
                }
            }
            Model::Observations(model) => {
                put("states/visited", &self.visited.states, model.codec.dims());
                model.params.save(file, "fb/");
                if let Some(actor) = &model.actor {
                    actor.params.save(file, "actor/");
                }
                if let Backward::Given(phi) = &model.backward {
                    features = Some(phi.export(file));
                }
                let groups = self.predictor().map(|belief| belief.embeddings().len() / belief.dim());
                ExportedStates::Observations { codec: (*model.codec).clone(), groups }
            }
        };
        if let Some(belief) = &self.belief {
            belief.encoder().params().save(file, "belief/");
        }
        Config {
            format: FORMAT.to_owned(),
            version: VERSION,
            generator: generator.to_owned(),
            identity: identity.to_owned(),
            method: self.method,
            env: self.spec().clone(),
            seed: self.seed,
            settings: self.settings.clone(),
            states,
            conditioner: self.conditioner.clone(),
            features,
            correction: self.corrector.as_ref().map(|corrector| corrector.export(file)),
        }
    }

    /// Reads an agent from its folder, or from the folder of a finished run.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let inside = path.join(crate::run::MODEL);
        let folder = if path.join(CONFIG).is_file() || !inside.is_dir() { path } else { &inside };
        let (config, text_path) = (read_config(folder)?, folder.join(CONFIG));
        let model = folder.join(MODEL);
        let bytes = std::fs::read(&model).map_err(LearnError::io(&model, "reading the weights"))?;
        let in_model = |error: LearnError| LearnError::run(&model, error.to_string());
        let file = TensorFile::from_bytes(&bytes).map_err(|e| in_model(e.into()))?;
        let known =
            ["fb", "actor", "belief", "states", "conditioner", "ood", "features", "phi", "correction"];
        let is_known = |name: &&str| name.split_once('/').is_some_and(|(part, _)| known.contains(&part));
        if let Some(name) = file.names().find(|name| !is_known(name)) {
            let problem = "is in the file but not part of an agent".to_owned();
            return Err(in_model(NnError::Parameter { name: name.to_owned(), problem }.into()));
        }
        Self::restore(config, &file).map_err(|error| match error {
            LearnError::Config { problem, .. } => LearnError::run(&text_path, problem),
            error => in_model(error),
        })
    }

    fn restore(config: Config, file: &TensorFile) -> Result<Self> {
        let device = &DeviceName::Cpu.open()?;
        let bad = |name: &str, problem: String| NnError::Parameter { name: name.to_owned(), problem };
        let wrong = |problem: String| LearnError::config(CONFIG, problem);
        let Config { method, env, seed, settings, states, mut conditioner, features, correction, .. } =
            config;
        if let Conditioner::Belief { mean, .. } = &mut conditioner {
            *mean = file.vector("conditioner/mean")?;
        }
        let (model, belief, visited) = match states {
            ExportedStates::Listed { table, belief, given_features } => {
                let (rho, counts) = (file.vector("states/rho")?, file.vector("states/counts")?);
                let table = Arc::new(StateTable::import(table, &env, rho, &counts)?);
                let load = || -> Result<_> {
                    let mut belief = StateEvidence::new(table.clone(), &settings.belief, seed, device)?;
                    belief.params.load(file, "belief/")?;
                    Ok(Belief::Listed(Arc::new(belief)))
                };
                let belief = belief.then(load).transpose()?;
                let given = given_features.then(|| file.vector("features/given")).transpose()?;
                let persistence = settings.belief.block_persistence;
                let mut model = ListedModel::new(table, given, &settings.fb, persistence, seed, device)?;
                model.params.load(file, "fb/")?;
                let visited = Visited::listed(&model);
                (Model::Listed(model), belief, visited)
            }
            ExportedStates::Observations { codec, groups } => {
                if codec.spec != env {
                    return Err(wrong(format!("the codec is of another environment than {}", env.name)));
                }
                codec.check(&settings.encoder).map_err(wrong)?;
                let codec = Arc::new(codec);
                let load = |groups| -> Result<_> {
                    let mut belief =
                        TransitionSet::new(codec.clone(), groups, &settings.belief, seed, device)?;
                    belief.params.load(file, "belief/")?;
                    Ok(Arc::new(belief))
                };
                let belief = groups.map(load).transpose()?;
                let given = features.map(|features| Phi::import(features, file, device)).transpose()?;
                let mut model = ObservationModel::new(
                    codec.clone(),
                    conditioner.width(),
                    belief.clone(),
                    given,
                    (&settings.fb, &settings.actor),
                    seed,
                    device,
                )?;
                model.params.load(file, "fb/")?;
                if let Some(actor) = &mut model.actor {
                    actor.params.load(file, "actor/")?;
                }
                let states = file.vector("states/visited")?;
                if states.is_empty() || states.len() % codec.dims() != 0 {
                    let problem = format!("has {} numbers, expected rows of {}", states.len(), codec.dims());
                    return Err(bad("states/visited", problem).into());
                }
                let visited = Visited::observations(&model, states);
                (Model::Observations(model), belief.map(Belief::Observations), visited)
            }
        };
        if let Conditioner::Belief { mean, .. } = &conditioner {
            let dim = belief.as_ref().map_or(0, |belief| belief.encoder().dim());
            if mean.len() != dim {
                let problem = format!("has {} numbers, expected {dim}", mean.len());
                return Err(bad("conditioner/mean", problem).into());
            }
        }
        let mut agent = Self::new(method, seed, settings, model, belief, conditioner, visited);
        agent.calibration = file.vector("ood/calibration").unwrap_or_default();
        let corrector = correction.map(|exported| Corrector::import(exported, file, device)).transpose()?;
        agent.corrector = corrector.map(Arc::new);
        Ok(agent)
    }
}

fn read_config(path: &Path) -> Result<Config> {
    let config = path.join(CONFIG);
    if !config.is_file() {
        let problem =
            "holds no config.json; expected a folder that `windvane export` made, or a finished run";
        return Err(LearnError::run(path, problem));
    }
    let reading = LearnError::io(&config, "reading the settings");
    if std::fs::metadata(&config).map_err(reading)?.len() > LARGEST {
        return Err(LearnError::run(&config, format!("more than {LARGEST} bytes")));
    }
    let text = std::fs::read_to_string(&config).map_err(LearnError::io(&config, "reading the settings"))?;
    let wrong = |problem: String| LearnError::run(&config, problem);
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| wrong(format!("not JSON: {e}")))?;
    // Before anything else: the fields of another format or version may mean other things.
    if value["format"] != FORMAT {
        return Err(wrong(format!("format is {}, expected \"{FORMAT}\"", value["format"])));
    }
    let version = &value["version"];
    let problem = match version.as_u64().map(|version| version.cmp(&u64::from(VERSION))) {
        Some(Ordering::Equal) => None,
        Some(Ordering::Greater) => Some(format!("newer than {VERSION}; a newer windvane reads it")),
        Some(Ordering::Less) => Some(format!("older than {VERSION}; train and export it again")),
        None => Some(format!("expected {VERSION}")),
    };
    if let Some(problem) = problem {
        return Err(wrong(format!("version is {version}, {problem}")));
    }
    if let Some(method) = value["method"].as_str() {
        methods::find(method).map_err(|e| wrong(e.to_string()))?;
    }
    serde_json::from_value(value).map_err(|e| wrong(e.to_string()))
}

/// The training that the agent in a folder is the result of; nothing if there is no whole one.
pub(crate) fn identity_of(folder: &Path) -> Option<String> {
    if !folder.join(CONFIG).is_file() {
        return None;
    }
    read_config(folder).ok().map(|config| config.identity)
}

/// Copies the agent of a finished run into a folder of its own, which must not hold one yet.
pub fn export(run: &Path, out: &Path) -> Result<()> {
    if out.join(CONFIG).exists() {
        return Err(LearnError::run(out, "holds an agent already; choose another folder"));
    }
    let from = run.join(crate::run::MODEL);
    read_config(&from)?;
    std::fs::create_dir_all(out).map_err(LearnError::io(out, "making the folder"))?;
    // The settings last, so that a folder with settings is complete.
    for name in [MODEL, CARD, CONFIG] {
        let bytes =
            std::fs::read(from.join(name)).map_err(LearnError::io(&from.join(name), "reading the agent"))?;
        write_atomically(&out.join(name), &bytes)?;
    }
    Ok(())
}
