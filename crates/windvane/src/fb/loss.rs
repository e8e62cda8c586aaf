//! The losses of F and B: pure functions of tensors.

use crate::nn::ops;
use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;

/// Values below this share of the largest count as 0 on the log scale.
const LOG_FLOOR: f64 = 1e-3;
/// Targets below this share of the largest are too small to tell.
const SMALLEST_TARGET: f64 = 2e-4;
/// Temperature of the softmax over actions of log-scale values.
const GAP_TEMPERATURE: f64 = 0.1;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[LOG_FLOOR, SMALLEST_TARGET, GAP_TEMPERATURE];

/// Values on a log scale that keeps the sign: `asinh(v / 1e-3)`.
fn log_scale<const D: usize>(v: Tensor<D>) -> Tensor<D> {
    ops::asinh(v / LOG_FLOOR)
}

/// The weighted mean of `x` under `weights` of the same shape.
pub(crate) fn weighted_mean<const D: usize>(x: Tensor<D>, weights: Tensor<D>) -> Tensor<1> {
    (x * weights.clone()).sum() / weights.sum().clamp_min(1e-6)
}

/// Smooth L1 of log-scale values against their targets, where those are large enough to tell. All `[rows, 1]`.
pub(crate) fn log_value(value: Tensor<2>, target: Tensor<2>, weights: Tensor<2>) -> Tensor<1> {
    let tells = target.clone().abs().greater_elem(SMALLEST_TARGET).float();
    let off = (log_scale(value) - log_scale(target)).abs();
    let near = off.clone().lower_elem(1.0).float();
    let loss = off.clone().powf_scalar(2.0) * 0.5 * near.clone() + (off - 0.5) * (near * -1.0 + 1.0);
    weighted_mean(loss, weights * tells)
}

/// KL divergence between the softmax over actions of log-scale target values and of log-scale values, `[rows, actions]` each,
/// weighted by `weights [rows, 1]`.
pub(crate) fn action_gap(q: Tensor<2>, target: Tensor<2>, weights: Tensor<2>) -> Tensor<1> {
    let log_target = log_softmax(log_scale(target) / GAP_TEMPERATURE, 1);
    let log_q = log_softmax(log_scale(q) / GAP_TEMPERATURE, 1);
    let kl = (log_target.clone().exp() * (log_target - log_q)).sum_dim(1); // [rows, 1]
    weighted_mean(kl, weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{read, read_scalar, upload};
    use burn::tensor::Device;

    #[test]
    fn the_log_scale_is_asinh() {
        let x = [-1.0, -1e-4, 0.0, 2e-3, 0.7];
        let got = read(log_scale(upload::<2>(x.to_vec(), [1, 5], &Device::flex())));
        for (got, x) in got.iter().zip(x) {
            assert!((got - (x / 1e-3_f32).asinh()).abs() < 2e-4, "{got} for {x}");
        }
    }

    #[test]
    fn a_far_goal_counts_as_much_as_a_near_one() {
        let device = Device::flex();
        let one = |v: f32| upload::<2>(vec![v], [1, 1], &device);
        let loss = |v: f32| read_scalar(&log_value(one(v * 1.5), one(v), one(1.0)));
        assert!((loss(0.8) / loss(0.02) - 1.0).abs() < 0.01);
    }

    #[test]
    fn equal_preferences_have_no_gap_and_swapped_ones_a_large_one() {
        let device = Device::flex();
        let row = |v: [f32; 2]| upload::<2>(v.to_vec(), [1, 2], &device);
        let gap = |a, b| read_scalar(&action_gap(row(a), row(b), upload(vec![1.0], [1, 1], &device)));
        assert!(gap([0.5, 0.4], [0.05, 0.04]).abs() < 1e-3, "only ratios matter");
        assert!(gap([0.04, 0.05], [0.05, 0.04]) > 1.0);
    }
}
