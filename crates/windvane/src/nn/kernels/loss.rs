//! The inner loops of the losses.
#![allow(unsafe_code, clippy::inline_always)]

use super::rows::{LANES, dot_product, sum};
use super::simd::per_level;

/// How much things weigh in a loss over a batch against itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    /// A pair of different rows: `1 / (n (n - 1))`, or 0 where there are none.
    pub(crate) pair: f32,
    /// A row: `1 / n`.
    pub(crate) one: f32,
}

impl Weights {
    /// The weights in a batch of `n` rows.
    pub(crate) fn of_batch(n: usize) -> Self {
        let pair = if n > 1 { 1.0 / (n as f32 * (n as f32 - 1.0)) } else { 0.0 };
        Self { pair, one: 1.0 / n.max(1) as f32 }
    }
}

/// Turns gaps into pulls, `weight * gap`, and returns half the sum of `weight * gap^2`.
#[inline(always)]
fn gaps(m: &mut [f32], target: &[f32], weight: f32, discount: f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let pull = |m: &mut f32, target: f32, lane: &mut f32| {
        let gap = discount.mul_add(-target, *m);
        *m = gap * weight;
        *lane = gap.mul_add(*m, *lane);
    };
    let ((m, m_rest), (target, target_rest)) = (m.as_chunks_mut::<LANES>(), target.as_chunks::<LANES>());
    for (m, target) in m.iter_mut().zip(target) {
        for i in 0..LANES {
            pull(&mut m[i], target[i], &mut lanes[i]);
        }
    }
    for ((m, &target), lane) in m_rest.iter_mut().zip(target_rest).zip(&mut lanes) {
        pull(m, target, lane);
    }
    0.5 * sum(lanes)
}

per_level! {
    /// Turns one row of `M` into `weight * (M_j - discount * target_j)` and returns half the weighted sum of squared gaps.
    /// Column `skip` neither counts nor pulls, and is left as it is.
    pub(crate) fn gap_row(m: &mut [f32], target: &[f32], weight: f32, discount: f32, skip: usize) -> f32 {
        let ((left, right), after) = (m.split_at_mut(skip), skip + 1);
        gaps(left, &target[..skip], weight, discount) + gaps(&mut right[1..], &target[after..], weight, discount)
    }

    /// What the pairs of a row with itself change: `f_grad` holds `f (b' b)` and becomes f's gradient, `b_grad` gets b's
    /// share. `rows` are f, b, the target's f (discounted) and the target's b; `pulled` is what all pairs pull f away
    /// from. Returns the rows' own part of the loss.
    pub(crate) fn own_pairs(
        rows: [&[f32]; 4],
        d: usize,
        weights: Weights,
        pulled: &[f32],
        f_grad: &mut [f32],
        b_grad: &mut [f32],
    ) -> f64 {
        let [f, b, target_f, target_b] = rows;
        let Weights { pair, one } = weights;
        let mut loss = 0.0;
        for i in 0..f.len() / d {
            let row = i * d..(i + 1) * d;
            let (f, b) = (&f[row.clone()], &b[row.clone()]);
            let m = dot_product(f, b);
            let gap = m - dot_product(&target_f[row.clone()], &target_b[row.clone()]);
            loss -= 0.5 * f64::from(pair) * f64::from(gap) * f64::from(gap) + f64::from(one) * f64::from(m);
            let own = gap.mul_add(pair, one);
            for ((grad, &pulled), &b) in f_grad[row.clone()].iter_mut().zip(&pulled[row.clone()]).zip(b) {
                *grad = (*grad - pulled).mul_add(pair, -(own * b));
            }
            for (grad, &f) in b_grad[row].iter_mut().zip(f) {
                *grad = f.mul_add(-own, *grad);
            }
        }
        loss
    }

    /// What orthonormality makes of each row's own length; adds it and `pulled`, the pull of all pairs, to b's gradient.
    /// Returns the rows' own part of the loss.
    pub(crate) fn own_lengths(
        b: &[f32],
        d: usize,
        weights: Weights,
        ortho: f32,
        pulled: &[f32],
        b_grad: &mut [f32],
    ) -> f64 {
        let Weights { pair, one } = weights;
        let mut loss = 0.0;
        for ((b, pulled), grad) in b.chunks_exact(d).zip(pulled.chunks_exact(d)).zip(b_grad.chunks_exact_mut(d)) {
            let own = dot_product(b, b);
            loss -= f64::from(ortho) * f64::from(own) * (0.5 * f64::from(pair) * f64::from(own) + f64::from(one));
            let back = 2.0 * ortho * own.mul_add(pair, one);
            for ((grad, &pulled), &b) in grad.iter_mut().zip(pulled).zip(b) {
                *grad += pulled.mul_add(pair, -(back * b));
            }
        }
        loss
    }

    /// The orthonormality loss row by row: turns `grad`, which holds `b (b^T b)`, into the gradient, and returns what the rows'
    /// own lengths add to the loss; a row's pair with itself does not count.
    pub(crate) fn ortho_rows(b: &[f32], d: usize, grad: &mut [f32], pair: f32, one: f32) -> f64 {
        let mut loss = 0.0;
        for (grad, b) in grad.chunks_exact_mut(d).zip(b.chunks_exact(d)) {
            let own = dot_product(b, b);
            loss -= f64::from(one) * f64::from(own) + 0.5 * f64::from(pair) * f64::from(own) * f64::from(own);
            for (grad, &b) in grad.iter_mut().zip(b) {
                let pairs = b.mul_add(-own, *grad);
                *grad = 2.0 * (pairs * pair - b * one);
            }
        }
        loss
    }
}
