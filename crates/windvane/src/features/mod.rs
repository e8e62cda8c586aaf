//! Features of states that are learned before anything is known of tasks, for successor features over them.
//!
//! Successor features psi(s, a, z) are the expected discounted sum of phi along the policy of task z, whose reward is phi z.
//! Features are centred and whitened once they are learned. That changes neither what their combinations can express nor the
//! least squares of a reward on them, which becomes `z = E[r phi]`: the same form as FB's, so that both share everything
//! that follows.

pub mod correction;
mod trainer;

pub(crate) use trainer::PhiObjective;

use crate::data::{Replay, StateTable};
use crate::error::LearnError;
use crate::linalg::eigen;
use crate::methods::hilp::HilpConfig;
use crate::methods::lap::LapConfig;
use crate::nn::{Input, Mlp, MlpConfig, Params, TensorFile, Weights, ops, read, upload, upload_indices};
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use windvane_world::Rng;
use windvane_world::rng::stream;

/// Settings of features that are learned beforehand, and their training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeaturesConfig {
    /// Numbers in a feature vector, and in z; HILP: 50.
    pub dim: usize,
    /// Gradient steps.
    pub steps: u64,
    /// Transitions per step; HILP: 1024.
    pub batch: usize,
    /// Learning rate, warmed up over 100 steps and decayed by a cosine; HILP: 1e-4 without decay.
    pub rate: f32,
    /// Polyak coefficient of the target networks; HILP: 0.005, over a hundred times as many steps.
    pub tau: f32,
    /// Directions of features count as noise below this share of the mean variance, when rewards are expressed in them.
    pub ridge: f64,
    /// HILP's own.
    pub hilp: HilpConfig,
    /// LAP's own.
    pub lap: LapConfig,
}

impl Default for FeaturesConfig {
    fn default() -> Self {
        Self {
            dim: 50,
            steps: 1000,
            batch: 256,
            rate: 1e-3,
            tau: 0.02,
            ridge: 1e-6,
            hilp: HilpConfig::default(),
            lap: LapConfig::default(),
        }
    }
}

/// A way to learn features from transitions.
pub trait FeatureLearner: fmt::Debug + Sync {
    /// Networks that are trained side by side; the first gives the features.
    fn nets(&self) -> usize;

    /// The length of features, where it is not free.
    fn radius(&self, _config: &FeaturesConfig) -> Option<f32> {
        None
    }

    /// The loss on a batch, with the weights that are trained and those of the target, which follow them.
    fn loss(
        &self,
        nets: &PhiNets,
        weights: [&Weights; 2],
        batch: &Transitions,
        config: &FeaturesConfig,
    ) -> Tensor<1>;
}

/// A batch of transitions as networks see them, each with a goal: `[rows, inputs]` each.
#[derive(Clone, Debug)]
pub struct Transitions {
    /// Where transitions begin.
    pub s: Tensor<2>,
    /// Where they lead.
    pub next: Tensor<2>,
    /// A state from all data, or one ahead in the same episode.
    pub goal: Tensor<2>,
}

/// States that stand for all observations.
const REFERENCE: u64 = 4096;
/// Draws before an episode without any transition is taken for the whole group.
const TRIES: usize = 64;

/// Where transitions come from.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one of them in a training
pub enum Source {
    /// Listed states, one-hot.
    Listed(Arc<StateTable>, Tensor<2>),
    /// Encoded observations.
    Observations(Arc<Replay>),
}

impl Source {
    /// Transitions between listed states.
    pub fn listed(table: Arc<StateTable>, device: &Device) -> Self {
        let one_hot = Tensor::eye(table.states(), &device.clone().without_autodiff());
        Self::Listed(table, one_hot)
    }

    /// Numbers that networks see of a state.
    fn inputs(&self) -> usize {
        match self {
            Self::Listed(table, _) => table.states(),
            Self::Observations(replay) => replay.codec.observations.width(),
        }
    }

    /// Draws a transition and a goal as `config` says: the numbers of state, next state and goal.
    fn draw(&self, rng: &mut Rng, config: &HilpConfig) -> [usize; 3] {
        match self {
            Self::Listed(table, _) => {
                let group = &table.groups[rng.random_range(0..table.groups.len())];
                let mut tokens = (0..TRIES)
                    .map(|_| table.episode(group.episodes[rng.random_range(0..group.episodes.len())]));
                let Some(tokens) = tokens.find(|tokens| !tokens.is_empty()) else { return [0; 3] };
                let at = rng.random_range(0..tokens.len());
                let leads_to = |at: usize| table.successors()[tokens[at] as usize] as usize;
                let goal = if rng.random_bool(config.random_goals) {
                    correction::weighted(&table.rho, rng.random())
                } else {
                    leads_to((at + config.ahead(rng)).min(tokens.len() - 1))
                };
                [tokens[at] as usize / table.width() / table.actions, leads_to(at), goal]
            }
            Self::Observations(replay) => {
                let group = replay.draw_group(rng);
                let row = replay.draw(rng, group);
                let goal = if rng.random_bool(config.random_goals) {
                    let group = replay.draw_group(rng);
                    replay.draw_state(rng, group)
                } else {
                    replay.later(row, 1 + config.ahead(rng))
                };
                [row, replay.later(row, 1), goal]
            }
        }
    }

    /// What networks see of states by their numbers, `[count, inputs]`.
    fn encoded(&self, states: &[usize]) -> Tensor<2> {
        match self {
            Self::Listed(_, one_hot) => {
                let numbers = states.iter().map(|&s| s as i64).collect();
                one_hot.clone().select(0, upload_indices(numbers, &one_hot.device()))
            }
            Self::Observations(replay) => replay.encoded(replay.rows(states)),
        }
    }

