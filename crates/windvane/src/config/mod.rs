//! Settings: where they come from and how they are checked.

pub mod layers;
mod plan;

pub use plan::{DataPlan, Plan, RECORDED};
