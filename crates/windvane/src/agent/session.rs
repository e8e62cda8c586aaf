//! Control of one thing: an agent that knows its context and its task, one observation at a time, its belief frozen or online.
//!
//! ```no_run
//! use windvane::Agent;
//! use windvane_world::{Prompt, episodes::read_trajectories};
//!
//! let agent = Agent::load("models/cart")?;
//! let context = read_trajectories("context.npz".as_ref(), agent.spec())?;
//! let mut session = agent.adapt(&context)?.task(&Prompt::formula("(abs(angle) < 0.1)"))?;
//! let action = session.act(&[0.0, 0.1, 0.0, 0.0])?;
//! # Ok::<(), windvane::LearnError>(())
//! ```

use super::task::{Inference, TaskCode};
use super::{Agent, Confidence, Known, Model, NodeValues, TaskPolicy};
use crate::belief::{Evidence, Posteriors, RowPredictor, fits};
use crate::error::LearnError;
use crate::fb::ObservationModel;
use crate::fb::conditioning::Conditioner;
use crate::fb::row::{RowActor, RowNet};
use crate::latent;
use crate::planner::Planner;
use crate::planner::graph::argmax;
use std::sync::Arc;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, ActionBuf, ContextId, Prompt};

/// How many times the range of its data an observation may lie outside of it.
const FARTHEST: f32 = 10.0;

/// An agent that has seen a context.
#[derive(Clone, Debug)]
pub struct Adapted {
    agent: Arc<Agent>,
    pub(super) evidence: Evidence,
    pub(super) shift: Vec<f32>,
    ood_score: Option<f32>,
}

/// An agent that knows its context and its task.
#[derive(Debug)]
pub struct Session {
    adapted: Adapted,
    task: TaskCode,
    z: Vec<f32>,
    known: Known,
    online: bool,
    planner: Planner,
    task_policy: TaskPolicy,
    /// Listed states: Q of every action everywhere.
    q: Vec<f32>,
    /// Observations: networks for single rows, and the planner's values.
    rows: Rows,
    plan: Option<NodeValues>,
    trail: Trail,
    /// Smallest and largest value of each number that an observation may have.
    limits: Vec<[f32; 2]>,
}

/// Networks for single rows; empty where a network has no such form.
#[derive(Debug, Default)]
struct Rows {
    forward: Vec<RowNet>,
    actor: Option<RowActor>,
    predictor: Option<RowPredictor>,
}

/// What happened since the evidence was last added to, and the action that is being held.
#[derive(Debug, Default)]
struct Trail {
    held: Option<ActionBuf>,
    left: usize,
    obs: Vec<f32>,
    done: Vec<ActionBuf>,
    stale: usize,
}

impl Agent {
    /// Takes in what was seen of the dynamics; nothing at all is allowed.
    pub fn adapt(&self, context: &[Trajectory]) -> Result<Adapted, LearnError> {
        if let Some(trajectory) = context.iter().find(|trajectory| !fits(self.spec(), trajectory)) {
            let width = trajectory.observations().len() / (trajectory.len() + 1);
            let problem = format!("observations of {width} numbers, expected {}", self.spec().obs_dim());
            return Err(LearnError::Config { origin: "context".into(), problem });
        }
        let scores: Vec<f64> = context.iter().filter_map(|trajectory| self.ood_score(trajectory)).collect();
        let ood_score =
            (!scores.is_empty()).then(|| (scores.iter().sum::<f64>() / scores.len() as f64) as f32);
        let (evidence, shift) = (self.evidence(context), self.shift(context)?);
        Ok(Adapted { agent: Arc::new(self.clone()), evidence, shift, ood_score })
    }

    /// The task vector of a prompt.
    pub fn infer(&self, prompt: &Prompt, inference: Inference) -> Result<TaskCode, LearnError> {
        self.visited.task(prompt, self.spec(), inference, |states| self.backward(states))
    }

    /// States that were visited in the data, `[rows * dims]`: what a reward function is labelled on.
    pub fn visited(&self) -> &[f32] {
        &self.visited.states
    }

    /// The task vector of a reward by its value at each of the [`Agent::visited`] states.
    pub fn infer_labelled(&self, rewards: &[f32], inference: Inference) -> Result<TaskCode, LearnError> {
        self.visited.task_of(rewards, inference)
    }
}

impl Adapted {
    /// How sure the belief is, and whether the context looks like training.
    pub fn confidence(&self) -> Confidence {
        confidence(&self.agent, &self.evidence, self.ood_score)
    }

    /// Takes a task, by projection.
    pub fn task(&self, prompt: &Prompt) -> Result<Session, LearnError> {
        self.task_by(prompt, Inference::Projection)
    }

