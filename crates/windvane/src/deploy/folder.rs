//! The folder of an agent: `config.json`, `model.safetensors`, `README.md`.

use super::{Agent, Body, card};
use crate::agent::{self as trained, Outlook};
use crate::device::DeviceName;
use crate::error::LearnError;
use crate::finite::agent::FiniteAgent;
use crate::finite::kept::FiniteCard;
use crate::neural::agent::NeuralAgent;
use crate::neural::kept::NeuralCard;
use crate::nn::TensorFile;
use crate::run::Run;
use crate::train::checkpoint::write_atomically;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use windvane_world::EnvSpec;

/// What `format` says.
const FORMAT: &str = "windvane-agent";
/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// The files.
const CONFIG: &str = "config.json";
const MODEL: &str = "model.safetensors";
const CARD: &str = "README.md";
/// Largest `config.json` that is read.
const LARGEST: u64 = 64 << 20;

/// What `config.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Folder {
    format: String,
    version: u32,
    /// The program that wrote it.
    pub(super) generator: String,
    pub(super) method: String,
    pub(super) env: EnvSpec,
    pub(super) seed: u64,
    /// How it looks ahead before acting.
    #[serde(flatten)]
    pub(super) outlook: Outlook,
    core: Core,
}

/// The settings of a core.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Core {
    /// Networks on observations.
    Neural(Box<NeuralCard>),
    /// States one by one.
    Listed(Box<FiniteCard>),
}

/// Writes a trained agent into a folder of its own, which must not hold one yet. `generator` is the program that does so.
pub fn export(
    run: &Run,
    agent: &dyn trained::Agent,
    env: &EnvSpec,
    generator: &str,
    out: &Path,
) -> Result<(), LearnError> {
    if out.join(CONFIG).exists() {
        return Err(LearnError::run(out, "holds an agent already; choose another folder"));
    }
    std::fs::create_dir_all(out).map_err(LearnError::io(out, "making the folder"))?;
    let mut file = TensorFile::default();
    let core = agent.keep(&mut file)?;
    let folder = Folder {
        format: FORMAT.to_owned(),
        version: VERSION,
        generator: generator.to_owned(),
        method: run.method.name.to_owned(),
        env: env.clone(),
        seed: run.seed,
        outlook: run.plan.eval.outlook(),
        core,
    };
    let bytes = file.to_bytes()?;
    write_atomically(&out.join(MODEL), &bytes)?;
    write_atomically(&out.join(CARD), card::text(run, &folder, &file).as_bytes())?;
    let text = serde_json::to_string_pretty(&folder).map_err(|e| LearnError::run(out, e.to_string()))?;
    // Last, so that a folder with settings is complete.
    write_atomically(&out.join(CONFIG), text.as_bytes())
}

/// Reads an agent back.
pub(super) fn load(path: &Path) -> Result<Agent, LearnError> {
    let config = path.join(CONFIG);
    if !config.is_file() {
        let problem = "holds no config.json; expected a folder that `windvane export` made";
        return Err(LearnError::run(path, problem));
    }
    let reading = |error| LearnError::io(&config, "reading the settings")(error);
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
    match value["version"].as_u64() {
        Some(version) if version == u64::from(VERSION) => {}
        Some(version) if version > u64::from(VERSION) => {
            return Err(wrong(format!(
                "version is {version}, newer than {VERSION}; a newer windvane reads it"
            )));
        }
        _ => return Err(wrong(format!("version is {}, expected {VERSION}", value["version"]))),
    }
    let folder: Folder = serde_json::from_value(value).map_err(|e| wrong(e.to_string()))?;
    let model = path.join(MODEL);
    let bytes = std::fs::read(&model).map_err(LearnError::io(&model, "reading the weights"))?;
    let in_model = |error: LearnError| LearnError::run(&model, error.to_string());
    let file = TensorFile::from_bytes(&bytes).map_err(|e| in_model(e.into()))?;
    let device = DeviceName::Cpu.open()?;
    let body = match folder.core.clone() {
        Core::Neural(card) => {
            card.check(&folder.env).map_err(wrong)?;
            Body::Neural(Arc::new(NeuralAgent::of_kept(*card, &file, &device).map_err(in_model)?))
        }
        Core::Listed(card) => {
            let agent = FiniteAgent::of_kept(*card, &folder.env, &file, &device).map_err(in_model)?;
            let visited = Arc::new(agent.visited());
            Body::Listed(Arc::new(agent), visited)
        }
    };
    Ok(Agent { folder: Arc::new(folder), body })
}
