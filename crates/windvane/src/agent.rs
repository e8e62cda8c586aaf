//! What every trained agent can do: listen to a context, then play.

use crate::deploy::Core;
use crate::doctor::Finding;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig};
use crate::finite::agent::FiniteAgent;
use crate::nn::TensorFile;
use crate::train::Metrics;
use serde::{Deserialize, Serialize};
use windvane_world::Cmdp;
use windvane_world::collect::Actor;
use windvane_world::protocol::Team;
use windvane_world::trajectory::Trajectory;

/// How an agent is to act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acting {
    /// Whether its belief goes on learning.
    pub belief: BeliefMode,
    /// How it looks ahead, where it can.
    pub outlook: Outlook,
    /// How far task vectors go toward the belief, where they were drawn around it in training; 0: not at all.
    pub blend: f32,
}

/// How an agent looks ahead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    /// Bellman sweeps through the predictor before acting; 0 acts on the forward map alone.
    pub lookahead: usize,
    /// What trying again is worth when a move leads nowhere, 0 to 1. At 1 the next try is a new one, as in a world of chance. At
    /// 0 what was refused is refused for good, as by a wall: one stays, and gets what there is to get there.
    #[serde(default = "new_try")]
    pub retry: f32,
}

pub(crate) fn new_try() -> f32 {
    1.0
}

impl Outlook {
    /// The forward map alone.
    pub const NONE: Self = Self { lookahead: 0, retry: 1.0 };
}

/// A team that plays with one agent.
pub type Players<'a> = Box<dyn Team<Error = LearnError> + 'a>;

/// A trained agent, of any method and core.
pub trait Agent {
    /// A team for one game per context trajectory, in the order the games will have.
    fn players<'a>(&'a self, contexts: &[&Trajectory], acting: &Acting) -> Result<Players<'a>, LearnError>;

    /// Whether it can look ahead at all; what is asked for otherwise is ignored.
    fn looks_ahead(&self) -> bool;

    /// The few numbers to watch while it is trained, besides its scores.
    fn vitals(&self, world: &dyn Cmdp, eval: &EvalConfig, seed: u64) -> Result<Metrics, LearnError>;

    /// Someone who goes where the agent's belief is least sure; nothing where its core cannot say.
    fn explorer(&self) -> Option<Box<dyn Actor + '_>> {
        None
    }

    /// How badly half of a context is predicted from the other half: large for dynamics like none that were learned from.
    /// Nothing where its core cannot say, or the context is too short.
    fn surprise(&self, _context: &Trajectory) -> Option<f64> {
        None
    }

    /// Writes all that it needs to act into `file`, and returns its settings; an error where its core cannot be kept apart
    /// from its data.
    fn keep(&self, _file: &mut TensorFile) -> Result<Core, LearnError> {
        Err(LearnError::Config {
            origin: "export".into(),
            problem: "agents of this core cannot be kept apart from their data".into(),
        })
    }

    /// Examines the agent in its own world, hidden contexts included: for diagnosis only.
    fn examine(&self, world: &dyn Cmdp, eval: &EvalConfig, seed: u64) -> Result<Vec<Finding>, LearnError>;

    /// The means of h after each context, `[contexts * width]`; nothing for a method without a belief.
    fn beliefs(&self, contexts: &[&Trajectory]) -> Vec<f32> {
        let _ = contexts;
        Vec::new()
    }

    /// The agent on listed states that it is, for figures that look inside; nothing if it is of another core.
    fn listed(&self) -> Option<&FiniteAgent> {
        None
    }
}

/// What `make` makes of each context; of one that several games share it is made once.
pub(crate) fn once_each<T: Clone>(
    contexts: &[&Trajectory],
    mut make: impl FnMut(&Trajectory) -> Result<T, LearnError>,
) -> Result<Vec<T>, LearnError> {
    let mut made: Vec<T> = Vec::with_capacity(contexts.len());
    for (i, context) in contexts.iter().enumerate() {
        let again = contexts[..i].iter().position(|other| std::ptr::eq(*other, *context));
        made.push(match again {
            Some(first) => made[first].clone(),
            None => make(context)?,
        });
    }
    Ok(made)
}
