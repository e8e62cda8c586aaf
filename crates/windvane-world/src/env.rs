//! What a contextual environment is: one set of states and actions, many hidden dynamics.

pub use crate::action::{Action, ActionBuf, ActionSpace, Actions};
use crate::batch::BatchEnv;
use crate::ceilings::ExactBeliefs;
use crate::collect::BehaviourPolicy;
use crate::error::WorldError;
use crate::grid::GridWorld;
use crate::protocol::Policy;
use crate::reward::{SampledTask, Task};
use crate::rng::Rng;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

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

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Test => "test",
        })
    }
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// The episode is over for a reason of the dynamics (a fallen ant); grids and mazes never say so.
    pub terminated: bool,
    /// What the step itself costs, whatever the task: torques, impacts. The reward of a step is the task's reward of the
    /// observation it led to, less this; 0 for grids, mazes and pendulums.
    pub cost: f32,
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
    /// A goal in every place of one context, where places are distinct; nothing elsewhere.
    fn places(&self, _context: ContextId) -> Result<Vec<Task>, WorldError> {
        Ok(Vec::new())
    }
    /// What makes this context what it is, for people, data-set tables and pictures; never for an agent.
    ///
    /// Mazes of any kind say `kind`, `width`, `height`, `rows` of text (`#` wall, `.` free), `cell_size` and `origin`
    /// (the observation at the middle of the cell in column 0 of row 0), `start` and `goals` (observations).
    fn describe(&self, context: ContextId) -> Result<serde_json::Value, WorldError>;
    /// Takes the experts that the data set at `data` comes from as the policies below, where there are any.
    fn take_experts(&mut self, _data: &Path) -> Result<(), WorldError> {
        Ok(())
    }
    /// A policy that knows the context and takes the shortest way to any goal, or does best at the world's own tasks; nothing
    /// where none is known.
    fn oracle(&self, _context: ContextId) -> Result<Option<Box<dyn Policy + '_>>, WorldError> {
        Ok(None)
    }
    /// A named policy that knows no context but how the family is best played without; nothing where none is known.
    fn ignorant(&self) -> Option<(&'static str, Box<dyn Policy + '_>)> {
        None
    }
    /// `each` tasks of every kind of reward that is no goal, whose best returns are known; none where there are no such tasks, or
    /// where [returns are exact](crate::grid::RewardTask).
    fn reward_tasks(
        &self,
        _context: ContextId,
        _rng: &mut Rng,
        _each: usize,
    ) -> Result<Vec<SampledTask>, WorldError> {
        Ok(Vec::new())
    }
    /// Exact beliefs about contexts, for policies that plan on them; nothing where none are known.
    fn exact_beliefs(&self) -> Result<Option<Box<dyn ExactBeliefs + '_>>, WorldError> {
        Ok(None)
    }
    /// The behaviour policy that data are usually collected with.
    fn behaviour(&self) -> BehaviourPolicy {
        BehaviourPolicy::default_for(&self.spec().action)
    }
    /// Many environments to step at once, one for each of `contexts`.
    fn batch(&self, contexts: &[ContextId]) -> Result<Box<dyn BatchEnv>, WorldError> {
        let envs = contexts.iter().map(|&context| self.instantiate(context)).collect::<Result<_, _>>()?;
        Ok(Box::new(crate::batch::OneByOne::new(self.spec(), envs)))
    }
    /// The layouts behind a grid world, for exact tools; nothing for other worlds.
    fn grid(&self) -> Option<&GridWorld> {
        None
    }
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

    /// The first number of observations `[rows * dims]` that is not finite, in words; nothing if all are.
    pub fn not_finite(&self, obs: &[f32]) -> Option<String> {
        let place = obs.iter().position(|x| !x.is_finite())?;
        let (row, name) = (place / self.obs_dim(), &self.observation[place % self.obs_dim()].name);
        let row = if obs.len() > self.obs_dim() { format!(" of observation {row}") } else { String::new() };
        Some(format!("\"{name}\"{row} is {}, expected a finite number", obs[place]))
    }

    /// Number of states, where every coordinate takes only whole numbers; nothing for continuous worlds.
    ///
    /// All contexts share this set, so it counts cells that are walls in some of them.
    pub fn states(&self) -> Option<usize> {
        self.observation.iter().try_fold(1_usize, |states, dim| states.checked_mul(dim.values()?))
    }

    /// The index of the state seen as `obs`; nothing outside the set.
    ///
    /// The first coordinate counts fastest: `(x, y)` on a grid is `x + width * y`, each from its low.
    pub fn state_of(&self, obs: &[f32]) -> Option<usize> {
        if obs.len() != self.obs_dim() {
            return None;
        }
        let mut state = 0;
        let mut stride = 1;
        for (dim, &value) in self.observation.iter().zip(obs) {
            let values = dim.values()?;
            if !(dim.low..=dim.high).contains(&value) || value.fract() != 0.0 {
                return None;
            }
            state += stride * (value - dim.low) as usize;
            stride *= values;
        }
        Some(state)
    }

    /// Writes the observation of the state with index `state`, the inverse of [`Self::state_of`].
    ///
    /// # Panics
    /// For a continuous world, or an index that is none of [`Self::states`].
    pub fn write_state(&self, state: usize, obs: &mut [f32]) {
        let mut rest = state;
        for (dim, value) in self.observation.iter().zip(obs) {
            let values = dim.values().expect("a world with a finite set of states");
            *value = dim.low + (rest % values) as f32;
            rest /= values;
        }
        assert_eq!(rest, 0, "state {state} is outside the set");
    }
}

impl Dim {
    /// Number of values, if they can be counted (up to 2^24, where 32-bit floats still hold every whole number).
    pub fn values(&self) -> Option<usize> {
        const MOST: f32 = 16_777_215.0;
        let span = self.high - self.low;
        (self.integer && (0.0..=MOST).contains(&span)).then(|| span as usize + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_observations_map_onto_each_other() {
        let dim = |name: &str, low, high| Dim { name: name.into(), low, high, integer: true };
        let spec = EnvSpec {
            name: "toy".into(),
            observation: vec![dim("x", 1.0, 3.0), dim("y", -1.0, 0.0)],
            action: ActionSpace::Discrete { names: vec!["stay".into()] },
            horizon: 1,
        };
        assert_eq!(spec.states(), Some(6));
        let mut obs = [0.0; 2];
        for state in 0..6 {
            spec.write_state(state, &mut obs);
            assert_eq!(spec.state_of(&obs), Some(state));
        }
        assert_eq!(obs, [3.0, 0.0]);
        let endless = EnvSpec { observation: vec![dim("x", 0.0, 1e38)], ..spec.clone() };
        assert_eq!((endless.states(), endless.state_of(&[1.0])), (None, None));
        for outside in [&[0.0, 0.0][..], &[1.5, 0.0], &[f32::NAN, 0.0], &[1.0]] {
            assert_eq!(spec.state_of(outside), None, "{outside:?}");
        }
    }
}
