//! The tiles of the matrix product: chains of multiply-adds held in registers.
#![allow(unsafe_code, clippy::inline_always)]

use super::gemm::{DEPTH, MatMut, Shape};
use super::lanes::{Lanes, Plain};
use super::simd::{Level, Set};

/// What a tile's chains begin with.
#[derive(Clone, Copy)]
pub(super) enum First<'a> {
    Zero,
    Keep,
    Row(&'a [f32]),
}

/// The right matrix of a block.
#[derive(Clone, Copy)]
pub(super) enum Right<'a> {
    /// Where it lies: rows that begin this far apart.
    InPlace(&'a [f32], usize),
    /// In panels.
    Packed(&'a [f32]),
}

/// Rows of `a` and panels of `b` that are multiplied together.
pub(super) struct Block<'a> {
    pub(super) a: &'a [f32],
    /// Distance between rows, and between columns.
    pub(super) a_strides: [usize; 2],
    pub(super) right: Right<'a>,
    pub(super) first: First<'a>,
    pub(super) depth: usize,
}

impl Block<'_> {
    /// The block's product, written to or added into `c`.
    pub(super) fn multiply(&self, level: Level, shape: Shape, c: MatMut<'_>) {
        let [row, col] = self.a_strides;
        let last = (c.rows - 1) * row + self.depth.saturating_sub(1) * col;
        assert!(self.depth == 0 || last < self.a.len(), "rows reach beyond their memory");
        let (len, reach) = match self.right {
            Right::InPlace(rows, stride) => (rows.len(), self.depth.saturating_sub(1) * stride + c.cols),
            Right::Packed(panels) => (panels.len(), self.depth * c.cols.next_multiple_of(shape.lanes)),
        };
        assert!(self.depth == 0 || reach <= len, "panels reach beyond their memory");
        // SAFETY: a `Level` exists only on machines that have its instructions; the rows of `a` and the panels are
        // inside their slices as asserted above, and `c` is by its own invariant.
        unsafe {
            match (level.set(), shape.panel) {
                #[cfg(target_arch = "x86_64")]
                (Set::Avx512, 48) => x86::avx512_narrow(self, c),
                #[cfg(target_arch = "x86_64")]
                (Set::Avx512, _) => x86::avx512_wide(self, c),
                #[cfg(target_arch = "x86_64")]
                (Set::Avx2, _) => x86::avx2(self, c),
                _ => rows::<Plain, 4, 2>(self, c),
            }
        }
    }
}

/// Writes the transpose of 8 rows of 8 floats.
///
/// # Safety
/// As for [`Lanes::transpose`].
pub(super) unsafe fn transpose(
    level: Level,
    from: *const f32,
    from_stride: usize,
    to: *mut f32,
    to_stride: usize,
) {
    // SAFETY: a `Level` exists only on machines that have its instructions; the blocks are the caller's.
    unsafe {
        match level.set() {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 | Set::Avx2 => x86::transpose(from, from_stride, to, to_stride),
            _ => Plain::transpose(from, from_stride, to, to_stride),
        }
    }
}

/// The block's product, tile by tile: for every few rows all panels, so that the rows stay in the first-level cache.
///
/// # Safety
/// The machine must have the instructions of `V`; `block` and `c` must be as [`Block::multiply`] asserts.
#[inline(always)]
unsafe fn rows<V: Lanes, const ROWS: usize, const REGISTERS: usize>(block: &Block<'_>, c: MatMut<'_>) {
    let [row, col] = block.a_strides;
    let mut copied = [0.0; 8 * DEPTH];
    let mut i = 0;
    while i < c.rows {
        let (from, to) =
            (block.a.as_ptr().wrapping_add(i * row), c.data.as_mut_ptr().wrapping_add(i * c.stride));
        // SAFETY: rows i.. of both matrices are inside their slices.
        unsafe {
            if i + ROWS <= c.rows {
                if col == 1 || c.cols <= 2 * REGISTERS * V::N {
                    panels::<V, ROWS, REGISTERS>(block, from, [row, col], to, &c);
                } else {
                    // A transposed left matrix: its rows are gathered once instead of once per panel.
                    for p in 0..block.depth {
                        std::ptr::copy_nonoverlapping(
                            from.add(p * col),
                            copied.as_mut_ptr().add(p * ROWS),
                            ROWS,
                        );
                    }
                    panels::<V, ROWS, REGISTERS>(block, copied.as_ptr(), [1, ROWS], to, &c);
                }
                i += ROWS;
            } else if i + 4 <= c.rows {
                panels::<V, 4, REGISTERS>(block, from, [row, col], to, &c);
                i += 4;
            } else {
                panels::<V, 1, REGISTERS>(block, from, [row, col], to, &c);
                i += 1;
            }
        }
    }
}

