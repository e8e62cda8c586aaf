//! The one place of the data sets that needs `unsafe`.
#![allow(unsafe_code)]

use memmap2::Mmap;
use std::fs::File;
use std::io;

/// Maps a whole file for reading.
pub(super) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read only, and every type we view it as (plain numbers, through bytemuck) is valid for all bit
    // patterns. A mapped file must not change while it is mapped: data sets are written elsewhere, renamed into place
    // when complete and never touched again by this program, and staging files have no name that anyone could open.
    unsafe { Mmap::map(file) }
}
