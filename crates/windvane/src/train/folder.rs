//! A run's folder: made once, used by one trainer at a time.

use crate::error::LearnError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// An open run folder. The lock lasts as long as the value, and ends with the process however it ends.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Makes the folder if needed and locks it.
    pub fn open(path: &Path) -> Result<Self, LearnError> {
        std::fs::create_dir_all(path).map_err(LearnError::io(path, "making the run folder"))?;
        let lock_path = path.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(LearnError::io(&lock_path, "opening the lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(LearnError::run(
                path,
                "another process is training in this folder; wait for it or choose another",
            )),
            Err(TryLockError::Error(e)) => Err(LearnError::io(&lock_path, "locking")(e)),
        }
    }

    /// Locks a folder that must be there already.
    pub fn existing(path: &Path) -> Result<Self, LearnError> {
        if !path.is_dir() {
            return Err(LearnError::run(path, "is no folder; expected one that `windvane train` made"));
        }
        Self::open(path)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
