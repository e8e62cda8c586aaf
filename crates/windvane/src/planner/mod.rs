//! Planning on the predictor's dynamics: value iteration over a sparse graph of states. Acting may use it, by name; no method
//! is made of it.

pub(crate) mod explorer;
pub(crate) mod graph;
pub(crate) mod nodes;

pub(crate) use graph::Graph;

use serde::{Deserialize, Serialize};

/// Value iteration before acting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannerConfig {
    /// Bellman sweeps; as many as it takes for values to settle over the longest way.
    pub sweeps: usize,
}

impl Default for PlannerConfig {
    fn default() -> Self {
        Self { sweeps: 64 }
    }
}

/// Who chooses actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Planner {
    /// F alone, and the actor where actions are continuous.
    #[default]
    None,
    /// Value iteration on the predictor's dynamics.
    Sweeps,
}

impl Planner {
    /// As tables print it.
    pub fn title(self) -> &'static str {
        match self {
            Self::None => "F alone",
            Self::Sweeps => "with planner",
        }
    }
}
