//! One run from nothing to scores: data, belief, agent, rows. Each stage is done once and goes on after a kill.

use crate::config::Plan;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, ScoreRow, evaluate, success};
use crate::finite::agent::{self, FiniteAgent};
use crate::finite::belief::{BeliefTrainer, FiniteBelief};
use crate::finite::context::Contexts;
use crate::finite::fb::{FbTrainer, Situations, TaskDraw};
use crate::finite::survey::Survey;
use crate::latent::VonMisesFisher;
use crate::methods::Method;
use crate::train::folder::RunFolder;
use crate::train::observe::{JsonLines, Observer, TensorBoard};
use crate::train::{Ended, Evaluation, Learner, Metrics, Schedule, checkpoint, train};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use windvane_world::collect::{CollectConfig, Policy, collect};
use windvane_world::episodes::Episodes;
use windvane_world::registry::{WorldConfig, make};
use windvane_world::rng::stream;
use windvane_world::{Cmdp, Split};
use xxhash_rust::xxh3::xxh3_64;

/// The file that says what a run is.
const RECORD: &str = "run.json";

/// What a run is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The settings.
    pub plan: Plan,
    /// The method.
    pub method: Method,
    /// Decides contexts, data, weights and everything else that is random.
    pub seed: u64,
    /// The data set's folder.
    pub data: PathBuf,
    /// The belief's checkpoint.
    pub belief: PathBuf,
    /// The agent's checkpoint.
    pub agent: PathBuf,
}

/// Someone to tell how a stage goes.
pub trait Watch {
    /// Data is collected: so many transitions in all; returns who counts them.
    fn collecting(&mut self, transitions: usize) -> Box<dyn Fn(usize) + Sync>;
    /// A training begins; returns who watches it.
    fn training(&mut self, what: &str) -> Box<dyn Observer>;
}

impl Run {
    /// The usual places of everything below one folder.
    pub fn in_folder(plan: Plan, method: Method, seed: u64, folder: &Path) -> Self {
        let file = |name: &str| folder.join(name);
        let (data, belief, agent) = (file("data"), file("belief.safetensors"), file("agent.safetensors"));
        Self { plan, method, seed, data, belief, agent }
    }

