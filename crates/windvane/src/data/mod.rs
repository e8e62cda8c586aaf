//! What learners see of a data set: listed states, or encoded observations on the device.

pub(crate) mod actions;
pub(crate) mod encoder;
mod evidence;
pub(crate) mod replay;
pub(crate) mod state_table;

use crate::error::LearnError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windvane_world::episodes::Episodes;

pub(crate) use replay::{Codec, Replay};
pub(crate) use state_table::StateTable;

/// How observations and actions look to the networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderConfig {
    /// Whether states are listed one by one, or observations are encoded as numbers.
    pub states: StateKind,
    /// `listed`: side of the boxes that a continuous environment is discretized into, in units of the observation; 0 takes
    /// the environment's own states.
    pub box_side: f64,
    /// `observations`: random Fourier features of the continuous coordinates; 0 (paper) for none.
    pub fourier: usize,
    /// Their length scale, where a coordinate's whole range is 2.
    pub length_scale: f64,
    /// `observations`: environment steps that an action is held. A transition leads from a state to the one so many steps
    /// later, under the mean action. Paper: 1.
    pub action_repeat: usize,
    /// `observations`: continuous actions of two components as so many directions at full speed; 0 (paper) keeps them
    /// continuous and trains an actor.
    pub directions: usize,
}

/// What a state is to the learner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateKind {
    /// One of a list: every expectation over states is exact.
    Listed,
    /// A vector of numbers.
    Observations,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            states: StateKind::Listed,
            box_side: 0.0,
            fourier: 0,
            length_scale: 0.2,
            action_repeat: 1,
            directions: 0,
        }
    }
}

/// A data set as learners draw from it.
#[derive(Clone, Debug)]
pub(crate) enum Experience {
    /// State by state.
    Listed(Arc<StateTable>),
    /// Encoded observations on the device.
    Observations(Arc<Replay>),
}

/// The groups of a data set that are learned from and those that are held out, spread over the data, which may be ordered.
pub(crate) fn split_groups(data: &Episodes, held_out: f64) -> (Vec<usize>, Vec<usize>) {
    let (all, held) = (data.groups(), (held_out * data.groups() as f64) as usize);
    let is_held = |group: &usize| held > 0 && (group + 1) * held / all > group * held / all;
    let (held_out, learned) = (0..all).partition(is_held);
    (learned, held_out)
}

/// An error about a setting.
pub(crate) fn bad_setting(problem: impl Into<String>) -> LearnError {
    LearnError::config("settings", problem)
}
