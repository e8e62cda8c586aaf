//! Ants in training, and the schedule that both learners share.

use super::Gait;
use super::gait::{mirror, mirror_torques};
use crate::error::WorldError;
use crate::mujoco::{Air, Ant, AntModel, Integrator, MOTORS, Measured, POSTURE};
use crate::rng::{self, Rng};
use rand::RngExt as _;

/// Ants that walk at once, half of them seen in the mirror.
pub(super) const ANTS: usize = 32;
/// Steps of each in an update.
pub(super) const STEPS: usize = 128;
/// Steps after which an episode is cut.
const HORIZON: usize = 256;
/// Updates after which all ants begin anew and training can be saved: what they are doing need not be.
pub(super) const SECTION: usize = 10;
/// Between these shares of training, rewards become the true ones; afterwards physics are those of evaluation, at three times
/// the price.
pub(super) const SETTLE: [f32; 2] = [0.6, 0.8];
/// Shares of training after which a checkpoint of the policy is taken.
pub(super) const CHECKPOINTS: [f32; 4] = [0.1, 0.3, 0.6, 1.0];

/// Number, means and variances of observations.
pub(super) type Moments = (f64, [f64; POSTURE], [f64; POSTURE]);
/// Before anything was seen.
pub(super) const UNSEEN: Moments = (1e-4, [0.0; POSTURE], [1.0; POSTURE]);

/// One ant in training.
pub(super) struct Pupil {
    ant: Ant,
    pub(super) wind: [f32; 2],
    mirrored: bool,
    obs: [f32; POSTURE],
    pub(super) time: usize,
    pub(super) rng: Rng,
}

/// What a step of a pupil brought.
pub(super) struct Walked {
    pub(super) measured: Measured,
    /// Whether the episode is over: after a fall, or when it is cut.
    pub(super) over: bool,
}

impl Pupil {
    /// What the policy is shown: the ant, or its mirror image in mirrored wind.
    pub(super) fn seen(&self) -> ([f32; POSTURE], [f32; 2]) {
        let [x, y] = self.wind;
        if self.mirrored { (mirror(&self.obs), [x, -y]) } else { (self.obs, self.wind) }
    }

    /// One step with the torques of what is seen; `done` is the share of training that is over soon.
    pub(super) fn step(&mut self, torques: [f32; MOTORS], done: f32) -> Result<Walked, WorldError> {
        let turned = if self.mirrored { mirror_torques(torques) } else { torques };
        let integrator = if done <= SETTLE[1] { Integrator::Euler } else { Integrator::RungeKutta };
        self.ant.integrate(integrator);
        let measured = self.ant.step(turned.map(f64::from)).map_err(|problem| {
            WorldError::Invalid(format!(
                "expert: wind {:?}, {:.0}% of training: the simulation diverged: {problem}",
                self.wind,
                100.0 * done
            ))
        })?;
        self.ant.observe(&mut self.obs);
        self.time += 1;
        let over = self.time >= HORIZON || !measured.healthy;
        Ok(Walked { measured, over })
    }

    pub(super) fn restart(&mut self) {
        self.ant.reset(&mut self.rng);
        self.ant.observe(&mut self.obs);
        self.time = 0;
    }
}

/// The ants of a training, in all `airs`.
pub(super) fn ants_in_training(model: &AntModel, airs: &[Air], seed: u64) -> Result<Vec<Pupil>, WorldError> {
    let pupil = |number: usize| {
        let air = airs[number % airs.len()];
        Ok(Pupil {
            ant: Ant::new(model, air, Integrator::Euler)?,
            wind: air.wind.map(|w| w as f32),
            mirrored: number >= ANTS / 2,
            obs: [0.0; POSTURE],
            time: 0,
            rng: rng::stream(seed, "pupil", &[number as u64]),
        })
    };
    (0..ANTS).map(pupil).collect()
}

/// Lets all ants begin anew.
pub(super) fn begin_section(pupils: &mut [Pupil], seed: u64, section: usize) {
    for (number, pupil) in pupils.iter_mut().enumerate() {
        pupil.rng = rng::stream(seed, "pupil", &[number as u64, section as u64]);
        pupil.restart();
        // So that episodes do not all end at once.
        pupil.time = pupil.rng.random_range(0..200);
    }
}

/// Takes a checkpoint of the policy when its time has come; `done` is the share of training that is over.
pub(super) fn take_checkpoint(checkpoints: &mut Vec<Gait>, done: f32, gait: impl Fn() -> Gait) {
    while checkpoints.len() < CHECKPOINTS.len() && done >= CHECKPOINTS[checkpoints.len()] {
        checkpoints.push(gait());
    }
}

/// Takes an update's observations, in pieces of [rows, posture], into their moments.
pub(super) fn update_moments((count, mean, variance): &mut Moments, seen: &[&[f32]]) {
    let rows = (STEPS * ANTS) as f64;
    let total = *count + rows;
    for place in 0..POSTURE {
        let column = || {
            let seen = seen.iter().flat_map(|piece| piece.iter().skip(place).step_by(POSTURE));
            seen.map(|&x| f64::from(x))
        };
        let new = column().sum::<f64>() / rows;
        let spread = column().map(|x| (x - new) * (x - new)).sum::<f64>() / rows;
        let off = new - mean[place];
        let both = variance[place] * *count + spread * rows + off * off * *count * rows / total;
        variance[place] = (both / total).max(1e-3);
        mean[place] += off * rows / total;
    }
    *count = total;
}
