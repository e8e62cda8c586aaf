//! Memory for tensors, used again instead of given back.
//!
//! A training step makes and drops the same sizes over and over. Given back to the system, each buffer's pages would be
//! cleared and mapped anew every step; pooled, they are warm. Buffers begin on a cache line, which the matrix product
//! needs for its full speed.
#![allow(unsafe_code)]

use burn_std::{AccessError, AccessPolicy, AllocationController, AllocationProperty, Bytes};
use bytemuck::{Pod, Zeroable};
use std::collections::BTreeMap;
use std::mem::{MaybeUninit, take};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Floats in a cache line.
const LINE: usize = 16;
/// Bytes held at most; beyond it, buffers go back to the system.
const LARGEST_POOL: usize = 1 << 29;

/// A cache line of floats.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// A buffer of floats that returns to the pool when dropped.
#[derive(Default)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

/// Buffers nobody uses, by their number of lines.
#[derive(Default)]
struct Pool {
    free: BTreeMap<usize, Vec<Vec<Line>>>,
    bytes: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { free: BTreeMap::new(), bytes: 0 });

fn pool() -> MutexGuard<'static, Pool> {
    // The pool's state is valid between any two of its operations, so a panic elsewhere does not spoil it.
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffer {
    /// `len` floats of any value: what was last written there, or 0.
    pub(crate) fn new(len: usize) -> Self {
        let count = len.div_ceil(LINE);
        let mut pool = pool();
        // A little more than asked for is better than more memory.
        let fitting = pool.free.range_mut(count..=count + count / 4).find_map(|(_, buffers)| buffers.pop());
        pool.bytes -= fitting.as_ref().map_or(0, |lines| lines.len() * size_of::<Line>());
        drop(pool);
        Self { lines: fitting.unwrap_or_else(|| vec![Line::zeroed(); count]), len }
    }

    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let mut buffer = Self::new(len);
        buffer.fill(0.0);
        buffer
    }

    /// The buffer as a tensor's memory.
    pub(crate) fn into_bytes(self) -> Bytes {
        let bytes = self.len * size_of::<f32>();
        // SAFETY: all lines of a buffer are initialised, and they hold at least `len` floats.
        unsafe { Bytes::from_controller(Box::new(self), bytes) }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let lines = take(&mut self.lines);
        if lines.is_empty() {
            return;
        }
        let bytes = lines.len() * size_of::<Line>();
        let mut pool = pool();
        if pool.bytes + bytes <= LARGEST_POOL {
            pool.bytes += bytes;
            pool.free.entry(lines.len()).or_default().push(lines);
        }
    }
}

impl AllocationController for Buffer {
    fn alloc_align(&self) -> usize {
        align_of::<f32>()
    }

    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    unsafe fn memory_mut(&mut self, _: AccessPolicy) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self);
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and the caller promises to write initialised bytes only.
        Ok(unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) })
    }

    fn memory(&self, _: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let bytes: &[u8] = bytemuck::cast_slice(self);
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and nothing can be written through this reference.
        Ok(unsafe { &*(std::ptr::from_ref(bytes) as *const [MaybeUninit<u8>]) })
    }

    fn duplicate(&self) -> Option<Box<dyn AllocationController>> {
        let mut copy = Self::new(self.len);
        copy.copy_from_slice(self);
        Some(Box::new(copy))
    }
}

/// Asks the system's allocator to keep freed memory for the next step: a step frees all its tensors at its end, and to
/// have their pages cleared and mapped again took an eighth of the time of small ones. Done once for the process.
pub(crate) fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        unsafe extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        /// From malloc.h, with the most that each may be or needs to be.
        const TRIM_THRESHOLD: (i32, i32) = (-1, 1 << 30);
        const MMAP_THRESHOLD: (i32, i32) = (-3, 1 << 25);
        ONCE.call_once(|| {
            for (parameter, value) in [TRIM_THRESHOLD, MMAP_THRESHOLD] {
                // SAFETY: sets a number inside the allocator, under its own lock. What it refuses stays as it was.
                unsafe { mallopt(parameter, value) };
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn a_dropped_buffer_is_used_again_and_begins_on_a_cache_line() {
        let mut buffer = Buffer::new(12_345);
        buffer.fill(7.0);
        let place = buffer.as_ptr();
        drop(buffer);
        let again = Buffer::new(12_345);
        assert_eq!((again.as_ptr(), again[0], again.len()), (place, 7.0, 12_345));
        assert_eq!(place.align_offset(64), 0);
        assert!(Buffer::zeros(12_345).iter().all(|&x| x == 0.0));
        assert!(Buffer::new(0).is_empty());
    }

    #[test]
    fn a_copied_tensor_does_not_share_memory() {
        let mut buffer = Buffer::new(20);
        buffer.fill(1.0);
        let mut bytes = buffer.into_bytes();
        let copy = bytes.clone();
        bytes[..4].copy_from_slice(&2.0_f32.to_le_bytes());
        assert_eq!((bytes.len(), copy.len()), (80, 80));
        assert_eq!(copy[..4], 1.0_f32.to_le_bytes());
    }
}
