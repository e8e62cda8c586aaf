//! What is hidden of an ant: the air around it, and what becomes of its commands.

use super::ant::{Air, MOTORS};
use serde::{Deserialize, Serialize};

/// Legs, each with a hip and an ankle: at (+x, -y), (+x, +y), (-x, +y), (-x, -y).
const LEGS: usize = 4;

/// How commands reach the motors: leg i turns by `legs[i]` times the command for leg `(i + rotation) % 4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gears {
    /// +1 for a leg that turns as commanded, -1 for one that turns the other way round.
    pub legs: [i8; LEGS],
    /// By how many legs commands are off.
    pub rotation: usize,
}

impl Gears {
    /// An ant whose legs all turn as commanded.
    pub const HEALTHY: Self = Self { legs: [1; LEGS], rotation: 0 };

    /// The torques that `commands` lead to.
    pub fn torques(self, commands: [f64; MOTORS]) -> [f64; MOTORS] {
        std::array::from_fn(|motor| self.sign(motor) * commands[self.source(motor)])
    }

    /// The commands that lead to `torques`.
    pub fn commands(self, torques: [f64; MOTORS]) -> [f64; MOTORS] {
        let mut commands = [0.0; MOTORS];
        for (motor, torque) in torques.into_iter().enumerate() {
            commands[self.source(motor)] = self.sign(motor) * torque;
        }
        commands
    }

    fn sign(self, motor: usize) -> f64 {
        f64::from(self.legs[motor / 2])
    }

    /// The command that reaches a motor: hips listen to hips, ankles to ankles.
    fn source(self, motor: usize) -> usize {
        (motor + 2 * self.rotation) % MOTORS
    }
}

/// A context: everything that is hidden from agents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hidden {
    /// Wind along x and y, in m/s.
    pub wind: [f64; 2],
    /// Viscosity of the air, in Pa s.
    pub viscosity: f64,
    /// How commands reach the motors.
    #[serde(flatten)]
    pub gears: Gears,
}

impl Hidden {
    /// The air around the ant.
    pub fn air(&self) -> Air {
        Air { wind: self.wind, viscosity: self.viscosity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_what_leads_to_the_torques() {
        let wanted: [f64; MOTORS] = std::array::from_fn(|motor| motor as f64 / 10.0 - 0.3);
        for rotation in 0..4 {
            for legs in [[1, 1, 1, 1], [1, -1, 1, -1], [-1, -1, -1, 1]] {
                let gears = Gears { legs, rotation };
                assert_eq!(gears.torques(gears.commands(wanted)), wanted, "{gears:?}");
            }
        }
        let turned = Gears { legs: [1, 1, 1, -1], rotation: 1 };
        let hip_of_second_leg = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(turned.torques(hip_of_second_leg), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let ankle_of_first_leg = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(turned.torques(ankle_of_first_leg), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]);
    }
}
