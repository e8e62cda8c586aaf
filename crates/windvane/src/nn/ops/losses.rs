//! The losses: value and gradient of the pair matrix in one pass.

use super::affine::{left_grad, product};
use super::fused::{Fused, dims, number, rows, scalar, scaled, tensor, values};
use crate::nn::kernels::gemm::{Mat, MatMut, Start, gemm};
use crate::nn::kernels::loss::Weights;
use crate::nn::kernels::par::{self, BLOCK};
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::simd::Level;
use crate::nn::kernels::{loss as kernel, rows as row_kernel};
use burn_flex::FlexTensor;

/// The forward-backward loss, inputs `[f, b, target]`.
#[derive(Debug)]
pub(super) struct PairLoss {
    pub(super) discount: f32,
}

/// How far features are from orthonormal, pairs of a row with itself left out; input `[b]`.
#[derive(Debug)]
pub(super) struct OrthoLoss;

impl Fused<3> for PairLoss {
    /// `f`, `b` and the gradient of `M = f b^T`.
    type Saved = (FlexTensor, FlexTensor, FlexTensor);

    fn forward(&self, inputs: [FlexTensor; 3], _: [bool; 3]) -> (FlexTensor, Option<Self::Saved>) {
        let [f, b, target] = inputs.map(rows);
        let ([n, d], [columns, _]) = (dims(&f), dims(&b));
        let mut m = Buffer::new(n * columns); // [n, columns]
        gemm(
            Level::current(),
            Mat::new(values(&f), n, d),
            Mat::new(values(&b), columns, d).t(),
            MatMut::new(&mut m, n, columns),
            Start::Zero,
        );
        let Weights { pair, one } = Weights::of_batch(n);
        // Each row's loss, summed in double precision and in order below.
        let mut losses = vec![0.0_f64; n];
        let target = values(&target);
        par::chunks2(&mut m, &mut losses, [BLOCK * columns, BLOCK], |block, m, losses| {
            for (i, (m, loss)) in m.chunks_exact_mut(columns).zip(losses).enumerate() {
                let row = block * BLOCK + i;
                let reached = f64::from(m[row]);
                let target = &target[row * columns..(row + 1) * columns];
                let gaps = kernel::gap_row(Level::current(), m, target, pair, self.discount, row);
                m[row] = -one;
                *loss = f64::from(gaps) - reached * f64::from(one);
            }
        });
        let loss = losses.iter().sum::<f64>();
        (scalar(loss as f32), Some((f, b, tensor(m, [n, columns]))))
    }

    fn backward(
        self,
        (f, b, m): Self::Saved,
        grad: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        assert!(!wanted[2], "the target of the pair loss is a constant");
        let scale = number(&grad);
        let ([n, columns], d) = (dims(&m), dims(&f)[1]);
        let f_grad = wanted[0].then(|| {
            let mut out = Buffer::new(n * d);
            product(&m, &b, &mut out, Start::Zero);
            scaled(tensor(out, [n, d]), scale)
        });
        let b_grad = wanted[1].then(|| {
            let mut out = Buffer::new(columns * d);
            let (m, f) = (Mat::new(values(&m), n, columns).t(), Mat::new(values(&f), n, d));
            gemm(Level::current(), m, f, MatMut::new(&mut out, columns, d), Start::Zero);
            scaled(tensor(out, [columns, d]), scale)
        });
        [f_grad, b_grad, None]
    }
}

impl Fused<1> for OrthoLoss {
    /// The gradient.
    type Saved = FlexTensor;

    fn forward(&self, inputs: [FlexTensor; 1], _: [bool; 1]) -> (FlexTensor, Option<FlexTensor>) {
        // The sum over all pairs of rows of (b_i . b_j)^2 is the squared norm of b^T b, which is d x d instead of n x n.
        let [b] = inputs.map(rows);
        let ([n, d], level) = (dims(&b), Level::current());
        let Weights { pair, one } = Weights::of_batch(n);
        let mut gram = Buffer::new(d * d); // [d, d]
        let rows = Mat::new(values(&b), n, d);
        gemm(level, rows.t(), rows, MatMut::new(&mut gram, d, d), Start::Zero);
        let mut grad = Buffer::new(n * d); // b (b^T b)
        gemm(level, rows, Mat::new(&gram, d, d), MatMut::new(&mut grad, n, d), Start::Zero);
        let mut loss = 0.5 * f64::from(pair) * row_kernel::square_sum(level, &gram);
        loss += kernel::ortho_rows(level, values(&b), d, &mut grad, pair, one);
        (scalar(loss as f32), Some(tensor(grad, [n, d])))
    }

    fn backward(self, saved: FlexTensor, grad: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        [Some(scaled(saved, number(&grad)))]
    }
}

/// `a b^T`, inputs `[a, b]`.
#[derive(Debug)]
pub(super) struct Products;

impl Fused<2> for Products {
    type Saved = (FlexTensor, FlexTensor);

    fn forward(&self, inputs: [FlexTensor; 2], _: [bool; 2]) -> (FlexTensor, Option<Self::Saved>) {
        let [a, b] = inputs.map(rows);
        (left_grad(&a, &b), Some((a, b)))
    }

    fn backward(self, (a, b): Self::Saved, grad: FlexTensor, wanted: [bool; 2]) -> [Option<FlexTensor>; 2] {
        let grad = rows(grad);
        let ([n, columns], [_, d]) = (dims(&grad), dims(&a));
        let a_grad = wanted[0].then(|| {
            let mut out = Buffer::new(n * d);
            product(&grad, &b, &mut out, Start::Zero);
            tensor(out, [n, d])
        });
        let b_grad = wanted[1].then(|| super::affine::right_grad(&grad, &a));
        debug_assert!(b_grad.as_ref().is_none_or(|g| dims(g) == [columns, d]));
        [a_grad, b_grad]
    }
}
