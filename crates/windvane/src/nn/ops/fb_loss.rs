//! The whole loss of a forward-backward step, without ever forming a batch x batch matrix.
//!
//! With `M_i = F_i B^T` and a target `T = TF TB^T` of rank d, every sum over pairs of rows is a product of d x d matrices:
//! `sum (M - T)^2 = <F'F, B'B> - 2 <TF'F, TB'B> + <TF'TF, TB'TB>`, and its gradient by F is `F (B'B) - TF (TB'B)`. That is
//! n d^2 work instead of n^2 d.

use super::fused::{self, Fused, dims, number, rows, scalar, scaled, tensor, values};
use crate::nn::kernels::gemm::{Mat, MatMut, Start, gemm};
use crate::nn::kernels::loss::{self as kernel, Weights};
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::rows::{self as row_kernel, sum_of_products};
use crate::nn::kernels::simd::Level;
use burn_flex::FlexTensor;

/// Inputs `[f0, f1, b, target_f, target_b]`.
#[derive(Debug)]
pub(super) struct FbLoss {
    pub(super) discount: f32,
    /// Weight of orthonormality.
    pub(super) ortho: f32,
}

/// `a^T b`, `[d, d]`.
fn gram(a: &[f32], b: &[f32], [n, d]: [usize; 2]) -> Buffer {
    let mut out = Buffer::new(d * d);
    let (a, b) = (Mat::new(a, n, d).t(), Mat::new(b, n, d));
    gemm(Level::current(), a, b, MatMut::new(&mut out, d, d), Start::Zero);
    out
}

/// `x g`, `[n, d]`, added to what `out` holds or not.
fn times(x: &[f32], g: &[f32], [n, d]: [usize; 2], start: Start<'_>, out: &mut [f32]) {
    gemm(Level::current(), Mat::new(x, n, d), Mat::new(g, d, d), MatMut::new(out, n, d), start);
}

impl Fused<5> for FbLoss {
    /// The gradients of `f0`, `f1` and `b`.
    type Saved = [FlexTensor; 3];

    fn forward(&self, inputs: [FlexTensor; 5], _: [bool; 5]) -> (FlexTensor, Option<Self::Saved>) {
        let [f0, f1, b, target_f, target_b] = inputs.map(rows);
        let (shape, level) = (dims(&b), Level::current());
        let [n, d] = shape;
        let weights = Weights::of_batch(n);
        let (b, target_b) = (values(&b), values(&target_b));
        let mut target_f = fused::copy(target_f);
        let target_f: &mut [f32] = target_f.storage_mut();
        target_f.iter_mut().for_each(|x| *x *= self.discount); // the discount belongs to the target
        let (bb, tb) = (gram(b, b, shape), gram(target_b, b, shape));
        let (tf_tf, tb_tb) = (gram(target_f, target_f, shape), gram(target_b, target_b, shape));
        let mut pulled = Buffer::new(n * d); // target_f (target_b' b), the same for both nets
        times(target_f, &tb, shape, Start::Zero, &mut pulled);
        // What all pairs pull b to: b (f' f + 2 ortho b' b) - target_b (target_f' f), summed over the nets.
        let (mut toward, mut away) = (Buffer::zeros(d * d), Buffer::zeros(d * d));
        toward.iter_mut().zip(bb.iter()).for_each(|(x, bb)| *x = 2.0 * self.ortho * bb);
        let (mut squares, mut own) = (2.0 * sum_of_products(level, &tf_tf, &tb_tb), 0.0);
        let mut b_grad = Buffer::zeros(n * d);
        let [f0, f1] = [f0, f1].map(|f| {
            let f = values(&f);
            let (ff, tf) = (gram(f, f, shape), gram(target_f, f, shape));
            squares += sum_of_products(level, &ff, &bb) - 2.0 * sum_of_products(level, &tf, &tb);
            toward.iter_mut().zip(ff.iter()).for_each(|(x, ff)| *x += ff);
            away.iter_mut().zip(tf.iter()).for_each(|(x, tf)| *x -= tf);
            let mut grad = Buffer::new(n * d);
            times(f, &bb, shape, Start::Zero, &mut grad);
            let rows = [f, b, target_f, target_b];
            own += kernel::own_pairs(level, rows, d, weights, &pulled, &mut grad, &mut b_grad);
            tensor(grad, shape)
        });
        times(b, &toward, shape, Start::Zero, &mut pulled);
        times(target_b, &away, shape, Start::Add, &mut pulled);
        own += kernel::own_lengths(level, b, d, weights, self.ortho, &pulled, &mut b_grad);
        squares += f64::from(self.ortho) * row_kernel::square_sum(level, &bb);
        let loss = 0.5 * f64::from(weights.pair) * squares + own;
        (scalar(loss as f32), Some([f0, f1, tensor(b_grad, shape)]))
    }

    fn backward(self, saved: Self::Saved, grad: FlexTensor, wanted: [bool; 5]) -> [Option<FlexTensor>; 5] {
        assert!(!wanted[3] && !wanted[4], "the target of the loss is a constant");
        let scale = number(&grad);
        let mut wanted = wanted.into_iter();
        let [f0, f1, b] = saved.map(|saved| (wanted.next() == Some(true)).then(|| scaled(saved, scale)));
        [f0, f1, b, None, None]
    }
}
