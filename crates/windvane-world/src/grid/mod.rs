//! Grid worlds and what can be known about them exactly.

mod batch;
mod beliefs;
pub(crate) mod doors;
mod dynamics;
mod family;
pub(crate) mod four_rooms;
mod layout;
mod paths;
mod plan;
mod planner;
mod posterior;
mod reward_tasks;
mod successor;

pub use dynamics::Dynamics;
pub use family::GridWorld;
pub use layout::{ACTIONS, Layout, MOVES, ahead};
pub use paths::{UNREACHABLE, distances, optimal_moves};
pub use plan::{Failure, Objective, Plan};
pub use planner::{Belief, GAMMA, Planner};
pub use posterior::{Posterior, Prior};
pub use reward_tasks::{Acting, RewardKind, RewardTask};
pub use successor::{SuccessorMeasure, deterministic};
