//! Features of states that are learned before anything is known of tasks, for successor features over them.
//!
//! Successor features psi(s, a, z) are the expected discounted sum of phi along the policy of task z, whose reward is phi z.
//! Features are centred and whitened once they are learned. That changes neither what their combinations can express nor the
//! least squares of a reward on them, which becomes `z = E[r phi]`: the same form as FB's, so that both share everything
//! that follows.

mod trainer;

pub use trainer::PhiTrainer;

use crate::error::LearnError;
use crate::linalg::eigen;
use crate::methods::hilp::HilpConfig;
use crate::methods::lap::LapConfig;
use crate::nn::{Input, Mlp, MlpConfig, Params, Weights, ops, to_vec};
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};
use std::fmt;
use windvane_world::Rng;

/// Settings of features that are learned beforehand, and their training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhiConfig {
    /// Numbers in a feature vector, and in z; HILP: 50.
    pub dim: usize,
    /// Gradient steps.
    pub steps: u64,
    /// Transitions per step; HILP: 1024.
    pub batch: usize,
    /// Learning rate, warmed up over 100 steps and decayed by a cosine; HILP: 1e-4 without decay.
    pub rate: f32,
    /// The way target networks go toward the trained ones each step; HILP: 0.005, over a hundred times as many steps.
    pub tau: f32,
    /// Directions of features count as noise below this share of the mean variance, when rewards are expressed in them.
    pub ridge: f64,
    /// HILP's own.
    pub hilp: HilpConfig,
    /// LAP's own.
    pub lap: LapConfig,
}

impl Default for PhiConfig {
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

impl PhiConfig {
    /// What contradicts itself or means nothing.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { hilp, lap, .. } = self;
        let shares = [
            ("tau", f64::from(self.tau)),
            ("hilp.discount", f64::from(hilp.discount)),
            ("hilp.expectile", f64::from(hilp.expectile)),
            ("hilp.random_goals", hilp.random_goals),
            ("hilp.future", hilp.future),
        ];
        let positive =
            [("dim", self.dim as f64), ("steps", self.steps as f64), ("rate", f64::from(self.rate))];
        let not_negative = [("ridge", self.ridge), ("lap.ortho", lap.ortho)];
        if let Some((name, value)) = shares.iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return Err(format!("\"phi.{name}\" is {value}; expected between 0 and 1"));
        }
        if let Some((name, value)) = positive.iter().find(|(_, value)| !(value.is_finite() && *value > 0.0)) {
            return Err(format!("\"phi.{name}\" is {value}; expected more than 0"));
        }
        if let Some((name, value)) = not_negative.iter().find(|(_, value)| !value.is_finite() || *value < 0.0)
        {
            return Err(format!("\"phi.{name}\" is {value}; expected a number of at least 0"));
        }
        if hilp.future == 1.0 {
            return Err("\"phi.hilp.future\" is 1; expected less".into());
        }
        if self.batch < 2 {
            return Err(format!("\"phi.batch\" is {}; expected at least 2", self.batch));
        }
        Ok(())
    }
}

/// A way to learn features from transitions.
pub trait FeatureLearner: fmt::Debug + Sync {
    /// Networks that are trained side by side; the first gives the features.
    fn nets(&self) -> usize;

    /// The length of features, where it is not free.
    fn radius(&self, _config: &PhiConfig) -> Option<f32> {
        None
    }

