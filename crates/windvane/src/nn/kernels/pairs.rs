//! Learned kernels over pairs of tokens, applied to numbers that the tokens have. As in attention, the matrices of pairs never
//! leave the cache, and the way back computes them again.
#![allow(unsafe_code, clippy::inline_always)]

use super::attention::{LOT, scores, scores_mut, softmax, softmax_backward, whole_lots};
use super::gemm::{Mat, MatMut, Start, gemm};
use super::math;
use super::pool::Buffer;
use super::simd::{Level, per_level};

/// What is added to a score before its softplus is taken.
pub(crate) const OFFSET: f32 = 2.0;

/// The sizes of one context: its tokens, the tasks whose numbers they have, kernels that average and kernels that look for the
/// best, numbers in a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pairs {
    pub(crate) tokens: usize,
    pub(crate) tasks: usize,
    pub(crate) averages: usize,
    pub(crate) maxima: usize,
    pub(crate) key: usize,
}

/// What the way back needs beside inputs and outputs: of each averaging row its largest score and sum, of each best the token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    stats: Vec<[f32; 2]>,
    at: Vec<u32>,
}

/// The inputs of one context.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    /// Queries and keys, `[tokens, kernels * key]` each.
    pub(crate) q: &'a [f32],
    pub(crate) k: &'a [f32],
    /// What products of queries and keys are added to, `[kernels * tokens * tokens]`.
    pub(crate) bias: &'a [f32],
    /// Numbers that are averaged, and those that the best is looked for among, `[tasks, tokens]` each.
    pub(crate) r: &'a [f32],
    pub(crate) log_r: &'a [f32],
}

/// The gradients of one context: of queries, of keys, and of the bias of each displacement, `[displacements, kernels]`.
pub(crate) struct Grads<'a> {
    pub(crate) q: &'a mut [f32],
    pub(crate) k: &'a mut [f32],
    pub(crate) bias: &'a mut [f32],
}

per_level! {
    /// Turns scores, `n` in a row of whole lots, into `-softplus(scale * x + 2)`.
    fn nearness(scores: &mut [f32], n: usize, scale: f32) {
        for row in scores.chunks_exact_mut(whole_lots(n)) {
            for x in row.iter_mut() {
                *x = -math::softplus(x.mul_add(scale, OFFSET));
            }
            row[n..].fill(f32::NEG_INFINITY);
        }
    }

    /// The largest `near + log_r` of every row for every task, `[tasks, n]`, and where it is; the first of equals.
    fn best(near: &[f32], log_r: &[f32], n: usize, out: &mut [f32], at: &mut [u32]) {
        let width = whole_lots(n);
        for (task, log_r) in log_r.chunks_exact(width).enumerate() {
            for (row, near) in near.chunks_exact(width).enumerate() {
                let (mut top, mut lots) = ([f32::NEG_INFINITY; LOT], [0_u32; LOT]);
                let pairs = near.as_chunks::<LOT>().0.iter().zip(log_r.as_chunks::<LOT>().0);
                for (lot, (near, log_r)) in (0_u32..).zip(pairs) {
                    for i in 0..LOT {
                        let x = near[i] + log_r[i];
                        let better = x > top[i];
                        top[i] = if better { x } else { top[i] };
                        lots[i] = if better { lot } else { lots[i] };
                    }
                }
                let (mut x, mut place) = (top[0], lots[0] * LOT as u32);
                for i in 1..LOT {
                    let here = lots[i] * LOT as u32 + i as u32;
                    if top[i] > x || (top[i] == x && here < place) {
                        (x, place) = (top[i], here);
                    }
                }
                (out[task * n + row], at[task * n + row]) = (x, place);
            }
        }
    }
}

impl Pairs {
    fn kernels(self) -> usize {
        self.averages + self.maxima
    }

    fn scale(self) -> f32 {
        1.0 / (self.key as f32).sqrt()
    }

