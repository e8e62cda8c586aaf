//! The command from the outside: what it prints, writes and refuses.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // helpers of tests may panic and talk as tests may

mod adapt;
mod bench;
#[cfg(unix)]
mod cluster;
mod collect;
mod data;
mod learn;
mod listing;
mod manners;
mod reproduce;
mod results;
mod worlds;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_windvane");

/// Runs the program to its end.
fn windvane(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is text")
}

/// Runs a command that must succeed, and returns what it printed.
fn success(arguments: &[&str]) -> String {
    let output = windvane(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Runs a command that must succeed and print one JSON document and nothing else.
fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&success(arguments)).expect("one JSON document on stdout")
}

/// Whether a command failed as it should: an exit code, nothing on stdout, no panic, and but for words about the use of
/// an option one line on stderr, which is returned.
fn refusal(output: &Output) -> String {
    let error = text(&output.stderr);
    assert!(!output.status.success() && output.status.code().is_some(), "{error}");
    assert!(error.starts_with("error: ") && !error.contains("panicked"), "{error}");
    assert!(output.status.code() != Some(1) || error.trim_end().lines().count() == 1, "one line: {error}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    error.to_owned()
}

/// Runs a command that must fail, and returns what it said.
fn failure(arguments: &[&str]) -> String {
    refusal(&windvane(arguments))
}

/// All files of a folder with their bytes, in order.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

/// A Python that has `packages`; without one, says that `test` is skipped.
fn python_with(packages: &str, test: &str) -> Option<String> {
    let python = std::env::var("WINDVANE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let probe = Command::new(&python).args(["-c", &format!("import {packages}")]).output();
    if probe.is_ok_and(|probe| probe.status.success()) {
        return Some(python);
    }
    eprintln!(
        "SKIPPED {test}: {python} lacks {packages} (tests/python/requirements.txt; set WINDVANE_PYTHON)"
    );
    None
}

/// Runs a script of `tests/python` that must succeed, and returns what it printed.
fn script(python: &str, name: &str, arguments: &[&Path]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python").join(name);
    let output = Command::new(python).arg(path).args(arguments).output().expect("Python starts");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout).to_owned()
}
