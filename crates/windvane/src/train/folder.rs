//! A run's folder: made once, used by one trainer at a time.
//!
//! Locks are the system's own: they end with the process however it ends, and hold between machines that share the folder
//! (NFS does this; a file system that cannot says so when a lock is taken). What is asked of a shared file system is listed
//! in `docs/cluster.md`: locks, renames that replace at once, and that the locked file itself is read afresh. Everything
//! else may be stale: a folder may not show yet what another machine has put there. So whoever finishes something leaves a
//! note in the lock's file, and whoever takes the lock next waits until the finished thing can be seen.

use crate::error::LearnError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a lock is tried before it counts as held: a look at it ([`Lock::is_held`]) holds it for a moment.
const TRIES: u32 = 5;
/// Time between these tries.
const MOMENT: Duration = Duration::from_millis(40);
/// Time between two tries of someone who waits: at first, and at most. A thousand who wait are two hundred tries a second.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// How long a shared folder may hide what another machine has put there; NFS caches folders for up to a minute.
const STALE: Duration = Duration::from_secs(90);

/// A locked file: nobody else, on any machine, holds it as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock at `path`, making the file if needed; nothing if someone else holds it.
    pub fn try_take(path: &Path) -> Result<Option<Self>, LearnError> {
        for _ in 1..TRIES {
            if let Some(lock) = Self::try_once(path)? {
                return Ok(Some(lock));
            }
            std::thread::sleep(MOMENT);
        }
        Self::try_once(path)
    }

    fn try_once(path: &Path) -> Result<Option<Self>, LearnError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(LearnError::io(folder, "making the folder"))?;
        }
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
        let file = file.map_err(LearnError::io(path, "opening the lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file, path: path.to_owned() })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(LearnError::io(path, "locking")(e)),
        }
    }

    /// Waits for the lock; nothing if it was interrupted meanwhile.
    pub fn wait(path: &Path, interrupt: &AtomicBool) -> Result<Option<Self>, LearnError> {
        let mut pause = PAUSES[0];
        while !interrupt.load(Ordering::Relaxed) {
            if let Some(lock) = Self::try_once(path)? {
                return Ok(Some(lock));
            }
            sleep(pause, interrupt);
            pause = (pause * 2).min(PAUSES[1]);
        }
        Ok(None)
    }

    /// Whether someone holds the lock at `path` now; nobody does if the file is not there. Nothing is written.
    pub fn is_held(path: &Path) -> Result<bool, LearnError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(LearnError::io(path, "opening the lock")(e)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(LearnError::io(path, "looking at the lock")(e)),
        }
    }

    /// Leaves a note: what this lock guards is finished.
    pub fn finished(&self) -> Result<(), LearnError> {
        let note = format!("finished on {}\n", host());
        let written = self.file.set_len(0).and_then(|()| {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(note.as_bytes())?;
            file.sync_all()
        });
        written.map_err(LearnError::io(&self.path, "noting the end"))
    }

    /// Waits until `product`, if another machine noted that it is finished, can be seen from here. If it does not show up
    /// it was deleted, and will be made again. What killed writers of `product` left half-written is cleared away.
    pub fn settle(&self, product: &Path, interrupt: &AtomicBool) -> Result<(), LearnError> {
        let mut note = String::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_string(&mut note))
            .map_err(LearnError::io(&self.path, "reading the note"))?;
        let by_others = note.starts_with("finished on ") && note != format!("finished on {}\n", host());
        clear_partials(product);
        let begun = Instant::now();
        while by_others && !product.exists() && begun.elapsed() < STALE && !interrupt.load(Ordering::Relaxed)
        {
            // To list a folder makes NFS ask the server what is in it.
            let _ = product.parent().map(|folder| std::fs::read_dir(folder).map(Iterator::count));
            sleep(PAUSES[0], interrupt);
        }
        Ok(())
    }
}

