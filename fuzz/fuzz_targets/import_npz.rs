//! Imports fuzzed bytes as a NumPy archive.
#![no_main]

#[path = "../../crates/windvane-world/tests/data/readers.rs"]
#[allow(dead_code)]
mod readers;

use std::sync::LazyLock;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::import_archive(FOLDER.path(), bytes));
