//! The errors of networks, parameters and devices: what, where, and what was expected.

/// Anything that can go wrong when a network is built, stored or placed.
#[derive(Debug, thiserror::Error)]
pub enum NnError {
    /// A size that no network can have.
    #[error("{what}: {size} is not a usable size, expected {expected}")]
    Size {
        /// What was being sized, for instance "f/trunk hidden width".
        what: String,
        /// The size as given.
        size: usize,
        /// What is accepted.
        expected: String,
    },
    /// Two parameters of one name.
    #[error("parameter \"{0}\" exists already")]
    Duplicate(String),
    /// A stored parameter that is missing, or of another shape than the network's.
    #[error("parameter \"{name}\": {problem}")]
    Parameter {
        /// The parameter's name.
        name: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// Bytes that are not a tensor file.
    #[error("tensor file: {0}")]
    File(String),
    /// A device that cannot be used.
    #[error("device \"{device}\": {problem}")]
    Device {
        /// The device's name as given.
        device: String,
        /// What is wrong and what would help.
        problem: String,
    },
    /// A setting that cannot be met, for instance threads that cannot be started.
    #[error("{0}")]
    Setting(String),
}
