//! The journal of an unfinished data set: how far its columns are known to be good.

use crate::env::ContextId;
use crate::error::WorldError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Name of the file.
pub(super) const JOURNAL_FILE: &str = "journal.jsonl";

/// What is on disk and synced: whole episodes only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) episodes: usize,
    pub(super) transitions: usize,
    pub(super) groups: usize,
    /// Context of the last episode.
    pub(super) context: Option<ContextId>,
    /// Rows and checksum of each column.
    pub(super) columns: BTreeMap<String, Mark>,
}

/// How far one column is good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) rows: usize,
    pub(super) xxh3_128: String,
}

/// The open journal; it also keeps a second writer out of the folder.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens or creates the journal of `folder`, locks it and reads its last whole entry.
    pub(super) fn open(folder: &Path) -> Result<(Self, Option<Entry>), WorldError> {
        let path = folder.join(JOURNAL_FILE);
        let opening = |error| WorldError::io(&path, "opening the journal", error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(opening)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(WorldError::data(&path, "lock", "another process is writing this data set"));
            }
            Err(TryLockError::Error(error)) => return Err(opening(error)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(opening)?;
        // A kill can leave half a line at the end; the entry before it is the truth.
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let last = text[..whole].split(|&byte| byte == b'\n').rfind(|line| !line.is_empty());
        let entry = match last {
            Some(line) => Some(
                serde_json::from_slice(line)
                    .map_err(|error| WorldError::data(&path, "last entry", error.to_string()))?,
            ),
            None => None,
        };
        file.set_len(whole as u64).map_err(opening)?;
        file.seek(SeekFrom::End(0)).map_err(opening)?;
        Ok((Self { path, file }, entry))
    }

    /// Adds an entry and waits until it is on disk.
    pub(super) fn push(&mut self, entry: &Entry) -> Result<(), WorldError> {
        let writing = |error| WorldError::io(&self.path, "writing the journal", error);
        let mut line = serde_json::to_vec(entry).map_err(|error| writing(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).and_then(|()| self.file.sync_data()).map_err(writing)
    }
}
