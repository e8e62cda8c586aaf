//! Muon's inner loops: momentum, and the nearest matrix with all singular values alike.
#![allow(unsafe_code, clippy::inline_always)]

use super::gemm::{Mat, MatMut, Start, gemm};
use super::pool::Buffer;
use super::rows::square_sum;
use super::simd::{Level, per_level};

/// The factors of `X`, `A X` and `A A X` in an iteration: they pull singular values of a thousandth to about 1 in five steps.
pub(crate) const FACTORS: [f32; 3] = [3.4445, -4.7750, 2.0315];
/// Keeps a zero matrix from being divided by its norm.
pub(crate) const SMALLEST: f32 = 1e-7;
/// Rows of a symmetric product that are made at once: only what is right of their diagonal is computed.
const STRIP: usize = 96;
/// Sides of the squares that are mirrored at once; divides a strip.
const MIRROR: usize = 16;

per_level! {
    /// `memory = momentum * memory + g` and `ahead = g + momentum * memory`, where `g = shrink * grad`.
    pub(crate) fn gather(grad: &[f32], memory: &mut [f32], ahead: &mut [f32], shrink: f32, momentum: f32) {
        for ((&grad, memory), ahead) in grad.iter().zip(memory).zip(ahead) {
            let grad = grad * shrink;
            *memory = momentum.mul_add(*memory, grad);
            *ahead = momentum.mul_add(*memory, grad);
        }
    }

    /// `y = factor * x`.
    pub(crate) fn scale(x: &[f32], factor: f32, y: &mut [f32]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = factor * x);
    }

    /// `value = keep * value - rate * x`.
    pub(crate) fn descend(value: &mut [f32], x: &[f32], keep: f32, rate: f32) {
        value.iter_mut().zip(x).for_each(|(value, &x)| *value = keep.mul_add(*value, -(rate * x)));
    }
}

/// A matrix of `rows` x `cols` with about the same singular vectors as `x` and singular values near 1.
pub(crate) fn orthogonal(level: Level, mut x: Buffer, [rows, cols]: [usize; 2], iterations: u32) -> Buffer {
    let [linear, cubic, quintic] = FACTORS;
    let (count, wide) = (rows * cols, rows <= cols);
    let side = rows.min(cols);
    let norm = square_sum(level, &x).sqrt() as f32 + SMALLEST;
    let mut next = Buffer::new(count);
    scale(level, &x, 1.0 / norm, &mut next);
    std::mem::swap(&mut x, &mut next);
    let [mut gram, mut left, mut pull] = [(); 3].map(|()| Buffer::new(side * side));
    for _ in 0..iterations {
        let own = Mat::new(&x, rows, cols);
        let own = if wide { own } else { own.t() }; // [side, longer]
        symmetric(level, own, own.t(), &mut gram, side, Start::Zero); // A = X X'
        scale(level, &gram, quintic, &mut left);
        scale(level, &gram, cubic, &mut pull);
        let (a, left) = (Mat::new(&gram, side, side), Mat::new(&left, side, side));
        symmetric(level, left, a, &mut pull, side, Start::Add); // cubic A + quintic A A
        scale(level, &x, linear, &mut next);
        let (x_now, pull, out) =
            (Mat::new(&x, rows, cols), Mat::new(&pull, side, side), MatMut::new(&mut next, rows, cols));
        let (a, b) = if wide { (pull, x_now) } else { (x_now, pull) };
        gemm(level, a, b, out, Start::Add);
        std::mem::swap(&mut x, &mut next);
    }
    x
}

/// The product of two matrices that is known to be symmetric, `side` x `side`: computed from the diagonal to the right, strip
/// by strip, then mirrored.
fn symmetric(level: Level, a: Mat<'_>, b: Mat<'_>, c: &mut [f32], side: usize, start: Start<'_>) {
    for top in (0..side).step_by(STRIP) {
        let height = STRIP.min(side - top);
        let out = &mut c[top * side + top..(top + height) * side];
        let out = MatMut::strided(out, height, side - top, side);
        gemm(level, a.rows_from(top, height), b.cols_from(top), out, start);
    }
    // Square by square, so that both sides of the mirror stay in the cache.
    for top in (STRIP..side).step_by(MIRROR) {
        for left in (0..top / STRIP * STRIP).step_by(MIRROR) {
            for i in top..side.min(top + MIRROR) {
                for j in left..left + MIRROR {
                    c[i * side + j] = c[j * side + i];
                }
            }
        }
    }
}
