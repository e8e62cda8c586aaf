//! One parameter's Adam and Polyak update.

use super::fused;
use crate::nn::kernels::par;
use crate::nn::kernels::rows as kernel;
use crate::nn::kernels::simd::Level;
use burn::backend::Flex;
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

/// Elements of a run: enough for a task to pay, few enough to stay in the cache from one pass to the next.
const RUN: usize = 1 << 14;

/// The numbers of one update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamStep {
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

/// Sums of squares on their way to a norm: folded in double precision where the processor's kernels see the numbers, a
/// tensor of one number elsewhere.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there are few, and not for long
pub(crate) enum Squares {
    /// On the processor.
    Here(f64),
    /// On any other device, `[1]`.
    There(Tensor<1>),
}

/// The factor on gradients, below 1 where they are clipped.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one
pub(crate) enum Shrink {
    /// On the processor, or none at all.
    Number(f32),
    /// On any other device, `[1, 1]`.
    Tensor(Tensor<2>),
}

impl Squares {
    /// The squares of one gradient.
    pub(crate) fn of(x: &Tensor<2>) -> Self {
        if fused::applies(x) {
            let x = fused::rows(fused::primitive(x.clone()));
            return Self::Here(kernel::square_sum(Level::current(), fused::values(&x)));
        }
        Self::There(x.clone().powi_scalar(2).sum())
    }
}

/// The norm of all squares together, folded in their order, `[1]`; `device` is where it goes if there are none.
pub(crate) fn norm(squares: impl IntoIterator<Item = Squares>, device: &Device) -> Tensor<1> {
    let sum = squares.into_iter().reduce(|a, b| match (a, b) {
        (Squares::Here(a), Squares::Here(b)) => Squares::Here(a + b),
        (Squares::There(a), Squares::There(b)) => Squares::There(a + b),
        _ => unreachable!("parameters of one store are on one device"),
    });
    match sum {
        Some(Squares::Here(sum)) => Tensor::from_primitive::<Flex>(fused::scalar(sum.sqrt() as f32)),
        Some(Squares::There(sum)) => sum.sqrt(),
        None => Tensor::zeros([1], device),
    }
}

impl Shrink {
    /// What keeps the norm of all gradients together within the limit, if there is one.
    pub(crate) fn to<'a>(
        limit: Option<f32>,
        grads: impl Iterator<Item = &'a Tensor<2>>,
        device: &Device,
    ) -> Self {
        let Some(limit) = limit else { return Self::Number(1.0) };
        let norm = norm(grads.map(Squares::of), device);
        if fused::applies(&norm) {
            let norm = fused::number(&fused::primitive(norm));
            return Self::Number((limit / norm).min(1.0));
        }
        Self::Tensor((norm.recip() * limit).clamp_max(1.0).reshape([1, 1]))
    }

    /// The factor, for the processor's kernels.
    pub(crate) fn number(&self) -> f32 {
        match self {
            Self::Number(factor) => *factor,
            Self::Tensor(_) => unreachable!("parameters of one store are on one device"),
        }
    }

    /// The gradient times the factor.
    pub(crate) fn apply(&self, grad: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Number(factor) => grad * *factor,
            Self::Tensor(factor) => grad * factor.clone(),
        }
    }
}

/// Updates value, moments and target, in place where nobody else holds them. Returns the sum of squares of the gradient.
pub(crate) fn adam_update(
    value: &mut Tensor<2>,
    [mean, square]: [&mut Tensor<2>; 2],
    target: Option<&mut Tensor<2>>,
    grad: Tensor<2>,
    shrink: &Shrink,
    step: AdamStep,
) -> Squares {
    if !fused::applies(value) {
        let squares = Squares::of(&grad);
        composed(value, [mean, square], target, shrink.apply(grad), step);
        return squares;
    }
    let grad = fused::rows(fused::primitive(grad));
    let grad = fused::values(&grad);
    let mut tensors = [value, mean, square].map(|x| (fused::own(fused::primitive(x.extract())), x));
    let [value, mean, square] = tensors.each_mut().map(|(x, _)| x.storage_mut::<f32>());
    let mut target = target.map(|x| (fused::own(fused::primitive(x.extract())), x));
    let follower = target.as_mut().map(|(x, _)| x.storage_mut::<f32>());
    let squares = update(value, mean, square, grad, follower, (shrink.number(), step));
    for (x, place) in tensors.into_iter().chain(target) {
        *place = Tensor::from_primitive::<Flex>(x);
    }
    Squares::Here(squares)
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
    fn update(self, level: Level, (shrink, step): (f32, AdamStep)) -> f64 {
        let squares = kernel::adam(level, self.value, self.mean, self.square, self.grad, shrink, step);
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
    step: (f32, AdamStep),
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
    [mean, square]: [&mut Tensor<2>; 2],
    target: Option<&mut Tensor<2>>,
    grad: Tensor<2>,
    step: AdamStep,
) {
    mean.inplace(|mean| mean * step.beta1 + grad.clone() * (1.0 - step.beta1));
    square.inplace(|square| square * step.beta2 + grad.powi_scalar(2) * (1.0 - step.beta2));
    let divisor = square.clone().sqrt() * step.root + step.epsilon;
    value.inplace(|value| value * step.keep - mean.clone() / divisor * step.rate);
    if let Some(target) = target {
        target.inplace(|target| target.clone() + (value.clone() - target) * step.tau);
    }
}

/// The tensor in memory of our own where that matters: on the processor, aligned and used again.
pub(crate) fn place(x: Tensor<2>) -> Tensor<2> {
    if fused::applies(&x) { Tensor::from_primitive::<Flex>(fused::copy(fused::primitive(x))) } else { x }
}
