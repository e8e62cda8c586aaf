//! A policy that knows the pendulum: pumps energy until it can be caught, then holds it.

use super::body::Body;
use crate::env::ActionBuf;
use crate::error::WorldError;
use crate::protocol::Policy;
use crate::reward::Task;
use crate::rng::Rng;

/// How hard angle and angular velocity are brought back to zero, in 1/s^2 and 1/s.
const HOLD: [f64; 2] = [8.0, 5.0];
/// How hard the energy is brought to that of standing upright, in s^2/rad^2.
const PUMP: f64 = 0.5;

/// Swings a pendulum up and holds it, whatever the task.
pub(super) struct Swing(pub(super) Body);

impl Policy for Swing {
    fn begin(&mut self, _: &Task, _: &[f32]) -> Result<(), WorldError> {
        Ok(())
    }

    fn act(&mut self, obs: &[f32], _: &mut Rng, action: &mut ActionBuf) {
        let [cos, sin, speed] = [0, 1, 2].map(|place| f64::from(obs[place]));
        let (angle, pull, push) = (libm::atan2(sin, cos), self.0.pull(), self.0.push());
        let hold = -(pull * sin + HOLD[0] * angle + HOLD[1] * speed) / push;
        // Energy above that of standing upright, over the moment of inertia.
        let energy = 0.5 * speed * speed + pull * (cos - 1.0);
        let pump = -PUMP * energy * speed.signum() * push.signum();
        let choice = if cos > 0.7 && hold.abs() <= 1.5 { hold } else { pump };
        if let ActionBuf::Continuous(torque) = action {
            torque.fill(choice.clamp(-1.0, 1.0) as f32);
        }
    }
}
