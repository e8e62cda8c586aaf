//! Learning where states can be listed: every expectation over states is exact, and dynamics are tables.

pub mod agent;
pub mod belief;
pub mod context;
pub mod fb;
pub mod nets;
pub mod play;
pub mod stages;
pub mod survey;
pub mod sweeps;
mod target;
