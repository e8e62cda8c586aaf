//! An expert for ants who knows the context: learned by PPO on joint targets, in plain numbers, within minutes on one core; or by SAC.
//!
//! The policy sees the posture and the wind and sets joint targets; springs and dampers turn these into torques, which is what
//! data hold. With targets of zero the ant stands, so learning begins with an ant that does not fall. SAC may set torques as well.

mod adam;
mod behaviour;
mod file;
mod gait;
mod mlp;
mod ppo;
mod product;
mod pupil;
mod sac;
mod saved;

pub(crate) use behaviour::prepare;
pub use behaviour::{Expert, train};

use crate::collect::Learner;
use crate::mujoco::{MOTORS, POSTURE};
use crate::rng::Rng;
use mlp::{Activation, Mlp, Pass, tanh};
use pupil::Moments;
use rand::RngExt as _;

/// How an expert is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Seed of everything random.
    pub seed: u64,
    /// Updates, of 4,096 steps each. PPO, 300: a mean return of 618 in the paper's training winds, within three CPU-minutes.
    pub updates: usize,
    /// PPO, or SAC on torques or joint targets.
    pub learner: Learner,
}

/// How far training is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Updates done.
    pub update: usize,
    /// Mean reward of a step in the last update, as `Ant-v5` has it.
    pub reward: f64,
    /// Mean length of the walks that ended in it.
    pub length: f64,
    /// Mean deviation of targets; of what is squashed, with SAC.
    pub noise: f32,
}

/// What the policy sees: the posture, and the wind along x and y.
const INPUTS: usize = POSTURE + 2;
/// Wind is seen in units of this, in m/s.
const WIND: f32 = 4.0;
/// Observations are cut at so many deviations.
const CUT: f32 = 6.0;
/// Width of both hidden layers.
const WIDTH: usize = 128;
/// The policy's network: to the mean of each joint target.
const POLICY: Mlp = Mlp { sizes: [INPUTS, WIDTH, WIDTH, MOTORS], activation: Activation::Tanh };

/// A policy as it was at some time of its training.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gait {
    /// Who taught it, and with that what it sets.
    learner: Learner,
    /// Mean of each observation in training.
    mean: [f32; POSTURE],
    /// Deviation of each observation in training.
    deviation: [f32; POSTURE],
    /// Deviation of each target, where they are drawn. SAC's is that of the state; this is its mean at the end of training.
    noise: [f32; MOTORS],
    /// Parameters of the learner's network.
    parameters: Vec<f32>,
}

/// The network of a learner's policy.
fn network(learner: Learner) -> Mlp {
    match learner {
        Learner::Ppo => POLICY,
        Learner::Sac | Learner::SacTargets => sac::POLICY,
    }
}

impl Gait {
    fn new(learner: Learner, moments: &Moments, noise: [f32; MOTORS], parameters: Vec<f32>) -> Self {
        let (_, mean, variance) = moments;
        let (mean, deviation) = (mean.map(|m| m as f32), variance.map(|v| v.sqrt() as f32));
        Self { learner, mean, deviation, noise, parameters }
    }

    /// Adds what the network is shown of an observation and the wind to `input`.
    fn show(&self, obs: &[f32], wind: [f32; 2], input: &mut Vec<f32>) {
        let posture = obs.iter().zip(&self.mean).zip(&self.deviation);
        input.extend(posture.map(|((x, mean), deviation)| ((x - mean) / deviation).clamp(-CUT, CUT)));
        input.extend(wind.map(|w| w / WIND));
    }

    /// Means and deviations of what is drawn for one observation: joint targets, or what SAC squashes.
    fn choices(
        &self,
        obs: &[f32],
        wind: [f32; 2],
        input: &mut Vec<f32>,
        pass: &mut Pass,
    ) -> [[f32; MOTORS]; 2] {
        input.clear();
        self.show(&obs[..POSTURE], wind, input);
        network(self.learner).forward(&self.parameters, input, pass);
        let means = std::array::from_fn(|motor| pass.output()[motor]);
        let deviations = match self.learner {
            Learner::Ppo => self.noise,
            _ => std::array::from_fn(|motor| sac::deviation(pass.output()[MOTORS + motor])),
        };
        [means, deviations]
    }

    /// The torques of a choice.
    fn torques(&self, obs: &[f32], choice: &[f32; MOTORS]) -> [f32; MOTORS] {
        match self.learner {
            Learner::Ppo => gait::torques(obs, choice),
            _ => sac::torques(self.learner, obs, choice.map(tanh)),
        }
    }
}

/// A normal number (Box and Muller), the same to the last bit on every machine.
fn gauss(rng: &mut Rng) -> f32 {
    let radius = libm::sqrtf(-2.0 * libm::logf(1.0 - rng.random::<f32>()));
    radius * libm::cosf(std::f32::consts::TAU * rng.random::<f32>())
}

#[cfg(test)]
mod tests;
