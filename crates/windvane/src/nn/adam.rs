//! Adam, and the Polyak average of target networks, in one pass over the parameters.

use super::error::NnError;
use super::ops::adam::{AdamStep, Shrink, Squares, adam_update, norm};
use super::params::{ParamId, Params, Weights};
use super::tensor_file::TensorFile;
use burn::tensor::{Gradients, Tensor};
use serde::{Deserialize, Serialize};

/// Settings of [`Adam`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamConfig {
    /// Learning rate; paper: 1e-4.
    pub rate: f32,
    /// Memory of the mean gradient.
    pub beta1: f32,
    /// Memory of the mean squared gradient.
    pub beta2: f32,
    /// Floor of the divisor; `PyTorch`: 1e-8.
    pub epsilon: f32,
    /// Decoupled weight decay per step, times the rate, of matrices (not of biases and norms); 0 is plain Adam.
    pub decay: f32,
    /// Largest norm of the whole gradient; a longer one is scaled down.
    pub clip: Option<f32>,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { rate: 1e-4, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: 0.0, clip: None }
    }
}

/// Adam over one [`Params`] store.
#[derive(Clone, Debug)]
pub struct Adam {
    config: AdamConfig,
    /// Rates of their own, by name prefix; the longest that fits counts.
    rates: Vec<(String, f32)>,
    steps: i32,
    slots: Vec<Slot>,
}

/// What Adam remembers of one parameter.
#[derive(Clone, Debug)]
struct Slot {
    name: String,
    id: ParamId,
    rate: f32,
    mean: Tensor<2>,
    square: Tensor<2>,
}

/// A target network that follows the parameters.
#[derive(Debug)]
pub struct Follow<'a> {
    /// The target's parameters, a clone of the trained ones.
    pub target: &'a mut Params,
    /// The share of the way it goes each step; paper: 0.05.
    pub tau: f32,
}

impl Adam {
    /// An optimiser for everything in `params`. Build it after the last layer was added.
    pub fn new(config: AdamConfig, params: &Params) -> Self {
        Self::of(config, params, |_| true)
    }

    /// An optimiser for some of the parameters.
    pub(super) fn of(config: AdamConfig, params: &Params, mine: impl Fn(ParamId) -> bool) -> Self {
        let slots = params.iter().filter(|(_, id)| mine(*id)).map(|(name, id)| {
            let zeros = Tensor::zeros(params.get(id).dims(), params.device());
            Slot { name: name.to_owned(), id, rate: config.rate, mean: zeros.clone(), square: zeros }
        });
        Self { config, rates: Vec::new(), steps: 0, slots: slots.collect() }
    }

    /// Gives every parameter whose name begins with `prefix` a rate of its own.
    #[must_use]
    pub fn with_rate(mut self, prefix: &str, rate: f32) -> Self {
        self.rates.push((prefix.to_owned(), rate));
        for slot in &mut self.slots {
            let fitting = self.rates.iter().filter(|(prefix, _)| slot.name.starts_with(prefix.as_str()));
            if let Some((_, rate)) = fitting.max_by_key(|(prefix, _)| prefix.len()) {
                slot.rate = *rate;
            }
        }
        self
    }

    /// Number of steps taken.
    pub fn steps(&self) -> u32 {
        self.steps.unsigned_abs()
    }

    /// One step down `gradients`, with every rate times `scale`; then `follow` moves toward the new values. Returns the
    /// norm of the gradient before clipping, `[1]`; nothing is read back from the device.
    ///
    /// Drop the loss before: with no other holder of the values they are changed in place, else copied. A parameter
    /// without a gradient stays as it is.
    pub fn step(
        &mut self,
        params: &mut Params,
        weights: Weights,
        mut gradients: Gradients,
        scale: f32,
        follow: Option<Follow<'_>>,
    ) -> Tensor<1> {
        self.step_apart(params, weights, &mut gradients, scale, follow)
    }

