//! One parameter's Adam and Polyak update.

use super::fused;
use crate::nn::kernels::par;
use crate::nn::kernels::rows as kernel;
use crate::nn::kernels::simd::Level;
use burn::backend::Flex;
use burn::tensor::Tensor;
use rayon::prelude::*;

/// Elements of a run: enough to be worth a task.
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

/// Updates value, moments and target, in place where nobody else holds them.
pub(crate) fn adam_update(
    value: &mut Tensor<2>,
    mean: &mut Tensor<2>,
    square: &mut Tensor<2>,
    target: Option<&mut Tensor<2>>,
    grad: Tensor<2>,
    step: AdamStep,
) {
    if !fused::applies(value) {
        return composed(value, mean, square, target, grad, step);
    }
    let grad = fused::rows(fused::primitive(grad));
    let grad = fused::values(&grad);
    let mut tensors = [value, mean, square].map(|x| (fused::own(fused::primitive(x.extract())), x));
    let [value, mean, square] = tensors.each_mut().map(|(x, _)| x.storage_mut::<f32>());
    let mut target = target.map(|x| (fused::own(fused::primitive(x.extract())), x));
    let follower = target.as_mut().map(|(x, _)| x.storage_mut::<f32>());
    update(value, mean, square, grad, follower, step);
    for (x, place) in tensors.into_iter().chain(target) {
        *place = Tensor::from_primitive::<Flex>(x);
    }
}

/// One pass over the elements, run by run.
fn update(
    value: &mut [f32],
    mean: &mut [f32],
    square: &mut [f32],
    grad: &[f32],
    target: Option<&mut [f32]>,
    step: AdamStep,
) {
    let level = Level::current();
    #[allow(clippy::type_complexity)] // the shape that zipping four slices has
    let work = |(((value, mean), square), grad): (((&mut [f32], &mut [f32]), &mut [f32]), &[f32]),
                target: Option<&mut [f32]>| {
        kernel::adam(level, value, mean, square, grad, step);
        if let Some(target) = target {
            kernel::follow(level, target, value, step.tau);
        }
    };
    if par::worth_it(value.len()) {
        let runs = value.par_chunks_mut(RUN).zip(mean.par_chunks_mut(RUN)).zip(square.par_chunks_mut(RUN));
        let runs = runs.zip(grad.par_chunks(RUN));
        match target {
            Some(target) => {
                runs.zip(target.par_chunks_mut(RUN)).for_each(|(run, target)| work(run, Some(target)));
            }
            None => runs.for_each(|run| work(run, None)),
        }
    } else {
        work((((value, mean), square), grad), target);
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
