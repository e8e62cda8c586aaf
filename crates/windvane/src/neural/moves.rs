//! Actions as the learner takes them: one of a few moves, or a vector between -1 and 1; held for a number of steps.

use super::config::NeuralPlan;
use crate::error::LearnError;
use serde::{Deserialize, Serialize};
use std::f32::consts::TAU;
use windvane_world::{Action, ActionBuf, ActionSpace};

/// A held push shorter than this share of full speed is no direction.
const SHORTEST_PUSH: f32 = 0.7;

/// How actions of an environment look to the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moves {
    /// One of so many.
    Discrete(usize),
    /// A vector within a box.
    Vector {
        /// Smallest value of each component.
        low: Vec<f32>,
        /// Largest value of each component.
        high: Vec<f32>,
    },
    /// A vector of two components, taken as one of so many directions at full speed.
    Compass {
        /// The directions.
        directions: usize,
        /// Smallest value of each component.
        low: Vec<f32>,
        /// Largest value of each component.
        high: Vec<f32>,
    },
}

impl Moves {
    /// The moves of `space` under `plan`.
    pub fn new(space: &ActionSpace, plan: &NeuralPlan) -> Result<Self, LearnError> {
        Ok(match space {
            ActionSpace::Discrete { names } => Self::Discrete(names.len()),
            ActionSpace::Continuous { low, high } => {
                let (low, high) = (low.clone(), high.clone());
                match plan.compass {
                    0 => Self::Vector { low, high },
                    directions if low.len() == 2 => Self::Compass { directions, low, high },
                    _ => {
                        let problem = format!(
                            "\"neural.compass\" is {}; expected 0, because actions have {} components and not 2",
                            plan.compass,
                            low.len()
                        );
                        return Err(LearnError::Config { origin: "plan".into(), problem });
                    }
                }
            }
        })
    }

    /// How many there are to choose from; nothing for vectors.
    pub fn choices(&self) -> Option<usize> {
        match self {
            Self::Discrete(count) => Some(*count),
            Self::Compass { directions, .. } => Some(*directions),
            Self::Vector { .. } => None,
        }
    }

    /// Numbers in a move as networks see it.
    pub fn width(&self) -> usize {
        match self {
            Self::Discrete(count) => *count,
            Self::Vector { low, .. } | Self::Compass { low, .. } => low.len(),
        }
    }

    /// Adds what networks see of actions taken one after the other, each for one step: their mean.
    pub fn push<'a>(&self, held: impl ExactSizeIterator<Item = Action<'a>>, out: &mut Vec<f32>) {
        let (start, share) = (out.len(), 1.0 / held.len() as f32);
        out.resize(start + self.width(), 0.0);
        for action in held {
            match (self, action) {
                (Self::Discrete(_), Action::Discrete(index)) => out[start + index as usize] += share,
                (
                    Self::Vector { low, high } | Self::Compass { low, high, .. },
                    Action::Continuous(values),
                ) => {
                    let range = low.iter().zip(high);
                    for ((to, &x), (low, high)) in out[start..].iter_mut().zip(values).zip(range) {
                        *to += share * (2.0 * (x - low) / (high - low) - 1.0);
                    }
                }
                _ => {}
            }
        }
    }

    /// The choice that a move, as networks see it, amounts to; nothing if it is no single one.
    pub fn choice(&self, seen: &[f32]) -> Option<usize> {
        match self {
            Self::Discrete(_) => seen.iter().position(|&share| share > 0.999),
            Self::Compass { directions, .. } => {
                if seen[0].hypot(seen[1]) < SHORTEST_PUSH {
                    return None;
                }
                let turn = seen[1].atan2(seen[0]) / TAU * *directions as f32;
                Some((turn.round() as isize).rem_euclid(*directions as isize) as usize)
            }
            Self::Vector { .. } => Some(0),
        }
    }

    /// What networks see of a choice.
    pub fn seen(&self, choice: usize) -> Vec<f32> {
        match self {
            Self::Discrete(count) => (0..*count).map(|i| f32::from(u8::from(i == choice))).collect(),
            Self::Compass { directions, .. } => {
                let (y, x) = (choice as f32 / *directions as f32 * TAU).sin_cos();
                vec![x, y]
            }
            Self::Vector { low, .. } => vec![0.0; low.len()],
        }
    }

    /// The action behind a choice, or behind a vector between -1 and 1 where there is nothing to choose from.
    pub fn action(&self, choice: usize, vector: &[f32]) -> ActionBuf {
        let boxed = |unit: &[f32], low: &[f32], high: &[f32]| {
            let range = low.iter().zip(high);
            let scaled =
                unit.iter().zip(range).map(|(u, (l, h))| (l + (h - l) * (u + 1.0) / 2.0).clamp(*l, *h));
            ActionBuf::Continuous(scaled.collect())
        };
        match self {
            Self::Discrete(_) => ActionBuf::Discrete(choice as u32),
            Self::Compass { low, high, .. } => boxed(&self.seen(choice), low, high),
            Self::Vector { low, high } => boxed(vector, low, high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_survives_the_way_to_an_action_and_back() {
        let (low, high) = (vec![-2.0, 0.0], vec![2.0, 1.0]);
        let compass = Moves::Compass { directions: 8, low, high };
        for choice in 0..8 {
            let action = compass.action(choice, &[]);
            let mut seen = Vec::new();
            compass.push([action.as_action(); 3].into_iter(), &mut seen);
            assert_eq!(compass.choice(&seen), Some(choice), "{seen:?}");
        }
        assert_eq!(compass.choice(&[0.1, 0.1]), None, "hardly a push");
    }

    #[test]
    fn a_discrete_move_that_was_not_held_is_none() {
        let moves = Moves::Discrete(3);
        let mut seen = Vec::new();
        moves.push([Action::Discrete(1), Action::Discrete(1)].into_iter(), &mut seen);
        assert_eq!((moves.choice(&seen), seen), (Some(1), moves.seen(1)));
        let mut mixed = Vec::new();
        moves.push([Action::Discrete(1), Action::Discrete(2)].into_iter(), &mut mixed);
        assert_eq!((moves.choice(&mixed), mixed), (None, vec![0.0, 0.5, 0.5]));
    }
}
