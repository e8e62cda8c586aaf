//! Layer normalisation with its activation, and rows scaled onto a sphere.

use super::affine::{activate, activate_backward};
use super::fused::{Fused, dims, own, rows, tensor, values};
use super::{Act, SMALLEST_NORM};
use crate::nn::kernels::par::{self, BLOCK};
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::rows as kernel;
use crate::nn::kernels::simd::Level;
use burn_flex::FlexTensor;
use std::sync::Arc;

/// `act(normalised(x) * gain + shift)`, inputs `[x, gain, shift]`.
#[derive(Debug)]
pub(super) struct LayerNorm(pub(super) Act);

/// Rows scaled to a length, input `[x]`.
#[derive(Debug)]
pub(super) struct Sphere(pub(super) f32);

/// What layer normalisation keeps.
#[derive(Clone, Debug)]
pub(super) struct Normalised {
    x: FlexTensor,
    gain: FlexTensor,
    /// Mean and one over the deviation of each row.
    stats: Arc<Vec<[f32; 2]>>,
    /// What the activation's way back needs.
    act: Option<FlexTensor>,
}

impl Fused<3> for LayerNorm {
    type Saved = Normalised;

    fn forward(&self, inputs: [FlexTensor; 3], wanted: [bool; 3]) -> (FlexTensor, Option<Normalised>) {
        let [x, gain, shift] = inputs.map(rows);
        let [n, width] = dims(&x);
        let mut y = Buffer::new(n * width);
        let mut stats = vec![[0.0; 2]; n];
        let (all, block) = (values(&x), BLOCK * width);
        par::chunks2(&mut y, &mut stats, [block, BLOCK], |i, y, stats| {
            let x = &all[i * block..i * block + y.len()];
            kernel::layer_norm(Level::current(), x, values(&gain), values(&shift), y, stats);
        });
        let (y, act) = activate(self.0, y, [n, width], wanted.contains(&true));
        (y, Some(Normalised { x, gain, stats: Arc::new(stats), act }))
    }

    fn backward(self, saved: Normalised, grad: FlexTensor, wanted: [bool; 3]) -> [Option<FlexTensor>; 3] {
        let Normalised { x, gain, stats, act } = saved;
        let (grad, _) = activate_backward(self.0, grad, act.as_ref(), false);
        let mut grad = own(grad);
        let [n, width] = dims(&grad);
        // Each block's share of the gradients of gain and shift, folded in order below.
        let mut partial = Buffer::zeros(n.div_ceil(BLOCK) * 2 * width);
        let (all, block) = (values(&x), BLOCK * width);
        par::chunks2(grad.storage_mut(), &mut partial, [block, 2 * width], |i, grad, partial| {
            let (gain_grad, shift_grad) = partial.split_at_mut(width);
            let (x, stats) = (&all[i * block..i * block + grad.len()], &stats[i * BLOCK..]);
            kernel::layer_norm_backward(
                Level::current(),
                x,
                values(&gain),
                stats,
                grad,
                gain_grad,
                shift_grad,
            );
        });
        let mut sums = Buffer::zeros(2 * width);
        kernel::add_rows(Level::current(), &partial, &mut sums);
        let half = |from: usize| {
            let mut half = Buffer::new(width);
            half.copy_from_slice(&sums[from..from + width]);
            tensor(half, [1, width])
        };
        [wanted[0].then_some(grad), wanted[1].then(|| half(0)), wanted[2].then(|| half(width))]
    }
}

impl Fused<1> for Sphere {
    /// The output and the rows' lengths.
    type Saved = (FlexTensor, Arc<Vec<f32>>);

    fn forward(&self, inputs: [FlexTensor; 1], _: [bool; 1]) -> (FlexTensor, Option<Self::Saved>) {
        let [x] = inputs.map(rows);
        let [n, width] = dims(&x);
        let mut y = Buffer::new(n * width);
        let mut norms = vec![0.0; n];
        kernel::sphere(Level::current(), values(&x), width, self.0, SMALLEST_NORM as f32, &mut y, &mut norms);
        let y = tensor(y, [n, width]);
        (y.clone(), Some((y, Arc::new(norms))))
    }

    fn backward(self, (y, norms): Self::Saved, grad: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let mut grad = own(grad);
        let width = dims(&grad)[1];
        let smallest = SMALLEST_NORM as f32;
        kernel::sphere_backward(
            Level::current(),
            values(&y),
            width,
            self.0,
            smallest,
            &norms,
            grad.storage_mut(),
        );
        [Some(grad)]
    }
}
