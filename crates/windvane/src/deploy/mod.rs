//! A trained agent as one folder, and the few lines that use it:
//!
//! ```no_run
//! use windvane::Agent;
//! use windvane_world::{Prompt, episodes::read_walks};
//!
//! let agent = Agent::load("models/cart")?;
//! let context = read_walks("context.npz".as_ref(), agent.spec())?;
//! let mut pilot = agent.adapt(&context)?.task(&Prompt::formula("(abs(angle) < 0.1)"))?;
//! let action = pilot.act(&[0.0, 0.1, 0.0, 0.0])?;
//! # Ok::<(), windvane::LearnError>(())
//! ```
//!
//! The folder holds `config.json`, `model.safetensors` and a model card, `README.md`.

mod card;
mod doubt;
mod folder;

pub use doubt::Doubt;
pub use folder::{Core, VERSION, export};

use crate::error::LearnError;
use crate::finite::agent::FiniteAgent;
use crate::finite::pilot::FiniteBriefing;
use crate::neural::agent::NeuralAgent;
use crate::neural::pilot::NeuralBriefing;
use crate::task::{Inference, TaskCode, Visited};
use std::path::Path;
use std::sync::Arc;
use windvane_world::trajectory::Trajectory;
use windvane_world::{ActionBuf, EnvSpec, Prompt};

/// A trained agent, read from its folder.
#[derive(Clone, Debug)]
pub struct Agent {
    folder: Arc<folder::Folder>,
    body: Body,
}

/// The agent of either core.
#[derive(Clone, Debug)]
enum Body {
    Neural(Arc<NeuralAgent>),
    Listed(Arc<FiniteAgent>, Arc<Visited>),
}

/// An agent that has listened to a context.
#[derive(Clone, Debug)]
pub struct Adapted {
    agent: Agent,
    briefing: Briefing,
}

#[derive(Clone, Debug)]
enum Briefing {
    Neural(NeuralBriefing),
    Listed(FiniteBriefing),
}

/// An agent that knows its context and its task.
#[derive(Debug)]
pub struct Pilot {
    agent: Agent,
    task: TaskCode,
    steer: Box<dyn Steer>,
    learns: bool,
}

/// What sits behind a [`Pilot`]; observations and actions fit.
pub(crate) trait Steer: std::fmt::Debug + Send {
    /// The next action.
    fn act(&mut self, obs: &[f32]) -> ActionBuf;
    /// Takes a transition into the belief, and refreshes it now and then.
    fn observe(&mut self, obs: &[f32], action: &ActionBuf, next: &[f32]);
    /// Refreshes the belief at once.
    fn refresh(&mut self);
    /// An episode begins: nothing that was held goes on.
    fn restart(&mut self);
    /// The worth of each move; empty where actions are vectors.
    fn values(&mut self, obs: &[f32]) -> Vec<f32>;
    /// Takes another task vector.
    fn aim(&mut self, z: Vec<f32>);
    /// What it thinks of all it was told and has met.
    fn doubt(&self) -> Doubt;
}

impl Agent {
    /// Reads an agent from its folder.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LearnError> {
        folder::load(path.as_ref())
    }

    /// The visible side of its world.
    pub fn spec(&self) -> &EnvSpec {
        &self.folder.env
    }

    /// Its method's name.
    pub fn method(&self) -> &str {
        &self.folder.method
    }

    /// Listens to what was seen of the dynamics; nothing at all is allowed.
    pub fn adapt(&self, context: &[Trajectory]) -> Result<Adapted, LearnError> {
        let wrong =
            context.iter().find(|walk| walk.observations().len() != (walk.len() + 1) * self.spec().obs_dim());
        if let Some(walk) = wrong {
            let width = walk.observations().len() / (walk.len() + 1);
            let problem = format!("observations of {width} numbers, expected {}", self.spec().obs_dim());
            return Err(LearnError::Config { origin: "context".into(), problem });
        }
        let briefing = match &self.body {
            Body::Neural(agent) => Briefing::Neural(NeuralBriefing::new(agent.clone(), context)),
            Body::Listed(agent, _) => Briefing::Listed(FiniteBriefing::new(agent.clone(), context)),
        };
        Ok(Adapted { agent: self.clone(), briefing })
    }

    /// The task vector of a prompt.
    pub fn infer(&self, prompt: &Prompt, inference: Inference) -> Result<TaskCode, LearnError> {
        match &self.body {
            Body::Neural(agent) => {
                agent.visited().task(prompt, self.spec(), inference, |states| agent.model().backward(states))
            }
            Body::Listed(agent, visited) => {
                visited.task(prompt, self.spec(), inference, |states| agent.backward(states))
            }
        }
    }
}