/// Removes half-written files beside `product` that are named after it; one that cannot be removed is only in the way.
fn clear_partials(product: &Path) {
    let stem = product.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let Some(entries) = product.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&format!("{stem}.")) && name.ends_with(".partial") && path.is_file() {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Sleeps for `time`, but not through an interruption.
pub(crate) fn sleep(time: Duration, interrupt: &AtomicBool) {
    let end = Instant::now() + time;
    while Instant::now() < end && !interrupt.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSES[0].min(time));
    }
}

/// This machine's name: that of the node under Slurm, else the system's.
pub fn host() -> String {
    let system = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = ["SLURMD_NODENAME", "HOSTNAME"].map(|name| std::env::var(name).ok());
    let [node, shell] = named;
    let name = node.or_else(system).or(shell).unwrap_or_else(|| "unknown".to_owned());
    name.trim().to_owned()
}

/// An open run folder. The lock lasts as long as the value, and ends with the process however it ends.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    lock: Lock,
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
        Ok(lock.map(|lock| Self { path: path.to_owned(), lock }))
    }

    /// Makes the folder if needed and waits for its lock; nothing if it was interrupted meanwhile.
    pub fn wait(path: &Path, interrupt: &AtomicBool) -> Result<Option<Self>, LearnError> {
        let lock = Lock::wait(&path.join("lock"), interrupt)?;
        Ok(lock.map(|lock| Self { path: path.to_owned(), lock }))
    }

    /// Locks a folder that must be there already.
    pub fn existing(path: &Path) -> Result<Self, LearnError> {
        if !path.is_dir() {
            return Err(LearnError::run(path, "is no folder; expected one that `windvane train` made"));
        }
        Self::open(path)
    }

    /// The lock.
    pub fn lock(&self) -> &Lock {
        &self.lock
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

#[cfg(test)]
mod tests {
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    #[test]
    fn what_another_machine_finished_is_waited_for_until_it_shows() {
        let folder = tempfile::tempdir().unwrap();
        let [lock, product] = ["thing.lock", "thing"].map(|name| folder.path().join(name));
        std::fs::write(&lock, "finished on another\n").unwrap();
        let late = product.clone();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(700));
            std::fs::write(late, "made").unwrap();
        });
        let lock = Lock::try_take(&lock).unwrap().unwrap();
        lock.settle(&product, &NEVER).unwrap();
        assert!(product.exists(), "it did not wait");
        writer.join().unwrap();
    }

    #[test]
    fn what_nobody_or_this_machine_finished_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let [path, product] = ["thing.lock", "thing"].map(|name| folder.path().join(name));
        let begun = Instant::now();
        for _ in 0..2 {
            let lock = Lock::try_take(&path).unwrap().unwrap();
            lock.settle(&product, &NEVER).unwrap();
            lock.finished().unwrap(); // and deleted since
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn looks_do_not_keep_anyone_from_taking_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!Lock::is_held(&path).unwrap() && !path.exists(), "a look made the file");
        drop(Lock::try_take(&path).unwrap());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    Lock::is_held(&path).unwrap();
                    std::thread::sleep(Duration::from_micros(300));
                }
            });
            let taken = (0..200).filter(|_| Lock::try_take(&path).unwrap().is_some()).count();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(taken, 200);
        });
        let held = Lock::try_take(&path).unwrap();
        assert!(held.is_some() && Lock::is_held(&path).unwrap() && Lock::try_take(&path).unwrap().is_none());
    }

    #[test]
    fn half_written_files_of_killed_writers_are_cleared_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        for name in
            ["a.safetensors", "a.safetensors.node-1.partial", "a.jsonl", "b.safetensors.node-1.partial"]
        {
            std::fs::write(file(name), "x").unwrap();
        }
        std::fs::create_dir(file("a.partial")).unwrap();
        let lock = Lock::try_take(&file("a.safetensors.lock")).unwrap().unwrap();
        lock.settle(&file("a.safetensors"), &NEVER).unwrap();
        assert!(!file("a.safetensors.node-1.partial").exists());
        for name in ["a.safetensors", "a.jsonl", "a.partial", "b.safetensors.node-1.partial"] {
            assert!(file(name).exists(), "{name} is gone");
        }
    }
}
