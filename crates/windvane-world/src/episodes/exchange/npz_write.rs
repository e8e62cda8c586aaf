//! Writing `.npz` as OGBench reads it: `observations`, `actions` and `terminals`, one row for each observation.

use crate::env::ActionSpace;
use crate::episodes::atomic::new_file;
use crate::episodes::npy::{Dtype, Header};
use crate::episodes::{ACTIONS, ActionSlice, CONTEXT_IDS, Episodes, GROUP_IDS, OBSERVATIONS, TERMINATED};
use crate::error::WorldError;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The array that carries names, bounds and provenance as JSON text, so that an import restores them.
pub(super) const PLAN_ARRAY: &str = "windvane_plan";

/// Writes the new file `out`.
///
/// Beside OGBench's three arrays stand `terminated`, `group_ids` and, where known, `context_ids` (one value for each
/// episode) and the plan. The last action of each episode is zero and means nothing.
pub fn export_npz(data: &Episodes, out: &Path) -> Result<(), WorldError> {
    let failed = |error: io::Error| WorldError::io(out, "writing the archive", error);
    new_file(
        out,
        |file| {
            let mut file = FirstError { inner: file, error: None };
            let result = write_all(data, ZipWriter::new(&mut file));
            file.error.map_or(result, Err)
        },
        failed,
    )
}

/// A writer that keeps its first error to itself and from then on only pretends to write: a [`ZipWriter`] that fails
/// would try again when it is dropped, and complain on stderr.
struct FirstError<W> {
    inner: W,
    error: Option<io::Error>,
}

impl<W> FirstError<W> {
    fn attempt<T>(&mut self, pretend: T, act: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.error.is_some() {
            return Ok(pretend);
        }
        act(&mut self.inner).or_else(|error| {
            self.error = Some(error);
            Ok(pretend)
        })
    }
}

impl<W: Write> Write for FirstError<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(bytes.len(), |inner| inner.write_all(bytes).map(|()| bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), Write::flush)
    }
}

impl<W: Seek> Seek for FirstError<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.attempt(0, |inner| inner.seek(to))
    }
}

fn write_all<W: Write + Seek>(data: &Episodes, mut zip: ZipWriter<W>) -> io::Result<()> {
    let episodes = data.episodes();
    let rows = data.transitions() + episodes;
    let dims = data.spec().obs_dim();
    begin(&mut zip, OBSERVATIONS, Dtype::F32, &[rows, dims])?;
    for episode in 0..episodes {
        zip.write_all(bytemuck::cast_slice(data.observations(episode)))?;
    }
    match &data.spec().action {
        ActionSpace::Discrete { .. } => begin(&mut zip, ACTIONS, Dtype::U32, &[rows])?,
        ActionSpace::Continuous { low, .. } => begin(&mut zip, ACTIONS, Dtype::F32, &[rows, low.len()])?,
    }
    for episode in 0..episodes {
        let padding = match data.actions(episode) {
            ActionSlice::Discrete(moves) => {
                zip.write_all(bytemuck::cast_slice(moves))?;
                size_of::<u32>()
            }
            ActionSlice::Continuous { size, values } => {
                zip.write_all(bytemuck::cast_slice(values))?;
                size * size_of::<f32>()
            }
        };
        zip.write_all(&vec![0; padding])?;
    }
    begin(&mut zip, "terminals", Dtype::Bool, &[rows])?;
    for episode in 0..episodes {
        let mut flags = vec![0; data.length(episode) + 1];
        flags[data.length(episode)] = 1;
        zip.write_all(&flags)?;
    }
    begin(&mut zip, TERMINATED, Dtype::Bool, &[episodes])?;
    for episode in 0..episodes {
        zip.write_all(&[u8::from(data.terminated(episode))])?;
    }
    begin(&mut zip, GROUP_IDS, Dtype::I64, &[episodes])?;
    for episode in 0..episodes {
        zip.write_all(&(data.group(episode) as i64).to_le_bytes())?;
    }
    if let Some(labels) = data.privileged_context_labels() {
        begin(&mut zip, CONTEXT_IDS, Dtype::U64, &[episodes])?;
        for episode in 0..episodes {
            zip.write_all(&labels.of(episode).0.to_le_bytes())?;
        }
    }
    let plan = serde_json::to_vec(&data.meta().plan)?;
    begin(&mut zip, PLAN_ARRAY, Dtype::U8, &[plan.len()])?;
    zip.write_all(&plan)?;
    zip.finish()?;
    Ok(())
}

fn begin<W: Write + Seek>(
    zip: &mut ZipWriter<W>,
    name: &str,
    dtype: Dtype,
    shape: &[usize],
) -> io::Result<()> {
    // No time of day, so that the same data give the same bytes.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .large_file(true);
    zip.start_file(format!("{name}.npy"), options)?;
    zip.write_all(&Header::new(dtype, shape.to_vec()).encode())
}
