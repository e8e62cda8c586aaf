//! Actions as the learner takes them: one of a few, or a vector between -1 and 1; held for a number of steps.

use super::{EncoderConfig, bad_setting};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::f32::consts::TAU;
use windvane_world::{Action, ActionBuf, ActionSpace};

/// A held push shorter than this share of full speed is no direction.
const SHORTEST_PUSH: f32 = 0.7;

/// From actions of an environment to what networks see of them, and back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActionCodec {
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
    Directions {
        /// The directions.
        count: usize,
        /// Smallest value of each component.
        low: Vec<f32>,
        /// Largest value of each component.
        high: Vec<f32>,
    },
}

impl ActionCodec {
    /// The codec of `space` under `config`.
    pub(crate) fn new(space: &ActionSpace, config: &EncoderConfig) -> Result<Self> {
        Ok(match space {
            ActionSpace::Discrete { names } => Self::Discrete(names.len()),
            ActionSpace::Continuous { low, high } => {
                let (low, high) = (low.clone(), high.clone());
                match config.directions {
                    0 => Self::Vector { low, high },
                    count if low.len() == 2 => Self::Directions { count, low, high },
                    _ => {
                        return Err(bad_setting(format!(
                            "\"encoder.directions\" is {}; expected 0, because actions have {} components and not 2",
                            config.directions,
                            low.len()
                        )));
                    }
                }
            }
        })
    }

    /// How many actions there are to choose from; nothing for vectors.
    pub(crate) fn n_actions(&self) -> Option<usize> {
        match self {
            Self::Discrete(count) | Self::Directions { count, .. } => Some(*count),
            Self::Vector { .. } => None,
        }
    }

    /// Numbers in an encoded action.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Discrete(count) => *count,
            Self::Vector { low, .. } | Self::Directions { low, .. } => low.len(),
        }
    }

    /// Adds the encoding of actions taken one after the other, each for one step: their mean.
    pub(crate) fn encode(&self, held: &[Action<'_>], out: &mut Vec<f32>) {
        let (start, share) = (out.len(), 1.0 / held.len() as f32);
        out.resize(start + self.width(), 0.0);
        for action in held {
            match (self, *action) {
                (Self::Discrete(_), Action::Discrete(index)) => out[start + index as usize] += share,
                (
                    Self::Vector { low, high } | Self::Directions { low, high, .. },
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

    /// The number of the action that is encoded; nothing if it is no single one.
    pub(crate) fn index(&self, encoded: &[f32]) -> Option<usize> {
        match self {
            Self::Discrete(_) => encoded.iter().position(|&share| share > 0.999),
            Self::Directions { count, .. } => {
                if encoded[0].hypot(encoded[1]) < SHORTEST_PUSH {
                    return None;
                }
                let turn = encoded[1].atan2(encoded[0]) / TAU * *count as f32;
                Some((turn.round() as isize).rem_euclid(*count as isize) as usize)
            }
            Self::Vector { .. } => Some(0),
        }
    }

    /// Number of the actions that a maximum is taken over: all of them, or nothing at all and a full push either way along each
    /// component.
    pub(crate) fn n_candidates(&self) -> usize {
        self.n_actions().unwrap_or(1 + 2 * self.width())
    }

    /// The encoding of one of them.
    pub(crate) fn candidate(&self, index: usize) -> Vec<f32> {
        if let Self::Directions { count, .. } = self {
            let (y, x) = (index as f32 / *count as f32 * TAU).sin_cos();
            return vec![x, y];
        }
        let mut encoded = vec![0.0; self.width()];
        match (self, index.checked_sub(1)) {
            (Self::Vector { .. }, None) => {}
            (Self::Vector { .. }, Some(push)) => {
                encoded[push / 2] = if push.is_multiple_of(2) { 1.0 } else { -1.0 };
            }
            _ => encoded[index] = 1.0,
        }
        encoded
    }

    /// The encodings of all of them.
    pub(crate) fn candidates(&self) -> Vec<Vec<f32>> {
        (0..self.n_candidates()).map(|index| self.candidate(index)).collect()
    }

    /// The action behind one of them.
    pub(crate) fn candidate_action(&self, index: usize) -> ActionBuf {
        self.action(index, &self.candidate(index))
    }

    /// The action with a number, or behind a vector between -1 and 1 where there is nothing to choose from.
    pub(crate) fn action(&self, index: usize, vector: &[f32]) -> ActionBuf {
        let boxed = |unit: &[f32], low: &[f32], high: &[f32]| {
            let range = low.iter().zip(high);
            let scaled =
                unit.iter().zip(range).map(|(u, (l, h))| (l + (h - l) * (u + 1.0) / 2.0).clamp(*l, *h));
            ActionBuf::Continuous(scaled.collect())
        };
        match self {
            Self::Discrete(_) => ActionBuf::Discrete(index as u32),
            Self::Directions { low, high, .. } => boxed(&self.candidate(index), low, high),
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
        let directions = ActionCodec::Directions { count: 8, low, high };
        for choice in 0..8 {
            let action = directions.action(choice, &[]);
            let mut seen = Vec::new();
            directions.encode(&[action.as_action(); 3], &mut seen);
            assert_eq!(directions.index(&seen), Some(choice), "{seen:?}");
        }
        assert_eq!(directions.index(&[0.1, 0.1]), None, "hardly a push");
    }

    #[test]
    fn a_discrete_move_that_was_not_held_is_none() {
        let moves = ActionCodec::Discrete(3);
        let mut seen = Vec::new();
        moves.encode(&[Action::Discrete(1), Action::Discrete(1)], &mut seen);
        assert_eq!((moves.index(&seen), seen), (Some(1), moves.candidate(1)));
        let mut mixed = Vec::new();
        moves.encode(&[Action::Discrete(1), Action::Discrete(2)], &mut mixed);
        assert_eq!((moves.index(&mixed), mixed), (None, vec![0.0, 0.5, 0.5]));
    }
}
