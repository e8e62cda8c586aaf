//! Training of the belief: one step on the evidence lower bound, whatever the encoder.

use super::BeliefConfig;
use crate::error::Result;
use crate::nn::{Adam, AdamConfig, Params, TensorFile, Weights};
use crate::train::{Learner, Metrics, warm_cosine};
use burn::tensor::Tensor;
use std::fmt::Debug;

/// What an encoder is trained by: from a context, predict transitions of its group.
pub(crate) trait BeliefObjective: Debug {
    /// The weights.
    fn params(&self) -> &Params;
    /// The weights, to change them.
    fn params_mut(&mut self) -> &mut Params;
    /// The negative ELBO of step `step`, and what was measured; all on the device.
    fn loss(&self, weights: &Weights, step: u64) -> (Tensor<1>, Metrics);
}

/// Trains a belief encoder.
#[derive(Debug)]
pub(crate) struct BeliefTrainer<O> {
    pub(crate) objective: O,
    adam: Adam,
    steps: u64,
}

impl<O: BeliefObjective> BeliefTrainer<O> {
    /// A trainer from the first step.
    pub(crate) fn new(objective: O, config: &BeliefConfig) -> Self {
        let adam = AdamConfig { rate: config.rate, clip: Some(1.0), ..AdamConfig::default() };
        Self { adam: Adam::new(adam, objective.params()), objective, steps: config.steps }
    }
}

impl<O: BeliefObjective> Learner for BeliefTrainer<O> {
    fn train_step(&mut self, step: u64) -> Result<Metrics> {
        let weights = self.objective.params().track();
        let (loss, metrics) = self.objective.loss(&weights, step);
        let mut metrics: Metrics =
            metrics.into_iter().map(|(name, value)| (name, value.without_autodiff())).collect();
        let gradients = loss.backward();
        drop(loss);
        let scale = warm_cosine(step, self.steps);
        metrics
            .push(("gradient", self.adam.step(self.objective.params_mut(), weights, gradients, scale, None)));
        Ok(metrics)
    }

    fn save(&self, file: &mut TensorFile) {
        self.objective.params().save(file, "belief/");
        self.adam.save(file, "adam/");
    }

    fn load(&mut self, file: &TensorFile) -> Result<()> {
        self.objective.params_mut().load(file, "belief/")?;
        Ok(self.adam.load(file, "adam/")?)
    }
}
