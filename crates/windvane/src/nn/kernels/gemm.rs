//! The matrix product.
//!
//! Every element is one chain of fused multiply-adds along the inner dimension, in order. Tiles, panels, blocks and
//! threads only decide *when* a link of a chain is forged, so the result is the same bits on any number of threads and
//! on any instruction set; that is why this is not left to a library.
#![allow(unsafe_code)]

use super::pool::Buffer;
use super::rows;
use super::simd::{Level, Set};
use super::tile::{Block, First, Right, transpose};
use crate::nn::Act;
use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Links forged per visit of a tile: a panel of the right matrix then fits the second-level cache beside the rows.
pub(super) const DEPTH: usize = 256;
/// Multiply-adds below which a second thread costs more than it brings.
const PARALLEL: usize = 1 << 20;
/// The longest rows of a right matrix that are read where they lie: longer ones fall on the same few cache lines.
const IN_PLACE: usize = 384;
/// Rows of a left matrix that are too few to pay for packing the right one.
const FEW: usize = 8;
/// Rows that all tile heights divide; threads get multiples of it.
const TALL: usize = 24;
/// Floats of finished rows that the second-level cache still holds when their activation comes.
const CACHED: usize = 1 << 15;

/// A matrix in memory, as it stands or transposed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mat<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    /// Distance between rows; 1 where transposed.
    row: usize,
    /// Distance between columns; 1 unless transposed.
    col: usize,
}

/// A matrix to write, row by row.
#[derive(Debug)]
pub(crate) struct MatMut<'a> {
    pub(super) data: &'a mut [f32],
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) stride: usize,
}

/// What the chains begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    /// 0.
    Zero,
    /// What the output holds.
    Add,
    /// The same row everywhere.
    Bias(&'a [f32]),
}

impl<'a> Mat<'a> {
    /// Rows one after the other.
    pub(crate) fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    /// Rows that begin `stride` apart.
    pub(crate) fn strided(data: &'a [f32], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(fits(data.len(), rows, cols, stride), "a matrix reaches beyond its memory");
        Self { data, rows, cols, row: stride, col: 1 }
    }

    /// Some of its rows.
    pub(super) fn rows_from(self, top: usize, count: usize) -> Self {
        assert!(top + count <= self.rows, "{count} rows from {top} of {}", self.rows);
        Self { data: &self.data[top * self.row..], rows: count, ..self }
    }

    /// Its columns from one on.
    pub(super) fn cols_from(self, left: usize) -> Self {
        assert!(left < self.cols, "columns from {left} of {}", self.cols);
        Self { data: &self.data[left * self.col..], cols: self.cols - left, ..self }
    }

    /// The transpose.
    pub(crate) fn t(self) -> Self {
        Self { data: self.data, rows: self.cols, cols: self.rows, row: self.col, col: self.row }
    }
}

