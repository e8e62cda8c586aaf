//! Networks on one row of plain numbers, or a few: acting takes microseconds, so it cannot afford tensors.
//!
//! The numbers agree with the tensor path up to rounding.

use super::kernels::gemm::{Mat, MatMut, Start, gemm_act};
use super::kernels::pool::Buffer;
use super::kernels::rows as kernel;
use super::kernels::simd::Level;
use super::mlp::{Linear, Mlp};
use super::ops::Act;
use super::pair::PairNet;
use super::params::{ParamId, Weights};
use super::transfer::read;

/// An [`Mlp`] with its weights, for a few rows at a time.
#[derive(Debug)]
pub struct RowMlp {
    layers: Vec<RowLayer>,
    /// Gain and shift of the first layer's LayerNorm.
    norm: Option<[Vec<f32>; 2]>,
    /// The first layer's output before its LayerNorm, and means and scales of its rows.
    scratch: Vec<f32>,
    stats: Vec<[f32; 2]>,
    /// The weights of the part that is fixed, and the first layer's bias without it.
    fixed: Option<(Matrix, Vec<f32>)>,
}

/// A [`PairNet`] with its weights, for a few rows at a time.
#[derive(Debug)]
pub struct RowPair {
    left: RowMlp,
    right: RowMlp,
    trunk: RowMlp,
}

#[derive(Debug)]
struct RowLayer {
    /// The weights of each input part that is not fixed.
    parts: Vec<Matrix>,
    b: Vec<f32>,
    act: Act,
    out: Vec<f32>,
}

struct Matrix {
    values: Buffer,
    rows: usize,
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({} x {})", self.rows, self.values.len() / self.rows)
    }
}

impl Matrix {
    fn new(weights: &Weights, id: ParamId) -> Self {
        let rows = weights[id].dims()[0];
        let from = read(weights[id].clone());
        let mut values = Buffer::new(from.len());
        values.copy_from_slice(&from);
        Self { values, rows }
    }

    /// `out = act(start + x w)`: `x [rows, k]`, `out [rows, n]`.
    fn multiply(&self, x: &[f32], rows: usize, out: &mut [f32], start: Start<'_>, act: Act) {
        let n = self.values.len() / self.rows;
        let (x, w) = (Mat::new(x, rows, self.rows), Mat::new(&self.values, self.rows, n));
        gemm_act(Level::current(), x, w, MatMut::new(out, rows, n), start, act, None);
    }
}

impl RowMlp {
    /// Copies a network's weights.
    pub fn new(net: &Mlp, weights: &Weights) -> Self {
        let (layers, norm) = net.parts();
        let norm = norm.map(|(gain, shift)| [gain, shift].map(|id| read(weights[id].clone())));
        Self { norm, ..Self::of_layers(layers, weights) }
    }

    /// Copies the weights of plain layers, each with its activation.
    pub fn of_layers(layers: &[(Linear, Act)], weights: &Weights) -> Self {
        let layers = layers.iter().map(|(layer, act)| {
            let (w, b) = layer.ids();
            let parts = w.iter().map(|&id| Matrix::new(weights, id)).collect();
            let b = read(weights[b].clone());
            RowLayer { parts, act: *act, out: Vec::new(), b }
        });
        let (scratch, stats) = (Vec::new(), Vec::new());
        Self { layers: layers.collect(), norm: None, scratch, stats, fixed: None }
    }

    /// Fixes the last part of the input, for instance belief and task while an episode lasts: its share of the first layer
    /// becomes part of the bias. Fixing it again replaces what it was.
    ///
    /// # Panics
    /// If the part has another width, or there is none.
    pub fn fix(&mut self, part: &[f32]) {
        let first = &mut self.layers[0];
        let take = || (first.parts.pop().expect("a part of the input to fix"), first.b.clone());
        let (w, b) = self.fixed.get_or_insert_with(take);
        w.multiply(part, 1, &mut first.b, Start::Bias(b), Act::None);
    }

