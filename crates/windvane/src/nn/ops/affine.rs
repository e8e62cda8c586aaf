//! Linear maps with their activation: of one input, of two, and of two where the second belongs to a group of rows.

use super::fused::{Fused, dims, own, rows, tensor, values};
use super::{Act, Items};
use crate::nn::kernels::gemm::{Mat, MatMut, Start, gemm, gemm_act};
use crate::nn::kernels::par::{self, BLOCK};
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::rows as kernel;
use crate::nn::kernels::simd::Level;
use burn_flex::FlexTensor;

/// `act(x w + b)`, inputs `[x, w, b]`.
#[derive(Debug)]
pub(super) struct Linear(pub(super) Act);

/// `onto + x w + b`, inputs `[x, w, b, onto]`.
#[derive(Debug)]
pub(super) struct LinearOnto;

/// `act(x1 w1 + x2 w2 + b)`, inputs `[x1, w1, x2, w2, b]`.
#[derive(Debug)]
pub(super) struct CatLinear(pub(super) Act);

/// `act(x wx + group wc + b)`, inputs `[x, wx, group, wc, b]`.
#[derive(Debug)]
pub(super) struct GroupedLinear(pub(super) Act, pub(super) Items);

/// What an activation's way back needs: GELU's slope, the output of the others, nothing without one.
type Saved<const N: usize> = ([Option<FlexTensor>; N], Option<FlexTensor>);

impl Fused<3> for Linear {
    type Saved = Saved<2>;

    fn forward(&self, inputs: [FlexTensor; 3], wanted: [bool; 3]) -> (FlexTensor, Option<Saved<2>>) {
        let [x, w, b] = inputs.map(rows);
        let y = Buffer::new(dims(&x)[0] * dims(&w)[1]);
        let (y, slope) = activated(self.0, &x, &w, y, Start::Bias(values(&b)), wanted.contains(&true));
        let saved = [wanted[1].then_some(x), wanted[0].then_some(w)];
        (y, Some((saved, slope)))
    }

    fn backward(
        self,
        ([x, w], slope): Saved<2>,
        grad: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let (grad, sums) = activate_backward(self.0, grad, slope.as_ref(), wanted[2]);
        [w.map(|w| left_grad(&grad, &w)), x.map(|x| right_grad(&x, &grad)), sums]
    }
}

impl Fused<4> for LinearOnto {
    type Saved = [Option<FlexTensor>; 2];

    fn forward(&self, inputs: [FlexTensor; 4], wanted: [bool; 4]) -> (FlexTensor, Option<Self::Saved>) {
        let [x, w, b, onto] = inputs.map(rows);
        let shape = dims(&onto);
        let mut y = Buffer::new(shape[0] * shape[1]);
        product(&x, &w, &mut y, Start::Bias(values(&b)));
        let (block, onto) = (BLOCK * shape[1], values(&onto));
        par::chunks(&mut y, block, |i, y| {
            kernel::add(Level::current(), y, &onto[i * block..i * block + y.len()]);
        });
        (tensor(y, shape), Some([wanted[1].then_some(x), wanted[0].then_some(w)]))
    }

    fn backward(self, [x, w]: Self::Saved, grad: FlexTensor, wanted: [bool; 4]) -> [Option<FlexTensor>; 4] {
        let (grad, sums) = activate_backward(Act::None, grad, None, wanted[2]);
        let (x_grad, w_grad) = (w.map(|w| left_grad(&grad, &w)), x.map(|x| right_grad(&x, &grad)));
        [x_grad, w_grad, sums, wanted[3].then_some(grad)]
    }
}

impl Fused<5> for CatLinear {
    type Saved = Saved<4>;

    fn forward(&self, inputs: [FlexTensor; 5], wanted: [bool; 5]) -> (FlexTensor, Option<Saved<4>>) {
        let [x1, w1, x2, w2, b] = inputs.map(rows);
        let shape = [dims(&x1)[0], dims(&w1)[1]];
        let mut y = Buffer::new(shape[0] * shape[1]);
        product(&x1, &w1, &mut y, Start::Bias(values(&b)));
        let (y, slope) = activated(self.0, &x2, &w2, y, Start::Add, wanted.contains(&true));
        let keep = |other: usize, x: FlexTensor| wanted[other].then_some(x);
        (y, Some(([keep(1, x1), keep(0, w1), keep(3, x2), keep(2, w2)], slope)))
    }

