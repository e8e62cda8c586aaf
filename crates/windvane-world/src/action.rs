//! Actions, discrete or continuous: their space, a borrowed one to step with, an owned one to act into.

use crate::error::WorldError;
use crate::rng::Rng;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

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

/// An action that owns its numbers: a buffer to act into, step after step.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionBuf {
    /// The index of a named move.
    Discrete(u32),
    /// A vector within the box.
    Continuous(Vec<f32>),
}

impl ActionBuf {
    /// The action, borrowed.
    pub fn as_action(&self) -> Action<'_> {
        match self {
            Self::Discrete(index) => Action::Discrete(*index),
            Self::Continuous(values) => Action::Continuous(values),
        }
    }
}

impl From<Action<'_>> for ActionBuf {
    fn from(action: Action<'_>) -> Self {
        match action {
            Action::Discrete(index) => Self::Discrete(index),
            Action::Continuous(values) => Self::Continuous(values.to_vec()),
        }
    }
}

/// Many actions of one kind: a trajectory's, or one for each environment of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Actions {
    /// Indices of named moves.
    Discrete(Vec<u32>),
    /// Vectors, one after the other.
    Continuous {
        /// Components of each.
        size: usize,
        /// All components.
        values: Vec<f32>,
    },
}

impl Actions {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Discrete(moves) => moves.len(),
            Self::Continuous { size, values } => values.len() / size,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The action at place `index`.
    pub fn get(&self, index: usize) -> Action<'_> {
        match self {
            Self::Discrete(moves) => Action::Discrete(moves[index]),
            Self::Continuous { size, values } => {
                Action::Continuous(&values[index * size..(index + 1) * size])
            }
        }
    }

    /// All of them, in order.
    pub fn all(&self) -> Vec<Action<'_>> {
        (0..self.len()).map(|index| self.get(index)).collect()
    }

    /// Adds an action at the end.
    ///
    /// # Panics
    /// If it is of another kind or size.
    pub fn push(&mut self, action: Action<'_>) {
        match (self, action) {
            (Self::Discrete(moves), Action::Discrete(index)) => moves.push(index),
            (Self::Continuous { size, values }, Action::Continuous(action)) if action.len() == *size => {
                values.extend_from_slice(action);
            }
            (column, action) => panic!("{action:?} does not belong among {column:?}"),
        }
    }

    /// Removes all, keeping the memory.
    pub fn clear(&mut self) {
        match self {
            Self::Discrete(moves) => moves.clear(),
            Self::Continuous { values, .. } => values.clear(),
        }
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

    /// A buffer for one action: the first move, or zeros.
    pub fn buffer(&self) -> ActionBuf {
        match self {
            Self::Discrete { .. } => ActionBuf::Discrete(0),
            Self::Continuous { low, .. } => ActionBuf::Continuous(vec![0.0; low.len()]),
        }
    }

    /// Room for many actions, none in it yet.
    pub fn actions(&self, capacity: usize) -> Actions {
        match self {
            Self::Discrete { .. } => Actions::Discrete(Vec::with_capacity(capacity)),
            Self::Continuous { low, .. } => {
                Actions::Continuous { size: low.len(), values: Vec::with_capacity(capacity * low.len()) }
            }
        }
    }

    /// Draws an action uniformly.
    ///
    /// # Panics
    /// If the buffer is of the other kind.
    pub fn sample(&self, rng: &mut Rng, action: &mut ActionBuf) {
        match (self, action) {
            (Self::Discrete { names }, ActionBuf::Discrete(index)) => {
                *index = rng.random_range(0..names.len() as u32);
            }
            (Self::Continuous { low, high }, ActionBuf::Continuous(values)) => {
                for (value, (&low, &high)) in values.iter_mut().zip(low.iter().zip(high)) {
                    *value = rng.random_range(low..=high);
                }
            }
            (space, action) => panic!("{action:?} is no buffer for {space:?}"),
        }
    }

    /// Whether `action` is of this kind, of this size and within bounds (which NaN never is).
    pub fn contains(&self, action: Action<'_>) -> bool {
        match (self, action) {
            (Self::Discrete { names }, Action::Discrete(index)) => (index as usize) < names.len(),
            (Self::Continuous { low, high }, Action::Continuous(values)) => {
                values.len() == low.len()
                    && values.iter().zip(low.iter().zip(high)).all(|(v, (l, h))| (l..=h).contains(&v))
            }
            _ => false,
        }
    }

    /// The error for an action that [`Self::contains`] rejects.
    pub fn reject(&self, env: &str, action: Action<'_>) -> WorldError {
        let expected = match self {
            Self::Discrete { names } => {
                format!("a move from 0 to {} ({})", names.len() - 1, names.join(", "))
            }
            Self::Continuous { low, high } => format!("{} numbers from {low:?} to {high:?}", low.len()),
        };
        let action = match action {
            Action::Discrete(index) => index.to_string(),
            Action::Continuous(values) => format!("{values:?}"),
        };
        WorldError::Action { env: env.to_owned(), action, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_actions_of_the_right_kind_size_and_range_are_contained() {
        let moves = ActionSpace::Discrete { names: vec!["left".into(), "right".into()] };
        assert!(moves.contains(Action::Discrete(1)));
        assert!(!moves.contains(Action::Discrete(2)) && !moves.contains(Action::Continuous(&[0.0])));
        let box2 = ActionSpace::Continuous { low: vec![-1.0; 2], high: vec![1.0; 2] };
        assert!(box2.contains(Action::Continuous(&[-1.0, 1.0])));
        for bad in [&[0.0][..], &[0.0, 1.1], &[f32::NAN, 0.0]] {
            assert!(!box2.contains(Action::Continuous(bad)), "{bad:?}");
        }
        let mut rng = crate::rng::stream(0, "test", &[]);
        let mut action = box2.buffer();
        for _ in 0..100 {
            box2.sample(&mut rng, &mut action);
            assert!(box2.contains(action.as_action()));
        }
    }
}
