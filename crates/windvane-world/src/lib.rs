//! Contextual environments, their exact solutions, and data sets of what was seen in them.
//!
//! Plain numbers only: nothing here links a tensor library. The other half of the project, the crate `windvane`,
//! learns from what this one produces.

pub mod action;
pub mod batch;
pub mod ceilings;
pub mod collect;
pub mod discretizer;
pub mod env;
pub mod episodes;
pub mod error;
#[cfg(feature = "mujoco")]
pub mod expert;
pub mod grid;
#[cfg(feature = "mujoco")]
pub mod mujoco;
pub mod pendulum;
pub mod picture;
pub mod pointmass;
pub mod prompt;
pub mod protocol;
pub mod recorded;
pub mod registry;
pub mod reward;
pub mod rng;
pub mod trajectory;

pub use batch::BatchEnv;
pub use env::{
    Action, ActionBuf, ActionSpace, Actions, Cmdp, ContextId, Dim, Env, EnvSpec, Split, Start, Step,
};
pub use error::WorldError;
pub use prompt::Prompt;
pub use reward::{Reward, SampledTask, Task};
pub use rng::Rng;
