//! The training steps that speed is measured on: those that `train` takes, by its own trainers, on data that is collected for
//! the purpose; and acting on one observation.
//!
//! A twin in another stack is given a [`TensorFile`] with the first weights, the constants, and everything that the first few
//! steps upload, so that losses can be compared before anything is timed.

mod act;
mod belief;
mod fb;
mod settings;
#[cfg(test)]
mod tests;

use crate::config::Plan;
use crate::data::{Replay, StateTable};
use crate::error::LearnError;
use crate::nn::{TensorFile, read_scalar, recorded};
use crate::train::{Learner, warm_cosine};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windvane_world::collect::{CollectConfig, collect};
use windvane_world::episodes::Episodes;
use windvane_world::registry::{WorldConfig, make};
use windvane_world::{Cmdp, Split};

pub use crate::nn::{multiply_adds, product_rate};

/// Everything random about a measured step.
const SEED: u64 = 10;
/// The batches that are gone through again and again, and the number of the first: beyond the warm-up of rates.
const BATCHES: u64 = 8;
const FIRST: u64 = 200;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// The belief encoder of listed states.
    BeliefListed,
    /// The paper's belief encoder over sets of transitions.
    BeliefTransitions,
    /// F and B on listed states, through the predictor.
    FbListed,
    /// F with a head per action and B, on observations.
    FbHeads,
    /// F with the action as input, B, and the actor.
    FbActor,
    /// The actor on one observation, belief and task given.
    Act,
}

/// How large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// What a few CPU-minutes allow: listed states as the preset `standard` of Four-Rooms has them; networks on observations
    /// with hidden width 256, batch 512, d = 100.
    Small,
    /// The paper's: hidden width 1024, batch 1024, d = 150 (100 for discrete actions).
    Paper,
    /// What a test can wait for, on any device.
    #[cfg(test)]
    Tiny,
}

impl StepName {
    /// Every step there is.
    pub const ALL: [Self; 6] = [
        Self::BeliefListed,
        Self::BeliefTransitions,
        Self::FbListed,
        Self::FbHeads,
        Self::FbActor,
        Self::Act,
    ];

    /// Whether there is such a step of this size: the paper has nothing on listed states.
    pub fn comes_in(self, size: Size) -> bool {
        size != Size::Paper || !matches!(self, Self::BeliefListed | Self::FbListed)
    }
}

/// A step that can be taken again and again.
pub trait Step {
    /// Takes one step; returns its loss, or what else shows that twins compute the same.
    fn run(&mut self) -> Result<f32, LearnError>;
    /// Puts its weights into `file`, and what else its next step depends on.
    fn save(&self, file: &mut TensorFile);
}

/// A step from its first weights, and what its twins need beside its uploads.
struct Built {
    step: Box<dyn Step>,
    file: TensorFile,
    /// Steps that the training has in all, for its schedule.
    steps: u64,
}

/// Builds a step.
pub fn build(step: StepName, size: Size, device: &Device) -> Result<Box<dyn Step>, LearnError> {
    Ok(built(step, size, device)?.step)
}

/// What a twin has to be given to take the same steps.
pub fn twin_file(step: StepName, size: Size, device: &Device) -> Result<TensorFile, LearnError> {
    let Built { mut step, mut file, steps } = built(step, size, device)?;
    let mut whole = TensorFile::default();
    step.save(&mut whole);
    // Targets begin as copies and moments as zeros: twins make them themselves.
    for name in whole.names().filter(|name| ["belief/", "fb/", "actor/"].iter().any(|p| name.starts_with(p)))
    {
        if let (Some(values), Some(shape)) = (whole.values(name), whole.shape(name)) {
            file.insert_values(format!("params/{name}"), values.to_vec(), shape);
        }
    }
    let mut scales = Vec::new();
    for batch in 0..BATCHES {
        let (loss, uploads) = recorded(|| step.run());
        loss?;
        for (i, upload) in uploads.into_iter().enumerate() {
            file.insert_values(format!("batch/{batch}/{i}"), upload.values, upload.shape);
        }
        scales.push(warm_cosine(FIRST + batch, steps));
    }
    let count = scales.len();
    file.insert_values("scales".to_owned(), scales, [count, 1]);
    Ok(file)
}

