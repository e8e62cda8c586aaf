//! Learning where states can be listed: every expectation over states is exact, and dynamics are tables.

pub mod agent;
mod bayes;
pub mod belief;
pub mod context;
pub mod exam;
pub mod fb;
pub mod joint;
mod memory;
pub mod nets;
pub mod play;
mod source;
pub mod stages;
pub mod survey;
pub mod sweeps;
mod target;
pub mod view;

#[cfg(test)]
mod baseline_tests;
#[cfg(test)]
mod tests;
