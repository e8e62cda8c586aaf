//! Adam, and the Polyak average of target networks, in one pass over the parameters.

use super::error::NnError;
use super::ops::adam::{AdamStep, adam_update};
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
        let slots = params.iter().map(|(name, id)| {
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
    /// norm of the gradient before clipping.
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
    ) -> f32 {
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
    ) -> f32 {
        let grads: Vec<_> = self.slots.iter().map(|slot| weights[slot.id].grad_remove(gradients)).collect();
        drop(weights);
        let shrink = self.config.clip.map_or(1.0, |limit| (limit / global_norm(&grads)).min(1.0));
        let mut squares = 0.0;
        self.steps += 1;
        let AdamConfig { beta1, beta2, epsilon, decay, .. } = self.config;
        let (correct1, correct2) = (1.0 - beta1.powi(self.steps), 1.0 - beta2.powi(self.steps));
        for (slot, grad) in self.slots.iter_mut().zip(grads) {
            let Some(grad) = grad else { continue };
            let rate = slot.rate * scale;
            let matrix = params.get(slot.id).dims()[0] > 1;
            let step = AdamStep {
                shrink,
                beta1,
                beta2,
                rate: rate / correct1,
                root: 1.0 / correct2.sqrt(),
                epsilon,
                keep: if matrix { 1.0 - rate * decay } else { 1.0 },
                tau: follow.as_ref().map_or(0.0, |f| f.tau),
            };
            let (mut value, mut mean, mut square) =
                (params.take(slot.id), slot.mean.extract(), slot.square.extract());
            let mut target = follow.as_mut().map(|f| f.target.take(slot.id));
            squares += adam_update(&mut value, &mut mean, &mut square, target.as_mut(), grad, step);
            params.set(slot.id, value);
            (slot.mean, slot.square) = (mean, square);
            if let (Some(follow), Some(target)) = (&mut follow, target) {
                follow.target.set(slot.id, target);
            }
        }
        squares.sqrt() as f32
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

/// The Euclidean norm of all gradients together, folded in name order.
fn global_norm(grads: &[Option<Tensor<2>>]) -> f32 {
    let squares = grads.iter().flatten().map(super::ops::adam::sum_of_squares);
    squares.sum::<f64>().sqrt() as f32
}

#[cfg(test)]
#[path = "adam_tests.rs"]
mod tests;
