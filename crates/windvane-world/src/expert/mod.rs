//! An expert for ants who knows the context: learned by PPO on joint targets, in plain numbers, within minutes on one core.
//!
//! The policy sees the posture and the wind and sets joint targets; springs and dampers turn these into torques, which is what
//! data hold. With targets of zero the ant stands, so learning begins with an ant that does not fall.

mod adam;
mod behaviour;
mod file;
mod gait;
mod mlp;
mod ppo;
mod product;
mod saved;

pub(crate) use behaviour::prepare;
pub use behaviour::{Expert, train};
pub use ppo::{Config, Progress};

use crate::mujoco::{MOTORS, POSTURE};
use crate::rng::Rng;
use mlp::{Mlp, Pass};
use rand::RngExt as _;

/// What the policy sees: the posture, and the wind along x and y.
const INPUTS: usize = POSTURE + 2;
/// Wind is seen in units of this, in m/s.
const WIND: f32 = 4.0;
/// Observations are cut at so many deviations.
const CUT: f32 = 6.0;
/// Width of both hidden layers.
const WIDTH: usize = 128;
/// The policy's network: to the mean of each joint target.
const POLICY: Mlp = Mlp { sizes: [INPUTS, WIDTH, WIDTH, MOTORS] };

/// A policy as it was at some time of its training.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gait {
    /// Mean of each observation in training.
    mean: [f32; POSTURE],
    /// Deviation of each observation in training.
    deviation: [f32; POSTURE],
    /// Deviation of each target, where they are drawn.
    noise: [f32; MOTORS],
    /// Parameters of the network [`POLICY`].
    parameters: Vec<f32>,
}

impl Gait {
    /// Adds what the network is shown of an observation and the wind to `input`.
    fn show(&self, obs: &[f32], wind: [f32; 2], input: &mut Vec<f32>) {
        let posture = obs.iter().zip(&self.mean).zip(&self.deviation);
        input.extend(posture.map(|((x, mean), deviation)| ((x - mean) / deviation).clamp(-CUT, CUT)));
        input.extend(wind.map(|w| w / WIND));
    }

    /// Mean joint targets for one observation.
    fn targets(&self, obs: &[f32], wind: [f32; 2], input: &mut Vec<f32>, pass: &mut Pass) -> [f32; MOTORS] {
        input.clear();
        self.show(&obs[..POSTURE], wind, input);
        POLICY.forward(&self.parameters, input, pass);
        std::array::from_fn(|motor| pass.output()[motor])
    }
}

/// A normal number (Box and Muller), the same to the last bit on every machine.
fn gauss(rng: &mut Rng) -> f32 {
    let radius = libm::sqrtf(-2.0 * libm::logf(1.0 - rng.random::<f32>()));
    radius * libm::cosf(std::f32::consts::TAU * rng.random::<f32>())
}

#[cfg(test)]
mod tests;
