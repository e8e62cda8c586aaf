//! A trained run, read back from its folder.

use crate::watch::Bars;
use anyhow::Context as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use windvane::device::DeviceName;
use windvane::finite::agent::FiniteAgent;
use windvane::run::Run;
use windvane::train::folder::RunFolder;
use windvane_world::Cmdp;

/// The run, its world and its agent; an error if its training is not finished.
pub(crate) fn trained(path: &Path) -> anyhow::Result<(Run, Box<dyn Cmdp>, FiniteAgent)> {
    let folder = RunFolder::existing(path)?;
    let run = Run::read(&folder)?;
    let unfinished = || format!("{}: training is not finished; go on with `windvane train`", path.display());
    anyhow::ensure!(run.is_finished()?, unfinished());
    let device = DeviceName::Cpu.open()?;
    let interrupt = AtomicBool::new(false);
    let world = run.world()?;
    let survey = Arc::new(run.data(&*world, &mut Bars)?);
    let belief = match run.method.belief {
        true => run.belief(&survey, &device, &mut Bars, &interrupt)?.map(Arc::new),
        false => None,
    };
    let agent = run.agent(&*world, &survey, belief.as_ref(), &device, &mut Bars, &interrupt)?;
    Ok((run, world, agent.with_context(unfinished)?))
}
