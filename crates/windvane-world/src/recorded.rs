//! A world that is known from its records alone: somebody's robot, a simulator elsewhere.

use crate::batch::BatchEnv;
use crate::env::{Cmdp, ContextId, Env, EnvSpec, Split};
use crate::error::WorldError;
use crate::reward::Task;

/// A world that can be learned about but not visited: it has no contexts to play in.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    spec: EnvSpec,
}

impl Recorded {
    /// The world whose visible side is `spec`.
    pub fn new(spec: EnvSpec) -> Self {
        Self { spec }
    }

    fn absent<T>(&self) -> Result<T, WorldError> {
        let name = &self.spec.name;
        Err(WorldError::Invalid(format!("{name} is known from its records alone; it cannot be played here")))
    }
}

impl Cmdp for Recorded {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn contexts(&self, _: Split) -> &[ContextId] {
        &[]
    }

    fn instantiate(&self, _: ContextId) -> Result<Box<dyn Env>, WorldError> {
        self.absent()
    }

    fn tasks(&self, _: ContextId) -> Result<Vec<Task>, WorldError> {
        self.absent()
    }

    fn describe(&self, _: ContextId) -> Result<serde_json::Value, WorldError> {
        self.absent()
    }

    fn batch(&self, _: &[ContextId]) -> Result<Box<dyn BatchEnv>, WorldError> {
        self.absent()
    }
}
