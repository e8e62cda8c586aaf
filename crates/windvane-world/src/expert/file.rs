//! Experts on disk: one file, written at once when training is over.

use super::{Gait, POLICY};
use crate::error::WorldError;
use crate::mujoco::{MOTORS, POSTURE};
use std::io::Write as _;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// First line of the file: what it is, and its version.
const MAGIC: &[u8] = b"windvane expert 1\n";
/// Numbers that a policy takes.
const NUMBERS: usize = 2 * POSTURE + MOTORS;

/// All policies as 32-bit numbers, little end first, after the first line.
fn bytes(gaits: &[Gait]) -> Vec<u8> {
    let numbers = gaits
        .iter()
        .flat_map(|gait| gait.mean.iter().chain(&gait.deviation).chain(&gait.noise).chain(&gait.parameters));
    MAGIC.iter().copied().chain(numbers.flat_map(|x| x.to_le_bytes())).collect()
}

/// A number that stands for these policies and no others.
pub(super) fn fingerprint(gaits: &[Gait]) -> u64 {
    xxh3_64(&bytes(gaits))
}

/// Writes policies to the file `path`, whole or not at all.
pub(super) fn save(path: &Path, gaits: &[Gait]) -> Result<(), WorldError> {
    let fail = |error| WorldError::io(path, "writing an expert", error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fail)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    let bytes = bytes(gaits);
    file.write_all(&bytes).and_then(|()| file.write_all(&xxh3_64(&bytes).to_le_bytes())).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}

/// Reads policies back.
pub(super) fn load(path: &Path) -> Result<Vec<Gait>, WorldError> {
    let all = std::fs::read(path).map_err(|error| WorldError::io(path, "reading an expert", error))?;
    let wrong = |field: &str, problem: &str| WorldError::data(path, field, problem);
    let body = all.strip_prefix(MAGIC).ok_or_else(|| wrong("first line", "is not that of an expert"))?;
    let (body, sum) = body.split_last_chunk().ok_or_else(|| wrong("size", "the file is cut short"))?;
    if xxh3_64(&all[..all.len() - 8]) != u64::from_le_bytes(*sum) {
        return Err(wrong("checksum", "the file was changed or damaged; remove it to train anew"));
    }
    let numbers: Vec<f32> = body.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let size = NUMBERS + POLICY.parameters();
    if numbers.is_empty() || !numbers.len().is_multiple_of(size) {
        return Err(wrong("size", "does not hold whole policies; remove it to train anew"));
    }
    let gait = |numbers: &[f32]| Gait {
        mean: std::array::from_fn(|place| numbers[place]),
        deviation: std::array::from_fn(|place| numbers[POSTURE + place]),
        noise: std::array::from_fn(|place| numbers[2 * POSTURE + place]),
        parameters: numbers[NUMBERS..].to_vec(),
    };
    Ok(numbers.chunks_exact(size).map(gait).collect())
}