    /// Numbers in a row of the output.
    pub fn width(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.b.len())
    }

    /// The outputs `[rows, n]` for the parts that are not fixed, each `[rows, k]`. A few rows cost little more than one: all
    /// go by while the weights are read.
    ///
    /// # Panics
    /// If there is another number of parts, or one has another width.
    pub fn forward(&mut self, parts: &[&[f32]]) -> &[f32] {
        let level = Level::current();
        assert_eq!(parts.len(), self.layers[0].parts.len(), "parts of the input");
        let rows = parts[0].len() / self.layers[0].parts[0].rows;
        for i in 0..self.layers.len() {
            let (done, rest) = self.layers.split_at_mut(i);
            let RowLayer { parts: w, b, act, out } = &mut rest[0];
            out.resize(rows * b.len(), 0.0);
            if let Some(below) = done.last() {
                w[0].multiply(&below.out, rows, out, Start::Bias(b), *act);
                continue;
            }
            let normed = self.norm.is_some();
            self.scratch.resize(if normed { out.len() } else { 0 }, 0.0);
            let sum: &mut [f32] = if normed { &mut self.scratch } else { out };
            for (part, (x, w)) in parts.iter().zip(w.iter()).enumerate() {
                assert_eq!(x.len(), rows * w.rows, "numbers of an input part");
                let act = if normed || part + 1 < parts.len() { Act::None } else { *act };
                let start = if part == 0 { Start::Bias(b) } else { Start::Add };
                w.multiply(x, rows, sum, start, act);
            }
            if let Some([gain, shift]) = &self.norm {
                self.stats.resize(rows, [0.0; 2]);
                kernel::layer_norm(level, &self.scratch, gain, shift, out, &mut self.stats);
                kernel::activate(level, Act::Tanh, out);
            }
        }
        self.layers.last().map_or(&[], |layer| &layer.out)
    }
}

impl RowPair {
    /// Copies a network's weights and fixes the last part of its right input, for instance `[h; z]`.
    pub fn new(net: &PairNet, weights: &Weights, fixed: &[f32]) -> Self {
        let [left, right, trunk] = net.parts().map(|net| RowMlp::new(net, weights));
        let mut pair = Self { left, right, trunk };
        pair.right.fix(fixed);
        pair
    }

    /// Fixes the last part of the right input anew.
    pub fn fix(&mut self, part: &[f32]) {
        self.right.fix(part);
    }

    /// The outputs for the left parts and the right part that is not fixed, of the same rows.
    pub fn forward(&mut self, left: &[&[f32]], right: &[f32]) -> &[f32] {
        let (left, right) = (self.left.forward(left), self.right.forward(&[right]));
        self.trunk.forward(&[left, right])
    }
}

#[cfg(test)]
mod tests {
    use super::RowPair;
    use crate::nn::{Input, PairConfig, PairNet, Params, read, upload};
    use burn::tensor::Device;

    #[test]
    fn a_row_gives_what_the_tensor_path_gives() {
        let device = Device::flex();
        let mut params = Params::new(&device, 3);
        let config = PairConfig {
            left: vec![2],
            right: vec![2, 3],
            preprocessor: vec![20, 33],
            embedding: 9,
            trunk: vec![17],
            output: 5,
        };
        let net = PairNet::new(&mut params, "actor", &config).unwrap();
        let (s, z) = ([0.3, -0.7], [1.0, 0.5, -2.0]);
        let (rows, tasks) =
            (upload(s.to_vec(), [1, s.len()], &device), upload(z.to_vec(), [1, z.len()], &device));
        let expected = net.forward(&params.weights(), Input::One(rows.clone()), Input::Two(rows, tasks));
        let mut row = RowPair::new(&net, &params.weights(), &z);
        let got = row.forward(&[&s], &s).to_vec();
        for (got, expected) in got.iter().zip(read(expected)) {
            // The fixed part enters its chain first instead of last: equal up to rounding.
            assert!((got - expected).abs() < 1e-6, "{got} {expected}");
        }
        assert_eq!(row.forward(&[&s], &s), got);
        for rows in 2..8 {
            let states: Vec<f32> = (0..rows * 2).map(|i| if i < 2 { s[i] } else { 0.1 * i as f32 }).collect();
            let all = row.forward(&[&states], &states).to_vec();
            for (state, out) in states.chunks(2).zip(all.chunks(5)) {
                assert_eq!(row.forward(&[state], state), out, "one of {rows} rows");
            }
            assert_eq!(all[..5], got);
        }
        row.fix(&[9.0, -9.0, 0.0]);
        assert_ne!(row.forward(&[&s], &s), got);
        row.fix(&z);
        assert_eq!(row.forward(&[&s], &s), got);
    }
}