/// A few rows times all panels.
///
/// # Safety
/// As for [`rows`]; `a` must hold `ROWS` rows and `to` be the first of `ROWS` rows of `c`.
#[inline(always)]
unsafe fn panels<V: Lanes, const ROWS: usize, const REGISTERS: usize>(
    block: &Block<'_>,
    a: *const f32,
    strides: [usize; 2],
    to: *mut f32,
    c: &MatMut<'_>,
) {
    let panel = REGISTERS * V::N;
    let mut left = 0;
    while left < c.cols {
        let taken = panel.min(c.cols - left);
        // SAFETY: a packed panel begins after `left` columns of `depth` floats each; its columns are inside `c`'s rows.
        unsafe {
            let (b, b_stride) = match block.right {
                Right::InPlace(rows, stride) => (rows.as_ptr().add(left), stride),
                Right::Packed(panels) => {
                    (panels.as_ptr().add(left * block.depth), taken.next_multiple_of(V::N))
                }
            };
            let to = to.add(left);
            let first = match block.first {
                First::Zero => Chain::Zero,
                First::Keep => Chain::Keep,
                First::Row(row) => Chain::Row(row.as_ptr().add(left)),
            };
            let tile = Tile { a, strides, b, b_stride, depth: block.depth, first };
            match taken.div_ceil(V::N) {
                1 => tile.edge::<V, ROWS, 1>(to, c.stride, taken),
                2 => tile.edge::<V, ROWS, 2>(to, c.stride, taken),
                3 => tile.edge::<V, ROWS, 3>(to, c.stride, taken),
                _ => tile.edge::<V, ROWS, REGISTERS>(to, c.stride, taken),
            }
        }
        left += panel;
    }
}

/// One tile's inputs.
struct Tile {
    a: *const f32,
    strides: [usize; 2],
    b: *const f32,
    b_stride: usize,
    depth: usize,
    first: Chain,
}

/// [`First`], at the tile's first column.
enum Chain {
    Zero,
    Keep,
    Row(*const f32),
}

impl Tile {
    /// A tile that may be narrower than its registers: the surplus goes through a buffer.
    ///
    /// # Safety
    /// As for [`panels`].
    #[inline(always)]
    unsafe fn edge<V: Lanes, const ROWS: usize, const REGISTERS: usize>(
        self,
        to: *mut f32,
        stride: usize,
        taken: usize,
    ) {
        let width = REGISTERS * V::N;
        // SAFETY: whole registers are inside `c`'s rows where `taken == width`; otherwise only `taken` columns of it are
        // touched and the buffer holds 8 rows of the widest tile.
        unsafe {
            if taken == width {
                return self.whole::<V, ROWS, REGISTERS>(to, stride);
            }
            let mut buffer = [0.0_f32; 8 * 64];
            if matches!(self.first, Chain::Keep) {
                for i in 0..ROWS {
                    std::ptr::copy_nonoverlapping(
                        to.add(i * stride),
                        buffer.as_mut_ptr().add(i * width),
                        taken,
                    );
                }
            }
            self.whole::<V, ROWS, REGISTERS>(buffer.as_mut_ptr(), width);
            for i in 0..ROWS {
                std::ptr::copy_nonoverlapping(buffer.as_ptr().add(i * width), to.add(i * stride), taken);
            }
        }
    }