    /// Records the run in its folder, so that it can be read back; a folder that holds another run is refused.
    pub fn record(&self, folder: &RunFolder) -> Result<(), LearnError> {
        let path = folder.file(RECORD);
        let text = serde_json::to_string_pretty(self).map_err(|e| LearnError::run(&path, e.to_string()))?;
        match std::fs::read_to_string(&path) {
            Ok(there) if there == text => Ok(()),
            Ok(_) => Err(LearnError::run(
                &path,
                "the folder holds a run with other settings; choose another folder",
            )),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                checkpoint::write_atomically(&path, text.as_bytes())
            }
            Err(e) => Err(LearnError::io(&path, "reading the run")(e)),
        }
    }

    /// Reads a recorded run back.
    pub fn read(folder: &RunFolder) -> Result<Self, LearnError> {
        let path = folder.file(RECORD);
        let text = std::fs::read_to_string(&path).map_err(LearnError::io(&path, "reading the run"))?;
        serde_json::from_str(&text).map_err(|e| LearnError::run(&path, format!("not a run: {e}")))
    }

    /// Whether belief and agent are trained to the end.
    pub fn is_finished(&self) -> Result<bool, LearnError> {
        Ok((!self.method.belief || checkpoint::is_complete(&self.belief)?)
            && checkpoint::is_complete(&self.agent)?)
    }

    /// The world with its contexts.
    pub fn world(&self) -> Result<Box<dyn Cmdp>, LearnError> {
        let sizes = WorldConfig {
            seed: self.seed,
            train: Some(self.plan.world.train),
            test: Some(self.plan.world.test),
        };
        Ok(make(&self.plan.env, &sizes)?)
    }

    /// The data set, collected if it is not there.
    pub fn data(&self, world: &dyn Cmdp, watch: &mut dyn Watch) -> Result<Survey, LearnError> {
        let episodes = if self.data.exists() {
            Episodes::open(&self.data)?
        } else {
            let config = CollectConfig {
                contexts: world.contexts(Split::Train).to_vec(),
                episodes: self.plan.data.episodes,
                length: world.spec().horizon,
                start: self.plan.data.start,
                seed: self.seed,
            };
            let progress = watch.collecting(config.contexts.len() * config.episodes * config.length);
            let generator = concat!("windvane ", env!("CARGO_PKG_VERSION"));
            collect(world, &Policy::Uniform, &config, generator, &self.data, &*progress)?
        };
        Survey::of(&episodes)
    }

    /// The trained belief; `None` if it was interrupted.
    pub fn belief(
        &self,
        survey: &Arc<Survey>,
        device: &Device,
        watch: &mut dyn Watch,
        interrupt: &AtomicBool,
    ) -> Result<Option<FiniteBelief>, LearnError> {
        let config = self.plan.belief;
        let mut trainer = BeliefTrainer::new(survey.clone(), config, self.seed, device)?;
        let identity = self.identity("belief", &(&self.plan.world, &self.plan.data, &config))?;
        let schedule = schedule(config.steps, 0);
        let nothing = |_: &BeliefTrainer, _| Ok(Evaluation::default());
        let ended = drive(
            &mut trainer,
            &schedule,
            &self.belief,
            &identity,
            nothing,
            watch.training("belief"),
            interrupt,
        )?;
        Ok((!matches!(ended, Ended::Interrupted(_))).then(|| trainer.belief().clone()))
    }

    /// The trained agent; `None` if it was interrupted.
    pub fn agent(
        &self,
        world: &dyn Cmdp,
        survey: &Arc<Survey>,
        belief: Option<&Arc<FiniteBelief>>,
        device: &Device,
        watch: &mut dyn Watch,
        interrupt: &AtomicBool,
    ) -> Result<Option<FiniteAgent>, LearnError> {
        let config = self.plan.agent.fb;
        let situations = Arc::new(self.situations(survey, belief.map(|b| &**b)));
        let draw = self.task_draw(survey)?;
        let mut trainer = FbTrainer::new(survey.clone(), situations, draw, config, self.seed, device)?;
        // How scores are taken does not make it another agent.
        let Plan { world: contexts, data, belief: beliefs, agent, .. } = &self.plan;
        let identity = self.identity(self.method.name, &(contexts, data, beliefs, agent))?;
        let schedule = schedule(config.steps, config.steps.div_ceil(5));
        let make =
            |trainer: &FbTrainer| FiniteAgent::new(survey.clone(), belief.cloned(), trainer.model().clone());
        let look = |trainer: &FbTrainer, _| {
            let quick = EvalConfig { rounds: 1, ..self.plan.eval };
            let agent = make(trainer);
            let score = |split| evaluate(world, &agent, split, BeliefMode::Frozen, &quick, self.seed);
            let scores: Metrics = vec![
                ("train success", success(&score(Split::Train)?)),
                ("test success", success(&score(Split::Test)?)),
            ];
            Ok(Evaluation { scores, good_enough: false })
        };
        let observer = watch.training(self.method.title);
        let ended = drive(&mut trainer, &schedule, &self.agent, &identity, look, observer, interrupt)?;
        Ok((!matches!(ended, Ended::Interrupted(_))).then(|| make(&trainer)))
    }

    /// The scores of a trained agent.
    pub fn scores(
        &self,
        world: &dyn Cmdp,
        agent: &FiniteAgent,
        split: Split,
        belief: BeliefMode,
    ) -> Result<Vec<ScoreRow>, LearnError> {
        evaluate(world, agent, split, belief, &self.plan.eval, self.seed)
    }

    /// What the forward map will be told in training: beliefs of many contexts, computed once; or nothing, once.
    fn situations(&self, survey: &Survey, belief: Option<&FiniteBelief>) -> Situations {
        let states = survey.states();
        let count = if belief.is_some() { self.plan.agent.beliefs } else { survey.groups().len() };
        let contexts = Contexts::new(survey, self.plan.belief.context);
        let mut evidence = vec![0.0; count * states * 2];
        let mut bag = vec![0.0; survey.vocabulary()];
        let mut groups = Vec::with_capacity(count);
        for (i, evidence) in evidence.chunks_exact_mut(states * 2).enumerate() {
            let group = i % survey.groups().len();
            let mut rng = stream(self.seed, "beliefs", &[i as u64]);
            contexts.of_group(&mut rng, group, &mut bag);
            survey.write_evidence(&bag, evidence);
            groups.push(group);
        }
        let mut situations = agent::situations(survey, belief, &survey.average(), &evidence);
        situations.groups = groups;
        if self.method.cone {
            situations.axes = centred(&situations.axes, states, self.plan.agent.fb.nets.dim);
        }
        situations
    }

    fn task_draw(&self, survey: &Survey) -> Result<TaskDraw, LearnError> {
        if !self.method.cone {
            return Ok(TaskDraw::Sphere);
        }
        let dim = self.plan.agent.fb.nets.dim;
        let bad = |problem| LearnError::Config { origin: "plan".into(), problem };
        if dim < survey.states() {
            let states = survey.states();
            let problem = format!(
                "\"agent.nets.dim\" is {dim}; Rotation-FB needs at least the belief's {states} numbers"
            );
            return Err(bad(problem));
        }
        let cone = VonMisesFisher::new(dim, self.plan.agent.kappa);
        cone.map(TaskDraw::Cone).ok_or_else(|| bad(format!("\"agent.kappa\" is {}", self.plan.agent.kappa)))
    }

    /// Whose checkpoint it is: another method, environment, seed or setting gives another name.
    fn identity(&self, what: &str, settings: &impl Serialize) -> Result<String, LearnError> {
        let text = serde_json::to_string(settings)
            .map_err(|e| LearnError::Config { origin: "plan".into(), problem: e.to_string() })?;
        let Self { plan, seed, .. } = self;
        Ok(format!("{what} on {}, seed {seed}, settings {:016x}", plan.env, xxh3_64(text.as_bytes())))
    }
}

