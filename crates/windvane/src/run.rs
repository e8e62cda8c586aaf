//! One run from nothing to scores: data, belief, agent, rows. Each stage is done once and goes on after a kill.
//!
//! A finished run holds its agent in `model/`, whole and apart from everything it was made from: opening it is reading that.

use crate::agent::export::identity_of;
use crate::agent::task::Visited;
use crate::agent::{Agent, AgentSettings, Belief, Model};
use crate::belief::state_evidence::StateEvidenceObjective;
use crate::belief::trainer::{BeliefObjective, BeliefTrainer};
use crate::belief::transition_set::TransitionSetObjective;
use crate::belief::{BeliefEncoder as _, ood};
use crate::config::Plan;
use crate::data::{Experience, Replay, StateTable};
use crate::diagnostics::exact;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, ScoreKind, ScoreRow, evaluate, evaluate_own};
use crate::fb::conditioning::{self, Conditioner};
use crate::fb::listed::ListedObjective;
use crate::fb::observation_objective::ObservationObjective;
use crate::fb::tasks::TaskDistribution;
use crate::fb::trainer::trainer;
use crate::fb::{ListedModel, ObservationModel};
use crate::features::correction::Corrector;
use crate::features::{Phi, PhiObjective, Source};
use crate::methods::{Method, RewardIn};
use crate::nn::read;
use crate::planner::Planner;
pub use crate::run_context::{Progress, RunContext, Silent};
use crate::stage::{Stage, is_listed};
use crate::train::folder::RunFolder;
use crate::train::observe::{JsonLines, Observer, TensorBoard};
use crate::train::trainer::Trainer;
use crate::train::{Ended, Evaluation, Learner, Schedule, Scores, checkpoint, train};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windvane_world::collect::{CollectConfig, collect};
use windvane_world::episodes::Episodes;
use windvane_world::episodes::first_difference;
use windvane_world::recorded::Recorded;
use windvane_world::registry::{WorldConfig, make};
use windvane_world::rng::stream;
use windvane_world::{Cmdp, EnvSpec, Split};
use xxhash_rust::xxh3::xxh3_64;

/// The file that says what a run is, and the folder of its agent.
const RECORD: &str = "run.json";
pub(crate) const MODEL: &str = "model";
/// Visited states that a reward function is labelled on; paper: 10,000.
const LABELS: usize = 10_000;
/// The program, as files name it.
const GENERATOR: &str = concat!("windvane ", env!("CARGO_PKG_VERSION"));

