//! The inner loops of the losses.
#![allow(unsafe_code, clippy::inline_always)]

use super::rows::{LANES, fold};
use super::simd::per_level;

/// Turns gaps into pulls, `weight * gap`, and returns half the sum of `weight * gap^2`.
#[inline(always)]
fn gaps(m: &mut [f32], target: &[f32], weight: &[f32], discount: f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let pull = |m: &mut f32, target: f32, weight: f32, lane: &mut f32| {
        let gap = discount.mul_add(-target, *m);
        *m = gap * weight;
        *lane = gap.mul_add(*m, *lane);
    };
    let ((m, m_rest), (target, target_rest)) = (m.as_chunks_mut::<LANES>(), target.as_chunks::<LANES>());
    let (weight, weight_rest) = weight.as_chunks::<LANES>();
    for ((m, target), weight) in m.iter_mut().zip(target).zip(weight) {
        for i in 0..LANES {
            pull(&mut m[i], target[i], weight[i], &mut lanes[i]);
        }
    }
    for (((m, &target), &weight), lane) in m_rest.iter_mut().zip(target_rest).zip(weight_rest).zip(&mut lanes) {
        pull(m, target, weight, lane);
    }
    0.5 * fold(lanes)
}

per_level! {
    /// Turns one row of `M` into `weight_j * (M_j - discount * target_j)` and returns half the weighted sum of squared
    /// gaps. Column `skip`, if there is one, neither counts nor pulls.
    pub(crate) fn gap_row(m: &mut [f32], target: &[f32], weight: &[f32], discount: f32, skip: Option<usize>) -> f32 {
        let Some(skip) = skip else {
            return gaps(m, target, weight, discount);
        };
        m[skip] = 0.0;
        let ((left, right), after) = (m.split_at_mut(skip), skip + 1);
        gaps(left, &target[..skip], &weight[..skip], discount)
            + gaps(&mut right[1..], &target[after..], &weight[after..], discount)
    }
}
