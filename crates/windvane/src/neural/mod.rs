//! Learning where states cannot be listed: networks on observations, discrete or continuous actions.

mod actor;
pub mod agent;
pub mod belief;
pub mod belief_trainer;
pub mod config;
mod exam;
pub mod fb;
pub mod features;
pub mod kept;
pub mod lens;
mod lookahead;
pub mod memory;
pub mod moves;
mod nets;
pub mod pilot;
mod play;
pub mod situations;
mod source;
pub mod stages;
mod surprise;
pub mod tokens;
pub mod trainer;

#[cfg(test)]
mod tests;