    /// Queries or keys of one kernel.
    fn part(self, x: &[f32], kernel: usize) -> Mat<'_> {
        Mat::strided(&x[kernel * self.key..], self.tokens, self.key, self.kernels() * self.key)
    }

    /// Where one kernel's output for a task and a token stands.
    fn place(self, kernel: usize, task: usize, token: usize) -> usize {
        (task * self.tokens + token) * self.kernels() + kernel
    }

    /// Writes one kernel's products of queries and keys, on top of its bias.
    fn products(self, level: Level, x: Inputs<'_>, kernel: usize, to: &mut [f32]) {
        let n = self.tokens;
        let bias = x.bias[kernel * n * n..].chunks_exact(n);
        to.chunks_exact_mut(whole_lots(n)).zip(bias).for_each(|(to, row)| to[..n].copy_from_slice(row));
        gemm(level, self.part(x.q, kernel), self.part(x.k, kernel).t(), scores_mut(to, n), Start::Add);
    }

    /// What each token sees of each task, `out [tasks * tokens, kernels]`.
    pub(crate) fn see(self, level: Level, x: Inputs<'_>, out: &mut [f32]) -> Seen {
        let Self { tokens, tasks, averages, maxima, .. } = self;
        let width = whole_lots(tokens);
        let mut pairs = Buffer::new(tokens * width);
        let mut found = Buffer::new(tokens * tasks);
        let mut seen =
            Seen { stats: vec![[0.0; 2]; averages * tokens], at: vec![0; maxima * tasks * tokens] };
        for (kernel, stats) in seen.stats.chunks_exact_mut(tokens).enumerate() {
            self.products(level, x, kernel, &mut pairs);
            softmax(level, &mut pairs, tokens, self.scale(), stats);
            let (r, y) = (Mat::new(x.r, tasks, tokens), MatMut::new(&mut found, tokens, tasks));
            gemm(level, scores(&pairs, tokens), r.t(), y, Start::Zero);
            for (i, y) in found.iter().enumerate() {
                out[self.place(kernel, i % tasks, i / tasks)] = *y;
            }
        }
        let mut log_r = Buffer::zeros(tasks * width);
        log_r
            .chunks_exact_mut(width)
            .zip(x.log_r.chunks_exact(tokens))
            .for_each(|(to, row)| to[..tokens].copy_from_slice(row));
        for (kernel, at) in (averages..).zip(seen.at.chunks_exact_mut(tasks * tokens)) {
            self.products(level, x, kernel, &mut pairs);
            nearness(level, &mut pairs, tokens, self.scale());
            best(level, &pairs, &log_r, tokens, &mut found, at);
            for (i, m) in found.iter().enumerate() {
                out[self.place(kernel, i / tokens, i % tokens)] = *m;
            }
        }
        seen
    }

    /// The way back: from `grad` of the output to those of queries, keys and bias, where `of_pairs` tells the displacement of
    /// each pair.
    pub(crate) fn see_backward(
        self,
        level: Level,
        x: Inputs<'_>,
        (out, seen): (&[f32], &Seen),
        grad: &[f32],
        of_pairs: &[usize],
        to: Grads<'_>,
    ) {
        let Self { tokens, tasks, averages, key, .. } = self;
        let (kernels, scale, width) = (self.kernels(), self.scale(), whole_lots(tokens));
        let (mut shares, mut pulls) = (Buffer::new(tokens * width), Buffer::new(tokens * width));
        let (mut y, mut given) = (Buffer::new(tokens * tasks), Buffer::new(tokens * tasks));
        for (kernel, stats) in seen.stats.chunks_exact(tokens).enumerate() {
            for (i, (y, given)) in y.iter_mut().zip(given.iter_mut()).enumerate() {
                let place = self.place(kernel, i % tasks, i / tasks);
                (*y, *given) = (out[place], grad[place]);
            }
            self.products(level, x, kernel, &mut shares);
            let (g, r) = (Mat::new(&given, tokens, tasks), Mat::new(x.r, tasks, tokens));
            gemm(level, g, r, scores_mut(&mut pulls, tokens), Start::Zero);
            softmax_backward(level, &mut shares, &mut pulls, tokens, stats, &y, &given, tasks, tasks, scale);
            for (of_pairs, pulls) in of_pairs.chunks_exact(tokens).zip(pulls.chunks_exact(width)) {
                for (pair, pull) in of_pairs.iter().zip(pulls) {
                    to.bias[pair * kernels + kernel] += pull / scale;
                }
            }
            let pulls = scores(&pulls, tokens);
            let write = |a: Mat<'_>, b: Mat<'_>, to: &mut [f32]| {
                let to = MatMut::strided(&mut to[kernel * key..], tokens, key, kernels * key);
                gemm(level, a, b, to, Start::Zero);
            };
            write(pulls, self.part(x.k, kernel), to.q);
            write(pulls.t(), self.part(x.q, kernel), to.k);
        }
        let row = |token: usize, kernel: usize| {
            (token * kernels + kernel) * key..(token * kernels + kernel + 1) * key
        };
        for (kernel, at) in (averages..).zip(seen.at.chunks_exact(tasks * tokens)) {
            for token in 0..tokens {
                to.q[row(token, kernel)].fill(0.0);
                to.k[row(token, kernel)].fill(0.0);
            }
            for (i, &other) in at.iter().enumerate() {
                let (task, token, other) = (i / tokens, i % tokens, other as usize);
                let place = self.place(kernel, task, token);
                // The slope of -softplus is e^(-softplus) - 1.
                let near = out[place] - x.log_r[task * tokens + other];
                let pull = grad[place] * (math::exp(near) - 1.0);
                to.bias[of_pairs[token * tokens + other] * kernels + kernel] += pull;
                let (own, others) = (row(token, kernel), row(other, kernel));
                let add = |to: &mut [f32], x: &[f32]| {
                    to.iter_mut().zip(x).for_each(|(to, x)| *to = x.mul_add(pull * scale, *to));
                };
                add(&mut to.q[own.clone()], &x.k[others.clone()]);
                add(&mut to.k[others], &x.q[own]);
            }
        }
    }
}
