//! One matrix's Muon and Polyak update.

use super::adam::{Shrink, Squares};
use super::fused;
use crate::nn::kernels::muon::{self as kernel, FACTORS, SMALLEST};
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::rows::{follow, square_sum};
use crate::nn::kernels::simd::Level;
use burn::backend::Flex;
use burn::tensor::Tensor;

/// The numbers of one update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MuonStep {
    /// Memory of past gradients.
    pub(crate) momentum: f32,
    /// Iterations of Newton and Schulz.
    pub(crate) iterations: u32,
    /// Learning rate times what the matrix's shape asks for.
    pub(crate) rate: f32,
    /// What decoupled decay leaves of the value.
    pub(crate) keep: f32,
    /// The target's share of the way.
    pub(crate) tau: f32,
}

/// Updates value, memory and target, in place where nobody else holds them. Returns the sum of squares of the gradient.
pub(crate) fn muon_update(
    value: &mut Tensor<2>,
    memory: &mut Tensor<2>,
    target: Option<&mut Tensor<2>>,
    grad: Tensor<2>,
    shrink: &Shrink,
    step: MuonStep,
) -> Squares {
    if !fused::applies(value) {
        let squares = Squares::of(&grad);
        composed(value, memory, target, shrink.apply(grad), step);
        return squares;
    }
    let (level, grad) = (Level::current(), fused::rows(fused::primitive(grad)));
    let (shape, grad) = (fused::dims(&grad), fused::values(&grad));
    let mut places = [value, memory].map(|x| (fused::own(fused::primitive(x.extract())), x));
    let [value, memory] = places.each_mut().map(|(x, _)| x.storage_mut::<f32>());
    let mut ahead = Buffer::new(grad.len());
    kernel::gather(level, grad, memory, &mut ahead, shrink.number(), step.momentum);
    let x = kernel::orthogonal(level, ahead, shape, step.iterations);
    kernel::descend(level, value, &x, step.keep, step.rate);
    let mut target = target.map(|x| (fused::own(fused::primitive(x.extract())), x));
    if let Some((target, _)) = &mut target {
        follow(level, target.storage_mut::<f32>(), value, step.tau);
    }
    for (x, place) in places.into_iter().chain(target) {
        *place = Tensor::from_primitive::<Flex>(x);
    }
    Squares::Here(square_sum(level, grad))
}

/// The same in plain tensor calls, for other devices.
fn composed(
    value: &mut Tensor<2>,
    memory: &mut Tensor<2>,
    target: Option<&mut Tensor<2>>,
    grad: Tensor<2>,
    step: MuonStep,
) {
    memory.inplace(|memory| memory * step.momentum + grad.clone());
    let x = orthogonal(grad + memory.clone() * step.momentum, step.iterations);
    value.inplace(|value| value * step.keep - x * step.rate);
    if let Some(target) = target {
        target.inplace(|target| target.clone() + (value.clone() - target) * step.tau);
    }
}

fn orthogonal(x: Tensor<2>, iterations: u32) -> Tensor<2> {
    let [rows, cols] = x.dims();
    let turn = |x: Tensor<2>| if rows > cols { x.transpose() } else { x };
    let norm = x.clone().powi_scalar(2).sum().sqrt().reshape([1, 1]) + SMALLEST;
    let mut x = turn(x / norm); // no more rows than columns
    let [linear, cubic, quintic] = FACTORS;
    for _ in 0..iterations {
        let a = x.clone().matmul(x.clone().transpose());
        let pull = a.clone() * cubic + a.clone().matmul(a) * quintic;
        x = x.clone() * linear + pull.matmul(x);
    }
    turn(x)
}
