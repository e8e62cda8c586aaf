//! Loops over elements and rows, compiled once for each instruction set.
//!
//! Sums along a row run in 32 lanes whatever the machine's registers hold, and the lanes are folded in a fixed order: the
//! same bits everywhere.
#![allow(unsafe_code, clippy::inline_always)]

use super::math;
use super::simd::{Level, per_level};
use crate::nn::Act;
use crate::nn::ops::adam::AdamStep;

/// Lanes of a sum: two of the widest registers, so that one addition does not wait for the last.
pub(super) const LANES: usize = 32;
/// Variance floor of layer normalisation, as in `PyTorch`.
pub(crate) const LAYER_NORM_EPSILON: f32 = 1e-5;

/// Joins the lanes, halves upon halves.
#[inline(always)]
pub(super) fn fold<const N: usize>(mut lanes: [f32; N], join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = join(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The sum of the lanes.
#[inline(always)]
pub(super) fn sum<const N: usize>(lanes: [f32; N]) -> f32 {
    fold(lanes, |a, b| a + b)
}

/// `sum f(x, y)` in lanes.
#[inline(always)]
fn sum2(x: &[f32], y: &[f32], f: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for i in 0..LANES {
            lanes[i] = f(x[i], y[i], lanes[i]);
        }
    }
    for (lane, (&x, &y)) in lanes.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *lane = f(x, y, *lane);
    }
    sum(lanes)
}

#[inline(always)]
pub(super) fn dot_product(x: &[f32], y: &[f32]) -> f32 {
    sum2(x, y, f32::mul_add)
}

/// One row's way back through layer normalisation as far as it goes element by element: multiplies the gradient by the gain,
/// adds to the gradients of gain and shift, and returns the sums of `normal * grad` and of `grad`.
#[inline(always)]
fn norm_sums([x, gain]: [&[f32]; 2], [mean, scale]: [f32; 2], grads: [&mut [f32]; 3]) -> (f32, f32) {
    let (mut along, mut common) = ([0.0; LANES], [0.0; LANES]);
    let mut element = |i: usize, x: f32, gain: f32, [grad, gain_grad, shift_grad]: [&mut f32; 3]| {
        let normal = (x - mean) * scale;
        *gain_grad = normal.mul_add(*grad, *gain_grad);
        *shift_grad += *grad;
        *grad *= gain;
        along[i] = normal.mul_add(*grad, along[i]);
        common[i] += *grad;
    };
    let ([x, gain], [(grad, grad_rest), (gain_grad, gain_rest), (shift_grad, shift_rest)]) =
        ([x, gain].map(<[f32]>::as_chunks::<LANES>), grads.map(<[f32]>::as_chunks_mut::<LANES>));
    for ((((x, gain), grad), gain_grad), shift_grad) in
        x.0.iter().zip(gain.0).zip(grad).zip(gain_grad).zip(shift_grad)
    {
        for i in 0..LANES {
            element(i, x[i], gain[i], [&mut grad[i], &mut gain_grad[i], &mut shift_grad[i]]);
        }
    }
    for i in 0..x.1.len() {
        element(i, x.1[i], gain.1[i], [&mut grad_rest[i], &mut gain_rest[i], &mut shift_rest[i]]);
    }
    (sum(along), sum(common))
}

