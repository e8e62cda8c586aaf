//! Where words go: results to stdout, everything else to stderr.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use serde::Serialize;
use std::io::{self, ErrorKind, Write as _};
use std::sync::Mutex;

/// Why a result could not be written, if one could not.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints a result for people.
pub(crate) fn say(text: &str) {
    raw(format!("{text}\n").as_bytes());
}

/// Prints bytes as they are.
pub(crate) fn raw(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// Takes note of how writing a result went; true if somebody still reads.
pub(crate) fn written(result: io::Result<()>) -> bool {
    let Err(error) = result else { return true };
    // A closed pipe (`windvane envs | head -1`) is the reader's choice, not a failure.
    if error.kind() != ErrorKind::BrokenPipe
        && let Ok(mut failed) = FAILED.lock()
    {
        failed.get_or_insert(error);
    }
    false
}

/// An error if a result could not be written: what nobody can read was not done.
pub(crate) fn finish() -> anyhow::Result<()> {
    match FAILED.lock().ok().and_then(|mut failed| failed.take()) {
        Some(error) => Err(anyhow::Error::new(error).context("writing the result to stdout")),
        None => Ok(()),
    }
}

/// Prints the one machine-readable document of a `--json` run.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    say(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Tells how things go, on stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints an error with its causes, once.
pub(crate) fn fail(error: &anyhow::Error) {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Errors that quote their cause should not do so twice.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    note(&format!("error: {text}"));
}
