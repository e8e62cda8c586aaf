//! Learning on top of [`windvane_world`]: belief, agents, training, adaptation, evaluation and reports.

pub mod bench;
pub mod config;
pub mod device;
pub mod error;
pub mod eval;
pub mod finite;
pub mod latent;
pub mod methods;
pub mod nn;
pub mod report;
pub mod run;
pub mod train;

pub use error::LearnError;
