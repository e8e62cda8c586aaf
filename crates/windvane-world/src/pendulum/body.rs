//! One pendulum: what it weighs, how long it is, which way its motor turns, and how it moves.

use crate::env::ContextId;

/// Values that mass and length take: .70, .71, ..., 1.30.
const VALUES: u64 = 61;
/// Bodies that differ in mass or length.
pub(super) const BODIES: u64 = VALUES * VALUES;
/// Seconds in a frame (Gymnasium's `Pendulum-v1`).
const FRAME: f64 = 0.05;
/// Frames that an action lasts: a decision every 0.15 s.
const FRAMES: usize = 3;
/// Greatest torque, in N m.
const TORQUE: f64 = 2.0;
/// Gravity, in m/s^2.
const GRAVITY: f64 = 10.0;
/// Greatest angular velocity, in rad/s.
pub(super) const MAX_SPEED: f64 = 8.0;

/// The hidden side of a pendulum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Body {
    /// +1 or -1: the way that a positive action turns it.
    pub(super) sign: f64,
    /// Mass of the rod, in kg.
    pub(super) mass: f64,
    /// Length of the rod, in m.
    pub(super) length: f64,
}

/// Where a pendulum is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    /// Angle from upright, in rad.
    pub(super) angle: f64,
    /// Angular velocity, in rad/s.
    pub(super) speed: f64,
}

impl Body {
    /// The pendulum of a context, whose number is `2 (mass + 61 length) + sign` in steps of a hundredth from .70; nothing
    /// for other numbers.
    pub(super) fn of(context: ContextId) -> Option<Self> {
        let value = |place: u64| 0.7 + place as f64 / 100.0;
        let (body, sign) = (context.0 / 2, 1.0 - 2.0 * (context.0 % 2) as f64);
        (body < BODIES).then(|| Self { sign, mass: value(body % VALUES), length: value(body / VALUES) })
    }

    /// Angular acceleration that gravity gives at the horizontal, 3 g / (2 l), in rad/s^2.
    pub(super) fn pull(self) -> f64 {
        1.5 * GRAVITY / self.length
    }

    /// Angular acceleration that an action of 1 gives, sign * 3 torque / (m l^2), in rad/s^2.
    pub(super) fn push(self) -> f64 {
        self.sign * 3.0 * TORQUE / (self.mass * self.length * self.length)
    }

    /// Where `action` (-1 to 1, of the greatest torque) leads in a step.
    pub(super) fn step(self, mut at: State, action: f64) -> State {
        for _ in 0..FRAMES {
            let change = self.pull() * libm::sin(at.angle) + self.push() * action;
            at.speed = (at.speed + change * FRAME).clamp(-MAX_SPEED, MAX_SPEED);
            at.angle += at.speed * FRAME;
        }
        at
    }
}

impl State {
    /// What is seen of it: the cosine and sine of the angle, and the angular velocity.
    pub(super) fn observation(self) -> [f32; 3] {
        // Not the system's sine, which differs between systems in the last bit: data are the same everywhere.
        [libm::cos(self.angle) as f32, libm::sin(self.angle) as f32, self.speed as f32]
    }
}
