//! The errors of learning: what, where, and what was expected.

use crate::nn::NnError;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use windvane_world::WorldError;

/// What learning gives, or why it could not.
pub type Result<T, E = LearnError> = std::result::Result<T, E>;

/// Anything that can go wrong while learning, adapting or evaluating.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// The world or its data said no.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A setting that is unknown, out of range, or contradicts another.
    #[error("{origin}: {problem}")]
    Config {
        /// The file, flag or preset the setting came from.
        origin: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A loss or another metric became NaN or infinite; the last checkpoint is intact.
    #[error("{metric} became {value} {}; the last good checkpoint is intact", when(steps))]
    NonFinite {
        /// Which metric.
        metric: String,
        /// What it became.
        value: f64,
        /// The gradient steps among which it happened: from the first that nobody had looked at to the last.
        steps: RangeInclusive<u64>,
    },
    /// A file of a run that cannot be used: damaged, or of another method, environment or version.
    #[error("{}: {problem}", path.display())]
    Run {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A file that could not be read or written.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A network, parameter or device cannot be had.
    #[error(transparent)]
    Nn(#[from] NnError),
}

fn when(steps: &RangeInclusive<u64>) -> String {
    let (first, last) = (steps.start(), steps.end());
    if first == last { format!("at step {last}") } else { format!("between steps {first} and {last}") }
}

impl LearnError {
    /// For `map_err` on file operations.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, doing, source }
    }

    /// A setting, task, observation or action that cannot be used; `origin` says which.
    pub(crate) fn config(origin: &str, problem: impl Into<String>) -> Self {
        Self::Config { origin: origin.to_owned(), problem: problem.into() }
    }

    /// A file or folder of a run that is not what it should be.
    pub(crate) fn run(path: &Path, problem: impl Into<String>) -> Self {
        Self::Run { path: path.to_owned(), problem: problem.into() }
    }
}
