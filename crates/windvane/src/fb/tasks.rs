//! Task vectors to train on: goals z = B(s), random ones, and signed mixtures of a few states.

use super::config::FbConfig;
use crate::data::bad_setting;
use crate::error::Result;
use crate::latent::{self, VonMisesFisher};
use crate::methods::Draw;
use crate::nn::{ops, upload, upload_indices};
use burn::tensor::{Device, Int, Tensor};
use rand::RngExt as _;
use windvane_world::Rng;

/// Most states in a mixture.
const LARGEST_MIXTURE: usize = 24;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[LARGEST_MIXTURE as f64];

/// Where random task vectors come from.
#[derive(Clone, Debug)]
pub(crate) enum TaskDistribution {
    /// Anywhere on the sphere (FB, Belief-FB).
    Sphere,
    /// A cone around the belief (Rotation-FB).
    Cone(VonMisesFisher),
}

impl TaskDistribution {
    /// The distribution of a method, whose beliefs have `belief` numbers.
    pub(crate) fn new(draw: Draw, config: &FbConfig, belief: usize) -> Result<Self> {
        if draw == Draw::Sphere {
            return Ok(Self::Sphere);
        }
        if config.dim < belief {
            return Err(bad_setting(format!(
                "\"fb.dim\" is {}; Rotation-FB needs at least the belief's {belief} numbers",
                config.dim
            )));
        }
        let cone = VonMisesFisher::new(config.dim, config.kappa).map(Self::Cone);
        cone.ok_or_else(|| bad_setting(format!("\"fb.kappa\" is {}", config.kappa)))
    }
}

/// Task vectors being drawn, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct TaskDraws<'a> {
    config: &'a FbConfig,
    distribution: &'a TaskDistribution,
    /// Number of listed states, for mixtures.
    states: usize,
    /// What each is; marks of goals and mixtures.
    goal: Vec<f32>,
    mixture: Vec<f32>,
    /// Index of the goal; 0 for others.
    goals: Vec<i64>,
    /// Random vectors, zeros for others, `[tasks * d]`.
    random: Vec<f32>,
    /// Rewards of mixtures, `[tasks * states]`; empty without.
    rewards: Vec<f32>,
}

/// Task vectors on the device.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    /// `[tasks, d]`.
    pub(crate) z: Tensor<2>,
    /// 1 for goals, `[tasks, 1]`.
    pub(crate) is_goal: Tensor<2>,
}

impl Tasks {
    /// 1 for tasks that losses on a log scale are taken on, `[tasks, 1]`.
    pub(crate) fn on_log_scale(&self, config: &FbConfig) -> Tensor<2> {
        if config.log_losses_on_all_tasks { self.is_goal.clone() * 0.0 + 1.0 } else { self.is_goal.clone() }
    }
}

impl<'a> TaskDraws<'a> {
    pub(crate) fn new(config: &'a FbConfig, distribution: &'a TaskDistribution, states: usize) -> Self {
        let (goal, mixture, goals, random, rewards) = Default::default();
        Self { config, distribution, states, goal, mixture, goals, random, rewards }
    }

    /// Draws one task in a context whose cone has the mean `axis` (empty without). `goal` draws the index of a goal.
    pub(crate) fn draw(&mut self, rng: &mut Rng, axis: &[f32], mut goal: impl FnMut(&mut Rng) -> usize) {
        let config = self.config;
        let start = self.random.len();
        self.random.resize(start + config.dim, 0.0);
        let kind: f64 = rng.random();
        let (mut is_goal, mut is_mixture, mut index) = (false, false, 0);
        if kind < config.random_tasks {
            let z = &mut self.random[start..];
            match self.distribution {
                TaskDistribution::Sphere => latent::uniform(rng, z),
                TaskDistribution::Cone(cone) => cone.sample(axis, rng, z),
            }
        } else if kind < config.random_tasks + config.mixture_tasks {
            is_mixture = true;
        } else {
            (is_goal, index) = (true, goal(rng));
        }
        if config.mixture_tasks > 0.0 {
            let start = self.rewards.len();
            self.rewards.resize(start + self.states, 0.0);
            if is_mixture {
                mixture(rng, &mut self.rewards[start..], goal);
            }
        }
        self.goal.push(f32::from(u8::from(is_goal)));
        self.mixture.push(f32::from(u8::from(is_mixture)));
        self.goals.push(index as i64);
    }

    /// The vectors, where `goals` gives B of goals by their indices and `b [states, d]` is B of all listed states.
    pub(crate) fn on_device(
        self,
        device: &Device,
        b: Option<&Tensor<2>>,
        goals: impl FnOnce(Tensor<1, Int>) -> Tensor<2>,
    ) -> Tasks {
        let (count, dim) = (self.goals.len(), self.config.dim);
        let is_goal: Tensor<2> = upload(self.goal, [count, 1], device);
        let z = goals(upload_indices(self.goals, device)) * is_goal.clone()
            + upload::<2>(self.random, [count, dim], device);
        let z = match b {
            Some(b) if !self.rewards.is_empty() => {
                let rewards: Tensor<2> = upload(self.rewards, [count, b.dims()[0]], device);
                let mixture = ops::sphere(rewards.matmul(b.clone()), (dim as f32).sqrt());
                z + mixture * upload::<2>(self.mixture, [count, 1], device)
            }
            _ => z,
        };
        Tasks { z, is_goal }
    }
}

/// Task vectors of goals: the mean of `b`, B of `states` states for each, less that of as many `others`, at length sqrt(d);
/// both `[tasks * states, d]`.
pub(crate) fn of_goals(b: Tensor<2>, others: Option<Tensor<2>>, states: usize) -> Tensor<2> {
    let [rows, dim] = b.dims();
    let mean =
        |b: Tensor<2>| b.reshape([rows / states, states, dim]).mean_dim(1).reshape([rows / states, dim]);
    let z = match others {
        Some(others) => mean(b) - mean(others),
        None if states == 1 => return b,
        None => mean(b),
    };
    ops::sphere(z, (dim as f32).sqrt()) // [tasks, d]
}

/// A signed reward on a few states: 1 to 24 of them (log-uniform), weights U(.1, 1), negative with chance U(0, .8), the first
/// positive.
fn mixture(rng: &mut Rng, reward: &mut [f32], mut state: impl FnMut(&mut Rng) -> usize) {
    let count = (LARGEST_MIXTURE as f64).powf(rng.random::<f64>()).round().max(1.0) as usize;
    let negative: f64 = rng.random_range(0.0..0.8);
    for i in 0..count {
        let weight: f32 = rng.random_range(0.1..1.0);
        let sign = if i > 0 && rng.random_bool(negative) { -1.0 } else { 1.0 };
        reward[state(rng)] += sign * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::read;

    #[test]
    fn centred_goals_say_what_a_future_has_beyond_its_context() {
        let device = Device::flex();
        let two = |values: [f32; 4]| upload::<2>(values.to_vec(), [2, 2], &device);
        let z = |others| read(of_goals(two([3.0, 5.0, 1.0, 5.0]), others, 2));
        let near =
            |z: Vec<f32>, expected: [f32; 2]| z.iter().zip(expected).all(|(z, e)| (z - e).abs() < 1e-5);
        let long = 2.0_f32.sqrt();
        assert!(near(z(None), [long * 2.0 / 29.0_f32.sqrt(), long * 5.0 / 29.0_f32.sqrt()]));
        // All of the context has as much of the second coordinate: no wish.
        assert!(near(z(Some(two([0.0, 5.0, 2.0, 5.0]))), [long, 0.0]));
    }
}
