//! Operations on sets of tokens.

use super::fused::{Fused, dims, rows, tensor, values};
use crate::nn::kernels::attention::Set;
use crate::nn::kernels::par;
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::rows as kernel;
use crate::nn::kernels::simd::Level;
use burn_flex::FlexTensor;
use std::sync::Arc;

/// Self-attention within sets, input `[qkv]`.
#[derive(Debug)]
pub(super) struct SetAttention {
    pub(super) heads: usize,
    /// Real tokens of each set.
    pub(super) lengths: Arc<Vec<usize>>,
}

/// Self-attention within sets whose tokens have places, inputs `[qkv, bias]`: a bias of each head's scores for each
/// displacement between two tokens.
#[derive(Debug)]
pub(super) struct PlacedAttention {
    pub(super) heads: usize,
    /// Real tokens of each set.
    pub(super) lengths: Arc<Vec<usize>>,
    /// The displacement between each pair of tokens.
    pub(super) of_pairs: Arc<Vec<usize>>,
}

/// The mean over the real tokens of each set, input `[x]`.
#[derive(Debug)]
pub(super) struct SetMean {
    /// Real tokens of each set.
    pub(super) lengths: Arc<Vec<usize>>,
}

impl SetAttention {
    fn set(&self, i: usize, rows: usize, width: usize) -> Set {
        Set { tokens: rows / self.lengths.len(), real: self.lengths[i], width, heads: self.heads }
    }
}

impl Fused<1> for SetAttention {
    /// Input, output, and each attention row's largest score and sum.
    type Saved = (FlexTensor, FlexTensor, Arc<Vec<[f32; 2]>>);

    fn forward(&self, inputs: [FlexTensor; 1], _: [bool; 1]) -> (FlexTensor, Option<Self::Saved>) {
        let [qkv] = inputs.map(rows);
        let [n, triple] = dims(&qkv);
        let (tokens, width) = (n / self.lengths.len().max(1), triple / 3);
        let mut out = Buffer::new(n * width);
        let mut stats = vec![[0.0; 2]; n * self.heads];
        let all = values(&qkv);
        par::chunks2(&mut out, &mut stats, [tokens * width, tokens * self.heads], |i, out, stats| {
            let qkv = &all[i * tokens * triple..(i + 1) * tokens * triple];
            self.set(i, n, width).attend(Level::current(), qkv, None, out, stats);
        });
        let out = tensor(out, [n, width]);
        (out.clone(), Some((qkv, out, Arc::new(stats))))
    }

    fn backward(
        self,
        (qkv, out, stats): Self::Saved,
        grad: FlexTensor,
        _: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        let grad = rows(grad);
        let [n, triple] = dims(&qkv);
        let (tokens, width) = (n / self.lengths.len().max(1), triple / 3);
        let mut qkv_grad = Buffer::new(n * triple);
        let (all, out, grad) = (values(&qkv), values(&out), values(&grad));
        par::chunks(&mut qkv_grad, tokens * triple, |i, qkv_grad| {
            let own = i * tokens * width..(i + 1) * tokens * width;
            let qkv = &all[i * tokens * triple..(i + 1) * tokens * triple];
            let stats = &stats[i * tokens * self.heads..];
            let set = self.set(i, n, width);
            set.attend_backward(Level::current(), qkv, None, &out[own.clone()], stats, &grad[own], qkv_grad);
        });
        [Some(tensor(qkv_grad, [n, triple]))]
    }
}

/// The bias of every pair of tokens, `[heads, pairs]`, from that of every displacement, `[displacements, heads]`: in units of
/// the products that it is added to, which are divided by `root` later.
pub(super) fn spread(bias: &FlexTensor, of_pairs: &[usize], root: f32) -> FlexTensor {
    let (heads, given) = (dims(bias)[1], values(bias));
    let mut spread = Buffer::new(heads * of_pairs.len());
    for (head, spread) in spread.chunks_exact_mut(of_pairs.len().max(1)).enumerate() {
        let each = of_pairs.iter().map(|pair| given[pair * heads + head] * root);
        spread.iter_mut().zip(each).for_each(|(x, bias)| *x = bias);
    }
    tensor(spread, [heads, of_pairs.len()])
}

impl PlacedAttention {
    fn set(&self, i: usize, rows: usize, width: usize) -> Set {
        Set { tokens: rows / self.lengths.len(), real: self.lengths[i], width, heads: self.heads }
    }

    /// What products of queries and keys are divided by before they become scores.
    fn root(&self, width: usize) -> f32 {
        ((width / self.heads) as f32).sqrt()
    }
}

