//! A trained run, read back from its folder.

use std::path::Path;
use windvane::{Agent, Run};
use windvane_world::Cmdp;

/// A finished run.
pub(crate) struct Trained {
    pub(crate) run: Run,
    pub(crate) world: Box<dyn Cmdp>,
    pub(crate) agent: Agent,
}

/// Reads a run, wherever its folder is; an error if its training is not finished. Nothing is locked or written.
pub(crate) fn trained(path: &Path) -> anyhow::Result<Trained> {
    let run = Run::read(path)?;
    let agent = run.load_agent()?;
    Ok(Trained { world: run.world()?, run, agent })
}