    /// The Gaussian over h after what was seen; empty for a method without a belief.
    pub fn posterior(&self) -> Posteriors {
        self.agent.belief().map(|belief| belief.infer(&[&self.evidence])).unwrap_or_default()
    }

    /// Takes a task.
    pub fn task_by(&self, prompt: &Prompt, inference: Inference) -> Result<Session, LearnError> {
        self.session(self.agent.infer(prompt, inference)?)
    }

    /// Takes a task whose vector is known.
    pub fn session(&self, task: TaskCode) -> Result<Session, LearnError> {
        self.check(&task)?;
        let dims = self.agent.spec().obs_dim();
        let limit = |dim: usize| {
            let values = || self.agent.visited.states.iter().skip(dim).step_by(dims);
            let low = values().fold(f32::INFINITY, |low, x| low.min(*x));
            let high = values().fold(f32::NEG_INFINITY, |high, x| high.max(*x));
            let margin = FARTHEST * (high - low).max(1e-3);
            [low - margin, high + margin]
        };
        let mut session = Session {
            z: Vec::new(),
            known: Known::default(),
            online: false,
            planner: Planner::None,
            task_policy: TaskPolicy::Greedy,
            q: Vec::new(),
            rows: Rows::default(),
            plan: None,
            trail: Trail::default(),
            limits: (0..dims).map(limit).collect(),
            adapted: self.clone(),
            task,
        };
        session.begin_rows();
        session.update();
        Ok(session)
    }
}

impl Adapted {
    /// Whether a task vector is one of the agent's.
    fn check(&self, task: &TaskCode) -> Result<(), LearnError> {
        let dim = self.agent.dim();
        if task.z.len() == dim && task.z.iter().all(|x| x.is_finite()) {
            return Ok(());
        }
        let problem = format!("z has {} numbers, expected {dim} finite ones", task.z.len());
        Err(LearnError::Config { origin: "task".into(), problem })
    }
}

fn confidence(agent: &Agent, evidence: &Evidence, ood_score: Option<f32>) -> Confidence {
    let least = match &agent.model {
        Model::Listed(_) => 0,
        Model::Observations(model) => agent.settings.belief.min_context / model.codec.action_repeat(),
    };
    let posterior = agent.belief().map(|belief| belief.infer(&[evidence])).unwrap_or_default();
    let relative = match &agent.conditioner {
        Conditioner::Belief { scale, .. } if evidence.transitions() > 0 => {
            let square = posterior.std.iter().map(|s| f64::from(s * scale).powi(2)).sum::<f64>();
            Some((square / posterior.std.len().max(1) as f64).sqrt())
        }
        _ => None,
    };
    Confidence::new([evidence.transitions(), least], posterior.mean, relative, ood_score, &agent.calibration)
}

impl Session {
    /// The same with a belief that goes on learning while it acts.
    #[must_use]
    pub fn online(self) -> Self {
        Self { online: true, ..self }
    }

    /// The same with another choice of who acts: F alone, in one of two ways, or the planner.
    #[must_use]
    pub fn by(mut self, planner: Planner, task_policy: TaskPolicy) -> Self {
        (self.planner, self.task_policy) = (planner, task_policy);
        self.update();
        self
    }

    /// The task vector and how it came about.
    pub fn code(&self) -> &TaskCode {
        &self.task
    }

    /// Takes another task; what was learned of the dynamics stays.
    pub fn retask(&mut self, prompt: &Prompt) -> Result<(), LearnError> {
        let task = self.adapted.agent.infer(prompt, self.task.inference)?;
        self.take(task)
    }

    /// Takes another task whose vector is known.
    pub fn take(&mut self, task: TaskCode) -> Result<(), LearnError> {
        self.adapted.check(&task)?;
        self.task = task;
        self.restart();
        self.update();
        Ok(())
    }

    /// The agent with what it has seen of its context by now.
    pub fn adapted(&self) -> &Adapted {
        &self.adapted
    }

    /// How sure the belief is by now, and whether its context looks like training.
    pub fn confidence(&self) -> Confidence {
        let score = match (&self.adapted.evidence, self.adapted.agent.predictor()) {
            (Evidence::Tokens(set), Some(belief)) => belief.ood_of_tokens(set.tokens()),
            _ => self.adapted.ood_score,
        };
        confidence(&self.adapted.agent, &self.adapted.evidence, score)
    }

    /// The next action.
    pub fn act(&mut self, obs: &[f32]) -> Result<ActionBuf, LearnError> {
        if let Some(held) = self.trail.held.clone().filter(|_| self.trail.left > 0) {
            self.check(obs)?;
            self.trail.left -= 1;
            return Ok(held);
        }
        let action = self.decide(obs)?;
        if let Model::Observations(model) = &self.adapted.agent.model {
            self.trail.held = Some(action.clone());
            self.trail.left = model.codec.action_repeat() - 1;
        }
        Ok(action)
    }