    /// The same where a loss was of several stores: each takes its own gradients out.
    pub fn step_apart(
        &mut self,
        params: &mut Params,
        weights: Weights,
        gradients: &mut Gradients,
        scale: f32,
        mut follow: Option<Follow<'_>>,
    ) -> Tensor<1> {
        let grads = self.gradients(&weights, gradients);
        drop(weights);
        let device = params.device().clone();
        let shrink = Shrink::to(self.config.clip, grads.iter().flatten(), &device);
        let squares = self.update(params, grads, &shrink, scale, follow.as_mut());
        norm(squares, &device)
    }

    /// Takes its own gradients out.
    pub(super) fn gradients(&self, weights: &Weights, gradients: &mut Gradients) -> Vec<Option<Tensor<2>>> {
        self.slots.iter().map(|slot| weights[slot.id].grad_remove(gradients)).collect()
    }

    /// One step; returns the sums of squares of the gradients.
    pub(super) fn update(
        &mut self,
        params: &mut Params,
        grads: Vec<Option<Tensor<2>>>,
        shrink: &Shrink,
        scale: f32,
        mut follow: Option<&mut Follow<'_>>,
    ) -> Vec<Squares> {
        let mut squares = Vec::with_capacity(grads.len());
        self.steps += 1;
        let AdamConfig { beta1, beta2, epsilon, decay, .. } = self.config;
        let (correct1, correct2) = (1.0 - beta1.powi(self.steps), 1.0 - beta2.powi(self.steps));
        for (slot, grad) in self.slots.iter_mut().zip(grads) {
            let Some(grad) = grad else { continue };
            let rate = slot.rate * scale;
            let matrix = params.get(slot.id).dims()[0] > 1;
            let step = AdamStep {
                beta1,
                beta2,
                rate: rate / correct1,
                root: 1.0 / correct2.sqrt(),
                epsilon,
                keep: if matrix { 1.0 - rate * decay } else { 1.0 },
                tau: follow.as_ref().map_or(0.0, |f| f.tau),
            };
            let moments = [&mut slot.mean, &mut slot.square];
            let mut value = params.take(slot.id);
            let mut target = follow.as_mut().map(|f| f.target.take(slot.id));
            squares.push(adam_update(&mut value, moments, target.as_mut(), grad, shrink, step));
            params.set(slot.id, value);
            if let (Some(follow), Some(target)) = (&mut follow, target) {
                follow.target.set(slot.id, target);
            }
        }
        squares
    }

    /// Writes the moments and the step count below `prefix`.
    pub fn save(&self, file: &mut TensorFile, prefix: &str) {
        file.insert_word(&format!("{prefix}steps"), self.steps);
        for slot in &self.slots {
            file.insert(format!("{prefix}{}/mean", slot.name), &slot.mean);
            file.insert(format!("{prefix}{}/square", slot.name), &slot.square);
        }
    }

    /// Reads back what [`Adam::save`] wrote.
    pub fn load(&mut self, file: &TensorFile, prefix: &str) -> Result<(), NnError> {
        let name = format!("{prefix}steps");
        let fault = |problem: &str| NnError::Parameter { name: name.clone(), problem: problem.to_owned() };
        let steps = file.word(&name).ok_or_else(|| fault("is not in the file"))?;
        let steps = steps.parse().map_err(|_| fault("is not a number of steps"))?;
        let mut slots = self.slots.clone();
        for slot in &mut slots {
            let (shape, device) = (slot.mean.dims(), slot.mean.device());
            slot.mean = file.tensor(&format!("{prefix}{}/mean", slot.name), shape, &device)?;
            slot.square = file.tensor(&format!("{prefix}{}/square", slot.name), shape, &device)?;
        }
        (self.steps, self.slots) = (steps, slots);
        Ok(())
    }
}

#[cfg(test)]
#[path = "adam_tests.rs"]
mod tests;
