//! Checkpoints: one file that is either the old one or the new one, never half of either, and the same bytes for the same
//! settings. What a training took, which is never the same twice, is in a file beside it.

use super::folder::host;
use super::observe::{At, rounded};
use crate::error::LearnError;
use crate::nn::TensorFile;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Layout version of a checkpoint; raised when an old reader would misread a new file.
const VERSION: u32 = 2;

/// A checkpoint as read back.
#[derive(Debug)]
pub struct Saved {
    /// Weights, targets, optimiser.
    pub tensors: TensorFile,
    /// Gradient steps taken.
    pub step: u64,
    /// What they took.
    pub times: Times,
    /// Training is over.
    pub complete: bool,
}

/// Time that a training took so far, resumed parts included; zeros where nobody noted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// CPU time.
    pub cpu_seconds: f64,
    /// Wall time.
    pub wall_seconds: f64,
}

impl Times {
    /// The file beside a checkpoint that tells them: `agent.times.json` beside `agent.safetensors`.
    pub fn path(checkpoint: &Path) -> PathBuf {
        checkpoint.with_extension("times.json")
    }

    fn read(checkpoint: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(Self::path(checkpoint)).ok()?).ok()
    }
}

/// Writes `bytes` to `path` so that a kill or a full disk at any moment leaves the old file as it was.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), LearnError> {
    // A name of one's own: should a lock ever be lost between machines, two writers still do not mix their bytes.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{}.partial", host(), std::process::id()));
    let partial = path.with_file_name(name);
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(e) = written {
        // Best effort: the half-written file is of no use, and on a full disk it is in the way.
        let _ = std::fs::remove_file(&partial);
        return Err(LearnError::io(&partial, "writing")(e));
    }
    std::fs::rename(&partial, path).map_err(LearnError::io(path, "renaming into place"))?;
    // The rename is durable once the folder is.
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|f| f.sync_all()).map_err(LearnError::io(folder, "syncing"))
}

/// Saves the state of the learner called `identity`. The times come first: a kill in between leaves a time that was spent.
pub fn save(
    path: &Path,
    identity: &str,
    mut tensors: TensorFile,
    at: &At,
    complete: bool,
) -> Result<(), LearnError> {
    tensors.insert_word("version", VERSION);
    tensors.insert_word("identity", identity);
    tensors.insert_word("step", at.step);
    tensors.insert_word("complete", complete);
    let bytes = tensors.to_bytes().map_err(|e| LearnError::run(path, e.to_string()))?;
    let times = json!({ "cpu_seconds": rounded(at.cpu_seconds), "wall_seconds": rounded(at.wall_seconds) });
    write_atomically(&Times::path(path), format!("{times}\n").as_bytes())?;
    write_atomically(path, &bytes)
}

/// Reads the checkpoint at `path`; `None` if there is no such file.
pub fn load(path: &Path, identity: &str) -> Result<Option<Saved>, LearnError> {
    let Some(saved) = read(path)? else { return Ok(None) };
    let whose: String = word(path, &saved.tensors, "identity")?;
    if whose != identity {
        return Err(LearnError::run(path, format!("is a checkpoint of {whose}; expected one of {identity}")));
    }
    Ok(Some(saved))
}

/// Whether the checkpoint at `path` is there, complete, and `identity`'s.
pub fn is_complete_as(path: &Path, identity: &str) -> Result<bool, LearnError> {
    let Some(saved) = read(path)? else { return Ok(false) };
    Ok(saved.complete && saved.tensors.word("identity") == Some(identity))
}

/// A hash of the weights below `prefix` in the checkpoint at `path`; 0 if there is none.
pub(crate) fn weights_hash(path: &Path, prefix: &str) -> Result<u64, LearnError> {
    let Some(saved) = read(path)? else { return Ok(0) };
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    for name in saved.tensors.names().filter(|name| name.starts_with(prefix)) {
        hash.update(name.as_bytes());
        hash.update(bytemuck::cast_slice(saved.tensors.values(name).unwrap_or_default()));
    }
    Ok(hash.digest())
}

/// Reads the checkpoint at `path`, of anything; `None` if there is no such file.
pub fn read(path: &Path) -> Result<Option<Saved>, LearnError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(LearnError::io(path, "reading the checkpoint")(e)),
    };
    let tensors = TensorFile::from_bytes(&bytes)
        .map_err(|e| LearnError::run(path, format!("damaged checkpoint: {e}")))?;
    let version: u32 = word(path, &tensors, "version")?;
    if version > VERSION {
        let problem = format!("checkpoint version {version}; this program reads up to {VERSION}");
        return Err(LearnError::run(path, problem));
    }
    // Version 1 stored them in the checkpoint.
    let seconds = |name: &str| tensors.word(name)?.parse().ok();
    let old = || Some(Times { cpu_seconds: seconds("cpu_seconds")?, wall_seconds: seconds("wall_seconds")? });
    Ok(Some(Saved {
        step: word(path, &tensors, "step")?,
        times: Times::read(path).or_else(old).unwrap_or_default(),
        complete: word(path, &tensors, "complete")?,
        tensors,
    }))
}

fn word<T: std::str::FromStr>(path: &Path, tensors: &TensorFile, name: &str) -> Result<T, LearnError> {
    let found = tensors.word(name);
    found.and_then(|word| word.parse().ok()).ok_or_else(|| {
        let got = found.map_or("missing".to_owned(), |word| format!("\"{word}\""));
        LearnError::run(path, format!("damaged checkpoint: field \"{name}\" is {got}"))
    })
}
