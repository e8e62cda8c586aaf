//! How an operation with kernels of its own meets Burn: its values on the processor, its gradients in the autodiff graph.

use crate::nn::kernels::pool::Buffer;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::{Autodiff, Flex, TensorMetadata as _};
use burn::tensor::{DType, Device, Int, Shape, Tensor};
use burn_flex::{FlexTensor, Layout};
use std::fmt::Debug;

/// An operation of `N` inputs with a forward and a backward pass on the processor.
pub(super) trait Fused<const N: usize>: Debug + Send + 'static {
    /// What the backward pass needs.
    type Saved: Clone + Debug + Send + 'static;

    /// The output, and what to keep where some input wants a gradient.
    fn forward(&self, inputs: [FlexTensor; N], wanted: [bool; N]) -> (FlexTensor, Option<Self::Saved>);

    /// The gradient of each wanted input, from that of the output.
    fn backward(self, saved: Self::Saved, grad: FlexTensor, wanted: [bool; N]) -> [Option<FlexTensor>; N];
}

/// Whether the kernels apply: single precision on the processor. Everything else is composed of plain tensor calls.
pub(super) fn applies<const D: usize>(x: &Tensor<D>) -> bool {
    #[cfg(test)]
    if COMPOSED.get() {
        return false;
    }
    x.dtype() == DType::F32 && x.device() == Device::flex()
}

#[cfg(test)]
thread_local! {
    /// Whether tests on this thread want everything composed.
    pub(in crate::nn) static COMPOSED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs an operation, recording it where an input is tracked.
pub(super) fn run<F: Fused<N>, const N: usize, const D: usize>(op: F, inputs: [Tensor<2>; N]) -> Tensor<D> {
    let wanted = inputs.each_ref().map(Tensor::is_tracked);
    if !wanted.contains(&true) {
        let (output, _) = op.forward(inputs.map(|x| primitive(x.without_autodiff())), wanted);
        return Tensor::from_primitive::<Flex>(output);
    }
    let mut guards = Vec::with_capacity(N);
    let inputs = inputs.map(|x| {
        let x = x.autodiff().try_into_primitive::<Autodiff<Flex>>();
        let (x, guard) = x.unwrap_or_else(|e| panic!("an input is on another device: {e:?}")).into_parts();
        guards.push(guard);
        x
    });
    let guards = guards.try_into().unwrap_or_else(|_| unreachable!("one guard per input"));
    let (output, saved) = op.forward(inputs, wanted);
    let prepared = Recorded(op).prepare::<NoCheckpointing>(guards).compute_bound().stateful();
    let output = match (prepared, saved) {
        (OpsKind::Tracked(prepared), Some(saved)) => prepared.finish(saved, output),
        (OpsKind::UnTracked(prepared), _) => prepared.finish(output),
        (OpsKind::Tracked(_), None) => {
            unreachable!("an operation keeps its state where a gradient is wanted")
        }
    };
    Tensor::from_primitive::<Autodiff<Flex>>(output)
}

/// The processor's tensor.
pub(super) fn primitive<const D: usize>(x: Tensor<D>) -> FlexTensor {
    x.try_into_primitive::<Flex>().unwrap_or_else(|e| panic!("an input is on another device: {e:?}"))
}

/// The whole numbers of a tensor, looked up where the processor keeps them.
pub(super) fn indices(x: Tensor<1, Int>) -> Vec<usize> {
    let x = x.without_autodiff().try_into_primitive::<Flex>();
    let x = x.unwrap_or_else(|e| panic!("indices are on another device: {e:?}")).to_contiguous();
    if let Some(x) = x.as_slice::<i64>() {
        return x.iter().map(|&i| i as usize).collect();
    }
    match x.as_slice::<i32>() {
        Some(x) => x.iter().map(|&i| i as usize).collect(),
        None => panic!("indices are {:?}, expected I64 or I32", x.dtype()),
    }
}

/// An operation in the autodiff graph.
#[derive(Debug)]
struct Recorded<F>(F);

impl<F: Fused<N>, const N: usize> Backward<Flex, N> for Recorded<F> {
    type State = F::Saved;

    fn backward(self, ops: Ops<F::Saved, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let grad = gradients.consume::<Flex>(&ops.node);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let grads = self.0.backward(ops.state, grad, wanted);
        for (parent, grad) in ops.parents.into_iter().zip(grads) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                gradients.register::<Flex>(parent.id, grad);
            }
        }
    }
}

/// A tensor made of a buffer.
pub(super) fn tensor(buffer: Buffer, shape: [usize; 2]) -> FlexTensor {
    FlexTensor::new(buffer.into_bytes(), Layout::contiguous(Shape::from(shape)), DType::F32)
}

/// A tensor of one number.
pub(super) fn scalar(value: f32) -> FlexTensor {
    let mut buffer = Buffer::new(1);
    buffer[0] = value;
    FlexTensor::new(buffer.into_bytes(), Layout::contiguous(Shape::from([1])), DType::F32)
}

/// The number in a tensor of one.
pub(super) fn number(x: &FlexTensor) -> f32 {
    values(x)[0]
}

/// `scale * x`.
pub(super) fn scaled(x: FlexTensor, scale: f32) -> FlexTensor {
    if scale == 1.0 {
        return x;
    }
    let mut x = own(x);
    x.storage_mut::<f32>().iter_mut().for_each(|x| *x *= scale);
    x
}

/// The same tensor with its rows one after the other.
pub(super) fn rows(x: FlexTensor) -> FlexTensor {
    if x.as_slice::<f32>().is_some() { x } else { x.to_contiguous() }
}

/// The elements of a tensor that came out of [`rows`].
pub(super) fn values(x: &FlexTensor) -> &[f32] {
    x.as_slice::<f32>().unwrap_or_else(|| unreachable!("kernels see tensors in row order"))
}

/// The tensor's elements to be changed: its own where nobody else holds them, else a copy.
pub(super) fn own(x: FlexTensor) -> FlexTensor {
    if x.is_unique() && x.is_contiguous() && x.bytes().len() == x.shape().num_elements() * size_of::<f32>() {
        return x;
    }
    copy(x)
}

/// A copy in a buffer.
pub(super) fn copy(x: FlexTensor) -> FlexTensor {
    let x = rows(x);
    let mut copy = Buffer::new(x.shape().num_elements());
    copy.copy_from_slice(values(&x));
    FlexTensor::new(copy.into_bytes(), Layout::contiguous(x.shape()), DType::F32)
}

/// Rows and columns.
pub(super) fn dims(x: &FlexTensor) -> [usize; 2] {
    let shape = x.shape();
    [shape[0], shape[1]]
}
