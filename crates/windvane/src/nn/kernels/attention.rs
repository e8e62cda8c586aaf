//! Self-attention within one set, head by head. The attention matrix never leaves the cache: the way back computes it again
//! from each row's largest score and sum.
#![allow(unsafe_code, clippy::inline_always)]

use super::gemm::{Mat, MatMut, Start, gemm};
use super::math;
use super::pool::Buffer;
use super::rows::{self, fold, sum};
use super::simd::{Level, per_level};

/// Scores that are handled at a time: rows of scores are filled up to whole lots.
pub(super) const LOT: usize = 16;

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

/// The largest score of a row.
#[inline(always)]
fn largest(row: &[[f32; LOT]]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let mut tops = [f32::NEG_INFINITY; LOT];
    for lot in row {
        for i in 0..LOT {
            tops[i] = larger(lot[i], tops[i]);
        }
    }
    fold(tops, larger)
}

/// Turns a row's scores into `e^(scale * x - top)`; returns their sum.
#[inline(always)]
fn powers(row: &mut [[f32; LOT]], scale: f32, top: f32) -> f32 {
    let mut sums = [0.0; LOT];
    for lot in row {
        for i in 0..LOT {
            lot[i] = math::exp(lot[i].mul_add(scale, -top));
            sums[i] += lot[i];
        }
    }
    sum(sums)
}

per_level! {
    /// Turns scores, `n` in a row of whole lots, into shares, `e^(scale * x - top) * inverse`; `stats` gets each row's
    /// `[top, inverse]`. Each step is done for all rows before the next: within a row they wait for each other.
    pub(super) fn softmax(scores: &mut [f32], n: usize, scale: f32, stats: &mut [[f32; 2]]) {
        let width = whole_lots(n);
        for (row, stats) in scores.chunks_exact_mut(width).zip(&mut *stats) {
            // What fills up the last lot gets no share to speak of.
            row[n..].fill(f32::NEG_INFINITY);
            stats[0] = largest(row.as_chunks().0) * scale;
        }
        for (row, stats) in scores.chunks_exact_mut(width).zip(&mut *stats) {
            stats[1] = 1.0 / powers(row.as_chunks_mut().0, scale, stats[0]);
        }
        for (row, stats) in scores.chunks_exact_mut(width).zip(stats) {
            row.iter_mut().for_each(|x| *x *= stats[1]);
        }
    }

    /// The way back through the softmax of all rows of one head: computes the shares again from the scores in `shares`, and
    /// turns the gradient of shares in `grad` into that of unscaled scores, `share * (grad - common) * scale`. `common` is the
    /// product of a row's output and its gradient, which stand `stride` apart.
    pub(super) fn softmax_backward(
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
        let width = whole_lots(n);
        for (i, (shares, grad)) in shares.chunks_exact_mut(width).zip(grad.chunks_exact_mut(width)).enumerate() {
            let own = i * stride..i * stride + depth;
            let common = rows::dot_product(&out[own.clone()], &out_grad[own]);
            let [top, inverse] = stats[i];
            // The last lot is worked on whole; nobody reads what it is filled up with.
            for (shares, grad) in shares.as_chunks_mut::<LOT>().0.iter_mut().zip(grad.as_chunks_mut::<LOT>().0) {
                for (share, g) in shares.iter_mut().zip(grad) {
                    *share = math::exp(share.mul_add(scale, -top)) * inverse;
                    *g = *share * (*g - common) * scale;
                }
            }
        }
    }
}

/// The length of a row of `n` scores, filled up.
#[inline(always)]
pub(super) fn whole_lots(n: usize) -> usize {
    n.next_multiple_of(LOT)
}

/// The matrix of a set's scores or shares.
pub(super) fn scores(data: &[f32], n: usize) -> Mat<'_> {
    Mat::strided(data, n, n, whole_lots(n))
}