    /// The action that F chooses at `obs`, whatever is being held.
    pub fn decide(&mut self, obs: &[f32]) -> Result<ActionBuf, LearnError> {
        self.check(obs)?;
        let mut action = self.choose(obs);
        let Adapted { agent, evidence, .. } = &self.adapted;
        if self.online && agent.listed().is_none() && evidence.transitions() < agent.settings.belief.probe {
            let mut rng = stream(agent.seed, "probe", &[evidence.transitions() as u64]);
            agent.spec().action.sample(&mut rng, &mut action);
        }
        if let ActionBuf::Continuous(values) = &action
            && values.iter().any(|x| !x.is_finite())
        {
            let problem =
                "the policy gave an action that is not finite; `reset` forgets what led to it".into();
            return Err(LearnError::Config { origin: "action".into(), problem });
        }
        Ok(action)
    }

    /// Value F z / d of each action at `obs`; empty where an actor chooses.
    pub fn values(&mut self, obs: &[f32]) -> Result<Vec<f32>, LearnError> {
        self.check(obs)?;
        Ok(self.q(obs))
    }

    /// Sees where an action led. Only a session that is [`Session::online`] learns from it.
    pub fn observe(&mut self, obs: &[f32], action: &ActionBuf, next: &[f32]) -> Result<(), LearnError> {
        self.check(obs)?;
        self.check(next)?;
        let spec = self.adapted.agent.spec();
        if !spec.action.contains(action.as_action()) {
            return Err(spec.action.reject(&spec.name, action.as_action()).into());
        }
        if !self.online || self.adapted.agent.belief().is_none() {
            return Ok(());
        }
        let (repeat, refresh) = match &self.adapted.agent.model {
            Model::Listed(_) => (1, 1),
            Model::Observations(model) => {
                (model.codec.action_repeat(), self.adapted.agent.settings.belief.refresh)
            }
        };
        let trail = &mut self.trail;
        if trail.done.is_empty() {
            trail.obs.clear();
            trail.obs.extend_from_slice(obs);
        }
        trail.obs.extend_from_slice(next);
        trail.done.push(action.clone());
        trail.stale += 1;
        if trail.done.len() < repeat {
            return Ok(());
        }
        let actions: Vec<Action<'_>> = trail.done.iter().map(ActionBuf::as_action).collect();
        let Adapted { agent, evidence, .. } = &mut self.adapted;
        let news = agent.belief().is_some_and(|belief| belief.observe_step(evidence, &trail.obs, &actions));
        trail.done.clear();
        if news && trail.stale >= refresh {
            self.refresh();
        }
        Ok(())
    }

    /// Forms the belief anew from all that was seen, whatever the interval.
    pub fn refresh(&mut self) {
        self.trail.stale = 0;
        self.update();
    }

    /// An episode begins: nothing that was held goes on.
    pub fn restart(&mut self) {
        self.trail = Trail::default();
    }

    /// Takes in another context instead of all that was seen so far.
    pub fn reset(&mut self, context: &[Trajectory]) -> Result<(), LearnError> {
        self.adapted = self.adapted.agent.adapt(context)?;
        self.restart();
        self.update();
        Ok(())
    }

    fn check(&self, obs: &[f32]) -> Result<(), LearnError> {
        let wrong = |problem: String| Err(LearnError::Config { origin: "observation".into(), problem });
        let dims = &self.adapted.agent.spec().observation;
        if obs.len() != dims.len() {
            return wrong(format!("{} numbers, expected {}", obs.len(), dims.len()));
        }
        for ((x, dim), [low, high]) in obs.iter().zip(dims).zip(&self.limits) {
            if !x.is_finite() {
                return wrong(format!("\"{}\" is {x}, expected a finite number", dim.name));
            }
            if !(low..=high).contains(&x) {
                let problem = format!(
                    "\"{}\" is {x}, far outside of what the data showed; expected {low} to {high}",
                    dim.name
                );
                return wrong(problem);
            }
        }
        Ok(())
    }

    fn begin_rows(&mut self) {
        let agent = &self.adapted.agent;
        let Model::Observations(model) = &agent.model else { return };
        let weights = model.params.weights();
        let blank = vec![0.0; model.condition_width() + agent.dim()];
        let backward = (model.backward_map(), &weights);
        let nets = model.forward.iter().map(|net| RowNet::new(net, &weights, backward, &blank, agent.dim()));
        // Oracle-ID is told embeddings of groups, zeros where it knows none: its predictor is the conditioned one too.
        let told = !matches!(agent.conditioner, Conditioner::Nothing);
        self.rows = Rows {
            forward: nets.collect::<Option<Vec<_>>>().unwrap_or_default(),
            actor: model.actor.as_ref().and_then(|actor| actor.row(backward, &blank, agent.dim())),
            predictor: model.predictor.as_ref().map(|belief| belief.row_predictor(told)),
        };
    }

