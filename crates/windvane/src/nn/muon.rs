//! Muon: gradient steps whose matrices have all singular values alike, so that no direction is left behind.
//!
//! Jordan et al. 2024. A step is the momentum's nearest orthogonal matrix, found by a few products on the device.

use super::adam::Follow;
use super::error::NnError;
use super::ops::adam::{Shrink, Squares};
use super::ops::muon::{MuonStep, muon_update};
use super::params::{ParamId, Params, Weights};
use super::tensor_file::TensorFile;
use burn::tensor::{Gradients, Tensor};
use serde::{Deserialize, Serialize};

/// The shortest side of a matrix that Muon updates; thinner ones have too few directions to even out.
const SHORTEST: usize = 32;

/// Settings of Muon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MuonConfig {
    /// Learning rate; Jordan et al.: 0.02.
    pub rate: f32,
    /// Memory of past gradients; Jordan et al.: 0.95.
    pub momentum: f32,
    /// Iterations toward the nearest orthogonal matrix; Jordan et al.: 5.
    pub iterations: u32,
    /// Decoupled weight decay per step, times the rate.
    pub decay: f32,
}

impl Default for MuonConfig {
    fn default() -> Self {
        Self { rate: 0.02, momentum: 0.95, iterations: 5, decay: 0.05 }
    }
}

/// Muon over the large matrices of one [`Params`] store.
#[derive(Clone, Debug)]
pub(super) struct Muon {
    config: MuonConfig,
    slots: Vec<Slot>,
}

/// What Muon remembers of one matrix.
#[derive(Clone, Debug)]
struct Slot {
    name: String,
    id: ParamId,
    /// What its shape multiplies the rate by: steps of tall and wide matrices then change outputs alike.
    stretch: f32,
    memory: Tensor<2>,
}

impl Muon {
    /// An optimiser for the large matrices in `params`, without those whose names begin with one of `excluded`.
    pub(super) fn new(config: MuonConfig, params: &Params, excluded: &[&str]) -> Self {
        let large = params.iter().filter(|(name, id)| {
            let sides = params.get(*id).dims();
            sides.iter().all(|&side| side >= SHORTEST)
                && !excluded.iter().any(|prefix| name.starts_with(prefix))
        });
        let slots = large.map(|(name, id)| {
            let [inputs, outputs] = params.get(id).dims();
            let stretch = (outputs as f32 / inputs as f32).max(1.0).sqrt();
            let memory = Tensor::zeros([inputs, outputs], params.device());
            Slot { name: name.to_owned(), id, stretch, memory }
        });
        Self { config, slots: slots.collect() }
    }

    /// Whether it updates this parameter.
    pub(super) fn has(&self, id: ParamId) -> bool {
        self.slots.iter().any(|slot| slot.id == id)
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
        let MuonConfig { rate, momentum, iterations, decay } = self.config;
        let mut squares = Vec::with_capacity(grads.len());
        for (slot, grad) in self.slots.iter_mut().zip(grads) {
            let Some(grad) = grad else { continue };
            let step = MuonStep {
                momentum,
                iterations,
                rate: rate * scale * slot.stretch,
                keep: 1.0 - rate * scale * decay,
                tau: follow.as_ref().map_or(0.0, |f| f.tau),
            };
            let mut value = params.take(slot.id);
            let mut target = follow.as_mut().map(|f| f.target.take(slot.id));
            squares.push(muon_update(&mut value, &mut slot.memory, target.as_mut(), grad, shrink, step));
            params.set(slot.id, value);
            if let (Some(follow), Some(target)) = (&mut follow, target) {
                follow.target.set(slot.id, target);
            }
        }
        squares
    }

    /// Writes what it remembers below `prefix`.
    pub(super) fn save(&self, file: &mut TensorFile, prefix: &str) {
        for slot in &self.slots {
            file.insert(format!("{prefix}{}/memory", slot.name), &slot.memory);
        }
    }

    /// Reads back what [`Muon::save`] wrote.
    pub(super) fn load(&mut self, file: &TensorFile, prefix: &str) -> Result<(), NnError> {
        let mut slots = self.slots.clone();
        for slot in &mut slots {
            let (shape, device) = (slot.memory.dims(), slot.memory.device());
            slot.memory = file.tensor(&format!("{prefix}{}/memory", slot.name), shape, &device)?;
        }
        self.slots = slots;
        Ok(())
    }
}
