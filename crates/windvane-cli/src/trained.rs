//! A trained run, read back from its folder.

use crate::watch::Bars;
use anyhow::Context as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use windvane::agent::Agent;
use windvane::device::DeviceName;
use windvane::run::{Run, Site};
use windvane::train::folder::RunFolder;
use windvane_world::Cmdp;

/// A finished run.
pub(crate) struct Trained {
    pub(crate) run: Run,
    pub(crate) world: Box<dyn Cmdp>,
    pub(crate) agent: Box<dyn Agent>,
}

/// Reads a run; an error if its training is not finished.
pub(crate) fn trained(path: &Path) -> anyhow::Result<Trained> {
    let folder = RunFolder::existing(path)?;
    let run = Run::read(&folder)?;
    let unfinished = || format!("{}: training is not finished; go on with `windvane train`", path.display());
    anyhow::ensure!(run.is_finished()?, unfinished());
    let device = DeviceName::Cpu.open()?;
    let world = run.world()?;
    let interrupt = AtomicBool::new(false);
    let agent =
        run.agent(&mut Site { world: &*world, device: &device, watch: &mut Bars, interrupt: &interrupt })?;
    Ok(Trained { run, world, agent: agent.with_context(unfinished)? })
}
