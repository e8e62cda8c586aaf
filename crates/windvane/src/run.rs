//! One run from nothing to scores: data, belief, agent, rows. Each stage is done once and goes on after a kill.

use crate::agent::Agent;
use crate::config::{Core, Plan};
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, ScoreRow, evaluate, success};
use crate::methods::Method;
use crate::phi::{FeatureLearner, Phi, PhiTrainer, Source};
use crate::train::folder::RunFolder;
use crate::train::observe::{JsonLines, Observer, TensorBoard};
use crate::train::{Ended, Evaluation, Learner, Metrics, Schedule, checkpoint, train};
use crate::{finite, neural};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use windvane_world::collect::{CollectConfig, collect};
use windvane_world::episodes::Episodes;
use windvane_world::recorded::Recorded;
use windvane_world::registry::{WorldConfig, make};
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
    /// Whether the data set is all there is: no world of ours is behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
}

/// Someone to tell how a stage goes.
pub trait Watch {
    /// Data is collected: so many transitions in all; returns who counts them.
    fn collecting(&mut self, transitions: usize) -> Box<dyn Fn(usize) + Sync>;
    /// A training begins; returns who watches it.
    fn training(&mut self, what: &str) -> Box<dyn Observer>;
}

/// Where a run happens and who is told.
pub struct Site<'a> {
    /// The world.
    pub world: &'a dyn Cmdp,
    /// Where tensors live.
    pub device: &'a Device,
    /// Someone to tell.
    pub watch: &'a mut dyn Watch,
    /// Set to stop after the current step.
    pub interrupt: &'a AtomicBool,
}

impl fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Site({})", self.world.spec().name)
    }
}

/// One training of a run: what it is called, where it is kept and what decides its result.
#[derive(Debug)]
pub(crate) struct Stage<'a, S> {
    /// As progress bars call it.
    pub(crate) title: &'a str,
    /// As its checkpoint calls it.
    pub(crate) name: &'a str,
    /// Its checkpoint.
    pub(crate) path: &'a Path,
    /// Gradient steps.
    pub(crate) steps: u64,
    /// Evaluations on the way.
    pub(crate) looks: u64,
    /// The settings that decide its result.
    pub(crate) settings: S,
}

