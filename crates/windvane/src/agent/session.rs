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

use super::acting::{Ready, Trail, UNKNOWN};
use super::rows::Rows;
use super::task::{Inference, TaskCode};
use super::{Acting, Agent, Confidence, Model, TaskPolicy};
use crate::belief::{Evidence, Posteriors};
use crate::error::{LearnError, Result};
use crate::eval::BeliefMode;
use crate::fb::conditioning::Conditioner;
use crate::latent;
use crate::planner::Planner;
use std::sync::Arc;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{ActionBuf, Prompt};

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
    acting: Acting,
    ready: Ready,
    /// Networks for single rows, where they have such a form.
    rows: Option<Rows>,
    trail: Trail,
    /// Smallest and largest value of each number that an observation may have.
    limits: Vec<[f32; 2]>,
}

impl Agent {
    /// Takes in what was seen of the dynamics; nothing at all is allowed.
    pub fn adapt(&self, context: &[Trajectory]) -> Result<Adapted> {
        let dims = self.spec().obs_dim();
        if let Some(wrong) = context.iter().find(|trajectory| trajectory.obs_dim() != dims) {
            let problem = format!("observations of {} numbers, expected {dims}", wrong.obs_dim());
            return Err(LearnError::config("context", problem));
        }
        let scores: Vec<f64> = context.iter().filter_map(|trajectory| self.ood_score(trajectory)).collect();
        let ood_score =
            (!scores.is_empty()).then(|| (scores.iter().sum::<f64>() / scores.len() as f64) as f32);
        let (evidence, shift) = (self.evidence(context), self.shift(context)?);
        Ok(Adapted { agent: Arc::new(self.clone()), evidence, shift, ood_score })
    }

    /// The task vector of a prompt.
    pub fn infer(&self, prompt: &Prompt, inference: Inference) -> Result<TaskCode> {
        self.visited.task(prompt, self.spec(), inference, |states| self.backward(states))
    }

    /// States that were visited in the data, `[rows * dims]`: what a reward function is labelled on.
    pub fn visited(&self) -> &[f32] {
        &self.visited.states
    }

    /// Whether a task vector is one of the agent's.
    pub(super) fn check_task(&self, z: &[f32]) -> Result<()> {
        if z.len() == self.dim() && z.iter().all(|x| x.is_finite()) {
            return Ok(());
        }
        let problem = format!("z has {} numbers, expected {} finite ones", z.len(), self.dim());
        Err(LearnError::config("task", problem))
    }

    /// The task vector of a reward by its value at each of the [`Agent::visited`] states.
    pub fn infer_labelled(&self, rewards: &[f32], inference: Inference) -> Result<TaskCode> {
        self.visited.task_of(rewards, inference)
    }
}

impl Adapted {
    /// How sure the belief is, and whether the context looks like training.
    pub fn confidence(&self) -> Confidence {
        self.confidence_at(self.ood_score)
    }

    fn confidence_at(&self, ood_score: Option<f32>) -> Confidence {
        let Self { agent, evidence, .. } = self;
        let least = match &agent.model {
            Model::Listed(_) => 0,
            Model::Observations(model) => agent.settings.belief.min_context / model.codec.action_repeat,
        };
        let posterior = self.posterior();
        let relative = match &agent.conditioner {
            Conditioner::Belief { scale, .. } if evidence.transitions() > 0 => {
                let square = posterior.std.iter().map(|s| f64::from(s * scale).powi(2)).sum::<f64>();
                Some((square / posterior.std.len().max(1) as f64).sqrt())
            }
            _ => None,
        };
        let transitions = [evidence.transitions(), least];
        Confidence::new(transitions, posterior.mean, relative, ood_score, &agent.calibration)
    }

    /// Takes a task, by projection.
    pub fn task(&self, prompt: &Prompt) -> Result<Session> {
        self.task_by(prompt, Inference::Projection)
    }

    /// The Gaussian over h after what was seen; empty for a method without a belief.
    pub fn posterior(&self) -> Posteriors {
        self.agent.belief().map(|belief| belief.infer(&[&self.evidence])).unwrap_or_default()
    }

    /// Takes a task.
    pub fn task_by(&self, prompt: &Prompt, inference: Inference) -> Result<Session> {
        self.session(self.agent.infer(prompt, inference)?)
    }

    /// Takes a task whose vector is known.
    pub fn session(&self, task: TaskCode) -> Result<Session> {
        self.agent.check_task(&task.z)?;
        let dims = self.agent.spec().obs_dim();
        let limit = |dim: usize| {
            let values = || self.agent.visited.states.iter().skip(dim).step_by(dims);
            let low = values().fold(f32::INFINITY, |low, x| low.min(*x));
            let high = values().fold(f32::NEG_INFINITY, |high, x| high.max(*x));
            let margin = FARTHEST * (high - low).max(1e-3);
            [low - margin, high + margin]
        };
        let mut session = Session {
            acting: Acting::F_ALONE,
            ready: Ready::default(),
            rows: Rows::new(&self.agent),
            trail: Trail::default(),
            limits: (0..dims).map(limit).collect(),
            adapted: self.clone(),
            task,
        };
        session.update();
        Ok(session)
    }
}