    /// States that stand for all data, and how much each weighs, 1 in all.
    fn reference(&self) -> (Tensor<2>, Vec<f32>) {
        match self {
            Self::Listed(table, one_hot) => (one_hot.clone(), table.rho.clone()),
            Self::Observations(replay) => {
                let row = |i: u64| {
                    let mut rng = stream(0, "reference", &[i]);
                    let group = replay.draw_group(&mut rng);
                    replay.draw_state(&mut rng, group)
                };
                let rows: Vec<usize> = (0..REFERENCE).map(row).collect();
                (self.encoded(&rows), vec![1.0 / REFERENCE as f32; REFERENCE as usize])
            }
        }
    }
}

/// The shape of the networks of features; what an exported file says of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PhiShape {
    inputs: usize,
    dim: usize,
    hidden: Vec<usize>,
    radius: Option<f32>,
}

/// The networks of a learner.
#[derive(Clone, Debug)]
pub struct PhiNets {
    nets: Vec<Mlp>,
    shape: PhiShape,
}

impl PhiNets {
    fn new(params: &mut Params, count: usize, shape: PhiShape) -> Result<Self, LearnError> {
        let mlp = MlpConfig::paper(&[shape.inputs], &shape.hidden, shape.dim);
        let nets = (0..count).map(|i| Mlp::new(params, &format!("phi{i}"), &mlp));
        Ok(Self { nets: nets.collect::<Result<_, _>>()?, shape })
    }

    /// What network `net` makes of states, `[rows, d]`.
    pub fn of(&self, weights: &Weights, net: usize, s: Tensor<2>) -> Tensor<2> {
        let phi = self.nets[net].forward(weights, Input::One(s));
        match self.shape.radius {
            Some(radius) => ops::sphere(phi, radius),
            None => phi,
        }
    }
}

/// Learned features, centred and whitened.
#[derive(Clone, Debug)]
pub struct Phi {
    nets: PhiNets,
    params: Params,
    /// `[1, d]`.
    mean: Tensor<2>,
    /// `[d, d]`: what each raw feature gives to each whitened one.
    whitening: Tensor<2>,
}

impl Phi {
    /// Centres and whitens what the first of `nets` makes of the states that stand for the data.
    fn new(nets: PhiNets, params: Params, source: &Source, config: &FeaturesConfig) -> Self {
        let dim = config.dim;
        let (states, weights) = source.reference();
        let raw = read(nets.of(&params.weights(), 0, states));
        let mut mean = vec![0.0; dim];
        for (row, weight) in raw.chunks_exact(dim).zip(&weights) {
            mean.iter_mut().zip(row).for_each(|(m, x)| *m += weight * x);
        }
        let mut covariance = vec![0.0_f64; dim * dim];
        for (row, weight) in raw.chunks_exact(dim).zip(&weights) {
            let row: Vec<f64> = row.iter().zip(&mean).map(|(x, m)| f64::from(x - m)).collect();
            for (to, x) in covariance.chunks_exact_mut(dim).zip(&row) {
                to.iter_mut().zip(&row).for_each(|(c, y)| *c += f64::from(*weight) * x * y);
            }
        }
        let ridge = config.ridge * (0..dim).map(|i| covariance[i * dim + i]).sum::<f64>() / dim as f64;
        let (values, vectors) = eigen(covariance, dim);
        let mut whitening = vec![0.0; dim * dim];
        for (k, (value, vector)) in values.iter().zip(vectors.chunks_exact(dim)).enumerate() {
            let scale = 1.0 / (value.max(0.0) + ridge + f64::MIN_POSITIVE).sqrt();
            (0..dim).for_each(|i| whitening[i * dim + k] = (vector[i] * scale) as f32);
        }
        let device = params.device().clone();
        Self {
            mean: upload(mean, [1, dim], &device),
            whitening: upload(whitening, [dim, dim], &device),
            nets,
            params,
        }
    }

    /// Numbers in a feature vector.
    pub fn dim(&self) -> usize {
        self.mean.dims()[1]
    }

    /// The features of encoded states, `[rows, inputs]` -> `[rows, d]`.
    pub fn embed(&self, states: Tensor<2>) -> Tensor<2> {
        let raw = self.nets.of(&self.params.weights(), 0, states);
        (raw - self.mean.clone()).matmul(self.whitening.clone())
    }

    /// What the network makes of encoded states, as it was trained.
    #[cfg(test)]
    pub(crate) fn raw(&self, states: Tensor<2>) -> Vec<f32> {
        read(self.nets.of(&self.params.weights(), 0, states))
    }

    /// Writes the features below `phi/`.
    pub(crate) fn export(&self, file: &mut TensorFile) -> PhiShape {
        self.params.save(file, "phi/net/");
        file.insert("phi/mean".into(), &self.mean);
        file.insert("phi/whitening".into(), &self.whitening);
        self.nets.shape.clone()
    }

    /// Reads back what [`Phi::export`] wrote; only the first network acts.
    pub(crate) fn import(shape: PhiShape, file: &TensorFile, device: &Device) -> Result<Self, LearnError> {
        let is_net = |name: &&str| name.starts_with("phi/net/phi") && name.ends_with("/0/w");
        let (count, dim) = (file.names().filter(is_net).count(), shape.dim);
        let mut params = Params::new(device, 0);
        let nets = PhiNets::new(&mut params, count.max(1), shape)?;
        params.load(file, "phi/net/")?;
        let mean = file.tensor("phi/mean", [1, dim], device)?;
        Ok(Self { mean, whitening: file.tensor("phi/whitening", [dim, dim], device)?, nets, params })
    }
}

#[cfg(test)]
mod tests;
