//! Rewards are separate from dynamics: a task is a name and a reward over states.

use std::fmt;
use std::sync::Arc;

/// A reward over observations.
#[derive(Clone)]
pub enum Reward {
    /// 1 within `tolerance` (Euclidean) of a goal, else 0. An episode succeeds when it gets there.
    Goal {
        /// The goal observation.
        goal: Vec<f32>,
        /// How close is close enough; half a cell on grids.
        tolerance: f32,
    },
    /// Any function of the observation.
    Function(Arc<dyn Fn(&[f32]) -> f32 + Send + Sync>),
}

/// A named reward.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name, unique within its context.
    pub name: String,
    /// What is wanted.
    pub reward: Reward,
}

impl Reward {
    /// The reward of being at `obs`.
    pub fn of(&self, obs: &[f32]) -> f32 {
        match self {
            Self::Goal { .. } => f32::from(u8::from(self.reached(obs))),
            Self::Function(f) => f(obs),
        }
    }

    /// Whether `obs` is at the goal; never for a reward without one.
    pub fn reached(&self, obs: &[f32]) -> bool {
        match self {
            Self::Goal { goal, tolerance } => {
                let distance2: f32 = goal.iter().zip(obs).map(|(g, o)| (g - o) * (g - o)).sum();
                distance2 <= tolerance * tolerance
            }
            Self::Function(_) => false,
        }
    }
}

impl fmt::Debug for Reward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goal { goal, tolerance } => {
                f.debug_struct("Goal").field("goal", goal).field("tolerance", tolerance).finish()
            }
            Self::Function(_) => f.write_str("Function(..)"),
        }
    }
}