/// What a run is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The settings.
    pub plan: Plan,
    /// The method.
    pub method: Method,
    /// Decides contexts, data, weights and everything else that is random.
    pub seed: u64,
    /// The data set's folder. In a file, relative to the run's folder; the same for the next.
    pub data: PathBuf,
    /// The belief's checkpoint.
    pub belief: PathBuf,
    /// The environment of a data set that no environment of ours is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<EnvSpec>,
    /// The run's folder.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl Run {
    /// The usual places of everything below one folder.
    pub fn in_folder(plan: Plan, method: Method, seed: u64, folder: &Path) -> Self {
        let (data, belief) = (folder.join("data"), folder.join("belief.safetensors"));
        Self { plan, method, seed, data, belief, recorded: None, folder: folder.to_owned() }
    }

    /// The checkpoint of F, B and the actor.
    pub fn checkpoint(&self) -> PathBuf {
        self.folder.join("agent.safetensors")
    }

    /// The folder of the trained agent.
    pub fn model(&self) -> PathBuf {
        self.folder.join(MODEL)
    }

    /// Records the run in its folder, so that it can be read back; a folder that holds another run is refused.
    pub fn record(&self, folder: &RunFolder) -> Result<(), LearnError> {
        let path = folder.file(RECORD);
        let [data, belief] = [&self.data, &self.belief].map(|place| relative(place, folder.path()));
        let own = Self { data, belief, ..self.clone() };
        let json = |run: &Self| serde_json::to_value(run).map_err(|e| LearnError::run(&path, e.to_string()));
        match std::fs::read_to_string(&path) {
            // Settings that came later have the values that they had before they were settings.
            Ok(text) => match first_difference(&json(&Self::parse(&path, &text)?)?, &json(&own)?) {
                None => Ok(()),
                Some(difference) => {
                    let problem = format!(
                        "the folder holds a run with other settings ({difference}); choose another folder"
                    );
                    Err(LearnError::run(&path, problem))
                }
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let text = serde_json::to_string_pretty(&own);
                let text = text.map_err(|e| LearnError::run(&path, e.to_string()))?;
                checkpoint::write_atomically(&path, text.as_bytes())
            }
            Err(e) => Err(LearnError::io(&path, "reading the run")(e)),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self, LearnError> {
        serde_json::from_str(text).map_err(|e| LearnError::run(path, format!("not a run: {e}")))
    }

    /// Reads a recorded run back, wherever its folder is now. Nothing is locked or written.
    pub fn read(folder: &Path) -> Result<Self, LearnError> {
        let path = folder.join(RECORD);
        if !folder.is_dir() {
            return Err(LearnError::run(folder, "is no folder; expected one that `windvane train` made"));
        }
        let text = std::fs::read_to_string(&path).map_err(LearnError::io(&path, "reading the run"))?;
        let mut run = Self::parse(&path, &text)?;
        folder.clone_into(&mut run.folder);
        for place in [&mut run.data, &mut run.belief] {
            *place = folder.join(&*place);
        }
        Ok(run)
    }

    /// The trained agent of a finished run. Nothing is locked, written or trained.
    pub fn load_agent(&self) -> Result<Agent, LearnError> {
        if !self.model().is_dir() {
            let problem = "training is not finished; go on with the same `windvane train` command";
            return Err(LearnError::run(&self.folder, problem));
        }
        Agent::load(self.model())
    }

    /// The environment with its contexts.
    pub fn world(&self) -> Result<Box<dyn Cmdp>, LearnError> {
        if let Some(spec) = &self.recorded {
            return Ok(Box::new(Recorded::new(spec.clone())));
        }
        let sizes = WorldConfig {
            seed: self.seed,
            train: Some(self.plan.data.train_contexts),
            test: Some(self.plan.data.test_contexts),
        };
        let mut world = make(&self.plan.env, &sizes)?;
        world.take_experts(&self.data)?;
        Ok(world)
    }

    /// Whether a belief or its predictor is trained before F.
    pub fn needs_belief(&self) -> bool {
        self.method.believes() || self.plan.needs_predictor()
    }

    /// The data set, collected if it is not there.
    pub fn data(&self, at: &mut RunContext<'_>) -> Result<Episodes, LearnError> {
        self.method.check(&self.plan)?;
        if self.data.exists() {
            return Ok(Episodes::open(&self.data)?);
        }
        let config = CollectConfig {
            contexts: at.world.contexts(Split::Train).to_vec(),
            episodes: self.plan.data.episodes,
            length: at.world.spec().horizon,
            start: self.plan.data.start,
            seed: self.seed,
        };
        let progress = at.progress.collecting(config.contexts.len() * config.episodes * config.length);
        Ok(collect(at.world, &self.plan.data.policy, &config, GENERATOR, &self.data, &*progress)?)
    }

    /// The data set as learners draw from it.
    fn experience(&self, data: Episodes, device: &Device) -> Result<Experience, LearnError> {
        let Plan { encoder, data: config, belief, .. } = &self.plan;
        if is_listed(&self.plan) {
            return Ok(Experience::Listed(Arc::new(StateTable::of(&data, encoder, config.held_out)?)));
        }
        let limits = [config.held_out, belief.min_context as f64];
        Ok(Experience::Observations(Arc::new(Replay::new(data, encoder, limits, self.seed, device)?)))
    }

    /// The replay buffer of a finished run's data, for diagnostics; nothing where states are listed or the data is gone.
    pub fn replay(&self, device: &Device) -> Option<Arc<Replay>> {
        match self.experience(Episodes::open(&self.data).ok()?, device).ok()? {
            Experience::Observations(replay) if !is_listed(&self.plan) => Some(replay),
            _ => None,
        }
    }

    /// A hash of the data set: of what its meta file says, hashes of all columns included.
    fn data_hash(&self) -> u64 {
        std::fs::read(self.data.join("meta.json")).map_or(0, |bytes| xxh3_64(&bytes))
    }

    /// The identity of the belief.
    fn belief_identity(&self) -> Result<String, LearnError> {
        Stage::Belief.identity(&self.plan, &self.method, self.seed, &[self.data_hash()])
    }

    /// The identity of the agent, which depends on the belief it was given.
    fn agent_identity(&self) -> Result<String, LearnError> {
        let belief = if self.needs_belief() { checkpoint::weights_hash(&self.belief, "belief/")? } else { 0 };
        Stage::Agent.identity(&self.plan, &self.method, self.seed, &[self.data_hash(), belief])
    }

    /// The belief, trained to its end; false if it was interrupted. Nothing is done for a run that needs none.
    pub fn believe(&self, at: &mut RunContext<'_>) -> Result<bool, LearnError> {
        if !self.needs_belief() || checkpoint::is_complete_as(&self.belief, &self.belief_identity()?)? {
            return Ok(true);
        }
        let data = self.data(at)?;
        let experience = self.experience(data, at.device)?;
        Ok(self.belief(&experience, at)?.is_some())
    }

    /// The trained belief; `None` if it was interrupted.
    fn belief(&self, experience: &Experience, at: &mut RunContext<'_>) -> Result<Option<Belief>, LearnError> {
        let config = &self.plan.belief;
        Ok(match experience {
            Experience::Listed(table) => {
                let objective = StateEvidenceObjective::new(table.clone(), config, self.seed, at.device)?;
                let trainer = self.train_belief(objective, at)?;
                trainer.map(|trainer| Belief::Listed(Arc::new(trainer.objective.model.clone())))
            }
            Experience::Observations(replay) => {
                let objective = TransitionSetObjective::new(replay.clone(), config, self.seed, at.device)?;
                let trainer = self.train_belief(objective, at)?;
                trainer.map(|trainer| Belief::Observations(Arc::new(trainer.objective.model.clone())))
            }
        })
    }

    fn train_belief<O: BeliefObjective>(
        &self,
        objective: O,
        at: &mut RunContext<'_>,
    ) -> Result<Option<BeliefTrainer<O>>, LearnError> {
        let mut trainer = BeliefTrainer::new(objective, &self.plan.belief);
        let identity = self.belief_identity()?;
        let finished = self.train(&mut trainer, Stage::Belief, &self.belief, &identity, |_| None, at)?;
        Ok(finished.then_some(trainer))
    }

    /// The trained features of states, where the method has any; `None` if it was interrupted.
    #[allow(clippy::option_option)] // interrupted, and none needed, are two things
    fn features(&self, source: Source, at: &mut RunContext<'_>) -> Result<Option<Option<Phi>>, LearnError> {
        let Some(learner) = self.method.features else { return Ok(Some(None)) };
        let hidden = &self.plan.fb.net.backward;
        let mut trainer =
            PhiObjective::trainer(learner, source, hidden, self.plan.features, self.seed, at.device)?;
        let identity = Stage::Features.identity(&self.plan, &self.method, self.seed, &[self.data_hash()])?;
        let path = self.folder.join("features.safetensors");
        let finished = self.train(&mut trainer, Stage::Features, &path, &identity, |_| None, at)?;
        Ok(finished.then(|| Some(trainer.objective.phi())))
    }

    /// The trained agent, read if it is finished, trained as far as it is not; `None` if it was interrupted.
    pub fn agent(&self, at: &mut RunContext<'_>) -> Result<Option<Agent>, LearnError> {
        if self.data.exists()
            && identity_of(&self.model())
                .is_some_and(|there| Ok(there) == self.agent_identity().map_err(drop))
        {
            return self.load_agent().map(Some);
        }
        if is_listed(&self.plan) {
            self.method.check_actor(false, &self.plan.env)?;
        }
        let data = self.data(at)?;
        let about = format!(
            "{} transitions in {} episodes of {} groups that share their dynamics; behaviour policy: {}.",
            data.transitions(),
            data.episodes(),
            data.groups(),
            data.meta().plan.provenance.policy
        );
        let experience = self.experience(data, at.device)?;
        let belief = if self.needs_belief() {
            let Some(belief) = self.belief(&experience, at)? else { return Ok(None) };
            Some(belief)
        } else {
            None
        };
        let agent = match &experience {
            Experience::Listed(table) => self.listed_agent(table, belief, at)?,
            Experience::Observations(replay) => self.observation_agent(replay, belief, at)?,
        };
        let Some(mut agent) = agent else { return Ok(None) };
        agent.calibration = match (&experience, agent.belief.as_ref().filter(|_| self.method.believes())) {
            (_, Some(Belief::Listed(belief))) => ood::calibrate_listed(belief),
            (Experience::Observations(replay), Some(Belief::Observations(belief))) => {
                ood::calibrate(belief, replay, self.seed)
            }
            _ => Vec::new(),
        };
        agent.save(&self.model(), &self.agent_identity()?, GENERATOR, Some(&about))?;
        Ok(Some(agent))
    }

    fn settings(&self) -> AgentSettings {
        let Plan { encoder, belief, fb, planner, .. } = self.plan.clone();
        AgentSettings { encoder, belief, fb, actor: self.method.actor(self.plan.actor), planner }
    }

    fn listed_agent(
        &self,
        table: &Arc<StateTable>,
        belief: Option<Belief>,
        at: &mut RunContext<'_>,
    ) -> Result<Option<Agent>, LearnError> {
        let Plan { belief: config, fb, .. } = &self.plan;
        let encoder = match &belief {
            Some(Belief::Listed(belief)) => Some(&**belief),
            _ => None,
        };
        let source = Source::listed(table.clone(), at.device);
        let Some(phi) = self.features(source, at)? else { return Ok(None) };
        let given = phi.map(|phi| read(phi.embed(Tensor::eye(table.states(), at.device))));
        let model =
            ListedModel::new(table.clone(), given, fb, config.block_persistence, self.seed, at.device)?;
        let (conditioner, contexts) =
            conditioning::listed(&self.method, table, encoder, (config, &model.config), self.seed);
        let width = encoder.map_or(0, super::belief::BeliefEncoder::dim);
        let distribution = TaskDistribution::new(self.method.draw, fb, width)?;
        let objective = ListedObjective::new(model, contexts, distribution, self.seed);
        let mut trainer = trainer(objective, fb);
        let device = at.device;
        let make = |trainer: &Trainer<ListedObjective>| {
            let model = trainer.objective.model.clone();
            let visited = Visited::listed(&model);
            let corrector = (self.method.reward == RewardIn::Corrected).then(|| {
                Arc::new(Corrector::listed(self.plan.correction, table, &visited.b, self.seed, device))
            });
            self.join(Model::Listed(model), belief.clone(), conditioner.clone(), visited, corrector)
        };
        let identity = self.agent_identity()?;
        let evaluated = |trainer: &Trainer<ListedObjective>| Some(make(trainer));
        let finished =
            self.train(&mut trainer, Stage::Agent, &self.checkpoint(), &identity, evaluated, at)?;
        Ok(finished.then(|| make(&trainer)))
    }

    fn observation_agent(
        &self,
        replay: &Arc<Replay>,
        belief: Option<Belief>,
        at: &mut RunContext<'_>,
    ) -> Result<Option<Agent>, LearnError> {
        let (Plan { belief: config, fb, .. }, actor) = (&self.plan, &self.method.actor(self.plan.actor));
        let encoder = match &belief {
            Some(Belief::Observations(belief)) => Some(belief.clone()),
            _ => None,
        };
        let Some(phi) = self.features(Source::Observations(replay.clone()), at)? else { return Ok(None) };
        let (conditioner, contexts) =
            conditioning::observations(&self.method, replay, encoder.as_deref(), (config, fb), self.seed);
        let width = encoder.as_ref().map_or(0, |belief| belief.dim());
        let distribution = TaskDistribution::new(self.method.draw, fb, width)?;
        let model = ObservationModel::new(
            replay.codec.clone(),
            conditioner.width(),
            encoder,
            phi,
            (fb, actor),
            self.seed,
            at.device,
        )?;
        self.method.check_actor(model.actor.is_some(), &self.plan.env)?;
        let objective = ObservationObjective::new(model, replay.clone(), contexts, distribution, self.seed);
        let mut trainer = trainer(objective, fb);
        let mut states = Vec::new();
        let mut rng = stream(self.seed, "labels", &[]);
        for _ in 0..LABELS {
            let group = replay.draw_group(&mut rng);
            states.extend_from_slice(replay.host_state(replay.draw_state(&mut rng, group)));
        }
        let device = at.device;
        let make = |trainer: &Trainer<ObservationObjective>| {
            let model = trainer.objective.model.clone();
            let visited = Visited::observations(&model, states.clone());
            let corrector = (self.method.reward == RewardIn::Corrected).then(|| {
                let backward = |obs: &[f32]| model.backward(obs);
                Arc::new(Corrector::observations(self.plan.correction, replay, backward, self.seed, device))
            });
            self.join(
                Model::Observations(model.clone()),
                belief.clone(),
                conditioner.clone(),
                visited,
                corrector,
            )
        };
        let identity = self.agent_identity()?;
        let evaluated = |trainer: &Trainer<ObservationObjective>| Some(make(trainer));
        let finished =
            self.train(&mut trainer, Stage::Agent, &self.checkpoint(), &identity, evaluated, at)?;
        Ok(finished.then(|| make(&trainer)))
    }

    fn join(
        &self,
        model: Model,
        belief: Option<Belief>,
        conditioner: Conditioner,
        visited: Visited,
        corrector: Option<Arc<Corrector>>,
    ) -> Agent {
        let mut agent =
            Agent::new(self.method, self.seed, self.settings(), model, belief, conditioner, visited);
        agent.corrector = corrector;
        agent
    }

    /// The scores of a trained agent.
    pub fn scores(
        &self,
        world: &dyn Cmdp,
        agent: &Agent,
        split: Split,
        belief: BeliefMode,
        planner: Planner,
    ) -> Result<Vec<ScoreRow>, LearnError> {
        let config = EvalConfig { planner, ..self.plan.eval };
        evaluate(world, agent, split, belief, &config, self.seed)
    }

    /// Trains to the end of a stage, with the logs that every training keeps beside its checkpoint; false if it was
    /// interrupted. Where `make` makes an agent of the learner, F alone is evaluated now and then.
    fn train<L: Learner>(
        &self,
        learner: &mut L,
        stage: Stage,
        path: &Path,
        identity: &str,
        make: impl Fn(&L) -> Option<Agent>,
        at: &mut RunContext<'_>,
    ) -> Result<bool, LearnError> {
        let quick = EvalConfig { rounds: 1, planner: Planner::None, ..self.plan.eval };
        let evaluate = |learner: &L, _| {
            let Some(agent) = make(learner).filter(|_| self.recorded.is_none()) else {
                return Ok(Evaluation::default());
            };
            let score = |split| evaluate_own(at.world, &agent, split, &quick, self.seed);
            let kind = ScoreKind::of(at.world)?;
            let [known, unseen] = [score(Split::Train)?, score(Split::Test)?].map(|rows| kind.mean(&rows));
            let [train, test] = match kind {
                ScoreKind::Success => ["train success", "test success"],
                ScoreKind::Return(_) => ["train return", "test return"],
            };
            let mut scores: Scores = vec![(train, known), (test, unseen)];
            scores.extend(exact::metrics(&agent, at.world, &quick, self.seed)?);
            // Unseen contexts must not decide when to stop.
            let good_enough = kind == ScoreKind::Success && known >= self.plan.stop_at;
            Ok(Evaluation { scores, good_enough })
        };
        let steps = stage.steps(&self.plan);
        let schedule = Schedule {
            steps,
            log_every: (steps / 100).max(1),
            eval_every: if stage.evaluations() == 0 { 0 } else { steps.div_ceil(stage.evaluations()) },
            save_every: (steps / 20).max(1),
        };
        let mut observers: Vec<Box<dyn Observer>> = vec![
            Box::new(JsonLines::new(&path.with_extension("jsonl"))),
            Box::new(TensorBoard::new(&path.with_extension("tensorboard"))),
            at.progress.training(stage.title(&self.method)),
        ];
        let ended = train(learner, &schedule, path, identity, evaluate, &mut observers, at.interrupt)?;
        Ok(!matches!(ended, Ended::Interrupted(_)))
    }
}

/// `path` as seen from `folder`, where the two have something in common; else as it is, from the root.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (path, folder) = (absolute(path), absolute(folder));
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    if shared <= 1 {
        return path;
    }
    let up = folder.components().skip(shared).map(|_| std::path::Component::ParentDir);
    up.chain(path.components().skip(shared)).collect()
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
