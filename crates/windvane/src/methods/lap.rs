//! LAP (Laplacian features; Wu, Tucker & Nachum 2019): features that change least along transitions, and successor features
//! over them.
//!
//! The mean of |phi(s) - phi(s')|^2 under orthonormality is least for the smoothest eigenvectors of the graph of transitions.

use super::{Method, fb};
use crate::features::{FeatureLearner, FeaturesConfig, PhiNets, Transitions};
use crate::nn::{Weights, ops};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

pub(super) const METHOD: Method = Method {
    name: "lap",
    title: "LAP",
    about: "successor features over the smoothest eigenvectors of the graph of transitions",
    features: Some(&Lap),
    ..fb::METHOD
};

/// Settings of LAP's features.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LapConfig {
    /// Weight of the orthonormality beside the mean change of a feature along a transition; the code of Touati et al. 2023:
    /// 1. Much less, and features that change fast vanish: their length gains less than their change costs.
    pub ortho: f64,
    /// Whether features have length sqrt(d), as in the code of Touati et al. 2023. Eigenvectors do not.
    pub sphere: bool,
}

impl Default for LapConfig {
    fn default() -> Self {
        Self { ortho: 1.0, sphere: false }
    }
}

/// The learner of LAP's features.
#[derive(Debug)]
pub struct Lap;

impl FeatureLearner for Lap {
    fn nets(&self) -> usize {
        1
    }

    fn radius(&self, config: &FeaturesConfig) -> Option<f32> {
        config.lap.sphere.then(|| (config.dim as f32).sqrt())
    }

    fn loss(
        &self,
        nets: &PhiNets,
        [weights, _]: [&Weights; 2],
        batch: &Transitions,
        config: &FeaturesConfig,
    ) -> Tensor<1> {
        let [here, next] = [&batch.s, &batch.next].map(|s| nets.of(weights, 0, s.clone())); // [rows, d]
        let change = (here.clone() - next).powf_scalar(2.0).sum_dim(1).mean();
        let dim = config.dim as f64;
        (change / dim + ops::ortho_loss(here) * (2.0 * config.lap.ortho)) / dim
    }
}
