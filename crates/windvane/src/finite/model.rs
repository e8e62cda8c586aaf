//! B and the forward maps on listed states, with their weights.

use super::fb::FbConfig;
use super::nets::{Backward, Forward, NetConfig, StateMap};
use super::survey::Survey;
use super::target::{Goal, Reward};
use crate::config::Aggregate;
use crate::error::LearnError;
use crate::nn::{Params, Weights, to_vec};
use burn::tensor::{Device, Tensor, TensorData};

/// B and the forward maps with their weights: what acts.
#[derive(Clone, Debug)]
pub struct FbModel {
    pub(super) config: FbConfig,
    pub(super) params: Params,
    pub(super) features: Features,
    pub(super) forward: Vec<StateMap>,
    pub(super) one_hot: Tensor<2>,
    pub(super) states: usize,
}

/// Features of states.
#[derive(Clone, Debug)]
pub(super) enum Features {
    /// B, learned with F.
    Learned(Backward),
    /// Learned before, `[states * d]`.
    Given(Vec<f32>),
}

impl FbModel {
    /// Untrained networks for `survey` under conditions of width `condition`.
    pub fn new(
        survey: &Survey,
        condition: usize,
        config: FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        Self::build(survey, condition, None, config, seed, device)
    }

    /// Untrained successor features of `features [states * d]`, told nothing of the dynamics.
    pub fn over(
        features: Vec<f32>,
        survey: &Survey,
        config: FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let dim = features.len() / survey.states();
        let config = FbConfig { nets: NetConfig { dim, ..config.nets }, ..config };
        Self::build(survey, survey.states(), Some(features), config, seed, device)
    }

    fn build(
        survey: &Survey,
        condition: usize,
        given: Option<Vec<f32>>,
        config: FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let states = survey.states();
        let heads = match config.nets.forward {
            Forward::Paper => survey.actions(),
            Forward::Predictor => 1,
        };
        let mut params = Params::new(device, seed);
        // The successor measure's density is about states / (1 - gamma) where it is large; z and B have d components.
        let (features, scale) = match given {
            Some(given) => (Features::Given(given), size(1, config.gamma)),
            None => (
                Features::Learned(Backward::new(&mut params, states, &config.nets)?),
                size(states, config.gamma) / config.nets.dim as f64,
            ),
        };
        let forward = (0..config.ensemble).map(|i| {
            StateMap::new(&mut params, &format!("f{i}"), [states, heads, condition], &config.nets, scale)
        });
        let forward = forward.collect::<Result<_, _>>()?;
        let one_hot = (0..states * states).map(|i| f32::from(u8::from(i / states == i % states))).collect();
        let one_hot = Tensor::from_data(TensorData::new(one_hot, [states, states]), device);
        Ok(Self { config, params, features, forward, one_hot, states })
    }

    /// The settings it was built with.
    pub fn config(&self) -> &FbConfig {
        &self.config
    }

    /// Its weights.
    pub(super) fn params(&self) -> &Params {
        &self.params
    }

    /// Its weights, to read them from a file.
    pub(super) fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    /// B of every state, or its given features, `[states * d]`.
    pub fn backward(&self) -> Vec<f32> {
        self.features_by(&self.params.weights())
    }

    pub(super) fn features_by(&self, weights: &Weights) -> Vec<f32> {
        match &self.features {
            Features::Learned(backward) => to_vec(backward.forward(weights, &self.one_hot)),
            Features::Given(features) => features.clone(),
        }
    }

    /// What forward vectors become.
    pub(super) fn goal(&self) -> Goal {
        match self.features {
            Features::Learned(_) => Goal::Measure,
            Features::Given(_) => Goal::Features,
        }
    }

    /// The rewards that task vectors stand for, given B (or the given features) of every state.
    pub(super) fn rewards(&self, b: &[f32], rho: &[f32]) -> Reward {
        match self.goal() {
            Goal::Measure => Reward::new(b, rho, self.config.nets.dim),
            Goal::Features => Reward::over(b, self.config.nets.dim),
        }
    }

    /// The mean forward vectors of every state under each (condition, task): `[groups * states * heads * d]`.
    pub fn forward(&self, conditions: Vec<f32>, tasks: Vec<f32>) -> Vec<f32> {
        let (conditions, z) = self.inputs(conditions, tasks);
        to_vec(self.mean_forward(&self.params.weights(), conditions, z))
    }

    fn mean_forward(&self, weights: &Weights, conditions: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
        let mut outs = self.forward.iter().map(|map| map.forward(weights, conditions.clone(), z.clone()));
        let first = outs.next().unwrap_or_else(|| z.clone());
        outs.fold(first, |sum, out| sum + out) / self.forward.len() as f64
    }

    /// Forward vectors that targets are made of, `[groups * rows * d]`: one mean, or those of every network.
    pub(super) fn target_forward(
        &self,
        weights: &Weights,
        conditions: &Tensor<2>,
        z: &Tensor<2>,
    ) -> Vec<Vec<f32>> {
        match self.config.aggregate {
            Aggregate::Mean => vec![to_vec(self.mean_forward(weights, conditions.clone(), z.clone()))],
            Aggregate::Min => {
                let nets = self.forward.iter();
                nets.map(|map| to_vec(map.forward(weights, conditions.clone(), z.clone()))).collect()
            }
        }
    }

    /// Conditions and tasks, one of each for every group, as tensors.
    pub(super) fn inputs(&self, conditions: Vec<f32>, tasks: Vec<f32>) -> (Tensor<2>, Tensor<2>) {
        let dim = self.config.nets.dim;
        let groups = tasks.len() / dim;
        let width = conditions.len() / groups.max(1);
        (self.constant(conditions, [groups, width]), self.constant(tasks, [groups, dim]))
    }

    pub(super) fn constant<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values, shape), self.params.device())
    }
}

/// About how large the density of a successor measure becomes.
pub(super) fn size(states: usize, gamma: f32) -> f64 {
    states as f64 / (1.0 - f64::from(gamma))
}
