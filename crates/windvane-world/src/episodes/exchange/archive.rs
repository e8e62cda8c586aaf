//! NumPy archives (`.npz`): arrays in a zip file, unpacked to disk and never to memory.

use super::stage::nameless;
use crate::episodes::mmap::map;
use crate::episodes::npy::{Dtype, Header};
use crate::error::WorldError;
use memmap2::Mmap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use zip::ZipArchive;
use zip::result::ZipError;

/// An archive may unpack to a gigabyte, and to this many times its own size beyond: logs of real numbers compress to a
/// tenth, files made to fill a disk to a thousandth.
const MOST_EXPANSION: u64 = 100;

/// An open archive.
pub(super) struct Archive {
    path: PathBuf,
    folder: PathBuf,
    zip: ZipArchive<BufReader<File>>,
    size: u64,
    left: u64,
}

/// One array of an archive, unpacked into a nameless file.
pub(super) struct Array {
    source: PathBuf,
    name: String,
    header: Header,
    data: Mmap,
}

/// An element of an array, of whichever type.
#[derive(Clone, Copy, Debug)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Archive {
    /// Opens an archive; its arrays will be unpacked into `folder`.
    pub(super) fn open(path: &Path, folder: &Path) -> Result<Self, WorldError> {
        let opening = |error| WorldError::io(path, "opening the archive", error);
        let file = File::open(path).map_err(opening)?;
        let size = file.metadata().map_err(opening)?.len();
        let zip = ZipArchive::new(BufReader::new(file))
            .map_err(|error| WorldError::data(path, "archive", format!("not a NumPy .npz file: {error}")))?;
        let left = (1 << 30) + size.saturating_mul(MOST_EXPANSION);
        Ok(Self { path: path.to_owned(), folder: folder.to_owned(), zip, size, left })
    }

    /// Unpacks an array; nothing if the archive does not have it.
    pub(super) fn array(&mut self, name: &str) -> Result<Option<Array>, WorldError> {
        let wrong = |problem: String| WorldError::data(&self.path, name, problem);
        let mut entry = match self.zip.by_name(&format!("{name}.npy")) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let (header, _) = Header::read(&mut entry).map_err(wrong)?;
        let bytes = header.bytes().unwrap_or(usize::MAX) as u64;
        if bytes == 0 {
            return Err(wrong(format!("is empty: shape {:?}", header.shape)));
        }
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            wrong(format!(
                "{bytes} bytes are too many for an archive of {}; store it uncompressed (np.savez)",
                self.size
            ))
        })?;
        let staging = |error| WorldError::io(&self.folder, format!("unpacking {name}"), error);
        let mut file = BufWriter::new(nameless(&self.folder)?);
        // One byte more than promised is asked for, so that a longer entry shows.
        let copied = copy(&mut entry.take(bytes + 1), &mut file, &staging, &wrong)?;
        if copied != bytes {
            let more = if copied > bytes { "more than" } else { "only" };
            return Err(wrong(format!(
                "holds {more} {} bytes, its header promises {bytes}",
                copied.min(bytes)
            )));
        }
        let file = file.into_inner().map_err(|error| staging(error.into_error()))?;
        let data = map(&file).map_err(staging)?;
        Ok(Some(Array { source: self.path.clone(), name: name.to_owned(), header, data }))
    }

    /// Unpacks an array that must be there.
    pub(super) fn required(&mut self, name: &str) -> Result<Array, WorldError> {
        self.array(name)?.ok_or_else(|| {
            let names =
                self.zip.file_names().filter_map(|name| name.ok()?.strip_suffix(".npy").map(str::to_owned));
            let names: Vec<String> = names.take(30).collect();
            WorldError::data(
                &self.path,
                name,
                format!("the archive has no such array; it has: {}", names.join(", ")),
            )
        })
    }
}

/// Copies all bytes, keeping apart whether reading (the archive is damaged) or writing (the disk is full) failed.
fn copy(
    from: &mut impl Read,
    to: &mut impl io::Write,
    staging: &impl Fn(io::Error) -> WorldError,
    wrong: &impl Fn(String) -> WorldError,
) -> Result<u64, WorldError> {
    let mut buffer = vec![0; 1 << 16];
    let mut copied = 0;
    loop {
        let part = from.read(&mut buffer).map_err(|error| wrong(format!("does not unpack: {error}")))?;
        if part == 0 {
            return Ok(copied);
        }
        to.write_all(&buffer[..part]).map_err(staging)?;
        copied += part as u64;
    }
}

impl Array {
    /// Length of the first axis.
    pub(super) fn rows(&self) -> usize {
        self.header.rows()
    }

