//! The belief of a decoder that is linear in h, exactly: with `change = g(s, a) + J(s, a) h + noise` and h from a unit Gaussian,
//! h given a context is Gaussian, and its moments are those of Bayesian linear regression. Nothing is amortised, so a context of
//! any length, and of dynamics beyond those that were learned from, is read as well as the decoder allows.

use super::Posteriors;
use crate::linalg::cholesky_solve;

/// Smallest standard deviation of the noise, in units of the change scale: a decoder is never so sure.
pub(super) const SMALLEST_NOISE: f32 = 0.02;

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

    /// Takes in one number: that it lies `residual` off the offset, where it has the slopes `slopes [dim]` in h and noise of
    /// standard deviation `noise`.
    pub(super) fn add(&mut self, residual: f32, slopes: &[f32], noise: f32) {
        let weight = 1.0 / f64::from(noise.max(SMALLEST_NOISE)).powi(2);
        for (i, &slope) in slopes.iter().enumerate() {
            let factor = weight * f64::from(slope);
            self.weighted[i] += factor * f64::from(residual);
            let row = &mut self.precision[i * self.dim..][..=i];
            row.iter_mut().zip(slopes).for_each(|(p, other)| *p += factor * f64::from(*other));
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
        let mut seen = Moments::prior(2);
        for i in 0..200 {
            let slopes = [(i as f32).sin(), (i as f32 * 0.7).cos()];
            seen.add(slopes[0] * h[0] + slopes[1] * h[1], &slopes, noise);
        }
        let mut posterior = Posteriors::default();
        seen.solve(&mut posterior);
        assert!(posterior.mean.iter().zip(h).all(|(a, b)| (a - b).abs() < 1e-3), "{posterior:?}");
        // The information of 200 numbers with a mean square slope of a half.
        assert!(posterior.std.iter().all(|s| (s - 0.01).abs() < 1e-3), "{posterior:?}");
    }
}