impl Session {
    /// The same with a belief that goes on learning while it acts.
    #[must_use]
    pub fn online(mut self) -> Self {
        self.acting.belief = BeliefMode::Online;
        self
    }

    /// The same with another choice of who acts: F alone, in one of two ways, or the planner.
    #[must_use]
    pub fn by(mut self, planner: Planner, task_policy: TaskPolicy) -> Self {
        (self.acting.planner, self.acting.task_policy) = (planner, task_policy);
        self.update();
        self
    }

    /// The task vector and how it came about.
    pub fn code(&self) -> &TaskCode {
        &self.task
    }

    /// Takes another task; what was learned of the dynamics stays.
    pub fn retask(&mut self, prompt: &Prompt) -> Result<()> {
        let task = self.adapted.agent.infer(prompt, self.task.inference)?;
        self.take(task)
    }

    /// Takes another task whose vector is known.
    pub fn take(&mut self, task: TaskCode) -> Result<()> {
        self.adapted.agent.check_task(&task.z)?;
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
        self.adapted.confidence_at(score)
    }

    /// The next action.
    pub fn act(&mut self, obs: &[f32]) -> Result<ActionBuf> {
        self.check(obs)?;
        if let Some(held) = self.trail.next() {
            return Ok(held);
        }
        let action = self.decide(obs)?;
        self.trail.hold(action.clone(), self.adapted.agent.action_repeat() - 1);
        Ok(action)
    }

    /// The action that F chooses at `obs`, whatever is being held.
    pub fn decide(&mut self, obs: &[f32]) -> Result<ActionBuf> {
        self.check(obs)?;
        let q = self.q(obs);
        let Adapted { agent, evidence, .. } = &self.adapted;
        let mut action = match (q, &mut self.rows) {
            (Some(q), _) => agent.best_action(&q, agent.settings.fb.gamma),
            (None, Some(rows)) => rows.act(obs).unwrap_or_else(|| agent.spec().action.buffer()),
            (None, None) => agent.choose(&[&self.ready], obs).remove(0),
        };
        if self.acting.belief == BeliefMode::Online && agent.probes(evidence) {
            let mut rng = stream(agent.seed, "probe", &[evidence.transitions() as u64]);
            agent.spec().action.sample(&mut rng, &mut action);
        }
        if let ActionBuf::Continuous(values) = &action
            && values.iter().any(|x| !x.is_finite())
        {
            let problem = "the policy gave an action that is not finite; `reset` forgets what led to it";
            return Err(LearnError::config("action", problem));
        }
        Ok(action)
    }

    /// Value F z / d of each action at `obs`; empty where an actor chooses.
    pub fn values(&mut self, obs: &[f32]) -> Result<Vec<f32>> {
        self.check(obs)?;
        Ok(self.q(obs).unwrap_or_default())
    }

    /// Sees where an action led. Only a session that is [`Session::online`] learns from it.
    pub fn observe(&mut self, obs: &[f32], action: &ActionBuf, next: &[f32]) -> Result<()> {
        self.check(obs)?;
        self.check(next)?;
        let spec = self.adapted.agent.spec();
        if !spec.action.contains(action.as_action()) {
            return Err(spec.action.reject(&spec.name, action.as_action()).into());
        }
        let Adapted { agent, evidence, .. } = &mut self.adapted;
        if self.acting.belief == BeliefMode::Online
            && self.trail.observe(agent, evidence, (obs, action.as_action(), next))
        {
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
    pub fn reset(&mut self, context: &[Trajectory]) -> Result<()> {
        self.adapted = self.adapted.agent.adapt(context)?;
        self.restart();
        self.update();
        Ok(())
    }

    fn check(&self, obs: &[f32]) -> Result<()> {
        let wrong = |problem: String| Err(LearnError::config("observation", problem));
        let spec = self.adapted.agent.spec();
        if obs.len() != spec.obs_dim() {
            return wrong(format!("{} numbers, expected {}", obs.len(), spec.obs_dim()));
        }
        if let Some(problem) = spec.not_finite(obs) {
            return wrong(problem);
        }
        let mut limits = obs.iter().zip(&spec.observation).zip(&self.limits);
        match limits.find(|((x, _), [low, high])| !(low..=high).contains(x)) {
            Some(((x, dim), [low, high])) => wrong(format!(
                "\"{}\" is {x}, far outside of what the data showed; expected {low} to {high}",
                dim.name
            )),
            None => Ok(()),
        }
    }

    /// Makes belief and task ready to act on.
    fn update(&mut self) {
        let Adapted { agent, evidence, shift, .. } = &self.adapted;
        let mut evidence = evidence.clone();
        self.task.goals.iter().for_each(|goal| agent.observe_goal(&mut evidence, goal));
        let z = latent::shifted(self.task.z.clone(), shift);
        self.ready = agent.ready(&[UNKNOWN], &[&evidence], vec![z], self.acting).remove(0);
        if let Some(rows) = &mut self.rows {
            rows.fix(&self.ready);
        }
    }

    /// Q of each action at `obs`; nothing where an actor chooses.
    fn q(&mut self, obs: &[f32]) -> Option<Vec<f32>> {
        match &mut self.rows {
            Some(rows) if self.ready.plan.is_none() => rows.q(obs, &self.ready.z),
            _ => self.adapted.agent.q(&[&self.ready], obs),
        }
    }
}
