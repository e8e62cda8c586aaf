//! The sphere of task vectors: projection, uniform draws, von Mises-Fisher draws around a belief.
//!
//! Everything works on plain rows of one matrix, filled before a batch becomes tensors, so that each draw comes from a
//! named stream.

use rand::RngExt as _;
use rand_distr::{Beta, Distribution as _, StandardNormal};
use windvane_world::Rng;

/// Scales `v` to length `sqrt(d)`, the sphere on which FB's task vectors live. A zero vector has no direction and
/// stays zero.
pub(crate) fn project(v: &mut [f32]) {
    let norm = norm(v);
    if norm > 0.0 {
        let scale = (v.len() as f32).sqrt() / norm;
        v.iter_mut().for_each(|x| *x *= scale);
    }
}

/// A task vector with something added to it, on the sphere again; as it is with nothing.
pub(crate) fn shifted(mut z: Vec<f32>, shift: &[f32]) -> Vec<f32> {
    if !shift.is_empty() {
        z.iter_mut().zip(shift).for_each(|(z, shift)| *z += shift);
        project(&mut z);
    }
    z
}

/// A task vector on its way toward a direction: 0 leaves it as it is, 1 makes it that direction.
pub(crate) fn toward(z: &[f32], direction: &[f32], share: f32) -> Vec<f32> {
    let mut direction = direction.to_vec();
    project(&mut direction);
    let mut blended: Vec<f32> = z.iter().zip(direction).map(|(z, to)| z + share * (to - z)).collect();
    project(&mut blended);
    blended
}

/// The angle between two vectors, in degrees; 90 where one has no direction.
pub(crate) fn angle(a: &[f32], b: &[f32]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    let lengths = f64::from(norm(a)) * f64::from(norm(b));
    if lengths > 0.0 { (dot / lengths).clamp(-1.0, 1.0).acos().to_degrees() } else { 90.0 }
}

/// Draws a direction uniformly from the sphere of radius `sqrt(d)`.
pub(crate) fn uniform(rng: &mut Rng, out: &mut [f32]) {
    out.iter_mut().for_each(|x| *x = StandardNormal.sample(rng));
    project(out);
}

/// Random orthogonal rows of length sqrt(`dim`), `[rows * dim]`.
pub(crate) fn orthogonal(rng: &mut Rng, rows: usize, dim: usize) -> Vec<f32> {
    let mut table: Vec<f32> = Vec::with_capacity(rows * dim);
    for _ in 0..rows {
        let mut row: Vec<f32> = StandardNormal.sample_iter(&mut *rng).take(dim).collect();
        // Twice, because the first pass leaves rounding errors where rows are nearly parallel.
        for before in table.chunks_exact(dim).chain(table.chunks_exact(dim)) {
            let along = row.iter().zip(before).map(|(x, b)| x * b).sum::<f32>() / dim as f32;
            row.iter_mut().zip(before).for_each(|(x, b)| *x -= along * b);
        }
        let stretch = (dim as f32 / row.iter().map(|x| x * x).sum::<f32>()).sqrt();
        table.extend(row.iter().map(|x| x * stretch));
    }
    table
}

/// The mean directions of cones: centred beliefs, filled up to d with zeros.
pub(crate) fn cone_means(centred: &[f32], width: usize, dim: usize) -> Vec<f32> {
    let mut means = Vec::with_capacity(centred.len() / width.max(1) * dim);
    for h in centred.chunks_exact(width.max(1)) {
        means.extend_from_slice(h);
        means.resize(means.len() + dim - width, 0.0);
    }
    means
}

/// The von Mises-Fisher distribution on the unit sphere in `d` dimensions, around a mean given at each draw.
///
/// Exact: Wood's proposal (1994) with its rejection step, drawn around the north pole and carried onto the mean by a
/// Householder reflection, as in the paper's algorithm 2.
#[derive(Clone, Debug)]
pub(crate) struct VonMisesFisher {
    kappa: f64,
    dim: usize,
    /// Wood's `b`, `x0` and `c`.
    b: f64,
    x0: f64,
    c: f64,
    beta: Beta<f64>,
}

