//! A column while it is being written: appended to, checksummed on the way, cut back after a kill.

use super::journal::Mark;
use super::meta::ColumnInfo;
use super::npy::{Dtype, Header, OUR_HEADER};
use crate::error::WorldError;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// A column that grows at its end.
pub(super) struct Growing {
    name: &'static str,
    path: PathBuf,
    file: BufWriter<File>,
    hash: Box<Xxh3>,
    /// Its final header but for the number of rows.
    header: Header,
    row_bytes: usize,
}

impl Growing {
    /// Opens or creates a column whose rows have the shape `row`, good up to `mark`; what lies beyond is cut off.
    pub(super) fn open(
        folder: &Path,
        name: &'static str,
        dtype: Dtype,
        row: &[usize],
        mark: &Mark,
    ) -> Result<Self, WorldError> {
        let path = folder.join(format!("{name}.npy"));
        let opening = |error| WorldError::io(&path, format!("opening column {name} for writing"), error);
        let damaged = |problem: &str| {
            WorldError::data(&path, name, format!("{problem}; remove {} to start over", folder.display()))
        };
        let row_bytes = row.iter().product::<usize>() * dtype.size();
        let shape = std::iter::once(mark.rows).chain(row.iter().copied()).collect();
        let header = Header::new(dtype, shape);
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(&path).map_err(opening)?;
        let mut hash = Box::new(Xxh3::new());
        let end = (OUR_HEADER + mark.rows * row_bytes) as u64;
        if mark.rows > 0 {
            if file.metadata().map_err(opening)?.len() < end {
                return Err(damaged("the file is shorter than its journal says"));
            }
            file.seek(SeekFrom::Start(OUR_HEADER as u64)).map_err(opening)?;
            let mut left = mark.rows * row_bytes;
            let mut buffer = vec![0; left.min(1 << 20)];
            while left > 0 {
                let part = left.min(buffer.len());
                file.read_exact(&mut buffer[..part]).map_err(opening)?;
                hash.update(&buffer[..part]);
                left -= part;
            }
            if hex(&hash) != mark.xxh3_128 {
                return Err(damaged("the checksum differs from its journal's"));
            }
        }
        file.set_len(end).map_err(opening)?;
        file.seek(SeekFrom::Start(end)).map_err(opening)?;
        Ok(Self { name, path, file: BufWriter::with_capacity(1 << 16, file), hash, header, row_bytes })
    }

    /// Adds whole rows.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), WorldError> {
        self.hash.update(bytes);
        self.header.shape[0] += bytes.len() / self.row_bytes;
        self.file.write_all(bytes).map_err(|error| self.failed(error))
    }

    /// Waits until everything is on disk, and says how far that is.
    pub(super) fn sync(&mut self) -> Result<Mark, WorldError> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_data())
            .map_err(|error| self.failed(error))?;
        Ok(Mark { rows: self.header.shape[0], xxh3_128: hex(&self.hash) })
    }

    /// Writes the final header.
    pub(super) fn finish(mut self) -> Result<(String, ColumnInfo), WorldError> {
        let write = |file: &mut BufWriter<File>, header: &[u8]| {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(header)?;
            file.flush()?;
            file.get_ref().sync_all()
        };
        write(&mut self.file, &self.header.encode()).map_err(|error| self.failed(error))?;
        let dtype = self.header.dtype.name().to_owned();
        let info = ColumnInfo { dtype, shape: self.header.shape, xxh3_128: hex(&self.hash) };
        Ok((self.name.to_owned(), info))
    }

    fn failed(&self, error: std::io::Error) -> WorldError {
        WorldError::io(&self.path, format!("writing column {}", self.name), error)
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }
}

/// A checksum as text.
pub(super) fn hex(hash: &Xxh3) -> String {
    format!("{:032x}", hash.digest128())
}