    /// Makes belief and task ready to act on.
    fn update(&mut self) {
        let agent = self.adapted.agent.clone();
        // Nobody tells the context's id, so Oracle-ID is told that it is none it knows.
        self.known = agent.known(&[ContextId(u64::MAX)], &[&self.adapted.evidence]);
        self.z = latent::shifted(self.task.z.clone(), &self.adapted.shift);
        match &agent.model {
            Model::Listed(model) => {
                let (planner, task_policy) = (self.planner, self.task_policy);
                self.q = agent.listed_values(model, &self.known, &self.z, planner, task_policy);
            }
            Model::Observations(model) => {
                let mut input = self.known.inputs.clone();
                input.resize(model.condition_width(), 0.0);
                let task = [&input[..], &self.z].concat();
                self.rows.forward.iter_mut().for_each(|row| row.fix(&task));
                self.rows.actor.iter_mut().for_each(|row| row.fix(&task));
                if let (Some(row), Some(belief)) = (&mut self.rows.predictor, &model.predictor)
                    && !self.known.beliefs.is_empty()
                {
                    belief.tell(row, &self.known.beliefs);
                }
                self.plan = match self.planner {
                    Planner::Sweeps => agent.node_values(model, &self.known.beliefs, &self.z),
                    Planner::None => None,
                };
            }
        }
    }

    /// Q of each action at `obs`; empty where an actor chooses.
    fn q(&mut self, obs: &[f32]) -> Vec<f32> {
        let agent = self.adapted.agent.clone();
        match &agent.model {
            Model::Listed(model) => {
                let actions = model.table().actions();
                self.q[model.table().nearest(obs) * actions..][..actions].to_vec()
            }
            Model::Observations(model) => {
                if let Some(plan) = &self.plan {
                    return agent.planned_values(model, plan, obs, &self.known.beliefs);
                }
                let Some(n) = model.n_choices() else { return Vec::new() };
                if self.rows.forward.is_empty() {
                    return model.action_values(&agent.states(model, obs, &self.known, &self.z));
                }
                self.q_by_rows(model, obs, n)
            }
        }
    }

    /// Q of each action to choose from by networks for single rows.
    fn q_by_rows(&mut self, model: &ObservationModel, obs: &[f32], n: usize) -> Vec<f32> {
        let (codec, head, z) = (&model.codec, model.config.value_head, &self.z);
        let s = codec.encode(obs);
        let (width, share) = (head.width(z.len()), 1.0 / self.rows.forward.len() as f32);
        let mut values = vec![0.0; n];
        if self.rows.predictor.is_none() && codec.actions().n_actions().is_none() {
            for (q, a) in values.iter_mut().zip(codec.actions().candidates()) {
                for row in &mut self.rows.forward {
                    *q += share * head.value(row.forward(&s, &a), z);
                }
            }
            return values;
        }
        let Some(predictor) = &mut self.rows.predictor else {
            for row in &mut self.rows.forward {
                let heads = row.forward(&s, &[]).chunks_exact(width);
                values.iter_mut().zip(heads).for_each(|(q, raw)| *q += share * head.value(raw, z));
            }
            return values;
        };
        for (q, a) in values.iter_mut().zip(codec.actions().candidates()) {
            let sa = [&s[..], &a].concat();
            let change = predictor.predict(&sa).iter().zip(codec.change_scale());
            let next: Vec<f32> =
                obs.iter().zip(change).map(|(x, (change, scale))| x + change * scale).collect();
            let next = codec.encode(&next);
            for row in &mut self.rows.forward {
                *q += share * head.value(row.forward(&next, &[]), z);
            }
        }
        values
    }

    fn choose(&mut self, obs: &[f32]) -> ActionBuf {
        let agent = self.adapted.agent.clone();
        match &agent.model {
            Model::Listed(model) => {
                let q = self.q(obs);
                model.table().discretizer().action(&q, model.config().gamma)
            }
            Model::Observations(model) => {
                let codec = model.codec.actions();
                if model.n_choices().is_some() || self.plan.is_some() {
                    let best = argmax(&self.q(obs));
                    return codec.action(best, &codec.candidates()[best]);
                }
                let vector = match &mut self.rows.actor {
                    Some(actor) => actor.act(&model.codec.encode(obs)).to_vec(),
                    None => model.actions(&agent.states(model, obs, &self.known, &self.z)),
                };
                codec.action(0, &vector)
            }
        }
    }
}