    fn backward(
        self,
        (saved, slope): Saved<4>,
        grad: FlexTensor,
        wanted: [bool; 5],
    ) -> [Option<FlexTensor>; 5] {
        let (grad, sums) = activate_backward(self.0, grad, slope.as_ref(), wanted[4]);
        let [x1, w1, x2, w2] = saved;
        let left = |w: Option<FlexTensor>| w.map(|w| left_grad(&grad, &w));
        let right = |x: Option<FlexTensor>| x.map(|x| right_grad(&x, &grad));
        [left(w1), right(x1), left(w2), right(x2), sums]
    }
}

impl Fused<5> for GroupedLinear {
    /// Also the number of groups, and of items in each.
    type Saved = (Saved<4>, [usize; 2]);

    fn forward(&self, inputs: [FlexTensor; 5], wanted: [bool; 5]) -> (FlexTensor, Option<Self::Saved>) {
        let [x, wx, group, wc, b] = inputs.map(rows);
        let ([count, _], [groups, _], width) = (dims(&x), dims(&group), dims(&wx)[1]);
        let items = match self.1 {
            Items::Shared => count,
            Items::PerGroup => count / groups.max(1),
        };
        let mut common = Buffer::new(groups * width); // [groups, width]
        product(&group, &wc, &mut common, Start::Bias(values(&b)));
        let mut y = Buffer::new(groups * items * width);
        spread(&common, &mut y, items, width);
        let (y, slope) = match self.1 {
            Items::PerGroup => activated(self.0, &x, &wx, y, Start::Add, wanted.contains(&true)),
            Items::Shared => {
                let mut own = Buffer::new(items * width);
                product(&x, &wx, &mut own, Start::Zero);
                par::chunks(&mut y, items * width, |_, y| kernel::add(Level::current(), y, &own));
                activate(self.0, y, [groups * items, width], wanted.contains(&true))
            }
        };
        let keep = |other: usize, x: FlexTensor| wanted[other].then_some(x);
        (y, Some((([keep(1, x), keep(0, wx), keep(3, group), keep(2, wc)], slope), [groups, items])))
    }

    fn backward(self, saved: Self::Saved, grad: FlexTensor, wanted: [bool; 5]) -> [Option<FlexTensor>; 5] {
        let (([x, wx, group, wc], slope), [groups, items]) = saved;
        let (grad, _) = activate_backward(self.0, grad, slope.as_ref(), false);
        let width = dims(&grad)[1];
        let mut common = Buffer::zeros(groups * width); // each group's sum over its items
        let all = values(&grad);
        par::chunks(&mut common, width, |g, sum| {
            kernel::add_rows(Level::current(), &all[g * items * width..(g + 1) * items * width], sum);
        });
        let sums = wanted[4].then(|| {
            let mut sums = Buffer::zeros(width);
            kernel::add_rows(Level::current(), &common, &mut sums);
            tensor(sums, [1, width])
        });
        let own = match self.1 {
            Items::PerGroup => grad,
            Items::Shared => {
                let mut own = Buffer::zeros(items * width); // each item's sum over the groups
                par::chunks(&mut own, BLOCK * width, |block, own| {
                    for g in 0..groups {
                        let from = (g * items + block * BLOCK) * width;
                        kernel::add(Level::current(), own, &all[from..from + own.len()]);
                    }
                });
                tensor(own, [items, width])
            }
        };
        let common = tensor(common, [groups, width]);
        [
            wx.map(|w| left_grad(&own, &w)),
            x.map(|x| right_grad(&x, &own)),
            wc.map(|w| left_grad(&common, &w)),
            group.map(|x| right_grad(&x, &common)),
            sums,
        ]
    }
}

/// Copies each row of `common` to the `items` rows of its group.
fn spread(common: &[f32], y: &mut [f32], items: usize, width: usize) {
    par::chunks(y, items * width, |g, y| {
        for row in y.chunks_exact_mut(width) {
            row.copy_from_slice(&common[g * width..(g + 1) * width]);
        }
    });
}

/// `y = x w`, from where `start` says.
pub(super) fn product(x: &FlexTensor, w: &FlexTensor, y: &mut [f32], start: Start<'_>) {
    let ([n, i], [_, o]) = (dims(x), dims(w));
    gemm(Level::current(), Mat::new(values(x), n, i), Mat::new(values(w), i, o), MatMut::new(y, n, o), start);
}

