//! One step of forward-backward learning, whatever the objective.

use super::config::FbConfig;
use crate::error::Result;
use crate::nn::{
    Adam, AdamConfig, Follow, MuonConfig, Optimizer, OptimizerConfig, Params, TensorFile, Weights,
};
use crate::train::{Learner, Metrics, warm_cosine};
use burn::tensor::Tensor;
use std::fmt::Debug;

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

/// What F and B are trained by.
pub(crate) trait FbObjective: Debug {
    /// What one step draws.
    type Batch;

    /// The weights of F and B.
    fn params(&self) -> &Params;
    /// The same, to change them.
    fn params_mut(&mut self) -> &mut Params;
    /// Draws contexts, tasks and states of step `step`; B of `frozen`, the target weights, makes the goals.
    fn sample(&self, step: u64, frozen: &Weights) -> Self::Batch;
    /// The loss on a batch, and what was measured. `frozen` are the target weights.
    fn loss(&self, batch: &Self::Batch, weights: &Weights, frozen: &Weights) -> (Tensor<1>, Metrics);
    /// Whether F and B are trained; an actor that clones needs neither.
    fn learns_values(&self) -> bool {
        true
    }
    /// A step of the actor; nothing where there is none.
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

/// Trains F, B and the actor.
#[derive(Debug)]
pub(crate) struct FbTrainer<O> {
    pub(crate) objective: O,
    target: Params,
    optimizer: Optimizer,
    steps: u64,
    tau: f32,
}

impl<O: FbObjective> FbTrainer<O> {
    /// A trainer from the first step.
    pub(crate) fn new(objective: O, config: &FbConfig) -> Self {
        let adam = AdamConfig { rate: config.rate, clip: Some(config.clip), ..AdamConfig::default() };
        let muon = MuonConfig { rate: config.muon_rate, ..MuonConfig::default() };
        let optimizer = OptimizerConfig { adam, muon: (config.muon_rate > 0.0).then_some(muon) };
        Self {
            target: objective.params().clone(),
            optimizer: Optimizer::new(optimizer, objective.params(), ADAM_ONLY),
            objective,
            steps: config.steps,
            tau: config.tau,
        }
    }
}

impl<O: FbObjective> Learner for FbTrainer<O> {
    fn train_step(&mut self, step: u64) -> Result<Metrics> {
        let frozen = self.target.weights();
        let batch = self.objective.sample(step, &frozen);
        let scale = warm_cosine(step, self.steps);
        if !self.objective.learns_values() {
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
        self.objective.params().save(file, "fb/");
        self.target.save(file, "target/");
        self.optimizer.save(file, "adam/");
        if let Some((params, adam)) = self.objective.actor() {
            params.save(file, "actor/");
            adam.save(file, "actor-adam/");
        }
    }

    fn load(&mut self, file: &TensorFile) -> Result<()> {
        self.objective.params_mut().load(file, "fb/")?;
        self.target.load(file, "target/")?;
        self.optimizer.load(file, "adam/")?;
        if let Some((params, adam)) = self.objective.actor_mut() {
            params.load(file, "actor/")?;
            adam.load(file, "actor-adam/")?;
        }
        Ok(())
    }
}
