//! One parameter's Adam and Polyak update.

use super::fused;
use crate::nn::kernels::par;
use crate::nn::kernels::rows as kernel;
use crate::nn::kernels::simd::Level;
use burn::backend::Flex;
use burn::tensor::Tensor;
use rayon::prelude::*;

/// Elements of a run: enough to be worth a task, few enough to stay in the cache from one pass to the next.
const RUN: usize = 1 << 14;

/// The numbers of one update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamStep {
    /// Factor on the gradient, below 1 where it is clipped.
    pub(crate) shrink: f32,
    /// Memory of the mean.
    pub(crate) beta1: f32,
    /// Memory of the mean square.
    pub(crate) beta2: f32,
    /// Learning rate over the mean's bias correction.
    pub(crate) rate: f32,
    /// One over the root of the mean square's bias correction.
    pub(crate) root: f32,
    /// Floor of the divisor.
    pub(crate) epsilon: f32,
    /// What decoupled decay leaves of the value.
    pub(crate) keep: f32,
    /// The target's share of the way.
    pub(crate) tau: f32,
}

/// Updates value, moments and target, in place where nobody else holds them. Returns the sum of squares of the gradient.
pub(crate) fn adam_update(
    value: &mut Tensor<2>,
    mean: &mut Tensor<2>,
    square: &mut Tensor<2>,
    target: Option<&mut Tensor<2>>,
    grad: Tensor<2>,
    step: AdamStep,
) -> f64 {
    if !fused::applies(value) {
        let squares = sum_of_squares(&grad);
        composed(value, mean, square, target, grad, step);
        return squares;
    }
    let grad = fused::rows(fused::primitive(grad));
    let grad = fused::values(&grad);
    let mut tensors = [value, mean, square].map(|x| (fused::own(fused::primitive(x.extract())), x));
    let [value, mean, square] = tensors.each_mut().map(|(x, _)| x.storage_mut::<f32>());
    let mut target = target.map(|x| (fused::own(fused::primitive(x.extract())), x));
    let follower = target.as_mut().map(|(x, _)| x.storage_mut::<f32>());
    let squares = update(value, mean, square, grad, follower, step);
    for (x, place) in tensors.into_iter().chain(target) {
        *place = Tensor::from_primitive::<Flex>(x);
    }
    squares
}

/// Elements that are updated together.
struct Run<'a> {
    value: &'a mut [f32],
    mean: &'a mut [f32],
    square: &'a mut [f32],
    grad: &'a [f32],
    target: Option<&'a mut [f32]>,
}

impl Run<'_> {
    /// Returns the sum of squares of the gradient.
    fn update(self, level: Level, step: AdamStep) -> f64 {
        let squares = kernel::adam(level, self.value, self.mean, self.square, self.grad, step);
        if let Some(target) = self.target {
            kernel::follow(level, target, self.value, step.tau);
        }
        squares
    }
}

/// All elements, run by run; the sum of squares is folded in their order.
fn update(
    value: &mut [f32],
    mean: &mut [f32],
    square: &mut [f32],
    grad: &[f32],
    target: Option<&mut [f32]>,
    step: AdamStep,
) -> f64 {
    let (level, many) = (Level::current(), par::worth_it(value.len()));
    let mut targets = target.map(|target| target.chunks_mut(RUN));
    let runs =
        value.chunks_mut(RUN).zip(mean.chunks_mut(RUN)).zip(square.chunks_mut(RUN)).zip(grad.chunks(RUN));
    let runs = runs.map(|(((value, mean), square), grad)| {
        let target = targets.as_mut().and_then(Iterator::next);
        Run { value, mean, square, grad, target }
    });
    if many {
        let runs: Vec<Run<'_>> = runs.collect();
        let squares: Vec<f64> = runs.into_par_iter().map(|run| run.update(level, step)).collect();
        squares.into_iter().sum()
    } else {
        runs.map(|run| run.update(level, step)).sum()
    }
}

/// The same in plain tensor calls, for other devices.
fn composed(
    value: &mut Tensor<2>,
    mean: &mut Tensor<2>,
    square: &mut Tensor<2>,
    target: Option<&mut Tensor<2>>,
    grad: Tensor<2>,
    step: AdamStep,
) {
    let grad = grad * step.shrink;
    mean.inplace(|mean| mean * step.beta1 + grad.clone() * (1.0 - step.beta1));
    square.inplace(|square| square * step.beta2 + grad.powi_scalar(2) * (1.0 - step.beta2));
    let divisor = square.clone().sqrt() * step.root + step.epsilon;
    value.inplace(|value| value * step.keep - mean.clone() / divisor * step.rate);
    if let Some(target) = target {
        target.inplace(|target| target.clone() + (value.clone() - target) * step.tau);
    }
}

/// The sum of squares of all elements.
pub(crate) fn sum_of_squares(x: &Tensor<2>) -> f64 {
    if fused::applies(x) {
        let x = fused::rows(fused::primitive(x.clone()));
        return kernel::square_sum(Level::current(), fused::values(&x));
    }
    f64::from(x.clone().powi_scalar(2).sum().into_scalar::<f32>())
}

/// The tensor in memory of our own where that matters: on the processor, aligned and used again.
pub(crate) fn place(x: Tensor<2>) -> Tensor<2> {
    if fused::applies(&x) { Tensor::from_primitive::<Flex>(fused::copy(fused::primitive(x))) } else { x }
}