/// `act(x w)`, from where `start` says, and what the activation's way back needs.
fn activated(
    act: Act,
    x: &FlexTensor,
    w: &FlexTensor,
    mut y: Buffer,
    start: Start<'_>,
    wanted: bool,
) -> (FlexTensor, Option<FlexTensor>) {
    let ([n, i], [_, o]) = (dims(x), dims(w));
    let mut slope = (wanted && act == Act::Gelu).then(|| Buffer::new(n * o));
    let (x, w) = (Mat::new(values(x), n, i), Mat::new(values(w), i, o));
    gemm_act(Level::current(), x, w, MatMut::new(&mut y, n, o), start, act, slope.as_deref_mut());
    let y = tensor(y, [n, o]);
    let saved = match act {
        Act::None => None,
        Act::Gelu => slope.map(|slope| tensor(slope, [n, o])),
        Act::Relu | Act::Tanh => wanted.then(|| y.clone()),
    };
    (y, saved)
}

/// `grad w^T`: the gradient of the left matrix of a product.
pub(super) fn left_grad(grad: &FlexTensor, w: &FlexTensor) -> FlexTensor {
    let ([n, o], [i, _]) = (dims(grad), dims(w));
    let mut out = Buffer::new(n * i);
    let (grad, w) = (Mat::new(values(grad), n, o), Mat::new(values(w), i, o).t());
    gemm(Level::current(), grad, w, MatMut::new(&mut out, n, i), Start::Zero);
    tensor(out, [n, i])
}

/// `x^T grad`: the gradient of the right matrix of a product.
pub(super) fn right_grad(x: &FlexTensor, grad: &FlexTensor) -> FlexTensor {
    let ([n, i], [_, o]) = (dims(x), dims(grad));
    let mut out = Buffer::new(i * o);
    let (x, grad) = (Mat::new(values(x), n, i).t(), Mat::new(values(grad), n, o));
    gemm(Level::current(), x, grad, MatMut::new(&mut out, i, o), Start::Zero);
    tensor(out, [i, o])
}

/// Applies the activation, and keeps what its way back needs.
pub(super) fn activate(
    act: Act,
    mut y: Buffer,
    shape: [usize; 2],
    wanted: bool,
) -> (FlexTensor, Option<FlexTensor>) {
    let block = BLOCK * shape[1];
    if wanted && act == Act::Gelu {
        let mut slope = Buffer::new(y.len());
        par::chunks2(&mut y, &mut slope, [block; 2], |_, y, slope| {
            kernel::gelu_with_slope(Level::current(), y, slope);
        });
        return (tensor(y, shape), Some(tensor(slope, shape)));
    }
    par::chunks(&mut y, block, |_, y| kernel::activate(Level::current(), act, y));
    let y = tensor(y, shape);
    let saved = (wanted && act != Act::None).then(|| y.clone());
    (y, saved)
}

/// The gradient of the activation's input, and its sum over rows where it is wanted.
pub(super) fn activate_backward(
    act: Act,
    grad: FlexTensor,
    saved: Option<&FlexTensor>,
    sum: bool,
) -> (FlexTensor, Option<FlexTensor>) {
    let [n, width] = dims(&grad);
    let block = BLOCK * width;
    let Some(saved) = saved else {
        let grad = rows(grad);
        let sums = sum.then(|| tensor(column_sums(values(&grad), n, width), [1, width]));
        return (grad, sums);
    };
    let mut grad = own(grad);
    let saved = values(saved);
    let mut partial = Buffer::zeros(if sum { n.div_ceil(BLOCK) * width } else { n.div_ceil(BLOCK) });
    let step = [block, if sum { width } else { 1 }];
    par::chunks2(grad.storage_mut(), &mut partial, step, |i, grad, partial| {
        kernel::activate_backward(Level::current(), act, grad, &saved[i * block..i * block + grad.len()]);
        if sum {
            kernel::add_rows(Level::current(), grad, partial);
        }
    });
    let sums = sum.then(|| tensor(folded(&partial, width), [1, width]));
    (grad, sums)
}

/// The sum of all rows: block by block, then the blocks in order.
pub(super) fn column_sums(x: &[f32], n: usize, width: usize) -> Buffer {
    let blocks = n.div_ceil(BLOCK);
    let mut partial = Buffer::zeros(blocks * width);
    let block = BLOCK * width;
    par::chunks(&mut partial, width, |i, sum| {
        kernel::add_rows(Level::current(), &x[i * block..x.len().min((i + 1) * block)], sum);
    });
    folded(&partial, width)
}

/// The sum of the blocks' sums.
fn folded(partial: &[f32], width: usize) -> Buffer {
    let mut sums = Buffer::zeros(width);
    kernel::add_rows(Level::current(), partial, &mut sums);
    sums
}
