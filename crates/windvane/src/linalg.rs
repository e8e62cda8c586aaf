//! The little linear algebra that is needed on the host.

/// Solves `a x = rhs` in place, in f64, for symmetric positive `a [n * n]` (lower triangle given) and `columns` right-hand sides.
pub(crate) fn cholesky_solve(a: &mut [f64], n: usize, rhs: &mut [f64], columns: usize) {
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let left = a[i * n + j] - dot;
            a[i * n + j] = if i == j { left.max(1e-12).sqrt() } else { left / a[j * n + j] };
        }
    }
    let mut eliminate = |i: usize, others: &mut dyn Iterator<Item = (usize, f64)>| {
        for (k, factor) in others {
            for c in 0..columns {
                rhs[i * columns + c] -= factor * rhs[k * columns + c];
            }
        }
        rhs[i * columns..(i + 1) * columns].iter_mut().for_each(|x| *x /= a[i * n + i]);
    };
    (0..n).for_each(|i| eliminate(i, &mut (0..i).map(|k| (k, a[i * n + k]))));
    (0..n).rev().for_each(|i| eliminate(i, &mut (i + 1..n).map(|k| (k, a[k * n + i]))));
}

/// The mean of rows `[count * width]`; zeros of none.
pub(crate) fn mean_of_rows(rows: &[f32], width: usize) -> Vec<f32> {
    let count = (rows.len() / width.max(1)).max(1) as f32;
    let mut mean = vec![0.0; width];
    for row in rows.chunks_exact(width.max(1)) {
        mean.iter_mut().zip(row).for_each(|(m, x)| *m += x / count);
    }
    mean
}

/// The sum of `weights [rows]` times `x x^T` over rows `x [rows * n]`, lower triangle, `[n * n]`; a ridge is added, as a share of the
/// mean of its diagonal.
pub(crate) fn gram(rows: &[f32], weights: &[f32], n: usize, ridge: f64) -> Vec<f64> {
    let mut gram = vec![0.0; n * n];
    for (row, weight) in rows.chunks_exact(n).zip(weights) {
        for (i, x) in row.iter().enumerate() {
            let factor = f64::from(*weight) * f64::from(*x);
            gram[i * n..][..=i].iter_mut().zip(row).for_each(|(g, y)| *g += factor * f64::from(*y));
        }
    }
    let ridge = ridge * (0..n).map(|i| gram[i * n + i]).sum::<f64>() / n as f64;
    (0..n).for_each(|i| gram[i * n + i] += ridge.max(1e-12));
    gram
}

/// Eigenvalues, largest first, and eigenvectors (row by row) of symmetric `a [n * n]`, by Jacobi's rotations.
pub(crate) fn eigen(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i / n == i % n))).collect();
    let size: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..60 {
        let off: f64 = (0..n * n).filter(|i| i / n != i % n).map(|i| a[i] * a[i]).sum();
        if off <= 1e-22 * size {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut vectors, n, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[j * n + j].total_cmp(&a[i * n + i]));
    let values = order.iter().map(|&i| a[i * n + i]).collect();
    let vectors = order.iter().flat_map(|&i| vectors[i * n..(i + 1) * n].to_vec()).collect();
    (values, vectors)
}

/// Makes `a[p, q]` zero by turning the plane of axes p and q.
fn rotate(a: &mut [f64], vectors: &mut [f64], n: usize, p: usize, q: usize) {
    let apq = a[p * n + q];
    if apq == 0.0 {
        return;
    }
    let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let t = if theta == 0.0 { 1.0 } else { t };
    let cos = 1.0 / (t * t + 1.0).sqrt();
    let sin = t * cos;
    let turn = |x: f64, y: f64| (cos * x - sin * y, sin * x + cos * y);
    for k in 0..n {
        (a[k * n + p], a[k * n + q]) = turn(a[k * n + p], a[k * n + q]);
    }
    for k in 0..n {
        (a[p * n + k], a[q * n + k]) = turn(a[p * n + k], a[q * n + k]);
        (vectors[p * n + k], vectors[q * n + k]) = turn(vectors[p * n + k], vectors[q * n + k]);
    }
}

/// How many directions eigenvalues are spread over: the exponential of their entropy.
pub(crate) fn effective_rank(values: &[f64]) -> f64 {
    let total: f64 = values.iter().map(|x| x.max(0.0)).sum();
    let shares = values.iter().map(|x| x.max(0.0) / total.max(1e-300)).filter(|share| *share > 0.0);
    (-shares.map(|share| share * share.ln()).sum::<f64>()).exp()
}

