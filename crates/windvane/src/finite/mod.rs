//! Learning where states can be listed: every expectation over states is exact, and dynamics are tables.

pub mod agent;
mod bayes;
pub mod belief;
pub mod context;
mod doubts;
pub mod exam;
mod explorer;
pub mod fb;
pub mod joint;
pub mod kept;
mod memory;
pub mod model;
pub mod nets;
pub mod pilot;
pub mod play;
pub mod situations;
mod source;
pub mod stages;
mod surprise;
pub mod survey;
pub mod sweeps;
mod target;
pub mod view;

#[cfg(test)]
mod baseline_tests;
#[cfg(test)]
mod tests;