impl VonMisesFisher {
    /// The distribution with concentration `kappa` in `dim` dimensions; `None` unless `dim >= 2` and `kappa` is finite
    /// and not negative.
    pub(crate) fn new(dim: usize, kappa: f64) -> Option<Self> {
        if dim < 2 || !kappa.is_finite() || kappa < 0.0 {
            return None;
        }
        let m = dim as f64 - 1.0;
        // Wood writes (-2k + sqrt(4k^2 + m^2)) / m; this form does not cancel for large k.
        let b = m / (2.0 * kappa + (4.0 * kappa * kappa + m * m).sqrt());
        let x0 = (1.0 - b) / (1.0 + b);
        let c = kappa * x0 + m * (1.0 - x0 * x0).ln();
        let beta = Beta::new(m / 2.0, m / 2.0).ok()?;
        Some(Self { kappa, dim, b, x0, c, beta })
    }

    /// Draws a vector of length `sqrt(d)` around `mean` (of any length) into `out`. Around a zero mean, which has no
    /// direction, the draw is uniform.
    pub(crate) fn sample(&self, mean: &[f32], rng: &mut Rng, out: &mut [f32]) {
        debug_assert_eq!(mean.len(), self.dim);
        let length = norm(mean);
        if length == 0.0 {
            return uniform(rng, out);
        }
        let w = self.cosine(rng);
        // North pole (w, sqrt(1-w^2) * tangent).
        out[0] = w as f32;
        let tangent = &mut out[1..];
        tangent.iter_mut().for_each(|x| *x = StandardNormal.sample(rng));
        let scale = ((1.0 - w * w).max(0.0).sqrt() as f32) / norm(tangent);
        tangent.iter_mut().for_each(|x| *x *= scale);
        reflect_pole_onto(mean, length, out);
        project(out);
    }

    /// The cosine between a draw and its mean.
    fn cosine(&self, rng: &mut Rng) -> f64 {
        let m = self.dim as f64 - 1.0;
        loop {
            let z = self.beta.sample(rng);
            let w = (1.0 - (1.0 + self.b) * z) / (1.0 - (1.0 - self.b) * z);
            let u: f64 = rng.random();
            if self.kappa * w + m * (1.0 - self.x0 * w).ln() - self.c >= u.ln() {
                return w;
            }
        }
    }

    /// The exact mean of that cosine, `I_{d/2}(kappa) / I_{d/2-1}(kappa)`, by Gauss's continued fraction.
    #[cfg(test)]
    fn mean_cosine(&self) -> f64 {
        let nu = self.dim as f64 / 2.0;
        (0..400).rev().fold(0.0, |tail, k| self.kappa / (2.0 * (nu + f64::from(k)) + self.kappa * tail))
    }
}

/// Applies to `v` the Householder reflection that maps the first basis vector onto `mean / length`, which
/// preserves norms.
fn reflect_pole_onto(mean: &[f32], length: f32, v: &mut [f32]) {
    // Reflecting along e1 - u swaps e1 and u = mean / length. Near the pole 1 - u_1 is all rounding, and comes from the others.
    let u = |i: usize| f64::from(mean[i]) / f64::from(length);
    let rest: f64 = (1..mean.len()).map(|i| u(i).powi(2)).sum();
    if rest < 1e-14 && u(0) > 0.0 {
        return; // the mean is the pole
    }
    let first = if u(0) > 0.0 { rest / (1.0 + u(0)) } else { 1.0 - u(0) };
    let normal = |i: usize| if i == 0 { first } else { -u(i) };
    let dot: f64 = v.iter().enumerate().map(|(i, x)| normal(i) * f64::from(*x)).sum();
    let factor = 2.0 * dot / (first * first + rest);
    for (i, x) in v.iter_mut().enumerate() {
        *x = (f64::from(*x) - factor * normal(i)) as f32;
    }
}

