//! Ctrl-C: the first asks the work to stop where it can go on later, the second stops at once.

use crate::output;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// A flag that Ctrl-C raises.
pub(crate) fn flag() -> anyhow::Result<&'static AtomicBool> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        output::note("stopping after this step; press Ctrl-C again to stop at once");
    })?;
    Ok(&ASKED)
}

/// Whether Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// What to say when the work stopped because it was asked to.
pub(crate) const STOPPED: &str = "stopped and saved; give the same command again to go on from here";
