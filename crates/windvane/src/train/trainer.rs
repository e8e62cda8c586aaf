//! The gradient step, whatever is learned: sample, loss, backward, optimiser, and the target that follows.

use super::{Learner, Metrics, warm_cosine};
use crate::error::LearnError;
use crate::nn::{Adam, Follow, Optimizer, OptimizerConfig, Params, TensorFile, Weights};
use burn::tensor::{Device, Tensor};
use std::fmt::Debug;

/// What is learned, and by which loss.
pub(crate) trait Objective: Debug {
    /// Where its weights lie in a checkpoint.
    const WEIGHTS: &str;
    /// What one step draws.
    type Batch;

    /// The weights.
    fn params(&self) -> &Params;
    /// The same, to change them.
    fn params_mut(&mut self) -> &mut Params;
    /// Draws the batch of step `step`. `frozen` are the target weights.
    fn sample(&self, step: u64, frozen: &Weights) -> Self::Batch;
    /// The loss on a batch, and what was measured, on the device. `frozen` are the target weights.
    fn loss(&self, batch: &Self::Batch, weights: &Weights, frozen: &Weights) -> (Tensor<1>, Metrics);
    /// Whether the weights are trained; an actor that clones needs none of them.
    fn is_trained(&self) -> bool {
        true
    }
    /// A step of the actor on the same batch; nothing where there is none.
    fn actor_step(&mut self, _batch: &Self::Batch, _scale: f32) -> Metrics {
        Metrics::new()
    }
    /// The actor with its optimiser, where there is one.
    fn actor(&self) -> Option<(&Params, &Adam)> {
        None
    }
    /// The same, to change them.
    fn actor_mut(&mut self) -> Option<(&mut Params, &mut Adam)> {
        None
    }
}

/// Trains an objective with a target network.
#[derive(Debug)]
pub(crate) struct Trainer<O> {
    pub(crate) objective: O,
    target: Params,
    optimizer: Optimizer,
    steps: u64,
    tau: f32,
}

impl<O: Objective> Trainer<O> {
    /// A trainer from the first of `steps` steps; parameters whose names begin with one of `adam_only` are left to Adam, and the target
    /// follows by `tau`.
    pub(crate) fn new(
        objective: O,
        optimizer: impl Into<OptimizerConfig>,
        adam_only: &[&str],
        steps: u64,
        tau: f32,
    ) -> Self {
        let optimizer = Optimizer::new(optimizer, objective.params(), adam_only);
        Self { target: objective.params().clone(), optimizer, objective, steps, tau }
    }
}

impl<O: Objective> Learner for Trainer<O> {
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
        let frozen = self.target.weights();
        let batch = self.objective.sample(step, &frozen);
        let scale = warm_cosine(step, self.steps);
        if !self.objective.is_trained() {
            return Ok(self.objective.actor_step(&batch, scale));
        }
        let weights = self.objective.params().track();
        let (loss, metrics) = self.objective.loss(&batch, &weights, &frozen);
        let mut metrics: Metrics =
            metrics.into_iter().map(|(name, value)| (name, value.without_autodiff())).collect();
        drop(frozen);
        let gradients = loss.backward();
        drop(loss);
        let follow = Follow { target: &mut self.target, tau: self.tau };
        let norm = self.optimizer.step(self.objective.params_mut(), weights, gradients, scale, Some(follow));
        metrics.push(("gradient", norm));
        metrics.extend(self.objective.actor_step(&batch, scale));
        Ok(metrics)
    }

    fn save(&self, file: &mut TensorFile) {
        self.objective.params().save(file, O::WEIGHTS);
        self.target.save(file, "target/");
        self.optimizer.save(file, "adam/");
        if let Some((params, adam)) = self.objective.actor() {
            params.save(file, "actor/");
            adam.save(file, "actor-adam/");
        }
    }

    fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        self.objective.params_mut().load(file, O::WEIGHTS)?;
        self.target.load(file, "target/")?;
        self.optimizer.load(file, "adam/")?;
        if let Some((params, adam)) = self.objective.actor_mut() {
            params.load(file, "actor/")?;
            adam.load(file, "actor-adam/")?;
        }
        Ok(())
    }
}

/// A weighted sum of losses, each logged by its name.
#[derive(Debug, Default)]
pub(crate) struct Total {
    loss: Option<Tensor<1>>,
    metrics: Metrics,
}

impl Total {
    /// Adds a loss; those of the same name are logged as their sum.
    pub(crate) fn add(&mut self, name: &'static str, loss: Tensor<1>, weight: f64) {
        self.weigh(loss.clone(), weight);
        match self.metrics.iter_mut().find(|metric| metric.0 == name) {
            Some((_, sum)) => *sum = sum.clone() + loss,
            None => self.log(name, loss),
        }
    }

    /// Adds a loss that is not logged.
    pub(crate) fn weigh(&mut self, loss: Tensor<1>, weight: f64) {
        let loss = loss * weight;
        self.loss = Some(match self.loss.take() {
            Some(sum) => sum + loss,
            None => loss,
        });
    }

    /// Logs a number that is no part of the sum.
    pub(crate) fn log(&mut self, name: &'static str, value: Tensor<1>) {
        self.metrics.push((name, value));
    }

    /// The sum, and all that is logged, the sum first.
    pub(crate) fn finish(mut self) -> (Tensor<1>, Metrics) {
        let loss = self.loss.unwrap_or_else(|| Tensor::zeros([1], &Device::default()));
        self.metrics.insert(0, ("loss", loss.clone()));
        (loss, self.metrics)
    }
}