/// The same to write.
pub(super) fn scores_mut(data: &mut [f32], n: usize) -> MatMut<'_> {
    MatMut::strided(data, n, n, whole_lots(n))
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

    /// Writes one head's products of queries and keys, on top of `bias [heads * tokens * tokens]` where there is one.
    fn products(self, level: Level, qkv: &[f32], bias: Option<&[f32]>, head: usize, to: &mut [f32]) {
        let Self { tokens, real, .. } = self;
        let (q, k) = (self.part(qkv, 0, head), self.part(qkv, 1, head));
        let start = match bias {
            Some(bias) => {
                let rows = bias[head * tokens * tokens..].chunks_exact(tokens).take(real);
                to.chunks_exact_mut(whole_lots(real))
                    .zip(rows)
                    .for_each(|(to, row)| to[..real].copy_from_slice(&row[..real]));
                Start::Add
            }
            None => Start::Zero,
        };
        gemm(level, q, k.t(), scores_mut(to, real), start);
    }

    /// Mixes the values of one set: `qkv [tokens, 3 * width]` -> `out [tokens, width]`, with `stats [heads * tokens]`; products
    /// of queries and keys are taken on top of `bias [heads * tokens * tokens]`.
    pub(crate) fn attend(
        self,
        level: Level,
        qkv: &[f32],
        bias: Option<&[f32]>,
        out: &mut [f32],
        stats: &mut [[f32; 2]],
    ) {
        let Self { tokens, real, width, heads } = self;
        out[real * width..].fill(0.0);
        if real == 0 {
            return;
        }
        let depth = width / heads;
        let mut shares = Buffer::new(real * whole_lots(real));
        for head in 0..heads {
            let v = self.part(qkv, 2, head);
            self.products(level, qkv, bias, head, &mut shares);
            softmax(level, &mut shares, real, self.scale(), &mut stats[head * tokens..]);
            let out = MatMut::strided(&mut out[head * depth..], real, depth, width);
            gemm(level, scores(&shares, real), v, out, Start::Zero);
        }
    }

    /// The way back: from `grad` of the output to that of `qkv`, and to that of the bias, where there is one.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn attend_backward(
        self,
        level: Level,
        qkv: &[f32],
        bias: Option<(&[f32], &mut [f32])>,
        out: &[f32],
        stats: &[[f32; 2]],
        grad: &[f32],
        qkv_grad: &mut [f32],
    ) {
        let Self { tokens, real, width, heads } = self;
        qkv_grad[real * 3 * width..].fill(0.0);
        let (bias, mut bias_grad) = bias.unzip();
        if let Some(grad) = bias_grad.as_deref_mut().filter(|_| real < tokens) {
            grad.fill(0.0);
        }
        if real == 0 {
            return;
        }
        let depth = width / heads;
        let size = real * whole_lots(real);
        let (mut shares, mut pulls) = (Buffer::new(size), Buffer::new(size));
        for head in 0..heads {
            let (q, k, v) = (self.part(qkv, 0, head), self.part(qkv, 1, head), self.part(qkv, 2, head));
            let given = self.mixed(grad, head);
            self.products(level, qkv, bias, head, &mut shares);
            gemm(level, given, v.t(), scores_mut(&mut pulls, real), Start::Zero);
            let (stats, own) = (&stats[head * tokens..], head * depth);
            let (out, grad) = (&out[own..], &grad[own..]);
            softmax_backward(
                level,
                &mut shares,
                &mut pulls,
                real,
                stats,
                out,
                grad,
                depth,
                width,
                self.scale(),
            );
            if let Some(grad) = &mut bias_grad {
                let rows = grad[head * tokens * tokens..].chunks_exact_mut(tokens);
                rows.zip(pulls.chunks_exact(whole_lots(real)))
                    .for_each(|(to, row)| to[..real].copy_from_slice(&row[..real]));
            }
            let (shares, pulls) = (scores(&shares, real), scores(&pulls, real));
            let mut write = |part: usize, a: Mat<'_>, b: Mat<'_>| {
                let to = &mut qkv_grad[part * width + head * depth..];
                gemm(level, a, b, MatMut::strided(to, real, depth, 3 * width), Start::Zero);
            };
            write(0, pulls, k);
            write(1, pulls.t(), q);
            write(2, shares.t(), given);
        }
    }
}
