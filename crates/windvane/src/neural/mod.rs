//! Learning where states cannot be listed: networks on observations, discrete or continuous actions.

mod actor;
pub mod agent;
pub mod belief;
pub mod config;
pub mod fb;
pub mod features;
mod lookahead;
pub mod memory;
pub mod moves;
mod nets;
mod play;
pub mod situations;
mod source;
pub mod stages;
pub mod trainer;

#[cfg(test)]
mod tests;
