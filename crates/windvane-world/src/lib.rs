//! Contextual environments, their exact solutions, and data sets of what was seen in them.
//!
//! Plain numbers only: nothing here links a tensor library. The other half of the project, the crate `windvane`,
//! learns from what this one produces.

pub mod env;
pub mod error;
pub mod reward;
pub mod rng;

pub use env::{Action, ActionSpace, Cmdp, ContextId, Dim, Env, EnvSpec, Split, Start, Step};
pub use error::WorldError;
pub use reward::{Reward, Task};
pub use rng::Rng;
