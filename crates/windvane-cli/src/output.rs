//! Where words go: results to stdout, everything else to stderr.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use serde::Serialize;
use std::io::Write as _;

/// Prints a result for people.
pub(crate) fn say(text: &str) {
    // A closed pipe (`windvane envs | head -1`) is the reader's choice, not a failure.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints the one machine-readable document of a `--json` run.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    say(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Tells how things go, on stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
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
