//! Experts on disk: one file, written at once when training is over.

use super::{Gait, network};
use crate::collect::Learner;
use crate::error::WorldError;
use crate::mujoco::{MOTORS, POSTURE};
use std::io::Write as _;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// How the first line of the file begins.
const MAGIC: &[u8] = b"windvane expert";
/// Numbers that a policy takes.
const NUMBERS: usize = 2 * POSTURE + MOTORS;

/// What can be wrong with the bytes of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// They begin with another line.
    Kind,
    /// There is no policy in them.
    Empty,
    /// They end within one.
    Size,
}

/// The first line of policies that a learner taught; PPO's says nothing of it.
fn first_line(learner: Learner) -> String {
    match learner {
        Learner::Ppo => "windvane expert 1\n".into(),
        _ => format!("windvane expert 1 {learner}\n"),
    }
}

/// All policies as 32-bit numbers, little end first, after the first line.
pub(super) fn bytes(gaits: &[Gait]) -> Vec<u8> {
    let line = first_line(gaits.first().map_or(Learner::Ppo, |gait| gait.learner));
    let numbers = gaits
        .iter()
        .flat_map(|gait| gait.mean.iter().chain(&gait.deviation).chain(&gait.noise).chain(&gait.parameters));
    line.into_bytes().into_iter().chain(numbers.flat_map(|x| x.to_le_bytes())).collect()
}

/// The policies of such bytes.
pub(super) fn gaits(bytes: &[u8]) -> Result<Vec<Gait>, Damage> {
    let by = |learner: Learner| Some((learner, bytes.strip_prefix(first_line(learner).as_bytes())?));
    let (learner, body) = Learner::ALL.into_iter().find_map(by).ok_or(Damage::Kind)?;
    let numbers: Vec<f32> = body.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let size = NUMBERS + network(learner).parameters();
    if numbers.is_empty() {
        return Err(Damage::Empty);
    }
    if !numbers.len().is_multiple_of(size) {
        return Err(Damage::Size);
    }
    let gait = |numbers: &[f32]| Gait {
        learner,
        mean: std::array::from_fn(|place| numbers[place]),
        deviation: std::array::from_fn(|place| numbers[POSTURE + place]),
        noise: std::array::from_fn(|place| numbers[2 * POSTURE + place]),
        parameters: numbers[NUMBERS..].to_vec(),
    };
    Ok(numbers.chunks_exact(size).map(gait).collect())
}

/// A number that stands for these policies and no others.
pub(super) fn fingerprint(gaits: &[Gait]) -> u64 {
    xxh3_64(&bytes(gaits))
}

/// Writes bytes and their checksum to the file `path`, whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
    let fail = |error| WorldError::io(path, "writing an expert", error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fail)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(bytes).and_then(|()| file.write_all(&xxh3_64(bytes).to_le_bytes())).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}

/// The bytes of such a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, WorldError> {
    let mut all = std::fs::read(path).map_err(|error| WorldError::io(path, "reading an expert", error))?;
    let wrong = |field: &str, problem: &str| WorldError::data(path, field, problem);
    if !all.starts_with(MAGIC) {
        return Err(wrong("first line", "is not that of an expert"));
    }
    let Some((body, sum)) = all.split_last_chunk().filter(|(body, _)| body.len() > MAGIC.len()) else {
        return Err(wrong("size", "the file is cut short"));
    };
    if xxh3_64(body) != u64::from_le_bytes(*sum) {
        return Err(wrong("checksum", "the file was changed or damaged; remove it to train anew"));
    }
    all.truncate(all.len() - 8);
    Ok(all)
}

/// Writes policies to the file `path`, whole or not at all.
pub(super) fn save(path: &Path, gaits: &[Gait]) -> Result<(), WorldError> {
    write(path, &bytes(gaits))
}

/// Reads policies back.
pub(super) fn load(path: &Path) -> Result<Vec<Gait>, WorldError> {
    gaits(&read(path)?).map_err(|damage| match damage {
        Damage::Kind => WorldError::data(path, "first line", "is not that of an expert"),
        Damage::Empty | Damage::Size => {
            WorldError::data(path, "size", "does not hold whole policies; remove it to train anew")
        }
    })
}