impl Run {
    /// The usual places of everything below one folder.
    pub fn in_folder(plan: Plan, method: Method, seed: u64, folder: &Path) -> Self {
        let file = |name: &str| folder.join(name);
        let (data, belief, agent) = (file("data"), file("belief.safetensors"), file("agent.safetensors"));
        Self { plan, method, seed, data, belief, agent, recorded: false }
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

    /// Reads a recorded run back. Paths that are found from its folder are taken from there, so that a folder can move.
    pub fn read(folder: &RunFolder) -> Result<Self, LearnError> {
        let path = folder.file(RECORD);
        let text = std::fs::read_to_string(&path).map_err(LearnError::io(&path, "reading the run"))?;
        let mut run: Self =
            serde_json::from_str(&text).map_err(|e| LearnError::run(&path, format!("not a run: {e}")))?;
        for place in [&mut run.data, &mut run.belief, &mut run.agent] {
            let from_here = folder.path().join(&*place);
            if from_here.exists() {
                *place = from_here;
            }
        }
        Ok(run)
    }

    /// Whether belief and agent are trained to the end.
    pub fn is_finished(&self) -> Result<bool, LearnError> {
        Ok((!self.needs_belief() || checkpoint::is_complete(&self.belief)?)
            && checkpoint::is_complete(&self.agent)?)
    }

    /// The world with its contexts.
    pub fn world(&self) -> Result<Box<dyn Cmdp>, LearnError> {
        if self.recorded {
            return Ok(Box::new(Recorded::new(Episodes::open(&self.data)?.spec().clone())));
        }
        let sizes = WorldConfig {
            seed: self.seed,
            train: Some(self.plan.world.train),
            test: Some(self.plan.world.test),
        };
        Ok(make(&self.plan.env, &sizes)?)
    }

    /// Whether a belief is trained before the agent.
    pub fn needs_belief(&self) -> bool {
        let predicts = self.plan.core == Core::Neural && self.plan.neural.needs_predictor();
        let together = self.plan.core == Core::Listed && self.plan.belief.joint;
        (self.method.believes() && !together) || predicts
    }

    /// The trained features of states, by networks with `hidden` widths; `None` if it was interrupted.
    pub(crate) fn features(
        &self,
        learner: &'static dyn FeatureLearner,
        source: Arc<dyn Source>,
        hidden: &[usize],
        site: &mut Site<'_>,
    ) -> Result<Option<Phi>, LearnError> {
        let Plan { world, data, core, boxes, neural, phi: config, .. } = &self.plan;
        let mut trainer = PhiTrainer::new(learner, source, hidden, *config, self.seed, site.device)?;
        let stage = Stage {
            title: "features",
            name: &format!("features of {}", self.method.name),
            path: &self.agent.with_extension("features.safetensors"),
            steps: config.steps,
            looks: 0,
            settings: (world, data, core, boxes, (neural.repeat, neural.features), hidden, config),
        };
        let finished = self.train(&mut trainer, &stage, |_| None, site)?;
        Ok(finished.then(|| trainer.phi()))
    }

    /// The data set, collected if it is not there.
    pub fn data(&self, site: &mut Site<'_>) -> Result<Episodes, LearnError> {
        if self.data.exists() {
            return Ok(Episodes::open(&self.data)?);
        }
        let config = CollectConfig {
            contexts: site.world.contexts(Split::Train).to_vec(),
            episodes: self.plan.data.episodes,
            length: site.world.spec().horizon,
            start: self.plan.data.start,
            seed: self.seed,
        };
        let progress = site.watch.collecting(config.contexts.len() * config.episodes * config.length);
        let generator = concat!("windvane ", env!("CARGO_PKG_VERSION"));
        Ok(collect(site.world, &self.plan.data.policy, &config, generator, &self.data, &*progress)?)
    }

    /// The trained agent, with everything it needs; `None` if it was interrupted.
    pub fn agent(&self, site: &mut Site<'_>) -> Result<Option<Box<dyn Agent>>, LearnError> {
        let data = self.data(site)?;
        match self.plan.core {
            Core::Listed => finite::stages::trained(self, &data, site),
            Core::Neural => neural::stages::trained(self, data, site),
        }
    }

    /// The scores of a trained agent.
    pub fn scores(
        &self,
        world: &dyn Cmdp,
        agent: &dyn Agent,
        split: Split,
        belief: BeliefMode,
    ) -> Result<Vec<ScoreRow>, LearnError> {
        evaluate(world, agent, split, belief, &self.plan.eval, self.seed)
    }

    /// Trains to the end of a stage, with the logs that every training keeps beside its checkpoint; false if it was
    /// interrupted. Where `make` makes an agent of the learner, it is let play now and then.
    pub(crate) fn train<L: Learner, S: Serialize>(
        &self,
        learner: &mut L,
        stage: &Stage<'_, S>,
        make: impl Fn(&L) -> Option<Box<dyn Agent>>,
        site: &mut Site<'_>,
    ) -> Result<bool, LearnError> {
        let look = |learner: &L, _| {
            let Some(agent) = make(learner).filter(|_| !self.recorded) else {
                return Ok(Evaluation::default());
            };
            let quick = EvalConfig { rounds: 1, ..self.plan.eval };
            let score = |split| evaluate(site.world, &*agent, split, BeliefMode::Frozen, &quick, self.seed);
            let known = success(&score(Split::Train)?);
            let mut scores: Metrics =
                vec![("train success", known), ("test success", success(&score(Split::Test)?))];
            scores.extend(agent.vitals(site.world, &quick, self.seed)?);
            // Unseen contexts must not decide when to stop.
            Ok(Evaluation { scores, good_enough: known >= self.plan.stop_at })
        };
        let steps = stage.steps;
        let schedule = Schedule {
            steps,
            log_every: (steps / 100).max(1),
            eval_every: if stage.looks == 0 { 0 } else { steps.div_ceil(stage.looks) },
            save_every: (steps / 20).max(1),
        };
        let mut observers: Vec<Box<dyn Observer>> = vec![
            Box::new(JsonLines::new(&stage.path.with_extension("jsonl"))),
            Box::new(TensorBoard::new(&stage.path.with_extension("tensorboard"))),
            site.watch.training(stage.title),
        ];
        let identity = self.identity(stage.name, &stage.settings)?;
        let ended = train(learner, &schedule, stage.path, &identity, look, &mut observers, site.interrupt)?;
        Ok(!matches!(ended, Ended::Interrupted(_)))
    }

    /// Whose checkpoint it is: another method, environment, seed or setting gives another name.
    fn identity(&self, what: &str, settings: &impl Serialize) -> Result<String, LearnError> {
        let text = serde_json::to_string(settings)
            .map_err(|e| LearnError::Config { origin: "plan".into(), problem: e.to_string() })?;
        let Self { plan, seed, .. } = self;
        Ok(format!("{what} on {}, seed {seed}, settings {:016x}", plan.env, xxh3_64(text.as_bytes())))
    }
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