    /// Elements of a row, whatever its shape.
    pub(super) fn width(&self) -> usize {
        self.header.elements().map_or(0, |elements| elements / self.rows().max(1))
    }

    /// Whether it holds only whole numbers by type.
    pub(super) fn is_integer(&self) -> bool {
        self.header.dtype.is_integer()
    }

    /// Whether a row is one number without an axis of its own.
    pub(super) fn is_scalar(&self) -> bool {
        self.header.shape.len() == 1
    }

    /// An error about this array.
    pub(super) fn error(&self, problem: impl Into<String>) -> WorldError {
        WorldError::data(&self.source, &self.name, problem)
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Adds rows to `out`, as f32.
    pub(super) fn floats(&self, rows: Range<usize>, out: &mut Vec<f32>) {
        self.each(rows, |number| {
            out.push(match number {
                Number::Int(value) => value as f32,
                Number::Float(value) => value as f32,
            });
        });
    }

    /// Rows of whole numbers within the range of `T`.
    pub(super) fn integers<T: TryFrom<i128>>(&self, rows: Range<usize>) -> Result<Vec<T>, WorldError> {
        let first = rows.start * self.width();
        let mut out = Vec::with_capacity(rows.len() * self.width());
        let mut bad = None;
        self.each(rows, |number| {
            let whole = match number {
                Number::Int(value) => Some(value),
                Number::Float(value) if value.fract() == 0.0 && value.abs() < 2_f64.powi(53) => {
                    Some(value as i128)
                }
                Number::Float(_) => None,
            };
            match whole.and_then(|value| T::try_from(value).ok()) {
                Some(value) => out.push(value),
                None if bad.is_none() => bad = Some((first + out.len(), number)),
                None => {}
            }
        });
        match bad {
            Some((place, Number::Int(value))) => {
                Err(self.error(format!("element {place}: {value} is out of range")))
            }
            Some((place, Number::Float(value))) => {
                Err(self.error(format!("element {place}: {value}, expected a whole number")))
            }
            None => Ok(out),
        }
    }

    /// All elements as flags: whatever is not zero.
    pub(super) fn flags(&self) -> Vec<bool> {
        let mut out = Vec::with_capacity(self.rows());
        self.each(0..self.rows(), |number| {
            out.push(match number {
                Number::Int(value) => value != 0,
                Number::Float(value) => value != 0.0,
            });
        });
        out
    }

    /// A row as text: equal rows, equal text.
    pub(super) fn text(&self, row: usize) -> String {
        let mut out = String::new();
        self.each(row..row + 1, |number| {
            // Writing to a string cannot fail.
            let _ = match number {
                Number::Int(value) => write!(out, "{value};"),
                Number::Float(value) => write!(out, "{value};"),
            };
        });
        out
    }

    /// Where element `number` of a row, counted with the last axis fastest, stands among all elements.
    fn place(&self, row: usize, number: usize) -> usize {
        if !self.header.fortran {
            return row * self.width() + number;
        }
        // With the first axis fastest, an axis' stride is the product of all axes before it.
        let (mut rest, mut stride) = (number, self.header.elements().unwrap_or(0));
        let mut place = row;
        for axis in self.header.shape.iter().skip(1).rev() {
            stride /= axis;
            place += rest % axis * stride;
            rest /= axis;
        }
        place
    }

    fn each(&self, rows: Range<usize>, mut visit: impl FnMut(Number)) {
        let Header { big_endian, .. } = self.header;
        macro_rules! visit_as {
            ($type:ty, $number:expr) => {{
                for row in rows {
                    for number in 0..self.width() {
                        const SIZE: usize = size_of::<$type>();
                        let mut bytes = [0; SIZE];
                        bytes.copy_from_slice(&self.data[self.place(row, number) * SIZE..][..SIZE]);
                        if big_endian {
                            bytes.reverse();
                        }
                        visit($number(<$type>::from_le_bytes(bytes).into()));
                    }
                }
            }};
        }
        match self.header.dtype {
            Dtype::Bool | Dtype::U8 => visit_as!(u8, Number::Int),
            Dtype::I8 => visit_as!(i8, Number::Int),
            Dtype::I16 => visit_as!(i16, Number::Int),
            Dtype::I32 => visit_as!(i32, Number::Int),
            Dtype::I64 => visit_as!(i64, Number::Int),
            Dtype::U16 => visit_as!(u16, Number::Int),
            Dtype::U32 => visit_as!(u32, Number::Int),
            Dtype::U64 => visit_as!(u64, Number::Int),
            Dtype::F16 => visit_as!(u16, |bits| Number::Float(half::f16::from_bits(bits).to_f64())),
            Dtype::F32 => visit_as!(f32, Number::Float),
            Dtype::F64 => visit_as!(f64, Number::Float),
        }
    }
}