impl Fused<2> for PlacedAttention {
    /// Input, output, each attention row's largest score and sum, the bias of every pair, and the bias as it was given.
    type Saved = (FlexTensor, FlexTensor, Arc<Vec<[f32; 2]>>, FlexTensor, [usize; 2]);

    fn forward(&self, inputs: [FlexTensor; 2], _: [bool; 2]) -> (FlexTensor, Option<Self::Saved>) {
        let [qkv, bias] = inputs.map(rows);
        let [n, triple] = dims(&qkv);
        let (tokens, width) = (n / self.lengths.len().max(1), triple / 3);
        let spread = spread(&bias, &self.of_pairs, self.root(width));
        let each = values(&spread);
        let mut out = Buffer::new(n * width);
        let mut stats = vec![[0.0; 2]; n * self.heads];
        let all = values(&qkv);
        par::chunks2(&mut out, &mut stats, [tokens * width, tokens * self.heads], |i, out, stats| {
            let qkv = &all[i * tokens * triple..(i + 1) * tokens * triple];
            self.set(i, n, width).attend(Level::current(), qkv, Some(each), out, stats);
        });
        let out = tensor(out, [n, width]);
        (out.clone(), Some((qkv, out, Arc::new(stats), spread, dims(&bias))))
    }

    fn backward(
        self,
        (qkv, out, stats, spread, shape): Self::Saved,
        grad: FlexTensor,
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let grad = rows(grad);
        let [n, triple] = dims(&qkv);
        let (sets, width) = (self.lengths.len(), triple / 3);
        let (tokens, size) = (n / sets.max(1), values(&spread).len());
        let mut qkv_grad = Buffer::new(n * triple);
        let mut pulls = Buffer::new(sets * size);
        let (all, out, grad, spread) = (values(&qkv), values(&out), values(&grad), values(&spread));
        par::chunks2(&mut qkv_grad, &mut pulls, [tokens * triple, size], |i, qkv_grad, pulls| {
            let own = i * tokens * width..(i + 1) * tokens * width;
            let qkv = &all[i * tokens * triple..(i + 1) * tokens * triple];
            let stats = &stats[i * tokens * self.heads..];
            let (set, bias) = (self.set(i, n, width), Some((spread, pulls)));
            set.attend_backward(Level::current(), qkv, bias, &out[own.clone()], stats, &grad[own], qkv_grad);
        });
        let bias_grad = wanted[1].then(|| {
            let mut table = Buffer::zeros(shape[0] * shape[1]);
            let mut sets = pulls.chunks_exact_mut(size.max(1));
            if let Some(total) = sets.next() {
                sets.for_each(|pulls| total.iter_mut().zip(pulls).for_each(|(x, y)| *x += *y));
                let root = self.root(width);
                for (head, total) in total.chunks_exact(self.of_pairs.len()).enumerate() {
                    let each = self.of_pairs.iter().zip(total);
                    each.for_each(|(pair, x)| table[pair * self.heads + head] += x * root);
                }
            }
            tensor(table, shape)
        });
        [Some(tensor(qkv_grad, [n, triple])), bias_grad]
    }
}

impl Fused<1> for SetMean {
    /// The number of rows.
    type Saved = usize;

    fn forward(&self, inputs: [FlexTensor; 1], _: [bool; 1]) -> (FlexTensor, Option<usize>) {
        let [x] = inputs.map(rows);
        let ([n, width], sets) = (dims(&x), self.lengths.len());
        let mut out = Buffer::zeros(sets * width);
        let (all, tokens) = (values(&x), n / sets.max(1));
        for ((i, &real), out) in self.lengths.iter().enumerate().zip(out.chunks_exact_mut(width)) {
            kernel::add_rows(Level::current(), &all[i * tokens * width..(i * tokens + real) * width], out);
            let share = 1.0 / real.max(1) as f32;
            out.iter_mut().for_each(|x| *x *= share);
        }
        (tensor(out, [sets, width]), Some(n))
    }

    fn backward(self, n: usize, grad: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let grad = rows(grad);
        let [sets, width] = dims(&grad);
        let (all, tokens) = (values(&grad), n / sets.max(1));
        let mut out = Buffer::zeros(n * width);
        par::chunks(&mut out, tokens * width, |i, out| {
            let (real, given) = (self.lengths[i], &all[i * width..(i + 1) * width]);
            let share = 1.0 / real.max(1) as f32;
            for row in out.chunks_exact_mut(width).take(real) {
                row.iter_mut().zip(given).for_each(|(x, g)| *x = g * share);
            }
        });
        [Some(tensor(out, [n, width]))]
    }
}
