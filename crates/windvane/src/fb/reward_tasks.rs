//! Tasks made of random rewards: a reward that is linear in a few coordinates becomes z as a prompt's would, so that F and actor
//! know vectors of the kind they are asked with.

use super::config::FbConfig;
use crate::nn::{ops, upload};
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use windvane_world::Rng;

/// Most coordinates that a reward depends on.
const COORDINATES: usize = 3;
/// Largest exponent of a sharpened reward, as in prompts.
const LARGEST: f32 = 8.0;
/// Gain of a transition's own future, in deviations of the reward, from which on its action is cloned fully.
const FULL_GAIN: f64 = 1.0;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[COORDINATES as f64, LARGEST as f64, FULL_GAIN];

/// Rewards being drawn, one for each task; zeros for tasks of other kinds.
#[derive(Clone, Debug, Default)]
pub(crate) struct RewardDraws {
    /// 1 for tasks that are rewards, `[tasks]`.
    is_reward: Vec<f32>,
    /// Their slopes, `[tasks * dims]`.
    slopes: Vec<f32>,
}

/// Tasks that are rewards, on the device; zeros for others.
#[derive(Clone, Debug)]
pub(crate) struct RewardTasks {
    /// `[tasks, d]`.
    pub(crate) z: Tensor<2>,
    /// How much of its transition's action serves each, from 0 to 1, `[tasks, 1]`.
    pub(crate) serves: Tensor<2>,
    /// 1 for tasks that are rewards, `[tasks, 1]`.
    pub(crate) is_reward: Tensor<2>,
}

impl RewardDraws {
    /// Draws whether the next task is a reward of observations of `dims` numbers, and which.
    pub(crate) fn draw(&mut self, config: &FbConfig, rng: &mut Rng, dims: usize) -> bool {
        if config.reward_tasks == 0.0 {
            return false;
        }
        let is_reward = rng.random_bool(config.reward_tasks);
        self.is_reward.push(f32::from(u8::from(is_reward)));
        let start = self.slopes.len();
        self.slopes.resize(start + dims, 0.0);
        if is_reward {
            for _ in 0..rng.random_range(1..=COORDINATES) {
                let slope: f32 = StandardNormal.sample(rng);
                self.slopes[start + rng.random_range(0..dims)] += slope;
            }
        }
        is_reward
    }

    /// The tasks, over a batch of observations `[rows, dims]` of which `b [rows, d]` is B; `future [tasks, dims]` is the mean
    /// observation of what followed each task's transition. A reward's sign is the one by which that future earns.
    pub(crate) fn on_device(
        self,
        config: &FbConfig,
        (obs, b): (Tensor<2>, Tensor<2>),
        future: Tensor<2>,
        device: &Device,
    ) -> RewardTasks {
        let (count, [rows, dims]) = (self.is_reward.len(), obs.dims());
        let slopes: Tensor<2> = upload(self.slopes, [count, dims], device);
        let is_reward: Tensor<2> = upload(self.is_reward, [count, 1], device);
        let mean = obs.clone().mean_dim(0); // [1, dims]
        let scale = ((obs.clone() - mean.clone()).powf_scalar(2.0).mean_dim(0) + 1e-12).sqrt();
        let reward = slopes.clone().matmul(((obs - mean.clone()) / scale.clone()).transpose()); // [tasks, rows]
        let spread = (reward.clone().powf_scalar(2.0).mean_dim(1) + 1e-12).sqrt(); // [tasks, 1]
        let gain = (slopes * ((future - mean) / scale)).sum_dim(1) / spread.clone(); // [tasks, 1]
        let reward = reward / spread * gain.clone().sign();
        let sharpness = config.reward_sharpness;
        let weight =
            if sharpness > 0.0 { (reward * sharpness).clamp_max(LARGEST).exp() } else { reward };
        let weight = weight.clone() - weight.mean_dim(1);
        let z = ops::sphere(weight.matmul(b) / rows as f64, (config.dim as f32).sqrt());
        let serves = (gain.abs() / FULL_GAIN).clamp_max(1.0);
        RewardTasks { z: z * is_reward.clone(), serves: serves * is_reward.clone(), is_reward }
    }
}
