//! The belief of a decoder that is linear in h, exactly: with `change = g(s, a) + J(s, a) h + noise` and h from a unit Gaussian,
//! h given a context is Gaussian, and its moments are those of Bayesian linear regression. Nothing is amortised, so a context of
//! any length, and of dynamics beyond those that were learned from, is read as well as the decoder allows. Noise has the tails of
//! a Student distribution, so that a collision which nothing foretold does not decide alone.

use super::Posteriors;
use crate::linalg::cholesky_solve;

/// Smallest standard deviation of the noise, in units of the change scale: a decoder is never so sure.
pub(super) const SMALLEST_NOISE: f32 = 0.02;

/// Degrees of freedom of the noise.
const FREEDOM: f32 = 3.0;
/// How often numbers are weighed anew by how well the last h explains them.
const ROUNDS: usize = 4;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[SMALLEST_NOISE as f64, FREEDOM as f64, ROUNDS as f64];

/// One number of a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured<'a> {
    /// How far it lies off the decoder's offset.
    pub(super) residual: f32,
    /// Its slopes in h, `[dim]`.
    pub(super) slopes: &'a [f32],
    /// Standard deviation of its noise.
    pub(super) noise: f32,
}

/// What measured numbers say of h; the prior without any.
pub(super) fn posterior(dim: usize, measured: &[Measured<'_>]) -> Posteriors {
    let mut noise: Vec<f32> = measured.iter().map(|number| number.noise).collect();
    for _ in 0..ROUNDS {
        let last = least_squares(dim, measured, &noise).mean;
        for (noise, number) in noise.iter_mut().zip(measured) {
            let predicted: f32 = number.slopes.iter().zip(&last).map(|(slope, h)| slope * h).sum();
            let off = (number.residual - predicted) / number.noise;
            *noise = number.noise * ((FREEDOM + off * off) / (FREEDOM + 1.0)).sqrt();
        }
    }
    least_squares(dim, measured, &noise)
}

/// The same for Gaussian noise with these standard deviations.
fn least_squares(dim: usize, measured: &[Measured<'_>], noise: &[f32]) -> Posteriors {
    // The precision, lower triangle, begins as the prior's: a unit Gaussian.
    let mut precision: Vec<f64> = (0..dim * dim).map(|i| f64::from(u8::from(i / dim == i % dim))).collect();
    let columns = dim + 1;
    let mut rhs = vec![0.0; dim * columns]; // the precision-weighted mean, then a unit matrix
    for (Measured { residual, slopes, .. }, noise) in measured.iter().zip(noise) {
        let weight = 1.0 / f64::from(*noise).powi(2);
        for (i, &slope) in slopes.iter().enumerate() {
            let factor = weight * f64::from(slope);
            rhs[i * columns] += factor * f64::from(*residual);
            let row = &mut precision[i * dim..][..=i];
            row.iter_mut().zip(*slopes).for_each(|(p, other)| *p += factor * f64::from(*other));
        }
    }
    (0..dim).for_each(|i| rhs[i * columns + i + 1] = 1.0);
    cholesky_solve(&mut precision, dim, &mut rhs, columns);
    // Now the mean, then the covariance.
    let rows = rhs.chunks_exact(columns).enumerate();
    let (mean, std) = rows.map(|(i, row)| (row[0] as f32, row[i + 1].max(0.0).sqrt() as f32)).unzip();
    Posteriors { mean, std }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_seen_leaves_the_prior_and_much_seen_finds_h() {
        assert_eq!(posterior(2, &[]), Posteriors { mean: vec![0.0, 0.0], std: vec![1.0, 1.0] });
        let (h, noise) = ([0.7_f32, -1.2_f32], 0.1);
        let slopes: Vec<_> = (0..200).map(|i| [(i as f32).sin(), (i as f32 * 0.7).cos()]).collect();
        let measured = |wild: f32| -> Vec<_> {
            let residual = |i: usize, [x, y]: &[f32; 2]| {
                x * h[0]
                    + y * h[1]
                    + noise * (i as f32 * 1.3).sin()
                    + if i.is_multiple_of(10) { wild } else { 0.0 }
            };
            slopes
                .iter()
                .enumerate()
                .map(|(i, s)| Measured { residual: residual(i, s), slopes: s, noise })
                .collect()
        };
        let calm = posterior(2, &measured(0.0));
        assert!(calm.mean.iter().zip(h).all(|(a, b)| (a - b).abs() < 0.02), "{calm:?}");
        // The information of 200 numbers with a mean square slope of a half.
        assert!(calm.std.iter().all(|s| (s - 0.01).abs() < 2e-3), "{calm:?}");
        // One number in ten is fifty standard deviations off: least squares would be .5 off, and is not asked alone.
        let wild = posterior(2, &measured(5.0));
        assert!(wild.mean.iter().zip(h).all(|(a, b)| (a - b).abs() < 0.05), "{wild:?}");
    }
}
