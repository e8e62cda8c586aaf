//! Which peers Python has.

use crate::output;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A twin that can be started.
pub(super) struct Peer {
    pub(super) stack: &'static str,
    pub(super) python: String,
    pub(super) script: PathBuf,
    pub(super) compile: bool,
}

/// The twins travel inside the command, so that it does not matter where it stands.
const SCRIPTS: [(&str, &str); 4] = [
    ("twin.py", include_str!("../../../../../bench/peers/twin.py")),
    ("losses.py", include_str!("../../../../../bench/peers/losses.py")),
    ("torch_twin.py", include_str!("../../../../../bench/peers/torch_twin.py")),
    ("jax_twin.py", include_str!("../../../../../bench/peers/jax_twin.py")),
];

/// Unpacks the twins into a folder and returns those whose library is installed; says which are not.
pub(super) fn find(folder: &Path) -> anyhow::Result<Vec<Peer>> {
    for (name, text) in SCRIPTS {
        std::fs::write(folder.join(name), text)?;
    }
    let python = std::env::var("WINDVANE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let peer =
        |stack, script, compile| Peer { stack, python: python.clone(), script: folder.join(script), compile };
    let mut peers = Vec::new();
    if has(&python, "torch") {
        peers.push(peer("torch-eager", "torch_twin.py", false));
        peers.push(peer("torch-compile", "torch_twin.py", true));
    }
    if has(&python, "jax") {
        peers.push(peer("jax-jit", "jax_twin.py", false));
    }
    Ok(peers)
}

/// Whether this Python can load a library, and numpy with it.
fn has(python: &str, library: &str) -> bool {
    let mut command = Command::new(python);
    let command = command.args(["-c", &format!("import {library}, numpy")]);
    let problem = match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => return true,
        Ok(_) => format!("{python} has no {library}, or no numpy"),
        Err(error) => format!("{python} could not be started: {error}"),
    };
    output::note(&format!("{problem}: going on without {library}; bench/README.md says how to install it"));
    false
}
