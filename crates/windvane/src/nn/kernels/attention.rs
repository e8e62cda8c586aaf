//! Self-attention within one set, head by head. The attention matrix never leaves the cache: the way back computes it again
//! from each row's largest score and sum.
#![allow(unsafe_code, clippy::inline_always)]

use super::gemm::{Mat, MatMut, Start, gemm};
use super::math;
use super::pool::Buffer;
use super::rows::{self, LANES, fold};
use super::simd::{Level, per_level};

/// The sizes of one set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    /// Tokens, padding included.
    pub(crate) tokens: usize,
    /// Tokens that are real.
    pub(crate) real: usize,
    /// Width of queries, of keys and of values.
    pub(crate) width: usize,
    /// Heads.
    pub(crate) heads: usize,
}

#[inline(always)]
fn softmax_row(row: &mut [f32], scale: f32) -> [f32; 2] {
    let mut tops = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            tops[i] = if chunk[i] > tops[i] { chunk[i] } else { tops[i] };
        }
    }
    let top =
        tops.iter().chain(rest).fold(f32::NEG_INFINITY, |top, &x| if x > top { x } else { top }) * scale;
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = row.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            chunk[i] = math::exp(chunk[i].mul_add(scale, -top));
            lanes[i] += chunk[i];
        }
    }
    for (x, lane) in rest.iter_mut().zip(&mut lanes) {
        *x = math::exp(x.mul_add(scale, -top));
        *lane += *x;
    }
    let inverse = 1.0 / fold(lanes);
    row.iter_mut().for_each(|x| *x *= inverse);
    [top, inverse]
}

per_level! {
    /// Turns each row's scores into shares, `e^(scale * x - top) * inverse`; `stats` gets `[top, inverse]`.
    fn softmax(scores: &mut [f32], n: usize, scale: f32, stats: &mut [[f32; 2]]) {
        for (row, stats) in scores.chunks_exact_mut(n).zip(stats) {
            *stats = softmax_row(row, scale);
        }
    }

    /// The way back through the softmax of all rows of one head: computes the shares again from the scores in `shares`, and
    /// turns the gradient of shares in `grad` into that of unscaled scores, `share * (grad - common) * scale`. `common` is the
    /// product of a row's output and its gradient, which stand `stride` apart.
    fn softmax_backward(
        shares: &mut [f32],
        grad: &mut [f32],
        n: usize,
        stats: &[[f32; 2]],
        out: &[f32],
        out_grad: &[f32],
        depth: usize,
        stride: usize,
        scale: f32,
    ) {
        for (i, (shares, grad)) in shares.chunks_exact_mut(n).zip(grad.chunks_exact_mut(n)).enumerate() {
            let own = i * stride..i * stride + depth;
            let common = rows::dot_product(&out[own.clone()], &out_grad[own]);
            let [top, inverse] = stats[i];
            for (share, g) in shares.iter_mut().zip(grad) {
                *share = math::exp(share.mul_add(scale, -top)) * inverse;
                *g = *share * (*g - common) * scale;
            }
        }
    }
}

impl Set {
    fn scale(self) -> f32 {
        1.0 / ((self.width / self.heads) as f32).sqrt()
    }

    /// Queries (0), keys (1) or values (2) of one head.
    fn part(self, qkv: &[f32], part: usize, head: usize) -> Mat<'_> {
        let depth = self.width / self.heads;
        Mat::strided(&qkv[part * self.width + head * depth..], self.real, depth, 3 * self.width)
    }

    /// Where one head's output, or its gradient, stands.
    fn mixed(self, x: &[f32], head: usize) -> Mat<'_> {
        let depth = self.width / self.heads;
        Mat::strided(&x[head * depth..], self.real, depth, self.width)
    }

    /// Mixes the values of one set: `qkv [tokens, 3 * width]` -> `out [tokens, width]`, with `stats [heads * tokens]`.
    pub(crate) fn attend(self, level: Level, qkv: &[f32], out: &mut [f32], stats: &mut [[f32; 2]]) {
        let Self { tokens, real, width, heads } = self;
        out[real * width..].fill(0.0);
        if real == 0 {
            return;
        }
        let depth = width / heads;
        let mut shares = Buffer::new(real * real);
        for head in 0..heads {
            let (q, k, v) = (self.part(qkv, 0, head), self.part(qkv, 1, head), self.part(qkv, 2, head));
            gemm(level, q, k.t(), MatMut::new(&mut shares, real, real), Start::Zero);
            softmax(level, &mut shares, real, self.scale(), &mut stats[head * tokens..]);
            let out = MatMut::strided(&mut out[head * depth..], real, depth, width);
            gemm(level, Mat::new(&shares, real, real), v, out, Start::Zero);
        }
    }

    /// The way back: from `grad` of the output to that of `qkv`.
    pub(crate) fn attend_backward(
        self,
        level: Level,
        qkv: &[f32],
        out: &[f32],
        stats: &[[f32; 2]],
        grad: &[f32],
        qkv_grad: &mut [f32],
    ) {
        let Self { tokens, real, width, heads } = self;
        qkv_grad[real * 3 * width..].fill(0.0);
        if real == 0 {
            return;
        }
        let depth = width / heads;
        let (mut shares, mut scores) = (Buffer::new(real * real), Buffer::new(real * real));
        for head in 0..heads {
            let (q, k, v) = (self.part(qkv, 0, head), self.part(qkv, 1, head), self.part(qkv, 2, head));
            let given = self.mixed(grad, head);
            gemm(level, q, k.t(), MatMut::new(&mut shares, real, real), Start::Zero);
            gemm(level, given, v.t(), MatMut::new(&mut scores, real, real), Start::Zero);
            let (stats, own) = (&stats[head * tokens..], head * depth);
            let (out, grad) = (&out[own..], &grad[own..]);
            softmax_backward(
                level,
                &mut shares,
                &mut scores,
                real,
                stats,
                out,
                grad,
                depth,
                width,
                self.scale(),
            );
            let (shares, scores) = (Mat::new(&shares, real, real), Mat::new(&scores, real, real));
            let mut write = |part: usize, a: Mat<'_>, b: Mat<'_>| {
                let to = &mut qkv_grad[part * width + head * depth..];
                gemm(level, a, b, MatMut::strided(to, real, depth, 3 * width), Start::Zero);
            };
            write(0, scores, k);
            write(1, scores.t(), q);
            write(2, shares.t(), given);
        }
    }
}