/// Euclidean length.
fn norm(v: &[f32]) -> f32 {
    v.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt() as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windvane_world::rng::stream;

    /// Mean and variance of the cosine around a skew mean, by draws.
    fn moments(dim: usize, kappa: f64, draws: usize) -> (f64, f64) {
        let mut rng = stream(7, "vmf-test", &[dim as u64]);
        let mut mean = vec![0.0; dim];
        uniform(&mut rng, &mut mean);
        let vmf = VonMisesFisher::new(dim, kappa).unwrap();
        let mut z = vec![0.0; dim];
        let (mut sum, mut square) = (0.0, 0.0);
        for _ in 0..draws {
            vmf.sample(&mean, &mut rng, &mut z);
            let cosine = z.iter().zip(&mean).map(|(a, b)| f64::from(a * b)).sum::<f64>() / dim as f64;
            sum += cosine;
            square += cosine * cosine;
        }
        let mean = sum / draws as f64;
        (mean, square / draws as f64 - mean * mean)
    }

    #[test]
    fn cosine_agrees_with_the_closed_form() {
        for (dim, kappa) in [(100, 50.0), (150, 50.0), (150, 100.0), (3, 2.0), (2, 5.0)] {
            let draws = 40_000;
            let (mean, variance) = moments(dim, kappa, draws);
            let a = VonMisesFisher::new(dim, kappa).unwrap().mean_cosine();
            // d/dkappa of the mean is the variance: A' = 1 - A^2 - (d - 1) / kappa * A.
            let spread = 1.0 - a * a - (dim as f64 - 1.0) / kappa * a;
            let tolerance = 4.0 * (spread / draws as f64).sqrt();
            assert!((mean - a).abs() < tolerance, "d={dim} k={kappa}: mean {mean}, exact {a}");
            assert!((variance / spread - 1.0).abs() < 0.05, "d={dim} k={kappa}: {variance}, exact {spread}");
        }
    }

    #[test]
    fn cones_are_as_wide_as_the_science_notes_say() {
        let degrees = |d, k| VonMisesFisher::new(d, k).unwrap().mean_cosine().acos().to_degrees();
        assert!((degrees(100, 50.0) - 66.0).abs() < 1.0);
        assert!((degrees(150, 100.0) - 60.0).abs() < 1.5);
    }

    #[test]
    fn blending_goes_from_the_task_to_the_direction_along_the_sphere() {
        let (z, direction) = ([2.0, 0.0, 0.0, 0.0], [0.0, 0.3, 0.0, 0.0]);
        assert_eq!(toward(&z, &direction, 0.0), z);
        assert_eq!(toward(&z, &direction, 1.0), [0.0, 2.0, 0.0, 0.0]);
        let half = toward(&z, &direction, 0.5);
        assert!((angle(&half, &z) - 45.0).abs() < 1e-4 && (norm(&half) - 2.0).abs() < 1e-6);
        assert_eq!(toward(&z, &[0.0; 4], 0.5), z, "no direction leads nowhere");
    }

    #[test]
    fn refuses_what_is_no_distribution() {
        assert!(VonMisesFisher::new(1, 1.0).is_none());
        assert!(VonMisesFisher::new(5, -1.0).is_none());
        assert!(VonMisesFisher::new(5, f64::NAN).is_none());
    }

    #[test]
    fn orthogonal_vectors_have_the_length_of_b_and_no_products() {
        let (rows, dim) = (30, 32);
        let table = orthogonal(&mut stream(0, "orthogonal-test", &[]), rows, dim);
        for (i, a) in table.chunks_exact(dim).enumerate() {
            for (j, b) in table.chunks_exact(dim).enumerate() {
                let product = a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>() / dim as f32;
                assert!((product - f32::from(u8::from(i == j))).abs() < 1e-5, "{i} {j}: {product}");
            }
        }
    }

    proptest! {
        #[test]
        fn householder_maps_the_pole_onto_the_mean_and_keeps_norms(
            dim in 2_usize..40, seed in 0_u64..1000, scale in 0.01_f32..100.0,
        ) {
            let mut rng = stream(seed, "householder-test", &[]);
            let mut mean = vec![0.0; dim];
            uniform(&mut rng, &mut mean);
            mean.iter_mut().for_each(|x| *x *= scale);
            let length = norm(&mean);
            let mut pole = vec![0.0; dim];
            pole[0] = 1.0;
            reflect_pole_onto(&mean, length, &mut pole);
            for (p, m) in pole.iter().zip(&mean) {
                prop_assert!((p - m / length).abs() < 1e-5);
            }
            let mut v = vec![0.0; dim];
            uniform(&mut rng, &mut v);
            let before = norm(&v);
            reflect_pole_onto(&mean, length, &mut v);
            prop_assert!((norm(&v) / before - 1.0).abs() < 1e-5);
        }

        #[test]
        fn draws_lie_on_the_sphere(dim in 2_usize..64, kappa in 0.0_f64..500.0, seed in 0_u64..100) {
            let mut rng = stream(seed, "sphere-test", &[]);
            let (mut mean, mut z) = (vec![0.0; dim], vec![0.0; dim]);
            uniform(&mut rng, &mut mean);
            VonMisesFisher::new(dim, kappa).unwrap().sample(&mean, &mut rng, &mut z);
            prop_assert!((norm(&z) - (dim as f32).sqrt()).abs() < 1e-3);
        }
    }
}
