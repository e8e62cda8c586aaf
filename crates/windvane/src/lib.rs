//! Learning on top of [`windvane_world`]: belief, agents, training, adaptation, evaluation and reports.

pub mod agent;
pub mod bench;
pub mod broken;
pub mod config;
pub mod correction;
pub mod curve;
pub mod deploy;
pub mod device;
pub mod doctor;
pub mod error;
pub mod eval;
pub mod finite;
pub mod latent;
mod linalg;
pub mod methods;
pub mod neural;
pub mod nn;
pub mod phi;
pub mod report;
pub mod run;
pub mod stats;
pub mod sweep;
pub mod task;
pub mod theory;
pub mod train;

pub use deploy::Agent;
pub use error::LearnError;