/// Beliefs as directions: what they have in common points nowhere, so it is taken out; the rest is filled up with zeros.
fn centred(axes: &[f32], width: usize, dim: usize) -> Vec<f32> {
    let count = (axes.len() / width).max(1) as f32;
    let mut mean = vec![0.0; width];
    for axis in axes.chunks_exact(width) {
        mean.iter_mut().zip(axis).for_each(|(m, x)| *m += x / count);
    }
    let mut out = Vec::with_capacity(axes.len() / width * dim);
    for axis in axes.chunks_exact(width) {
        out.extend(axis.iter().zip(&mean).map(|(x, m)| x - m));
        out.resize(out.len() + dim - width, 0.0);
    }
    out
}

fn schedule(steps: u64, eval_every: u64) -> Schedule {
    Schedule { steps, log_every: (steps / 100).max(1), eval_every, save_every: (steps / 20).max(1) }
}

/// Trains with the logs that every training keeps beside its checkpoint.
fn drive<L: Learner>(
    learner: &mut L,
    schedule: &Schedule,
    path: &Path,
    identity: &str,
    evaluate: impl FnMut(&L, u64) -> Result<Evaluation, LearnError>,
    observer: Box<dyn Observer>,
    interrupt: &AtomicBool,
) -> Result<Ended, LearnError> {
    let mut observers: Vec<Box<dyn Observer>> = vec![
        Box::new(JsonLines::new(&path.with_extension("jsonl"))),
        Box::new(TensorBoard::new(&path.with_extension("tensorboard"))),
        observer,
    ];
    train(learner, schedule, path, identity, evaluate, &mut observers, interrupt)
}

/// Writes score rows, one JSON object a line.
pub fn write_rows(path: &Path, rows: &[ScoreRow]) -> Result<(), LearnError> {
    let mut text = String::new();
    for row in rows {
        let line = serde_json::to_string(row).map_err(|e| LearnError::run(path, e.to_string()))?;
        text.push_str(&line);
        text.push('\n');
    }
    checkpoint::write_atomically(path, text.as_bytes())
}
