//! The actor for continuous actions: DDPG on F z.

use super::config::{ActorConfig, FbConfig};
use crate::error::LearnError;
use crate::nn::{Adam, AdamConfig, Input, Items, PairConfig, PairNet, Params, RowPair, TensorFile, Weights};
use burn::tensor::{Device, Tensor};
use rand_distr::{Distribution as _, StandardNormal};
use windvane_world::Rng;

/// pi(s, \[h; z\]) with its weights.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) params: Params,
    net: PairNet,
    width: usize,
}

impl Actor {
    /// An untrained actor for `features` of a state, conditions of width `condition` and `action` components.
    pub(super) fn new(
        [features, action, condition]: [usize; 3],
        fb: &FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let mut params = Params::new(device, seed);
        let pair = PairConfig {
            left: vec![features],
            right: vec![features, condition + fb.dim],
            preprocessor: fb.preprocessor.clone(),
            embedding: fb.embedding,
            trunk: fb.trunk.clone(),
            output: action,
        };
        let net = PairNet::new(&mut params, "actor", &pair)?;
        Ok(Self { params, net, width: action })
    }

    /// Actions between -1 and 1: `s [rows, features]`, `told [groups, condition + d]` -> `[rows, action]`.
    pub(super) fn act(&self, weights: &Weights, s: Tensor<2>, told: Tensor<2>) -> Tensor<2> {
        let right = Input::Grouped { x: s.clone(), items: Items::PerGroup, group: told };
        self.net.forward(weights, Input::One(s), right).tanh()
    }

    /// The same actor for single rows, before its tanh.
    pub(super) fn row(&self, told: &[f32]) -> RowPair {
        RowPair::new(&self.net, &self.params.weights(), told)
    }

    /// Noise that smooths the target's action, cut off, for so many rows.
    pub(super) fn noise(&self, config: &ActorConfig, rng: &mut Rng, rows: usize) -> Vec<f32> {
        let normal = StandardNormal.sample_iter(rng).take(rows * self.width);
        normal.map(|x: f32| (x * config.noise).clamp(-config.clip, config.clip)).collect()
    }
}

/// The actor's optimiser.
#[derive(Debug)]
pub(super) struct ActorTrainer {
    adam: Adam,
}

impl ActorTrainer {
    pub(super) fn new(actor: &Actor, config: &ActorConfig) -> Self {
        let adam = AdamConfig { rate: config.rate, clip: Some(1.0), ..AdamConfig::default() };
        Self { adam: Adam::new(adam, &actor.params) }
    }

    /// One step down `loss`, made from `weights`.
    pub(super) fn step(&mut self, actor: &mut Actor, weights: Weights, loss: Tensor<1>, scale: f32) {
        let gradients = loss.backward();
        drop(loss);
        self.adam.step(&mut actor.params, weights, gradients, scale, None);
    }

    pub(super) fn save(&self, file: &mut TensorFile) {
        self.adam.save(file, "actor-adam/");
    }

    pub(super) fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        Ok(self.adam.load(file, "actor-adam/")?)
    }
}
