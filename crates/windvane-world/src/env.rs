//! What a contextual environment is: one set of states and actions, many hidden dynamics.

use crate::error::WorldError;
use crate::reward::Task;
use crate::rng::Rng;
use serde::{Deserialize, Serialize};

/// One coordinate of an observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dim {
    /// Its name, for formulas and plots.
    pub name: String,
    /// Smallest value.
    pub low: f32,
    /// Largest value.
    pub high: f32,
    /// Whether only whole numbers occur (grids): such observations can be enumerated.
    pub integer: bool,
}

/// What can be done in a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionSpace {
    /// One of a few named moves.
    Discrete {
        /// The name of each.
        names: Vec<String>,
    },
    /// A vector within a box.
    Continuous {
        /// Smallest value of each component.
        low: Vec<f32>,
        /// Largest value of each component.
        high: Vec<f32>,
    },
}

/// An action of either kind, borrowed so that stepping never allocates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// The index of a named move.
    Discrete(u32),
    /// A vector within the box.
    Continuous(&'a [f32]),
}

/// The visible side of an environment: what an agent may know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvSpec {
    /// Name, as the command line spells it.
    pub name: String,
    /// The observation, coordinate by coordinate. The hidden context is never in it.
    pub observation: Vec<Dim>,
    /// The actions.
    pub action: ActionSpace,
    /// Steps in an episode.
    pub horizon: usize,
}

/// A hidden context. The number *is* the context (a layout's code, a wind's index), so two contexts are the same
/// dynamics exactly when their numbers agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContextId(pub u64);

/// Contexts to learn from, or held out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Seen in training.
    Train,
    /// Never seen in training.
    Test,
}

/// Where an episode begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// The context's own start state, as in evaluation.
    Fixed,
    /// Any reachable state.
    Random,
}

/// What a step brought, besides the observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The episode is over for a reason of the dynamics (a fallen ant); grids and mazes never say so.
    pub terminated: bool,
}

/// A family of environments that differ in their hidden dynamics: `c -> M(c)`.
pub trait Cmdp: Send + Sync {
    /// What all contexts share.
    fn spec(&self) -> &EnvSpec;
    /// The contexts of a split; the two splits are disjoint as dynamics.
    fn contexts(&self, split: Split) -> &[ContextId];
    /// The environment of one context.
    fn instantiate(&self, context: ContextId) -> Result<Box<dyn Env>, WorldError>;
    /// The named evaluation tasks of one context.
    fn tasks(&self, context: ContextId) -> Result<Vec<Task>, WorldError>;
    /// What makes this context what it is, for people, data-set tables and pictures; never for an agent.
    fn describe(&self, context: ContextId) -> Result<serde_json::Value, WorldError>;
}

/// One environment with fixed dynamics. There is no reward inside: a reward is a separate thing.
pub trait Env: Send {
    /// Begins an episode and writes its first observation.
    fn reset(&mut self, start: Start, rng: &mut Rng, obs: &mut [f32]) -> Result<(), WorldError>;
    /// Takes one step and writes the observation it leads to.
    fn step(&mut self, action: Action<'_>, obs: &mut [f32]) -> Result<Step, WorldError>;
}

impl EnvSpec {
    /// Number of observation coordinates.
    pub fn obs_dim(&self) -> usize {
        self.observation.len()
    }
}

impl ActionSpace {
    /// Number of moves, or of components.
    pub fn size(&self) -> usize {
        match self {
            Self::Discrete { names } => names.len(),
            Self::Continuous { low, .. } => low.len(),
        }
    }
}
