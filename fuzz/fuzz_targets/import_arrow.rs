//! Imports fuzzed bytes as the Arrow file of a Minari episode.
#![no_main]

#[path = "../../crates/windvane-world/tests/data/readers.rs"]
#[allow(dead_code)]
mod readers;

use std::sync::LazyLock;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::import_arrow(FOLDER.path(), bytes));