    /// The loss on a batch, with the weights that are trained and those of the target, which follow them.
    fn loss(
        &self,
        nets: &PhiNets,
        weights: [&Weights; 2],
        batch: &Transitions,
        config: &PhiConfig,
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

/// Where transitions come from.
pub trait Source: fmt::Debug + Send + Sync {
    /// What networks see of a state has so many numbers.
    fn inputs(&self) -> usize;

    /// Draws a transition and a goal as `config` says, and adds what networks see to `rows`: state, next state, goal.
    fn draw(&self, rng: &mut Rng, config: &HilpConfig, rows: &mut [Vec<f32>; 3]);

    /// States that stand for all data, `[count * inputs]`, and how much each weighs, 1 in all.
    fn reference(&self) -> (Vec<f32>, Vec<f32>);
}

/// The networks of a learner.
#[derive(Clone, Debug)]
pub struct PhiNets {
    nets: Vec<Mlp>,
    radius: Option<f32>,
}

impl PhiNets {
    fn new(
        params: &mut Params,
        learner: &dyn FeatureLearner,
        width: usize,
        hidden: &[usize],
        config: &PhiConfig,
    ) -> Result<Self, LearnError> {
        let shape = MlpConfig::paper(&[width], hidden, config.dim);
        let nets = (0..learner.nets()).map(|i| Mlp::new(params, &format!("phi{i}"), &shape));
        Ok(Self { nets: nets.collect::<Result<_, _>>()?, radius: learner.radius(config) })
    }

    /// What network `net` makes of states, `[rows, d]`.
    pub fn of(&self, weights: &Weights, net: usize, s: Tensor<2>) -> Tensor<2> {
        let phi = self.nets[net].forward(weights, Input::One(s));
        match self.radius {
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
    inputs: usize,
    /// `[d]`.
    mean: Vec<f32>,
    /// `[d * d]`, row by row: what each raw feature gives to each whitened one.
    whitening: Vec<f32>,
}

impl Phi {
    /// Centres and whitens what the first of `nets` makes of the states that stand for the data.
    fn new(nets: PhiNets, params: Params, source: &dyn Source, config: &PhiConfig) -> Self {
        let dim = config.dim;
        let mut phi =
            Self { nets, params, inputs: source.inputs(), mean: vec![0.0; dim], whitening: Vec::new() };
        let (states, weights) = source.reference();
        let raw = phi.raw(states);
        for (row, weight) in raw.chunks_exact(dim).zip(&weights) {
            phi.mean.iter_mut().zip(row).for_each(|(m, x)| *m += weight * x);
        }
        let mut covariance = vec![0.0_f64; dim * dim];
        for (row, weight) in raw.chunks_exact(dim).zip(&weights) {
            let row: Vec<f64> = row.iter().zip(&phi.mean).map(|(x, m)| f64::from(x - m)).collect();
            for (to, x) in covariance.chunks_exact_mut(dim).zip(&row) {
                to.iter_mut().zip(&row).for_each(|(c, y)| *c += f64::from(*weight) * x * y);
            }
        }
        let ridge = config.ridge * (0..dim).map(|i| covariance[i * dim + i]).sum::<f64>() / dim as f64;
        let (values, vectors) = eigen(covariance, dim);
        phi.whitening = vec![0.0; dim * dim];
        for (k, (value, vector)) in values.iter().zip(vectors.chunks_exact(dim)).enumerate() {
            let scale = 1.0 / (value.max(0.0) + ridge + f64::MIN_POSITIVE).sqrt();
            (0..dim).for_each(|i| phi.whitening[i * dim + k] = (vector[i] * scale) as f32);
        }
        phi
    }

    /// Numbers in a feature vector.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// The features of states, `[count * d]`, from what networks see of them, `[count * inputs]`.
    pub fn of(&self, states: Vec<f32>) -> Vec<f32> {
        let dim = self.dim();
        let raw = self.raw(states);
        let mut out = vec![0.0; raw.len()];
        for (out, row) in out.chunks_exact_mut(dim).zip(raw.chunks_exact(dim)) {
            for ((x, mean), to) in row.iter().zip(&self.mean).zip(self.whitening.chunks_exact(dim)) {
                out.iter_mut().zip(to).for_each(|(out, to)| *out += (x - mean) * to);
            }
        }
        out
    }

    /// What the network makes of states, as it was trained.
    pub(crate) fn raw(&self, states: Vec<f32>) -> Vec<f32> {
        let rows = states.len() / self.inputs;
        if rows == 0 {
            return Vec::new();
        }
        let states = Tensor::from_data(TensorData::new(states, [rows, self.inputs]), self.params.device());
        to_vec(self.nets.of(&self.params.weights(), 0, states))
    }
}
