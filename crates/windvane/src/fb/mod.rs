//! Forward-backward learning: the forward map F, the backward map B, the actor, and their training.
//!
//! One trainer (`trainer.rs`) takes the steps. What differs between listed states and observations is the objective it
//! is given: [`listed`] sums over all states and backs values up through the predictor's dynamics, [`observations`] average
//! over a batch of transitions as the paper does. Methods plug in what F is conditioned on ([`conditioning`]) and where task
//! vectors come from ([`tasks`]). Values are in units of the largest possible one: `(1 - gamma) F z / d`.

pub(crate) mod actor;
pub(crate) mod conditioning;
pub(crate) mod config;
pub(crate) mod listed;
pub(crate) mod loss;
pub(crate) mod networks;
pub(crate) mod observation_objective;
pub(crate) mod observations;
mod on_policy;
pub(crate) mod target;
pub(crate) mod tasks;
mod tokens;
pub(crate) mod trainer;

use crate::nn::pair_kernels;
pub(crate) use config::FbConfig;
pub(crate) use listed::ListedModel;
pub(crate) use observations::ObservationModel;

/// Constants of the network on listed states that change results.
pub(crate) fn tokens_constants() -> Vec<f64> {
    [tokens::CONSTANTS, pair_kernels::CONSTANTS, &[tokens::MOST_STATES as f64], on_policy::CONSTANTS].concat()
}
