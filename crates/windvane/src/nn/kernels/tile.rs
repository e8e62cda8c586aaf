//! The tiles of the matrix product: chains of multiply-adds held in registers.
#![allow(unsafe_code, clippy::inline_always)]

use super::gemm::{DEPTH, MatMut, Shape};
use super::lanes::{Lanes, Plain};
use super::simd::{Level, Set};
use std::mem::MaybeUninit;

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
        assert!(!matches!(self.first, First::Row(row) if row.len() < c.cols), "a bias is too short");
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
                _ => rows::<Plain, 4, 2, 2, 2>(self, c),
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
/// Tiles are `ROWS` high and `REGISTERS` wide. Where the right matrix lies in place and the last rows are fewer than four, two of
/// them go `PAIR` registers at a time, so that it is read once for both, and a single one `WIDE` registers at a time, so that it
/// is read in one sweep.
///
/// # Safety
/// The machine must have the instructions of `V`; `block` and `c` must be as [`Block::multiply`] asserts.
#[inline(always)]
unsafe fn rows<V: Lanes, const ROWS: usize, const REGISTERS: usize, const PAIR: usize, const WIDE: usize>(
    block: &Block<'_>,
    c: MatMut<'_>,
) {
    let [row, col] = block.a_strides;
    // Not cleared: a product with few rows would spend its time on that.
    let mut copied = MaybeUninit::<[f32; 8 * DEPTH]>::uninit();
    let copied = copied.as_mut_ptr().cast::<f32>();
    let in_place = matches!(block.right, Right::InPlace(..));
    let mut i = 0;
    while i < c.rows {
        let (from, to) =
            (block.a.as_ptr().wrapping_add(i * row), c.data.as_mut_ptr().wrapping_add(i * c.stride));
        // SAFETY: rows i.. of both matrices are inside their slices; what is read of `copied` was written just before.
        unsafe {
            if i + ROWS <= c.rows {
                if col == 1 || c.cols <= 2 * REGISTERS * V::N {
                    panels::<V, ROWS, REGISTERS>(block, from, [row, col], to, &c, 0);
                } else {
                    // A transposed left matrix: its rows are gathered once instead of once per panel.
                    for p in 0..block.depth {
                        std::ptr::copy_nonoverlapping(from.add(p * col), copied.add(p * ROWS), ROWS);
                    }
                    panels::<V, ROWS, REGISTERS>(block, copied, [1, ROWS], to, &c, 0);
                }
                i += ROWS;
            } else if i + 4 <= c.rows {
                panels::<V, 4, REGISTERS>(block, from, [row, col], to, &c, 0);
                i += 4;
            } else if i + 2 <= c.rows && in_place {
                let left = sweep::<V, 2, PAIR>(block, from, [row, col], to, &c);
                panels::<V, 2, REGISTERS>(block, from, [row, col], to, &c, left);
                i += 2;
            } else {
                let left = if in_place { sweep::<V, 1, WIDE>(block, from, [row, col], to, &c) } else { 0 };
                panels::<V, 1, REGISTERS>(block, from, [row, col], to, &c, left);
                i += 1;
            }
        }
    }
}

/// A few rows times a right matrix that lies in place, `WIDE` registers at a time; the columns that are done.
///
/// # Safety
/// As for [`panels`].
#[inline(always)]
unsafe fn sweep<V: Lanes, const ROWS: usize, const WIDE: usize>(
    block: &Block<'_>,
    a: *const f32,
    strides: [usize; 2],
    to: *mut f32,
    c: &MatMut<'_>,
) -> usize {
    let mut left = 0;
    while left + WIDE * V::N <= c.cols {
        // SAFETY: columns left..left+WIDE*N are inside `c`'s rows and the block's.
        unsafe {
            let tile = block.tile::<V>(a, strides, left, WIDE * V::N);
            tile.fill::<V, ROWS, WIDE, false>(to.add(left), c.stride);
        }
        left += WIDE * V::N;
    }
    left
}

