//! How F and B are optimised, whatever the objective.

use super::config::FbConfig;
use crate::nn::{AdamConfig, MuonConfig, OptimizerConfig};
use crate::train::trainer::{Objective, Trainer};

/// Parameters that Muon leaves to Adam: first and last layers and tables, whose rows have no directions in common.
const ADAM_ONLY: &[&str] = &[
    "b/",
    "f/tokens/embed",
    "f/out",
    "f0/out",
    "f1/out",
    "f0/left/0",
    "f0/right/0",
    "f1/left/0",
    "f1/right/0",
];

/// A trainer of F, B and the actor, from the first step.
pub(crate) fn trainer<O: Objective>(objective: O, config: &FbConfig) -> Trainer<O> {
    let adam = AdamConfig { rate: config.rate, clip: Some(config.clip), ..AdamConfig::default() };
    let muon = MuonConfig { rate: config.muon_rate, ..MuonConfig::default() };
    let optimizer = OptimizerConfig { adam, muon: (config.muon_rate > 0.0).then_some(muon) };
    Trainer::new(objective, optimizer, ADAM_ONLY, config.steps, config.tau)
}
