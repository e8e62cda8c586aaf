//! Rewards are separate from dynamics: a task is a name and a reward over states.

use crate::grid::RewardKind;
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
    Function(RewardFn),
    /// Any function of the observation, where getting there is not enough: an episode succeeds when it lasts to the
    /// horizon and the mean reward over the last third of that is at least `least`.
    Hold {
        /// The reward.
        reward: RewardFn,
        /// The least mean reward that counts as success.
        least: f32,
    },
    /// Known at some states: that of the nearest one within `tolerance`, else 0.
    Labelled {
        /// The states and their rewards.
        states: Vec<(Vec<f32>, f32)>,
        /// How close counts as being there; half a cell on grids.
        tolerance: f32,
    },
}

/// A reward as a function of the observation.
pub type RewardFn = Arc<dyn Fn(&[f32]) -> f32 + Send + Sync>;

/// A named reward.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name, unique within its context.
    pub name: String,
    /// What is wanted.
    pub reward: Reward,
}

/// A task that is no goal, where returns are sampled and the best one is known.
#[derive(Clone)]
pub struct SampledTask {
    /// The kind of reward.
    pub kind: RewardKind,
    /// The task.
    pub task: Task,
    /// The best sum of rewards of an episode that begins at an observation.
    pub best: RewardFn,
}

impl Reward {
    /// The reward of being at `obs`.
    pub fn of(&self, obs: &[f32]) -> f32 {
        match self {
            Self::Goal { .. } => f32::from(u8::from(self.reached(obs))),
            Self::Function(f) | Self::Hold { reward: f, .. } => f(obs),
            Self::Labelled { states, tolerance } => {
                let near = states.iter().map(|(state, reward)| (distance2(state, obs), *reward));
                let nearest = near.min_by(|(a, _), (b, _)| a.total_cmp(b));
                nearest.filter(|(d2, _)| *d2 <= tolerance * tolerance).map_or(0.0, |(_, reward)| reward)
            }
        }
    }

    /// Whether `obs` is at the goal, which ends an episode; never for a reward without one.
    pub fn reached(&self, obs: &[f32]) -> bool {
        match self {
            Self::Goal { goal, tolerance } => distance2(goal, obs) <= tolerance * tolerance,
            Self::Function(_) | Self::Hold { .. } | Self::Labelled { .. } => false,
        }
    }
}

/// The squared Euclidean distance.
fn distance2(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

impl fmt::Debug for Reward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goal { goal, tolerance } => {
                f.debug_struct("Goal").field("goal", goal).field("tolerance", tolerance).finish()
            }
            Self::Function(_) => f.write_str("Function(..)"),
            Self::Hold { least, .. } => f.debug_struct("Hold").field("least", least).finish_non_exhaustive(),
            Self::Labelled { states, tolerance } => {
                f.debug_struct("Labelled").field("states", states).field("tolerance", tolerance).finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_reward_pays_where_it_says() {
        let goal = Reward::Goal { goal: vec![2.0, 3.0], tolerance: 0.5 };
        assert_eq!([goal.of(&[2.0, 3.0]), goal.of(&[2.0, 3.5]), goal.of(&[2.0, 4.0])], [1.0, 1.0, 0.0]);
        let sum = Reward::Function(Arc::new(|obs| obs.iter().sum()));
        assert_eq!((sum.of(&[2.0, 3.0]), sum.reached(&[2.0, 3.0])), (5.0, false));
        let states = vec![(vec![0.0, 0.0], -1.0), (vec![1.0, 0.0], 2.0)];
        let labelled = Reward::Labelled { states, tolerance: 0.5 };
        assert_eq!(
            [labelled.of(&[0.9, 0.1]), labelled.of(&[0.1, 0.0]), labelled.of(&[2.0, 2.0])],
            [2.0, -1.0, 0.0]
        );
        assert!(!labelled.reached(&[1.0, 0.0]));
    }
}
