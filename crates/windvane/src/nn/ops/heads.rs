//! One of several heads per row.

use super::fused::{Fused, dims, rows, tensor, values};
use crate::nn::kernels::gemm::{Mat, MatMut, Start, gemm};
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::rows as kernel;
use crate::nn::kernels::simd::Level;
use burn_flex::FlexTensor;
use std::sync::Arc;

/// `x[i] w[choice[i]] + b[choice[i]]`, inputs `[x, w, b]`. Rows of one choice are gathered, multiplied by their head
/// alone, and put back.
#[derive(Debug)]
pub(super) struct SelectHeads {
    /// Rows of each head, in order.
    pub(super) members: Arc<Vec<Vec<usize>>>,
}

impl SelectHeads {
    /// Sorts rows by the head they chose.
    pub(super) fn new(heads: usize, choice: impl Iterator<Item = usize>) -> Self {
        let mut members = vec![Vec::new(); heads];
        for (row, head) in choice.enumerate() {
            assert!(head < heads, "row {row} chose head {head} of {heads}");
            members[head].push(row);
        }
        Self { members: Arc::new(members) }
    }
}

/// Copies the rows of `x` named by `members`.
fn gather(x: &[f32], width: usize, members: &[usize], to: &mut [f32]) {
    for (to, &row) in to.chunks_exact_mut(width).zip(members) {
        to.copy_from_slice(&x[row * width..(row + 1) * width]);
    }
}

/// The inverse of [`gather`].
fn scatter(from: &[f32], width: usize, members: &[usize], to: &mut [f32]) {
    for (from, &row) in from.chunks_exact(width).zip(members) {
        to[row * width..(row + 1) * width].copy_from_slice(from);
    }
}

impl Fused<3> for SelectHeads {
    /// The rows of x, head by head, and the weights.
    type Saved = (FlexTensor, FlexTensor);

    fn forward(&self, inputs: [FlexTensor; 3], _: [bool; 3]) -> (FlexTensor, Option<Self::Saved>) {
        let [x, w, b] = inputs.map(rows);
        let ([n, i], [_, all]) = (dims(&x), dims(&w));
        let width = all / self.members.len();
        let mut y = Buffer::new(n * width);
        let mut sorted = Buffer::new(n * i); // the rows of x, head by head
        let mut done = 0;
        for (head, members) in self.members.iter().enumerate().filter(|(_, members)| !members.is_empty()) {
            let (from, count) = (head * width, members.len());
            let mine = &mut sorted[done * i..(done + count) * i];
            done += count;
            gather(values(&x), i, members, mine);
            let mut out = Buffer::new(count * width);
            let w = Mat::strided(&values(&w)[from..], i, width, all);
            let start = Start::Bias(&values(&b)[from..from + width]);
            gemm(Level::current(), Mat::new(mine, count, i), w, MatMut::new(&mut out, count, width), start);
            scatter(&out, width, members, &mut y);
        }
        (tensor(y, [n, width]), Some((tensor(sorted, [n, i]), w)))
    }

    fn backward(
        self,
        (sorted, w): Self::Saved,
        grad: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let grad = rows(grad);
        let ([n, i], [_, all], [_, width]) = (dims(&sorted), dims(&w), dims(&grad));
        let mut x_grad = wanted[0].then(|| Buffer::new(n * i));
        // A head nobody chose has no gradient.
        let mut w_grad = wanted[1].then(|| Buffer::zeros(i * all));
        let mut b_grad = wanted[2].then(|| Buffer::zeros(all));
        let (level, mut done) = (Level::current(), 0);
        for (head, members) in self.members.iter().enumerate().filter(|(_, members)| !members.is_empty()) {
            let (from, count) = (head * width, members.len());
            let mut mine = Buffer::new(count * width);
            gather(values(&grad), width, members, &mut mine);
            let grad = Mat::new(&mine, count, width);
            if let Some(x_grad) = &mut x_grad {
                let mut out = Buffer::new(count * i);
                let w = Mat::strided(&values(&w)[from..], i, width, all).t();
                gemm(level, grad, w, MatMut::new(&mut out, count, i), Start::Zero);
                scatter(&out, i, members, x_grad);
            }
            if let Some(w_grad) = &mut w_grad {
                let x = &values(&sorted)[done * i..(done + count) * i];
                let out = MatMut::strided(&mut w_grad[from..], i, width, all);
                gemm(level, Mat::new(x, count, i).t(), grad, out, Start::Zero);
            }
            if let Some(b_grad) = &mut b_grad {
                kernel::add_rows(level, &mine, &mut b_grad[from..from + width]);
            }
            done += count;
        }
        [
            x_grad.map(|buffer| tensor(buffer, [n, i])),
            w_grad.map(|buffer| tensor(buffer, [i, all])),
            b_grad.map(|buffer| tensor(buffer, [1, all])),
        ]
    }
}

/// The head with the largest product with `z`, inputs `[f, z]`.
#[derive(Debug)]
pub(super) struct GreedyHeads;

impl Fused<2> for GreedyHeads {
    type Saved = ();

    fn forward(&self, inputs: [FlexTensor; 2], _: [bool; 2]) -> (FlexTensor, Option<()>) {
        let [f, z] = inputs.map(rows);
        let ([n, all], [_, width]) = (dims(&f), dims(&z));
        let mut out = Buffer::new(n * width);
        kernel::greedy(Level::current(), values(&f), values(&z), all / width, width, &mut out);
        (tensor(out, [n, width]), None)
    }

    fn backward(self, (): (), _: FlexTensor, _: [bool; 2]) -> [Option<FlexTensor>; 2] {
        unreachable!("the greedy head is a constant")
    }
}
