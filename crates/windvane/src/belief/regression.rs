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

/// What is known of h: the precision `[dim * dim]`, lower triangle, and the precision-weighted mean `[dim]`.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    dim: usize,
    precision: Vec<f64>,
    weighted: Vec<f64>,
}

impl Moments {
    /// The prior: a unit Gaussian.
    pub(super) fn prior(dim: usize) -> Self {
        let precision = (0..dim * dim).map(|i| f64::from(u8::from(i / dim == i % dim))).collect();
        Self { dim, precision, weighted: vec![0.0; dim] }
    }

    /// What measured numbers say of h.
    pub(super) fn robust(dim: usize, measured: &[Measured<'_>]) -> Self {
        let mut moments = Self::prior(dim);
        measured.iter().for_each(|number| moments.add(number, number.noise));
        for _ in 0..ROUNDS {
            let mut last = Posteriors::default();
            moments.solve(&mut last);
            moments = Self::prior(dim);
            for number in measured {
                let predicted: f32 = number.slopes.iter().zip(&last.mean).map(|(slope, h)| slope * h).sum();
                let off = (number.residual - predicted) / number.noise;
                moments.add(number, number.noise * ((FREEDOM + off * off) / (FREEDOM + 1.0)).sqrt());
            }
        }
        moments
    }

    /// Takes in one number as if its noise had the standard deviation `noise`.
    fn add(&mut self, Measured { residual, slopes, .. }: &Measured<'_>, noise: f32) {
        let weight = 1.0 / f64::from(noise).powi(2);
        for (i, &slope) in slopes.iter().enumerate() {
            let factor = weight * f64::from(slope);
            self.weighted[i] += factor * f64::from(*residual);
            let row = &mut self.precision[i * self.dim..][..=i];
            row.iter_mut().zip(*slopes).for_each(|(p, other)| *p += factor * f64::from(*other));
        }
    }

    /// Mean and standard deviations of h, added to `all`.
    pub(super) fn solve(mut self, all: &mut Posteriors) {
        let columns = self.dim + 1;
        let mut rhs = vec![0.0; self.dim * columns]; // the mean, then the covariance
        for (i, row) in rhs.chunks_exact_mut(columns).enumerate() {
            row[0] = self.weighted[i];
            row[i + 1] = 1.0;
        }
        cholesky_solve(&mut self.precision, self.dim, &mut rhs, columns);
        for (i, row) in rhs.chunks_exact(columns).enumerate() {
            all.mean.push(row[0] as f32);
            all.std.push(row[i + 1].max(0.0).sqrt() as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_seen_leaves_the_prior_and_much_seen_finds_h() {
        let mut prior = Posteriors::default();
        Moments::prior(2).solve(&mut prior);
        assert_eq!(prior, Posteriors { mean: vec![0.0, 0.0], std: vec![1.0, 1.0] });
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
        let posterior = |measured: &[Measured<'_>]| {
            let mut posterior = Posteriors::default();
            Moments::robust(2, measured).solve(&mut posterior);
            posterior
        };
        let calm = posterior(&measured(0.0));
        assert!(calm.mean.iter().zip(h).all(|(a, b)| (a - b).abs() < 0.02), "{calm:?}");
        // The information of 200 numbers with a mean square slope of a half.
        assert!(calm.std.iter().all(|s| (s - 0.01).abs() < 2e-3), "{calm:?}");
        // One number in ten is fifty standard deviations off: least squares would be .5 off, and is not asked alone.
        let wild = posterior(&measured(5.0));
        assert!(wild.mean.iter().zip(h).all(|(a, b)| (a - b).abs() < 0.05), "{wild:?}");
    }
}
