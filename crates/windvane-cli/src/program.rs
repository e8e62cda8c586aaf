//! How to start this program again: for the units of a sweep, jobs of a cluster and workers of a benchmark.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

static STARTED_AS: OnceLock<PathBuf> = OnceLock::new();

/// Says which file was started, where it is not the file of this process: a script that an interpreter runs.
pub fn started_as(program: PathBuf) {
    // Whoever said so first is right: a process is started once.
    let _ = STARTED_AS.set(program);
}

/// The program to start.
pub(crate) fn path() -> io::Result<PathBuf> {
    STARTED_AS.get().cloned().map_or_else(std::env::current_exe, Ok)
}
