//! How an agent is to act: who chooses actions, and how a task becomes some.

use crate::eval::{BeliefMode, EvalConfig};
use crate::planner::Planner;
use serde::{Deserialize, Serialize};

/// How a task becomes actions by F alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskPolicy {
    /// Greedy on F(s, a, z) z for the task's own vector z (paper).
    #[default]
    Greedy,
    /// Generalised policy improvement on listed states: the best of the policies for the goals that the task rewards most, each
    /// valued by its own successor measure, max over g of F(s, a, B(g)) z.
    Gpi,
}

impl TaskPolicy {
    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Greedy => "greedy on z",
            Self::Gpi => "policy improvement over goals",
        }
    }
}

/// How an agent is to act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acting {
    /// Whether its belief goes on learning.
    pub belief: BeliefMode,
    /// Who chooses actions.
    pub planner: Planner,
    /// How a task becomes actions by F alone.
    pub task_policy: TaskPolicy,
    /// How far task vectors go toward the belief, where they were drawn around it in training; 0: not at all.
    pub blend: f32,
}

impl Acting {
    /// F alone, the belief frozen.
    pub const F_ALONE: Self = Self {
        belief: BeliefMode::Frozen,
        planner: Planner::None,
        task_policy: TaskPolicy::Greedy,
        blend: 0.0,
    };

    /// As an evaluation asks for.
    pub(crate) fn of(config: &EvalConfig, belief: BeliefMode) -> Self {
        let EvalConfig { planner, task_policy, blend, .. } = *config;
        Self { belief, planner, task_policy, blend }
    }
}
