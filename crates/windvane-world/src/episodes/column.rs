//! One column of a data set: a memory-mapped `.npy` file of a known type and shape.

use super::mmap::map;
use super::npy::{Dtype, Header};
use crate::error::WorldError;
use bytemuck::Pod;
use memmap2::Mmap;
use std::fs::File;
use std::marker::PhantomData;
use std::path::Path;

/// A type that a column can hold.
pub(crate) trait Element: Pod {
    /// Its name on disk.
    const DTYPE: Dtype;
}

impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
}
impl Element for u32 {
    const DTYPE: Dtype = Dtype::U32;
}
impl Element for i64 {
    const DTYPE: Dtype = Dtype::I64;
}
impl Element for u64 {
    const DTYPE: Dtype = Dtype::U64;
}
/// Flags are stored as NumPy's bool, one byte each.
impl Element for u8 {
    const DTYPE: Dtype = Dtype::Bool;
}

/// A mapped array of `T`.
#[derive(Debug)]
pub(crate) struct Column<T> {
    map: Mmap,
    start: usize,
    element: PhantomData<T>,
}

impl<T: Element> Column<T> {
    /// Maps `folder/name.npy`, which must hold `T` in exactly this shape and nothing else.
    pub(crate) fn open(folder: &Path, name: &str, shape: &[usize]) -> Result<Self, WorldError> {
        let path = folder.join(format!("{name}.npy"));
        let opening = |error| WorldError::io(&path, format!("opening column {name}"), error);
        let wrong = |problem: String| WorldError::data(&path, name, problem);
        let mut file = File::open(&path).map_err(opening)?;
        let size = file.metadata().map_err(opening)?.len();
        let (header, start) = Header::read(&mut file).map_err(wrong)?;
        if header.dtype != T::DTYPE {
            return Err(wrong(format!("dtype is {}, expected {}", header.dtype.name(), T::DTYPE.name())));
        }
        if header.big_endian || header.fortran {
            return Err(wrong(
                "is big endian or in Fortran order, expected little endian and C order".into(),
            ));
        }
        if header.shape != shape {
            return Err(wrong(format!("shape is {:?}, expected {shape:?}", header.shape)));
        }
        let expected = header.bytes().and_then(|bytes| bytes.checked_add(start));
        if expected.is_none_or(|expected| expected as u64 != size) {
            let expected = expected.map_or("more".to_owned(), |bytes| bytes.to_string());
            return Err(wrong(format!("the file has {size} bytes, its header promises {expected}")));
        }
        if start % align_of::<T>() != 0 {
            return Err(wrong(format!(
                "data begins at byte {start}, which is not aligned for {}",
                T::DTYPE.name()
            )));
        }
        Ok(Self { map: map(&file).map_err(opening)?, start, element: PhantomData })
    }

    /// All elements.
    pub(crate) fn values(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }

    /// The data as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map[self.start..]
    }
}