fn built(step: StepName, size: Size, device: &Device) -> Result<Built, LearnError> {
    let plan = settings::plan(step, size)?;
    let (world, data) = collected(&plan)?;
    let mut built = match step {
        StepName::BeliefListed => belief::listed(&plan, &table(&plan, &data)?, device)?,
        StepName::BeliefTransitions => belief::transitions(&plan, &replay(&plan, data, device)?, device)?,
        StepName::FbListed => fb::listed(&plan, &table(&plan, &data)?, device)?,
        StepName::FbHeads | StepName::FbActor => {
            fb::observations(&plan, &replay(&plan, data, device)?, device)?
        }
        StepName::Act => act::act(&plan, &replay(&plan, data, device)?, device)?,
    };
    let settings = serde_json::to_string(&(&plan.belief, &plan.fb, &plan.actor, world.spec()))
        .map_err(|e| LearnError::Config { origin: "bench".into(), problem: e.to_string() })?;
    built.file.insert_word("settings", settings);
    Ok(built)
}

/// The world of a plan, and its data.
fn collected(plan: &Plan) -> Result<(Box<dyn Cmdp>, Episodes), LearnError> {
    let sizes = WorldConfig { seed: SEED, train: Some(plan.data.train_contexts), test: Some(1) };
    let world = make(&plan.env, &sizes)?;
    let config = CollectConfig {
        contexts: world.contexts(Split::Train).to_vec(),
        episodes: plan.data.episodes,
        length: world.spec().horizon,
        start: plan.data.start,
        seed: SEED,
    };
    // Open files outlive their folder.
    let folder = tempfile::tempdir().map_err(LearnError::io(&std::env::temp_dir(), "making a folder"))?;
    let path = folder.path().join("data");
    let data = collect(&*world, &plan.data.policy, &config, "windvane bench", &path, &|_| ())?;
    Ok((world, data))
}

fn table(plan: &Plan, data: &Episodes) -> Result<Arc<StateTable>, LearnError> {
    Ok(Arc::new(StateTable::of(data, &plan.encoder, plan.data.held_out)?))
}

fn replay(plan: &Plan, data: Episodes, device: &Device) -> Result<Arc<Replay>, LearnError> {
    let limits = [plan.data.held_out, plan.belief.min_context as f64];
    Ok(Arc::new(Replay::new(data, &plan.encoder, limits, SEED, device)?))
}

/// A training whose steps go through the same few batches again and again.
struct Training<L> {
    learner: L,
    taken: u64,
}

impl<L: Learner> Step for Training<L> {
    fn run(&mut self) -> Result<f32, LearnError> {
        let metrics = self.learner.train_step(FIRST + self.taken % BATCHES)?;
        self.taken += 1;
        // The value of the actor's actions belongs to it, where there is an actor.
        let tell = metrics.iter().filter(|(name, _)| matches!(*name, "loss" | "actor value"));
        Ok(tell.map(|(_, value)| read_scalar(value) as f32).sum())
    }

    fn save(&self, file: &mut TensorFile) {
        self.learner.save(file);
    }
}

/// The step of a learner.
fn training<L: Learner + 'static>(learner: L, file: TensorFile, steps: u64) -> Built {
    Built { step: Box::new(Training { learner, taken: 0 }), file, steps }
}

/// Puts what `work` uploads into the file, as constants.
fn constants<R>(file: &mut TensorFile, work: impl FnOnce() -> R) -> R {
    let (result, uploads) = recorded(work);
    for (i, upload) in uploads.into_iter().enumerate() {
        file.insert_values(format!("constant/{i}"), upload.values, upload.shape);
    }
    result
}

/// The columns of a data set as steps on observations gather them.
fn columns(file: &mut TensorFile, replay: &Replay) {
    let count = replay.data.transitions() + replay.data.episodes() - replay.codec.action_repeat;
    let all = replay.rows(&(0..count).collect::<Vec<_>>());
    let t = replay.transitions(all.clone());
    let index = t.index.float().reshape([count, 1]);
    for (name, column) in [
        ("s", t.s),
        ("a", t.a),
        ("index", index),
        ("next", t.next),
        ("change", t.change),
        ("alive", t.not_terminal),
    ] {
        file.insert(format!("data/{name}"), &column);
    }
    file.insert("data/token".to_owned(), &replay.tokens(all));
}
