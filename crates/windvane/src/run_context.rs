//! Where a run happens and who observes it.

use crate::train::observe::{Nobody, Observer};
use burn::tensor::Device;
use std::fmt;
use std::sync::atomic::AtomicBool;
use windvane_world::Cmdp;

/// Someone to tell how a stage goes.
pub trait Progress {
    /// Data is collected: so many transitions in all; returns who counts them.
    fn collecting(&mut self, transitions: usize) -> Box<dyn Fn(usize) + Sync>;
    /// A training begins; returns its observer.
    fn training(&mut self, what: &str) -> Box<dyn Observer>;
}

/// Tells nobody.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn collecting(&mut self, _: usize) -> Box<dyn Fn(usize) + Sync> {
        Box::new(|_| ())
    }

    fn training(&mut self, _: &str) -> Box<dyn Observer> {
        Box::new(Nobody)
    }
}

/// Where a run happens and who observes it.
pub struct RunContext<'a> {
    /// The environment.
    pub world: &'a dyn Cmdp,
    /// Where tensors live.
    pub device: &'a Device,
    /// Someone to tell.
    pub progress: &'a mut dyn Progress,
    /// Set to stop after the current step.
    pub interrupt: &'a AtomicBool,
}

impl fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunContext({})", self.world.spec().name)
    }
}
