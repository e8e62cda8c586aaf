//! The errors of worlds and data sets: what, where, and what was expected.

use std::path::PathBuf;

/// Anything that can go wrong in a world or its data.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// A name that no environment, task or policy has.
    #[error("unknown {kind} \"{name}\"; known: {known}")]
    Unknown {
        /// What was looked up, for instance "environment".
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are, comma-separated.
        known: String,
    },
    /// A request that cannot be met, for instance more layouts than exist.
    #[error("{0}")]
    Invalid(String),
    /// An action outside the action space.
    #[error("action {action} is outside the action space of {env}: expected {expected}")]
    Action {
        /// The environment's name.
        env: String,
        /// The action as given.
        action: String,
        /// What it accepts.
        expected: String,
    },
    /// A task that cannot be understood.
    #[error("{part}: {problem}")]
    Prompt {
        /// The goal, file or formula.
        part: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A file that could not be read or written.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done, for instance "writing observations".
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file whose content is not what it should be.
    #[error("{}: {field}: {problem}", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// The field or column.
        field: String,
        /// What is wrong and what was expected.
        problem: String,
    },
}

impl WorldError {
    /// An error of the system while doing something to a file.
    pub fn io(path: impl Into<PathBuf>, doing: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), doing: doing.into(), source }
    }

    /// A file whose content is not what it should be.
    pub fn data(path: impl Into<PathBuf>, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Data { path: path.into(), field: field.into(), problem: problem.into() }
    }
}