/// A linear map of rows of features and a constant: a row of weights for each feature, the constant last.
#[derive(Clone, Debug)]
pub(crate) struct LinearMap {
    weights: Vec<f64>,
    outputs: usize,
}

impl LinearMap {
    /// Ridge regression of `targets [count * outputs]` on `features [count * width]`. `ridge` gives the ridge from the mean of the
    /// features' sums of squares.
    pub(crate) fn fit(
        features: &[f32],
        targets: &[f64],
        count: usize,
        ridge: impl FnOnce(f64) -> f64,
    ) -> Self {
        let (width, outputs) = (features.len() / count.max(1) + 1, targets.len() / count.max(1));
        let (mut gram, mut weights) = (vec![0.0; width * width], vec![0.0; width * outputs]);
        for (row, target) in
            features.chunks_exact((width - 1).max(1)).zip(targets.chunks_exact(outputs.max(1)))
        {
            let row = with_constant(row);
            for (i, x) in row.iter().enumerate() {
                gram[i * width..][..=i].iter_mut().zip(&row).for_each(|(g, y)| *g += x * y);
                let weights = &mut weights[i * outputs..][..outputs];
                weights.iter_mut().zip(target).for_each(|(w, t)| *w += x * t);
            }
        }
        let ridge = ridge((0..width).map(|i| gram[i * width + i]).sum::<f64>() / width as f64);
        (0..width).for_each(|i| gram[i * width + i] += ridge);
        cholesky_solve(&mut gram, width, &mut weights, outputs);
        Self { weights, outputs }
    }

    /// What it makes of one row, `[outputs]`.
    pub(crate) fn apply(&self, row: &[f32]) -> Vec<f64> {
        let mut out = vec![0.0; self.outputs];
        for (x, weights) in with_constant(row).iter().zip(self.weights.chunks_exact(self.outputs.max(1))) {
            out.iter_mut().zip(weights).for_each(|(out, w)| *out += x * w);
        }
        out
    }
}

fn with_constant(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).chain([1.0]).collect()
}

/// Trains a linear classifier on rows of `x [count * width]` by ridge regression to one-hot labels, and returns the share
/// of the rows of `test` whose class it names.
pub(crate) fn linear_probe(
    x: &[f32],
    labels: &[usize],
    test: &[f32],
    test_labels: &[usize],
    classes: usize,
) -> f64 {
    let one_hot = |label: usize| (0..classes).map(move |class| f64::from(u8::from(class == label)));
    let targets: Vec<f64> = labels.iter().copied().flat_map(one_hot).collect();
    let map = LinearMap::fit(x, &targets, labels.len(), |size| 1e-3 * size);
    let width = x.len() / labels.len().max(1);
    let named = |row: &[f32]| {
        let scores = map.apply(row);
        (0..classes).max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
    };
    let rows = test.chunks_exact(width.max(1)).zip(test_labels);
    let right = rows.filter(|(row, label)| named(row) == Some(**label)).count();
    right as f64 / test_labels.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_are_turned_into_multiples_of_themselves() {
        let n = 7;
        let a: Vec<f64> = (0..n * n).map(|i| ((i / n + 1) * (i % n + 1)) as f64 % 5.0).collect();
        let a: Vec<f64> = (0..n * n).map(|i| a[i] + a[i % n * n + i / n]).collect();
        let (values, vectors) = eigen(a.clone(), n);
        assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
        for (value, v) in values.iter().zip(vectors.chunks_exact(n)) {
            for (i, row) in a.chunks_exact(n).enumerate() {
                let product: f64 = row.iter().zip(v).map(|(a, v)| a * v).sum();
                assert!((product - value * v[i]).abs() < 1e-9, "{product} is not {value} * {}", v[i]);
            }
        }
        let trace: f64 = (0..n).map(|i| a[i * n + i]).sum();
        assert!((values.iter().sum::<f64>() - trace).abs() < 1e-9);
    }

    #[test]
    fn equal_eigenvalues_have_full_rank_and_one_has_rank_one() {
        assert!((effective_rank(&[2.0; 5]) - 5.0).abs() < 1e-12);
        assert!((effective_rank(&[3.0, 0.0, 0.0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_probe_names_what_is_linear_and_guesses_what_is_not_there() {
        let x: Vec<f32> = (0..60).flat_map(|i| [f32::from(u8::from(i % 3 == 0)), (i % 3) as f32]).collect();
        let labels: Vec<usize> = (0..60).map(|i| i % 3).collect();
        assert_eq!(linear_probe(&x, &labels, &x, &labels, 3), 1.0);
        let nothing = vec![1.0; 120];
        assert!((linear_probe(&nothing, &labels, &nothing, &labels, 3) - 1.0 / 3.0).abs() < 1e-9);
    }
}
