//! Choices that several commands offer.

use clap::ValueEnum;
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
