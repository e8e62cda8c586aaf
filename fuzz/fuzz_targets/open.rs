//! Opens, checks and samples a data set in which one file is made of fuzzed bytes; the first byte says which.
#![no_main]

#[path = "../../crates/windvane-world/tests/data/readers.rs"]
#[allow(dead_code)]
mod readers;

use std::sync::LazyLock;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((&file, bytes)) = bytes.split_first() {
        readers::open_damaged(FOLDER.path(), file.into(), bytes);
    }
});