per_level! {
    /// `y = act(y)`.
    pub(crate) fn activate(act: Act, y: &mut [f32]) {
        match act {
            Act::None => {}
            Act::Relu => y.iter_mut().for_each(|y| *y = y.max(0.0)),
            Act::Gelu => y.iter_mut().for_each(|y| *y = math::gelu(*y)),
            Act::Tanh => y.iter_mut().for_each(|y| *y = math::tanh(*y)),
        }
    }

    /// `y = gelu(y)`, with its slope.
    pub(crate) fn gelu_with_slope(y: &mut [f32], slope: &mut [f32]) {
        for (y, slope) in y.iter_mut().zip(slope) {
            (*y, *slope) = math::gelu_slope(*y);
        }
    }

    /// Turns the gradient of an activation's output into that of its input. `saved` is the slope for GELU and the output for
    /// the others.
    pub(crate) fn activate_backward(act: Act, grad: &mut [f32], saved: &[f32]) {
        match act {
            Act::None => {}
            Act::Relu => grad.iter_mut().zip(saved).for_each(|(g, &y)| *g = if y > 0.0 { *g } else { 0.0 }),
            Act::Gelu => grad.iter_mut().zip(saved).for_each(|(g, &slope)| *g *= slope),
            Act::Tanh => grad.iter_mut().zip(saved).for_each(|(g, &y)| *g *= y.mul_add(-y, 1.0)),
        }
    }

    /// Adds every row of `x` to `sums`, in order.
    pub(crate) fn add_rows(x: &[f32], sums: &mut [f32]) {
        for row in x.chunks_exact(sums.len()) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
    }

    /// `y += x`.
    pub(crate) fn add(y: &mut [f32], x: &[f32]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
    }

    /// The sum of products, each run of 4096 elements in single precision and the runs in double.
    pub(crate) fn sum_of_products(x: &[f32], y: &[f32]) -> f64 {
        let mut sum = 0.0;
        for (x, y) in x.chunks(4096).zip(y.chunks(4096)) {
            sum += f64::from(dot_product(x, y));
        }
        sum
    }

    /// Layer normalisation of rows as wide as `gain`, without its activation: `y = (x - mean) / deviation * gain + shift`.
    /// `stats` gets each row's mean and one over its deviation.
    pub(crate) fn layer_norm(x: &[f32], gain: &[f32], shift: &[f32], y: &mut [f32], stats: &mut [[f32; 2]]) {
        let n = gain.len();
        for ((x, y), stats) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)).zip(stats) {
            let mean = sum2(x, x, |x, _, sum| sum + x) / n as f32;
            let variance = sum2(x, x, |x, _, sum| (x - mean).mul_add(x - mean, sum)) / n as f32;
            let scale = 1.0 / (variance + LAYER_NORM_EPSILON).sqrt();
            for (((y, &x), &gain), &shift) in y.iter_mut().zip(x).zip(gain).zip(shift) {
                *y = ((x - mean) * scale).mul_add(gain, shift);
            }
            *stats = [mean, scale];
        }
    }

    /// The way back through [`layer_norm`]: turns `grad` from the output's into the input's and adds to the gradients of
    /// gain and shift.
    pub(crate) fn layer_norm_backward(
        x: &[f32],
        gain: &[f32],
        stats: &[[f32; 2]],
        grad: &mut [f32],
        gain_grad: &mut [f32],
        shift_grad: &mut [f32],
    ) {
        let n = gain.len();
        for ((x, grad), &[mean, scale]) in x.chunks_exact(n).zip(grad.chunks_exact_mut(n)).zip(stats) {
            let (along, common) = norm_sums([x, gain], [mean, scale], [grad, gain_grad, shift_grad]);
            let (along, common) = (along / n as f32, common / n as f32);
            for (grad, &x) in grad.iter_mut().zip(x) {
                let normal = (x - mean) * scale;
                *grad = (normal.mul_add(-along, *grad - common)) * scale;
            }
        }
    }

    /// Copies, for each row, the one of `heads` heads of `d` elements that has the largest product with the row of `z`.
    pub(crate) fn greedy(f: &[f32], z: &[f32], heads: usize, d: usize, out: &mut [f32]) {
        for ((f, z), out) in f.chunks_exact(heads * d).zip(z.chunks_exact(d)).zip(out.chunks_exact_mut(d)) {
            let (mut best, mut top) = (0, f32::NEG_INFINITY);
            for (head, f) in f.chunks_exact(d).enumerate() {
                let along = dot_product(f, z);
                if along > top {
                    (best, top) = (head, along);
                }
            }
            out.copy_from_slice(&f[best * d..(best + 1) * d]);
        }
    }

    /// Adam on one run of elements; returns the sum of squares of the gradient.
    pub(crate) fn adam(value: &mut [f32], mean: &mut [f32], square: &mut [f32], grad: &[f32], shrink: f32, step: AdamStep) -> f64 {
        let (new1, new2) = (1.0 - step.beta1, 1.0 - step.beta2);
        let mut squares = [0.0; LANES];
        let mut element = |i: usize, [value, mean, square]: [&mut f32; 3], grad: f32| {
            squares[i] = grad.mul_add(grad, squares[i]);
            let grad = grad * shrink;
            *mean = mean.mul_add(step.beta1, grad * new1);
            *square = square.mul_add(step.beta2, grad * grad * new2);
            let divisor = square.sqrt().mul_add(step.root, step.epsilon);
            *value = value.mul_add(step.keep, -(*mean / divisor * step.rate));
        };
        let [(value, value_rest), (mean, mean_rest), (square, square_rest)] =
            [value, mean, square].map(<[f32]>::as_chunks_mut::<LANES>);
        let (grad, grad_rest) = grad.as_chunks::<LANES>();
        for (((value, mean), square), grad) in value.iter_mut().zip(mean).zip(square).zip(grad) {
            for i in 0..LANES {
                element(i, [&mut value[i], &mut mean[i], &mut square[i]], grad[i]);
            }
        }
        for (i, &grad) in grad_rest.iter().enumerate() {
            element(i, [&mut value_rest[i], &mut mean_rest[i], &mut square_rest[i]], grad);
        }
        f64::from(sum(squares))
    }

    /// Moves `target` a share of the way to `value`.
    pub(crate) fn follow(target: &mut [f32], value: &[f32], tau: f32) {
        target.iter_mut().zip(value).for_each(|(target, &value)| *target = (value - *target).mul_add(tau, *target));
    }

    /// Scales rows of `n` elements to length `radius`; `norms` gets the lengths they had, but at least `smallest`.
    pub(crate) fn sphere(x: &[f32], n: usize, radius: f32, smallest: f32, y: &mut [f32], norms: &mut [f32]) {
        for ((x, y), norm) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)).zip(norms) {
            *norm = dot_product(x, x).sqrt().max(smallest);
            let scale = radius / *norm;
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * scale);
        }
    }

    /// The way back through [`sphere`]: only what is across `y` counts, unless the row was too short to be scaled.
    pub(crate) fn sphere_backward(y: &[f32], n: usize, radius: f32, smallest: f32, norms: &[f32], grad: &mut [f32]) {
        for ((y, grad), &norm) in y.chunks_exact(n).zip(grad.chunks_exact_mut(n)).zip(norms) {
            let along = if norm > smallest { dot_product(y, grad) / (radius * radius) } else { 0.0 };
            let scale = radius / norm;
            grad.iter_mut().zip(y).for_each(|(g, &y)| *g = y.mul_add(-along, *g) * scale);
        }
    }
}

/// The sum of squares, as in [`sum_of_products`].
pub(crate) fn square_sum(level: Level, x: &[f32]) -> f64 {
    sum_of_products(level, x, x)
}
