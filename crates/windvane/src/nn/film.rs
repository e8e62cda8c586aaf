//! A network of rows that is modulated by a condition of each group of rows (FiLM).

use super::error::NnError;
use super::mlp::{Input, Linear, Mlp, MlpConfig};
use super::ops::Act;
use super::params::{Params, Weights};
use super::row::RowMlp;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;

/// The shape of a [`FilmNet`].
#[derive(Clone, Debug, PartialEq)]
pub struct FilmConfig {
    /// Numbers in a row; for F: of s and a.
    pub input: usize,
    /// Numbers in a condition; for F: of `[h; z]`.
    pub condition: usize,
    /// The last numbers of a condition that rows have embeddings for; for F: d.
    pub embedding: usize,
    /// Width of all layers.
    pub width: usize,
    /// Width of the output.
    pub output: usize,
}

/// A network of rows, modulated by a condition; it also sees the product of each row's embedding with the end of the condition,
/// number by number and summed. For F: B(s) z.
#[derive(Clone, Debug)]
pub struct FilmNet {
    /// From the condition to gains and shifts.
    condition: Mlp,
    film: Linear,
    state: Linear,
    hidden: Linear,
    out: Linear,
}

impl FilmNet {
    /// Adds the network's parameters below `name`.
    pub fn new(params: &mut Params, name: &str, config: &FilmConfig) -> Result<Self, NnError> {
        let FilmConfig { input, condition, embedding, width, output } = *config;
        let condition = MlpConfig {
            norm_first: false,
            act: Act::Relu,
            last: Act::Relu,
            ..MlpConfig::paper(&[condition], &[width], width)
        };
        let condition = Mlp::new(params, &format!("{name}/task"), &condition)?;
        let mut layer = |part: &str, input: usize, output: usize| {
            Linear::new(params, &format!("{name}/{part}"), &[input], output)
        };
        Ok(Self {
            condition,
            film: layer("film", width, 2 * width)?,
            state: layer("state", input + embedding + 1, width)?,
            hidden: layer("hidden", width, width)?,
            out: layer("out", width, output)?,
        })
    }

    /// The output, `[rows, output]`, for the parts of rows `[rows, ..]` with embeddings `[rows, embedding]`, as many for each
    /// condition `[groups, condition]`.
    pub fn forward(
        &self,
        weights: &Weights,
        mut parts: Vec<Tensor<2>>,
        embedding: Tensor<2>,
        condition: Tensor<2>,
    ) -> Tensor<2> {
        let ([rows, dim], [groups, width]) = (embedding.dims(), condition.dims());
        let z = condition.clone().narrow(1, width - dim, dim).reshape([groups, 1, dim]);
        let product = (embedding.reshape([groups, rows / groups, dim]) * z).reshape([rows, dim]);
        parts.push(product.clone() * 0.5);
        parts.push(product.sum_dim(1) * (3.0 / dim as f64));
        let linear = |layer: &Linear, x: Tensor<2>, act: Act| layer.forward(weights, Input::One(x), act);
        let condition = self.condition.forward(weights, Input::One(condition)); // [groups, width]
        let film = linear(&self.film, condition, Act::None);
        let wide = film.dims()[1] / 2;
        let part = |k: usize| film.clone().narrow(1, k * wide, wide).reshape([groups, 1, wide]);
        let x = linear(&self.state, Tensor::cat(parts, 1), Act::None);
        let x = x.reshape([groups, rows / groups, wide]) * (part(0) + 1.0) + part(1);
        let x = linear(&self.hidden, relu(x.reshape([rows, wide])), Act::Relu);
        linear(&self.out, x, Act::None)
    }
}

/// A [`FilmNet`] with its weights, for a few rows of plain numbers at a time under one condition.
#[derive(Debug)]
pub struct RowFilm {
    /// The embedding before it is brought to its length, the square root of its width.
    embedding: RowMlp,
    condition: RowMlp,
    film: RowMlp,
    state: RowMlp,
    rest: RowMlp,
    /// The end of the condition; gains, then shifts.
    z: Vec<f32>,
    gains: Vec<f32>,
    /// What goes into the network of states, and into the rest.
    input: Vec<f32>,
    modulated: Vec<f32>,
}

impl RowFilm {
    /// Copies a network's weights, with the network of its embeddings, whose last `dim` numbers a condition ends with.
    pub fn new(net: &FilmNet, weights: &Weights, embedding: RowMlp, condition: &[f32], dim: usize) -> Self {
        let linear = |layers: &[(&Linear, Act)]| {
            let layers: Vec<_> = layers.iter().map(|(layer, act)| ((*layer).clone(), *act)).collect();
            RowMlp::of_layers(&layers, weights)
        };
        let mut row = Self {
            embedding,
            condition: RowMlp::new(&net.condition, weights),
            film: linear(&[(&net.film, Act::None)]),
            state: linear(&[(&net.state, Act::None)]),
            rest: linear(&[(&net.hidden, Act::Relu), (&net.out, Act::None)]),
            z: vec![0.0; dim],
            gains: Vec::new(),
            input: Vec::new(),
            modulated: Vec::new(),
        };
        row.fix(condition);
        row
    }

    /// Another condition.
    pub fn fix(&mut self, condition: &[f32]) {
        let dim = self.z.len();
        self.z.copy_from_slice(&condition[condition.len() - dim..]);
        self.gains = self.film.forward(&[self.condition.forward(&[condition])]).to_vec();
    }

    /// The outputs for states `[rows, ..]` and actions `[rows, ..]`, which may be empty.
    pub fn forward(&mut self, s: &[f32], a: &[f32]) -> &[f32] {
        let (dim, all) = (self.z.len(), self.embedding.forward(&[s]));
        let rows = all.len() / dim;
        let [s_width, a_width] = [s.len() / rows, a.len() / rows];
        self.input.clear();
        for (row, b) in all.chunks_exact(dim).enumerate() {
            let length = (dim as f32 / b.iter().map(|x| x * x).sum::<f32>().max(f32::MIN_POSITIVE)).sqrt();
            self.input.extend_from_slice(&s[row * s_width..][..s_width]);
            self.input.extend_from_slice(&a[row * a_width..][..a_width]);
            let product = self.input.len();
            self.input.extend(b.iter().zip(&self.z).map(|(b, z)| 0.5 * length * b * z));
            let along: f32 = self.input[product..].iter().sum();
            self.input.push(2.0 * along * 3.0 / dim as f32);
        }
        let (gain, shift) = self.gains.split_at(self.gains.len() / 2);
        self.modulated.clear();
        for x in self.state.forward(&[&self.input]).chunks_exact(gain.len()) {
            let x = x.iter().zip(gain).zip(shift);
            self.modulated.extend(x.map(|((x, gain), shift)| (x * (gain + 1.0) + shift).max(0.0)));
        }
        self.rest.forward(&[&self.modulated])
    }
}
