//! The actor for continuous actions: DDPG on F z, with behaviour cloning where it is asked for.

use super::config::FbConfig;
use super::networks::{Backward, NetInput, TwoInputNet};
use super::row::RowNet;
use crate::error::LearnError;
use crate::nn::{Adam, AdamConfig, Params, TensorFile, Weights, upload};
use burn::tensor::{Device, Gradients, Tensor};
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};
use windvane_world::Rng;

/// The actor and its training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorConfig {
    /// Standard deviation of the noise that smooths the target's action; paper: 0.2.
    pub noise: f32,
    /// Where that noise is cut off; paper: 0.3.
    pub noise_clip: f32,
    /// Learning rate; paper: 1e-4.
    pub rate: f32,
    /// Whether Q is divided by the mean of its size in the batch; paper: no.
    pub normalize_q: bool,
    /// Weight of the squared distance to the data's action (behaviour cloning) beside Q; paper: 0.
    pub bc: f64,
}

impl Default for ActorConfig {
    fn default() -> Self {
        Self { noise: 0.2, noise_clip: 0.3, rate: 3e-4, normalize_q: false, bc: 0.0 }
    }
}

/// pi(s, \[h; z\]) with its weights.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) params: Params,
    net: TwoInputNet,
    width: usize,
}

impl Actor {
    /// An untrained actor for encodings of `features` numbers, conditions of `condition` and actions of `action`.
    pub(crate) fn new(
        [features, action, condition]: [usize; 3],
        fb: &FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let mut params = Params::new(device, seed);
        let net = TwoInputNet::new(&mut params, "actor", [features, 0, condition], action, fb)?;
        Ok(Self { params, net, width: action })
    }

    /// Actions between -1 and 1, `[rows, action]`.
    pub(crate) fn act(&self, weights: &Weights, input: NetInput) -> Tensor<2> {
        self.net.forward(weights, input).tanh()
    }

    /// The same actor for single rows, before its tanh; nothing for a network without such a form. `backward` is B with its
    /// weights.
    pub(crate) fn row(
        &self,
        backward: (Option<&Backward>, &Weights),
        task: &[f32],
        dim: usize,
    ) -> Option<RowNet> {
        RowNet::new(&self.net, &self.params.weights(), backward, task, dim)
    }

    /// Noise that smooths the target's action, cut off, `[rows, action]`.
    pub(crate) fn noise(&self, config: &ActorConfig, rng: &mut Rng, rows: usize) -> Tensor<2> {
        let normal = StandardNormal.sample_iter(rng).take(rows * self.width);
        let clip = config.noise_clip;
        let noise = normal.map(|x: f32| (x * config.noise).clamp(-clip, clip)).collect();
        upload(noise, [rows, self.width], self.params.device())
    }
}

/// The actor's optimiser.
#[derive(Debug)]
pub(crate) struct ActorTrainer {
    adam: Adam,
}

impl ActorTrainer {
    pub(crate) fn new(actor: &Actor, config: &ActorConfig) -> Self {
        let adam = AdamConfig { rate: config.rate, clip: Some(1.0), ..AdamConfig::default() };
        Self { adam: Adam::new(adam, &actor.params) }
    }

    /// One step down `gradients` of a loss made from `weights`.
    pub(crate) fn step(&mut self, actor: &mut Actor, weights: Weights, gradients: Gradients, scale: f32) {
        self.adam.step(&mut actor.params, weights, gradients, scale, None);
    }

    pub(crate) fn save(&self, file: &mut TensorFile) {
        self.adam.save(file, "actor-adam/");
    }

    pub(crate) fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        Ok(self.adam.load(file, "actor-adam/")?)
    }
}
