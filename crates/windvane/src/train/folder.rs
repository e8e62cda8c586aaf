//! A run's folder: made once, used by one trainer at a time.
//!
//! Locks are the system's own: they end with the process however it ends, and hold between machines that share the folder
//! (NFS does this; a file system that cannot says so when a lock is taken).

use crate::error::LearnError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A locked file: nobody else, on any machine, holds it as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at `path`, making the file if needed; nothing if someone else holds it.
    pub fn try_take(path: &Path) -> Result<Option<Self>, LearnError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(LearnError::io(folder, "making the folder"))?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(LearnError::io(path, "opening the lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(LearnError::io(path, "locking")(e)),
        }
    }

    /// Waits for the lock; nothing if it was interrupted meanwhile.
    pub fn wait(path: &Path, interrupt: &AtomicBool) -> Result<Option<Self>, LearnError> {
        while !interrupt.load(Ordering::Relaxed) {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(Some(lock));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(None)
    }

    /// Whether someone holds the lock at `path` now; nobody does if the file is not there.
    pub fn is_held(path: &Path) -> Result<bool, LearnError> {
        Ok(path.exists() && Self::try_take(path)?.is_none())
    }
}

/// An open run folder. The lock lasts as long as the value, and ends with the process however it ends.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: Lock,
}

impl RunFolder {
    /// Makes the folder if needed and locks it.
    pub fn open(path: &Path) -> Result<Self, LearnError> {
        Self::try_open(path)?.ok_or_else(|| {
            LearnError::run(path, "another process is training in this folder; wait for it or choose another")
        })
    }

    /// Makes the folder if needed and locks it; nothing if another process has it.
    pub fn try_open(path: &Path) -> Result<Option<Self>, LearnError> {
        let lock = Lock::try_take(&path.join("lock"))?;
        Ok(lock.map(|lock| Self { path: path.to_owned(), _lock: lock }))
    }

    /// Makes the folder if needed and waits for its lock; nothing if it was interrupted meanwhile.
    pub fn wait(path: &Path, interrupt: &AtomicBool) -> Result<Option<Self>, LearnError> {
        let lock = Lock::wait(&path.join("lock"), interrupt)?;
        Ok(lock.map(|lock| Self { path: path.to_owned(), _lock: lock }))
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
