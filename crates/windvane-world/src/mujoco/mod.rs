//! Worlds with a body, on MuJoCo (feature `mujoco`; `tools/mujoco/fetch` brings the library and the model).
//!
//! `ant-wind`: Gymnasium's ant in wind from a hidden direction, the paper's third world. `ant-fault`: the same ant whose
//! motors are hidden from their commands: some legs turn the wrong way round, or commands reach other legs (beyond the paper).
//!
//! The reward of a step is the task's reward of the observation it led to, less the step's cost (0.5 |a|^2 and 5e-4 |contact
//! forces|^2), as in `Ant-v5`. Tasks see the torso's velocity at the end of a step, as agents do; `Ant-v5` takes the mean over
//! the step, which [`Measured`] has too. Over an episode the two agree within a percent.

mod ant;
mod hidden;
mod native;
#[cfg(feature = "render")]
pub mod render;
mod tasks;
mod world;

pub use ant::{Air, Ant, AntModel, BOUND, FULL, Integrator, MOTORS, Measured, POSTURE, STEP, VELOCITY};
pub use hidden::{Gears, Hidden};
pub(crate) use world::{AntWorld, Family};
