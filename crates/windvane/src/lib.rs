//! Learning on top of [`windvane_world`]: belief, forward-backward maps, agents, training, evaluation and reports.
//!
//! A trained agent is an [`Agent`]: load one, [`Agent::adapt`] it to a context, give it a task, act. A training is a [`Run`]
//! of a [`Plan`] with a [`Method`]. `examples/` shows both.

pub mod agent;
mod belief;
pub mod bench;
pub mod config;
mod data;
pub mod device;
pub mod diagnostics;
pub mod error;
pub mod eval;
mod fb;
pub mod features;
mod latent;
mod linalg;
pub mod methods;
pub mod nn;
mod planner;
pub mod report;
pub mod request;
pub mod run;
mod run_context;
mod stage;
pub mod stats;
pub mod sweep;
#[cfg(test)]
mod testing;
pub mod theory;
pub mod train;
pub mod trained;

pub use agent::{Agent, Session};
pub use config::Plan;
pub use error::LearnError;
pub use methods::Method;
pub use planner::Planner;
pub use request::Request;
pub use run::Run;