/// A few rows times all panels from column `left` on.
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
    left: usize,
) {
    let panel = REGISTERS * V::N;
    let mut left = left;
    while left < c.cols {
        let taken = panel.min(c.cols - left);
        // SAFETY: columns left..left+taken are inside `c`'s rows and the block's panels.
        unsafe {
            let tile = block.tile::<V>(a, strides, left, taken);
            let to = to.add(left);
            if taken == panel {
                tile.fill::<V, ROWS, REGISTERS, false>(to, c.stride);
            } else {
                match taken.div_ceil(V::N) {
                    1 => tile.fill::<V, ROWS, 1, true>(to, c.stride),
                    2 => tile.fill::<V, ROWS, 2, true>(to, c.stride),
                    3 => tile.fill::<V, ROWS, 3, true>(to, c.stride),
                    _ => tile.fill::<V, ROWS, REGISTERS, true>(to, c.stride),
                }
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
    /// Lanes of the last register that count.
    last: usize,
    first: Chain,
}

/// [`First`], at the tile's first column.
enum Chain {
    Zero,
    Keep,
    Row(*const f32),
}

impl Block<'_> {
    /// The tile of `taken` columns from `left` on, with its rows at `a`.
    ///
    /// # Safety
    /// The columns must be inside the block.
    #[inline(always)]
    unsafe fn tile<V: Lanes>(&self, a: *const f32, strides: [usize; 2], left: usize, taken: usize) -> Tile {
        // SAFETY: a packed panel begins after `left` columns of `depth` floats each; the rest is the caller's promise.
        unsafe {
            let (b, b_stride) = match self.right {
                Right::InPlace(rows, stride) => (rows.as_ptr().add(left), stride),
                Right::Packed(panels) => {
                    (panels.as_ptr().add(left * self.depth), taken.next_multiple_of(V::N))
                }
            };
            let first = match self.first {
                First::Zero => Chain::Zero,
                First::Keep => Chain::Keep,
                First::Row(row) => Chain::Row(row.as_ptr().add(left)),
            };
            let last = taken - (taken.div_ceil(V::N) - 1) * V::N;
            Tile { a, strides, b, b_stride, depth: self.depth, last, first }
        }
    }
}

impl Tile {
    /// Computes `ROWS * REGISTERS` chains side by side and writes them to `to`. With `PART`, only some lanes of the last
    /// register count.
    ///
    /// # Safety
    /// As for [`panels`].
    #[inline(always)]
    unsafe fn fill<V: Lanes, const ROWS: usize, const REGISTERS: usize, const PART: bool>(
        self,
        to: *mut f32,
        stride: usize,
    ) {
        // SAFETY: reads `ROWS` x `depth` floats of `a`, `depth` rows of the panel, and reads and writes `ROWS` rows at `to`,
        // all vouched for by the caller.
        unsafe {
            let mut chains = [[V::zero(); REGISTERS]; ROWS];
            for (i, chains) in chains.iter_mut().enumerate() {
                match self.first {
                    Chain::Zero => {}
                    Chain::Keep => *chains = read::<V, REGISTERS, PART>(to.add(i * stride), self.last),
                    Chain::Row(row) => *chains = read::<V, REGISTERS, PART>(row, self.last),
                }
            }
            let [row, col] = self.strides;
            let (mut a, mut b) = (self.a, self.b);
            // Four links at a time hide the loop behind the arithmetic.
            for _ in 0..self.depth / 4 {
                for step in 0..4 {
                    let right = read::<V, REGISTERS, PART>(b.wrapping_add(step * self.b_stride), self.last);
                    link(&mut chains, a.wrapping_add(step * col), row, right);
                }
                (a, b) = (a.wrapping_add(4 * col), b.wrapping_add(4 * self.b_stride));
            }
            for _ in 0..self.depth % 4 {
                link(&mut chains, a, row, read::<V, REGISTERS, PART>(b, self.last));
                (a, b) = (a.wrapping_add(col), b.wrapping_add(self.b_stride));
            }
            for (i, chains) in chains.into_iter().enumerate() {
                for (v, chain) in chains.into_iter().enumerate() {
                    let to = to.add(i * stride + v * V::N);
                    if PART && v + 1 == REGISTERS {
                        chain.store_part(to, self.last);
                    } else {
                        chain.store(to);
                    }
                }
            }
        }
    }
}

/// Registers side by side; with `PART`, `last` lanes of the last one.
///
/// # Safety
/// `from` must be valid for reading them.
#[inline(always)]
unsafe fn read<V: Lanes, const REGISTERS: usize, const PART: bool>(
    from: *const f32,
    last: usize,
) -> [V; REGISTERS] {
    // SAFETY: exactly the floats the caller vouches for are read.
    unsafe {
        let mut registers = [V::zero(); REGISTERS];
        for (v, register) in registers.iter_mut().enumerate() {
            let from = from.add(v * V::N);
            *register = if PART && v + 1 == REGISTERS { V::load_part(from, last) } else { V::load(from) };
        }
        registers
    }
}

/// One link of every chain. A function and not a closure, because only functions can be inlined by force, and only
/// inlined does it get the instructions of its caller.
///
/// # Safety
/// `a` must be valid for reading `ROWS` floats that are `row` apart.
#[inline(always)]
unsafe fn link<V: Lanes, const ROWS: usize, const REGISTERS: usize>(
    chains: &mut [[V; REGISTERS]; ROWS],
    a: *const f32,
    row: usize,
    right: [V; REGISTERS],
) {
    for (i, chains) in chains.iter_mut().enumerate() {
        // SAFETY: the caller vouches for all that is read.
        unsafe {
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
        unsafe { rows::<__m512, 6, 4, 8, 16>(block, c) }
    }

    /// # Safety
    /// As for [`rows`].
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
    pub(super) unsafe fn avx512_narrow(block: &Block<'_>, c: MatMut<'_>) {
        // SAFETY: passed on; the instructions are enabled here.
        unsafe { rows::<__m512, 8, 3, 8, 16>(block, c) }
    }

    /// # Safety
    /// As for [`rows`].
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(block: &Block<'_>, c: MatMut<'_>) {
        // SAFETY: passed on; the instructions are enabled here.
        unsafe { rows::<__m256, 6, 2, 4, 8>(block, c) }
    }

    /// # Safety
    /// As for [`super::Lanes::transpose`].
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: passed on; the instructions are enabled here.
        unsafe { __m256::transpose(from, from_stride, to, to_stride) }
    }
}