impl<'a> MatMut<'a> {
    /// Rows one after the other.
    pub(crate) fn new(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    /// Rows that begin `stride` apart.
    pub(crate) fn strided(data: &'a mut [f32], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(fits(data.len(), rows, cols, stride), "a matrix reaches beyond its memory");
        Self { data, rows, cols, stride }
    }
}

fn fits(len: usize, rows: usize, cols: usize, stride: usize) -> bool {
    rows == 0 || cols == 0 || (cols <= stride && (rows - 1) * stride + cols <= len)
}

/// Multiply-adds of all products so far.
static MULTIPLY_ADDS: AtomicU64 = AtomicU64::new(0);

/// The number of multiply-adds of all matrix products of this process so far: what a step needs, whatever else it does.
pub fn multiply_adds() -> u64 {
    MULTIPLY_ADDS.load(Ordering::Relaxed)
}

/// Multiplies two matrices of 512 x 512 over and over, as the measure of what this machine can do: multiply-adds done.
pub fn product_rate(times: usize) -> u64 {
    const N: usize = 512;
    let (mut a, mut c) = (Buffer::new(N * N), Buffer::new(N * N));
    a.fill(0.5);
    for _ in 0..times {
        gemm(
            Level::current(),
            Mat::new(&a, N, N),
            Mat::new(&a, N, N),
            MatMut::new(&mut c, N, N),
            Start::Zero,
        );
    }
    (times * N * N * N) as u64
}

thread_local! {
    /// Packed panels of the last product on this thread; the next one reuses their memory.
    static SCRATCH: Cell<Buffer> = Cell::new(Buffer::new(0));
}

/// `c = a b`, or `c + a b`, or `bias + a b`.
pub(crate) fn gemm(level: Level, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>, start: Start<'_>) {
    gemm_act(level, a, b, c, start, Act::None, None);
}

/// The same with an activation on top, applied to rows as they are finished, while they are in the cache. `slope`, rows one
/// after the other like `c`, gets GELU's slope.
pub(crate) fn gemm_act(
    level: Level,
    a: Mat<'_>,
    b: Mat<'_>,
    c: MatMut<'_>,
    start: Start<'_>,
    act: Act,
    mut slope: Option<&mut [f32]>,
) {
    let (m, n, k) = (a.rows, b.cols, a.cols);
    assert!(
        b.rows == k && c.rows == m && c.cols == n,
        "{m} x {k} times {} x {n} into {} x {}",
        b.rows,
        c.rows,
        c.cols
    );
    assert!(act == Act::None || c.stride == n, "activations want rows one after the other");
    if m == 0 || n == 0 {
        return;
    }
    MULTIPLY_ADDS.fetch_add((m * n * k) as u64, Ordering::Relaxed);
    let shape = Shape::pick(level, n);
    let in_place = b.col == 1 && (m < FEW || (b.row <= IN_PLACE && b.row.is_multiple_of(shape.lanes)));
    let parts = if m * n * k < PARALLEL { 1 } else { rayon::current_num_threads() };
    let share = m.div_ceil(parts).next_multiple_of(TALL);
    let width = if in_place { 0 } else { shape.columns.min(n.next_multiple_of(shape.lanes)) };
    let mut scratch = if in_place { Buffer::default() } else { SCRATCH.take() };
    if scratch.len() < width * DEPTH {
        scratch = Buffer::new(width * DEPTH);
    }
    for left in (0..n).step_by(shape.columns) {
        let cols = shape.columns.min(n - left);
        // One visit even of an empty inner dimension, to write what the chains begin with.
        for top in (0..k.max(1)).step_by(DEPTH) {
            let depth = DEPTH.min(k - top);
            let right = if in_place {
                Right::InPlace(&b.data[(top * b.row + left).min(b.data.len())..], b.row)
            } else {
                pack(level, shape, b, top..top + depth, left..left + cols, &mut scratch, parts);
                Right::Packed(&scratch)
            };
            let first = match start {
                Start::Zero if top == 0 => First::Zero,
                Start::Bias(row) if top == 0 => First::Row(&row[left..]),
                _ => First::Keep,
            };
            let act = if left + cols == n && top + depth == k { act } else { Act::None };
            let visit = Visit {
                level,
                shape,
                a,
                right,
                first,
                act,
                rows: m,
                cols: left..left + cols,
                inner: top..top + depth,
            };
            visit.share_out(parts, share, c.data, c.stride, slope.as_deref_mut());
        }
    }
    if !in_place {
        SCRATCH.set(scratch);
    }
}

/// One visit of all rows: some columns of the right matrix, some links of their chains.
struct Visit<'a> {
    level: Level,
    shape: Shape,
    a: Mat<'a>,
    right: Right<'a>,
    first: First<'a>,
    act: Act,
    rows: usize,
    cols: Range<usize>,
    inner: Range<usize>,
}

impl Visit<'_> {
    /// Gives each thread a share of the rows.
    fn share_out(&self, parts: usize, share: usize, c: &mut [f32], stride: usize, slope: Option<&mut [f32]>) {
        if parts == 1 {
            return self.run(0..self.rows, c, stride, slope);
        }
        let range = |part: usize| part * share..self.rows.min((part + 1) * share);
        let shares = c.par_chunks_mut(share * stride).enumerate();
        match slope {
            None => shares.for_each(|(part, c)| self.run(range(part), c, stride, None)),
            Some(slope) => {
                let shares = shares.zip(slope.par_chunks_mut(share * stride));
                shares.for_each(|((part, c), slope)| self.run(range(part), c, stride, Some(slope)));
            }
        }
    }

    /// Goes through some rows, a few at a time where an activation follows; `c` and `slope` begin at the first.
    fn run(&self, rows: Range<usize>, c: &mut [f32], stride: usize, mut slope: Option<&mut [f32]>) {
        let few = (CACHED / stride).next_multiple_of(TALL);
        let step = if self.act == Act::None { rows.len() } else { few };
        for top in (0..rows.len()).step_by(step.max(1)) {
            let height = step.min(rows.len() - top);
            let from = (rows.start + top) * self.a.row + self.inner.start * self.a.col;
            let block = Block {
                a: &self.a.data[from.min(self.a.data.len())..],
                a_strides: [self.a.row, self.a.col],
                right: self.right,
                first: self.first,
                depth: self.inner.len(),
            };
            let out = &mut c[top * stride + self.cols.start..];
            block.multiply(self.level, self.shape, MatMut::strided(out, height, self.cols.len(), stride));
            let done = top * stride..(top + height) * stride;
            match &mut slope {
                Some(slope) if self.act == Act::Gelu => {
                    rows::gelu_with_slope(self.level, &mut c[done.clone()], &mut slope[done]);
                }
                _ if self.act != Act::None => rows::activate(self.level, self.act, &mut c[done]),
                _ => {}
            }
        }
    }
}