    /// A tile of whole registers: `ROWS * REGISTERS` chains side by side.
    ///
    /// # Safety
    /// As for [`panels`], with whole registers at `to`.
    #[inline(always)]
    unsafe fn whole<V: Lanes, const ROWS: usize, const REGISTERS: usize>(self, to: *mut f32, stride: usize) {
        // SAFETY: reads `ROWS` x `depth` floats of `a`, `depth` x `REGISTERS` registers of the panel, and reads and writes
        // `ROWS` x `REGISTERS` registers at `to`, all vouched for by the caller.
        unsafe {
            let mut chains = [[V::zero(); REGISTERS]; ROWS];
            for (i, chains) in chains.iter_mut().enumerate() {
                for (v, chain) in chains.iter_mut().enumerate() {
                    match self.first {
                        Chain::Zero => {}
                        Chain::Keep => *chain = V::load(to.add(i * stride + v * V::N)),
                        Chain::Row(row) => *chain = V::load(row.add(v * V::N)),
                    }
                }
            }
            let [row, col] = self.strides;
            let (mut a, mut b) = (self.a, self.b);
            // Four links at a time hide the loop behind the arithmetic.
            for _ in 0..self.depth / 4 {
                for step in 0..4 {
                    link(&mut chains, a.wrapping_add(step * col), row, b.wrapping_add(step * self.b_stride));
                }
                (a, b) = (a.wrapping_add(4 * col), b.wrapping_add(4 * self.b_stride));
            }
            for _ in 0..self.depth % 4 {
                link(&mut chains, a, row, b);
                (a, b) = (a.wrapping_add(col), b.wrapping_add(self.b_stride));
            }
            for (i, chains) in chains.into_iter().enumerate() {
                for (v, chain) in chains.into_iter().enumerate() {
                    chain.store(to.add(i * stride + v * V::N));
                }
            }
        }
    }
}

/// One link of every chain. A function and not a closure, because only functions can be inlined by force, and only
/// inlined does it get the instructions of its caller.
///
/// # Safety
/// `a` must be valid for `ROWS` floats `row` apart, `b` for `REGISTERS` registers.
#[inline(always)]
unsafe fn link<V: Lanes, const ROWS: usize, const REGISTERS: usize>(
    chains: &mut [[V; REGISTERS]; ROWS],
    a: *const f32,
    row: usize,
    b: *const f32,
) {
    // SAFETY: the caller vouches for all that is read.
    unsafe {
        let mut right = [V::zero(); REGISTERS];
        for (v, right) in right.iter_mut().enumerate() {
            *right = V::load(b.add(v * V::N));
        }
        for (i, chains) in chains.iter_mut().enumerate() {
            let left = *a.add(i * row);
            for (chain, right) in chains.iter_mut().zip(right) {
                *chain = chain.add_product(left, right);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Block, Lanes as _, MatMut, rows};
    use std::arch::x86_64::{__m256, __m512};

    /// # Safety
    /// As for [`rows`].
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
    pub(super) unsafe fn avx512_wide(block: &Block<'_>, c: MatMut<'_>) {
        // SAFETY: passed on; the instructions are enabled here.
        unsafe { rows::<__m512, 6, 4>(block, c) }
    }

    /// # Safety
    /// As for [`rows`].
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
    pub(super) unsafe fn avx512_narrow(block: &Block<'_>, c: MatMut<'_>) {
        // SAFETY: passed on; the instructions are enabled here.
        unsafe { rows::<__m512, 8, 3>(block, c) }
    }

    /// # Safety
    /// As for [`rows`].
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(block: &Block<'_>, c: MatMut<'_>) {
        // SAFETY: passed on; the instructions are enabled here.
        unsafe { rows::<__m256, 6, 2>(block, c) }
    }

    /// # Safety
    /// As for [`super::Lanes::transpose`].
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: passed on; the instructions are enabled here.
        unsafe { __m256::transpose(from, from_stride, to, to_stride) }
    }
}
