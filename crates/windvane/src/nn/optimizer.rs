//! Adam, with Muon for large matrices if it is asked for.

use super::adam::{Adam, AdamConfig, Follow};
use super::error::NnError;
use super::muon::{Muon, MuonConfig};
use super::ops::adam::{Shrink, norm};
use super::params::{Params, Weights};
use super::tensor_file::TensorFile;
use burn::tensor::{Gradients, Tensor};
use serde::{Deserialize, Serialize};

/// Settings of an [`Optimizer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// Adam, for everything that Muon does not update; its `clip` is for both.
    pub adam: AdamConfig,
    /// Muon, for matrices of at least 32 x 32; without it Adam updates them too.
    pub muon: Option<MuonConfig>,
}

impl From<AdamConfig> for OptimizerConfig {
    fn from(adam: AdamConfig) -> Self {
        Self { adam, muon: None }
    }
}

/// An optimiser over one [`Params`] store. Without Muon its steps are the very bits of [`Adam`]'s.
#[derive(Clone, Debug)]
pub struct Optimizer {
    limit: Option<f32>,
    adam: Adam,
    muon: Option<Muon>,
}

impl Optimizer {
    /// An optimiser for everything in `params`. Build it after the last layer was added.
    ///
    /// Parameters whose names begin with one of `excluded` are left to Adam whatever their size: tables of embeddings and last
    /// layers, whose rows and columns have no directions in common.
    pub fn new(config: impl Into<OptimizerConfig>, params: &Params, excluded: &[&str]) -> Self {
        let OptimizerConfig { adam, muon } = config.into();
        let muon = muon.map(|muon| Muon::new(muon, params, excluded));
        let rest = Adam::of(adam, params, |id| !muon.as_ref().is_some_and(|muon| muon.has(id)));
        Self { limit: adam.clip, adam: rest, muon }
    }

    /// Gives every parameter that Adam updates and whose name begins with `prefix` a rate of its own.
    #[must_use]
    pub fn with_rate(mut self, prefix: &str, rate: f32) -> Self {
        self.adam = self.adam.with_rate(prefix, rate);
        self
    }

    /// Number of steps taken.
    pub fn steps(&self) -> u32 {
        self.adam.steps()
    }

    /// One step down `gradients`, as [`Adam::step`].
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
        let rest = self.adam.gradients(&weights, gradients);
        let large = self.muon.as_ref().map_or_else(Vec::new, |muon| muon.gradients(&weights, gradients));
        drop(weights);
        let device = params.device().clone();
        let shrink = Shrink::to(self.limit, rest.iter().chain(&large).flatten(), &device);
        let mut squares = self.adam.update(params, rest, &shrink, scale, follow.as_mut());
        if let Some(muon) = &mut self.muon {
            squares.extend(muon.update(params, large, &shrink, scale, follow.as_mut()));
        }
        norm(squares, &device)
    }

    /// Writes moments, momentum and the step count below `prefix`.
    pub fn save(&self, file: &mut TensorFile, prefix: &str) {
        self.adam.save(file, prefix);
        if let Some(muon) = &self.muon {
            muon.save(file, prefix);
        }
    }

    /// Reads back what [`Optimizer::save`] wrote.
    pub fn load(&mut self, file: &TensorFile, prefix: &str) -> Result<(), NnError> {
        let mut adam = self.adam.clone();
        adam.load(file, prefix)?;
        if let Some(muon) = &mut self.muon {
            muon.load(file, prefix)?;
        }
        self.adam = adam;
        Ok(())
    }
}

#[cfg(test)]
#[path = "optimizer_tests.rs"]
mod tests;