/// The tile a product is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Floats in a register.
    pub(super) lanes: usize,
    /// Columns of a panel.
    pub(super) panel: usize,
    /// Columns of a block: whole panels, as many as the second-level cache holds.
    columns: usize,
}

impl Shape {
    /// The tile that wastes least on `n` columns.
    fn pick(level: Level, n: usize) -> Self {
        match level.set() {
            Set::Avx512 if n.is_multiple_of(48) && !n.is_multiple_of(64) => {
                Self { lanes: 16, panel: 48, columns: 960 }
            }
            Set::Avx512 => Self { lanes: 16, panel: 64, columns: 1024 },
            Set::Avx2 => Self { lanes: 8, panel: 16, columns: 1024 },
            Set::Baseline => Self { lanes: 4, panel: 8, columns: 1024 },
        }
    }
}

/// Copies a block of `b` into panels: all rows of the first few columns, then of the next few. The last panel is as
/// narrow as whole registers allow, filled up with zeros.
fn pack(
    level: Level,
    shape: Shape,
    b: Mat<'_>,
    rows: Range<usize>,
    cols: Range<usize>,
    packed: &mut [f32],
    parts: usize,
) {
    let depth = rows.len();
    if depth == 0 {
        return;
    }
    let block = &b.data[rows.start * b.row + cols.start * b.col..];
    let one = |panel: usize, to: &mut [f32]| {
        let (from, left) = (&block[panel * shape.panel * b.col..], cols.len() - panel * shape.panel);
        let taken = left.min(shape.panel);
        let width = taken.next_multiple_of(shape.lanes);
        let to = &mut to[..depth * width];
        if b.col == 1 {
            for (p, to) in to.chunks_exact_mut(width).enumerate() {
                to[..taken].copy_from_slice(&from[p * b.row..p * b.row + taken]);
                to[taken..].fill(0.0);
            }
        } else {
            pack_transposed(level, from, b.col, depth, taken, to, width);
        }
    };
    let panels = packed.chunks_mut(shape.panel * depth).take(cols.len().div_ceil(shape.panel)).enumerate();
    if parts == 1 {
        panels.for_each(|(panel, to)| one(panel, to));
    } else {
        panels.par_bridge().for_each(|(panel, to)| one(panel, to));
    }
}

/// One panel of a transposed matrix: column `q` of the panel lies in one piece at `q * stride`.
fn pack_transposed(
    level: Level,
    from: &[f32],
    stride: usize,
    depth: usize,
    taken: usize,
    to: &mut [f32],
    width: usize,
) {
    assert!((taken - 1) * stride + depth <= from.len() && taken <= width && depth * width <= to.len());
    let whole = [depth / 8 * 8, taken / 8 * 8];
    for q in (0..whole[1]).step_by(8) {
        for p in (0..whole[0]).step_by(8) {
            let (from, to) = (&raw const from[q * stride + p], &raw mut to[p * width + q]);
            // SAFETY: rows q..q+8 of `depth` floats and rows p..p+8 of `width` floats are inside the slices, as
            // asserted above.
            unsafe { transpose(level, from, stride, to, width) };
        }
    }
    for p in 0..depth {
        let done = if p < whole[0] { whole[1] } else { 0 };
        for q in done..taken {
            to[p * width + q] = from[q * stride + p];
        }
        to[p * width + taken..(p + 1) * width].fill(0.0);
    }
}

#[cfg(test)]
#[path = "gemm_tests.rs"]
mod tests;
