//! Files and folders that appear complete or not at all, and never in place of another.

use super::partial::{refuse_existing, sync_folder};
use crate::error::WorldError;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use tempfile::{NamedTempFile, TempDir};

/// Makes the file `out` with what `write` writes.
pub(crate) fn new_file<E>(
    out: &Path,
    write: impl FnOnce(&mut BufWriter<&mut std::fs::File>) -> Result<(), E>,
    failed: impl Fn(E) -> WorldError,
) -> Result<(), WorldError> {
    refuse_existing(out)?;
    let folder = folder_of(out)?;
    let writing = |error| WorldError::io(out, "writing", error);
    let mut builder = tempfile::Builder::new();
    // The usual permissions of a new file, instead of the private ones of a temporary one.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file: NamedTempFile = builder.prefix(".windvane").tempfile_in(folder).map_err(writing)?;
    let mut buffer = BufWriter::with_capacity(1 << 16, file.as_file_mut());
    write(&mut buffer).map_err(failed)?;
    buffer.flush().map_err(writing)?;
    drop(buffer);
    file.as_file().sync_all().map_err(writing)?;
    file.persist_noclobber(out).map_err(|error| writing(error.error))?;
    sync_folder(folder)
}

/// Makes the folder `out` with what `fill` puts into it.
pub(super) fn new_folder(
    out: &Path,
    fill: impl FnOnce(&Path) -> Result<(), WorldError>,
) -> Result<(), WorldError> {
    refuse_existing(out)?;
    let parent = folder_of(out)?;
    let creating = |error| WorldError::io(out, "creating", error);
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let folder: TempDir = builder.prefix(".windvane").tempdir_in(parent).map_err(creating)?;
    fill(folder.path())?;
    std::fs::rename(folder.path(), out).map_err(creating)?;
    // It has its name now: there is nothing left to clean up.
    let _ = folder.keep();
    sync_folder(parent)
}

/// The folder that `out` will be in, made if need be.
pub(super) fn folder_of(out: &Path) -> Result<&Path, WorldError> {
    let folder = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(|error| WorldError::io(folder, "creating the folder", error))?;
    Ok(folder)
}
