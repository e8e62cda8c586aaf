//! Settings: where they come from and how they are checked.

pub mod layers;
mod plan;

pub use crate::belief::{BeliefConfig, Decoder, Posterior};
pub use crate::data::{EncoderConfig, StateKind};
pub use crate::fb::actor::{ActorConfig, ActorKind};
pub use crate::fb::config::{Aggregate, BackwardForm, FbConfig, ForwardForm, NetConfig, NetKind, ValueHead};
pub use crate::planner::PlannerConfig;
pub use plan::{DataPlan, Plan, RECORDED};
