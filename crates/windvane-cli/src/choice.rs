//! Choices that several commands offer.

use clap::ValueEnum;
use windvane::Planner;
use windvane::agent::TaskPolicy;
use windvane::eval::BeliefMode;
use windvane_world::{Split, Start};

/// Where an episode begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartChoice {
    /// The context's own start state, as in evaluation
    Fixed,
    /// Any state that can be reached
    Random,
}

impl From<StartChoice> for Start {
    fn from(choice: StartChoice) -> Self {
        match choice {
            StartChoice::Fixed => Self::Fixed,
            StartChoice::Random => Self::Random,
        }
    }
}

/// Contexts to learn from, or held-out ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SplitChoice {
    /// Contexts to learn from
    Train,
    /// Held-out contexts
    Test,
}

impl From<SplitChoice> for Split {
    fn from(choice: SplitChoice) -> Self {
        match choice {
            SplitChoice::Train => Self::Train,
            SplitChoice::Test => Self::Test,
        }
    }
}

/// Whether a belief goes on learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BeliefChoice {
    /// Frozen after the context, as in the paper
    Frozen,
    /// Refreshed by every step
    Online,
}

impl From<BeliefChoice> for BeliefMode {
    fn from(choice: BeliefChoice) -> Self {
        match choice {
            BeliefChoice::Frozen => Self::Frozen,
            BeliefChoice::Online => Self::Online,
        }
    }
}

/// Who chooses actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlannerChoice {
    /// F alone
    None,
    /// Value iteration on the predictor's dynamics
    Sweeps,
}

impl From<PlannerChoice> for Planner {
    fn from(choice: PlannerChoice) -> Self {
        match choice {
            PlannerChoice::None => Self::None,
            PlannerChoice::Sweeps => Self::Sweeps,
        }
    }
}

/// How a task becomes actions by F alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskPolicyChoice {
    /// Greedy on the task's own vector z, as in the paper
    Greedy,
    /// The best of the policies for the goals that the task rewards most (listed states)
    Gpi,
}

impl From<TaskPolicyChoice> for TaskPolicy {
    fn from(choice: TaskPolicyChoice) -> Self {
        match choice {
            TaskPolicyChoice::Greedy => Self::Greedy,
            TaskPolicyChoice::Gpi => Self::Gpi,
        }
    }
}
