//! A trained run, read back from its folder.

use crate::agent::Agent;
use crate::error::LearnError;
use crate::run::Run;
use std::fmt;
use std::path::Path;
use windvane_world::Cmdp;

/// A finished run.
pub struct Trained {
    /// What it is.
    pub run: Run,
    /// Its world.
    pub world: Box<dyn Cmdp>,
    /// The agent.
    pub agent: Agent,
}

/// Reads a run, wherever its folder is; an error if its training is not finished. Nothing is locked or written.
pub fn trained(path: &Path) -> Result<Trained, LearnError> {
    let run = Run::read(path)?;
    let agent = run.load_agent()?;
    Ok(Trained { world: run.world()?, run, agent })
}

impl fmt::Debug for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trained({} on {})", self.run.method.name, self.run.plan.env)
    }
}
