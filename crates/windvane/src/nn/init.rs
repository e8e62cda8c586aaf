//! First values of parameters, drawn from our own named streams.

use rand::RngExt as _;
use windvane_world::rng;

/// How a parameter begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Every element the same.
    Constant(f32),
    /// Uniform in `+-1/sqrt(fan_in)`: what PyTorch does for linear layers.
    Uniform {
        /// Number of inputs that are summed into one output.
        fan_in: usize,
    },
    /// Normal with this standard deviation.
    Normal {
        /// The standard deviation.
        std: f32,
    },
    /// Orthonormal rows or columns (whichever are fewer), times a gain.
    Orthogonal {
        /// The factor.
        gain: f32,
    },
}

impl Init {
    /// The first values of the parameter `name`: a function of seed and name alone, so that adding a layer changes no
    /// other layer.
    pub(crate) fn draw(self, seed: u64, name: &str, [rows, cols]: [usize; 2]) -> Vec<f32> {
        let mut rng = rng::stream(seed, &format!("weights/{name}"), &[]);
        let count = rows * cols;
        match self {
            Self::Constant(value) => vec![value; count],
            Self::Uniform { fan_in } => {
                let bound = 1.0 / (fan_in.max(1) as f32).sqrt();
                (0..count).map(|_| rng.random_range(-bound..=bound)).collect()
            }
            Self::Normal { std } => (0..count).map(|_| (f64::from(std) * normal(&mut rng)) as f32).collect(),
            Self::Orthogonal { gain } => orthogonal(&mut rng, rows, cols, f64::from(gain)),
        }
    }
}

/// One standard normal draw (Box-Muller): two uniforms for every normal, so a stream's place is easy to tell.
fn normal(rng: &mut rng::Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Gram-Schmidt, twice for accuracy, on normal vectors along the longer side.
fn orthogonal(rng: &mut rng::Rng, rows: usize, cols: usize, gain: f64) -> Vec<f32> {
    let (count, length) = (rows.min(cols), rows.max(cols));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut v: Vec<f64> = (0..length).map(|_| normal(rng)).collect();
        for other in basis.iter().chain(basis.iter()) {
            let along: f64 = v.iter().zip(other).map(|(a, b)| a * b).sum();
            v.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
        }
        let norm = v.iter().map(|a| a * a).sum::<f64>().sqrt();
        v.iter_mut().for_each(|a| *a /= norm);
        basis.push(v);
    }
    let at = |r: usize, c: usize| if rows <= cols { basis[r][c] } else { basis[c][r] };
    (0..rows * cols).map(|i| (gain * at(i / cols, i % cols)) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::Init;

    #[test]
    fn orthogonal_vectors_are_orthonormal_both_ways_round() {
        for [rows, cols] in [[5, 9], [9, 5], [1, 4], [4, 4]] {
            let w = Init::Orthogonal { gain: 1.0 }.draw(3, "w", [rows, cols]);
            let at = |i: usize, k: usize| if rows <= cols { w[i * cols + k] } else { w[k * cols + i] };
            for i in 0..rows.min(cols) {
                for j in 0..rows.min(cols) {
                    let dot: f32 = (0..rows.max(cols)).map(|k| at(i, k) * at(j, k)).sum();
                    assert!((dot - f32::from(u8::from(i == j))).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn values_depend_on_seed_and_name_alone() {
        let init = Init::Uniform { fan_in: 4 };
        assert_eq!(init.draw(1, "a", [4, 3]), init.draw(1, "a", [4, 3]));
        assert_ne!(init.draw(1, "a", [4, 3]), init.draw(1, "b", [4, 3]));
        assert_ne!(init.draw(1, "a", [4, 3]), init.draw(2, "a", [4, 3]));
        assert!(init.draw(1, "a", [40, 30]).iter().all(|x| x.abs() <= 0.5));
    }

    #[test]
    fn normal_draws_have_the_asked_spread() {
        let w = Init::Normal { std: 0.5 }.draw(1, "a", [100, 100]);
        let var = w.iter().map(|x| x * x).sum::<f32>() / 1e4;
        assert!((var.sqrt() - 0.5).abs() < 0.02, "{}", var.sqrt());
    }
}