impl Adapted {
    /// How sure the belief is, and how usual the context.
    pub fn doubt(&self) -> Doubt {
        match &self.briefing {
            Briefing::Neural(briefing) => briefing.doubt(),
            Briefing::Listed(briefing) => briefing.doubt(),
        }
    }

    /// Takes a task, by projection.
    pub fn task(&self, prompt: &Prompt) -> Result<Pilot, LearnError> {
        self.task_by(prompt, Inference::Projection)
    }

    /// Takes a task.
    pub fn task_by(&self, prompt: &Prompt, inference: Inference) -> Result<Pilot, LearnError> {
        let task = self.agent.infer(prompt, inference)?;
        let outlook = self.agent.folder.outlook;
        let steer: Box<dyn Steer> = match &self.briefing {
            Briefing::Neural(briefing) => Box::new(briefing.clone().steer(task.z.clone(), outlook)),
            Briefing::Listed(briefing) => Box::new(briefing.clone().steer(task.z.clone(), outlook)),
        };
        Ok(Pilot { agent: self.agent.clone(), task, steer, learns: false })
    }
}

impl Pilot {
    /// The same with a belief that goes on learning while it acts.
    #[must_use]
    pub fn online(self) -> Self {
        Self { learns: true, ..self }
    }

    /// The task vector and how it came about.
    pub fn code(&self) -> &TaskCode {
        &self.task
    }

    /// Takes another task; what was learned of the dynamics stays.
    pub fn retask(&mut self, prompt: &Prompt) -> Result<(), LearnError> {
        self.task = self.agent.infer(prompt, self.task.inference)?;
        self.steer.aim(self.task.z.clone());
        Ok(())
    }

    /// How sure the belief is by now, and how usual what it was formed from.
    pub fn doubt(&self) -> Doubt {
        self.steer.doubt()
    }

    /// The next action.
    pub fn act(&mut self, obs: &[f32]) -> Result<ActionBuf, LearnError> {
        self.check(obs)?;
        Ok(self.steer.act(obs))
    }

    /// The worth F z of each move at `obs`; empty where actions are vectors.
    pub fn values(&mut self, obs: &[f32]) -> Result<Vec<f32>, LearnError> {
        self.check(obs)?;
        Ok(self.steer.values(obs))
    }

    /// Sees where an action led. Only a pilot that is [`Pilot::online`] learns from it.
    pub fn observe(&mut self, obs: &[f32], action: &ActionBuf, next: &[f32]) -> Result<(), LearnError> {
        self.check(obs)?;
        self.check(next)?;
        let spec = self.agent.spec();
        if !spec.action.contains(action.as_action()) {
            return Err(spec.action.reject(&spec.name, action.as_action()).into());
        }
        if self.learns {
            self.steer.observe(obs, action, next);
        }
        Ok(())
    }

    /// Forms the belief anew from all that was seen, whatever the interval.
    pub fn refresh(&mut self) {
        self.steer.refresh();
    }

    /// An episode begins.
    pub fn restart(&mut self) {
        self.steer.restart();
    }

    fn check(&self, obs: &[f32]) -> Result<(), LearnError> {
        let wrong = |problem: String| Err(LearnError::Config { origin: "observation".into(), problem });
        let dims = &self.agent.spec().observation;
        if obs.len() != dims.len() {
            return wrong(format!("{} numbers, expected {}", obs.len(), dims.len()));
        }
        match obs.iter().position(|x| !x.is_finite()) {
            Some(dim) => wrong(format!("\"{}\" is {}, expected a finite number", dims[dim].name, obs[dim])),
            None => Ok(()),
        }
    }
}
