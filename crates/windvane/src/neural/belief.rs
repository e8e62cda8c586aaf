//! The belief encoder `f_dyn`: a transformer over a set of transitions gives h, from which a predictor g tells what an
//! action does in a state.
//!
//! A token is (s, a, s' - s) over a held action. There are no positions, so order cannot matter. Beside the transformer a
//! perceptron sees the bag of what was met where: recall of single places, which attention learns slowly. g is trained on
//! transitions of *other* episodes of the context's group: h has to hold what the group shares, which is the dynamics.

use super::config::{BeliefConfig, Source};
use super::lens::{LOUD, Lens};
use super::memory::Sets;
use crate::error::LearnError;
use crate::nn::{
    Act, Init, Input, Linear, Mlp, MlpConfig, ParamId, Params, RowMlp, SetConfig, SetTransformer, Weights,
    to_vec,
};
use burn::tensor::{Device, Tensor, TensorData};

/// The log-spread that h begins with: a wide one drowns what an untrained encoder has to say.
const SHARP: f64 = -3.0;
/// The squared error of a prediction that halves a code's chance.
const DOUBT: f32 = 0.1;
/// Sets that go through the transformer at once; bounds memory, not results.
const CHUNK: usize = 64;

/// A belief encoder with its predictor and their weights.
#[derive(Clone, Debug)]
pub struct NeuralBelief {
    pub(super) dim: usize,
    pub(super) token: usize,
    pub(super) features: usize,
    moves: usize,
    source: Source,
    pub(super) params: Params,
    encoder: SetTransformer,
    /// Mean and log-spread of h: from what the transformer makes of the set, and from the bag of what was met where.
    read: Linear,
    recall: Mlp,
    pub(super) predictor: Predictor,
    /// The predictor that is told nothing: what there is to beat, and what FB acts on.
    pub(super) blind: Predictor,
    /// A code for each group, `[groups, dim]`.
    pub(super) codes: ParamId,
    /// How much likelier a state is under h than in all data, as a logarithm: whether one can be there at all.
    pub(super) there: Predictor,
}

/// g(s, a, h): what is done here, times what h says about it.
#[derive(Clone, Debug)]
pub(super) struct Predictor {
    act: Mlp,
    told: Linear,
    trunk: Mlp,
}

impl Predictor {
    fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        config: &BeliefConfig,
        dims: usize,
    ) -> Result<Self, LearnError> {
        let width = config.predictor;
        let mlp = |inputs: &[usize], output| MlpConfig::paper(inputs, &[width], output);
        Ok(Self {
            act: Mlp::new(params, &format!("{name}/act"), &mlp(&[input], width))?,
            told: Linear::new(params, &format!("{name}/told"), &[config.dim], width)?,
            trunk: Mlp::new(params, &format!("{name}/trunk"), &mlp(&[width, width], dims))?,
        })
    }

    /// `sa [rows, input]`, `h [groups, dim]`, as many rows for each group -> `[rows, dims]`.
    pub(super) fn forward(&self, weights: &Weights, sa: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let act = self.act.forward(weights, Input::One(sa)); // [rows, width]
        let told = self.told.forward(weights, Input::One(h), Act::None); // [groups, width]
        let ([rows, width], [groups, _]) = (act.dims(), told.dims());
        let told = told.reshape([groups, 1, width]);
        let product = act.clone().reshape([groups, rows / groups, width]) * told;
        self.trunk.forward(weights, Input::Two(product.reshape([rows, width]), act))
    }
}

/// A predictor for one row of plain numbers at a time, under one belief.
#[derive(Debug)]
pub(super) struct RowPredictor {
    act: RowMlp,
    trunk: RowMlp,
    told: Vec<f32>,
    product: Vec<f32>,
}

impl RowPredictor {
    /// What a move changes, in usual changes: `sa [features + move]` -> `[dims]`.
    pub(super) fn predict(&mut self, sa: &[f32]) -> &[f32] {
        let act = self.act.forward(&[sa]);
        self.product.clear();
        self.product.extend(act.iter().zip(&self.told).map(|(act, told)| act * told));
        self.trunk.forward(&[&self.product, act])
    }
}

impl NeuralBelief {
    /// An untrained encoder for what `lens` shows, and codes for so many groups.
    pub fn new(
        lens: &Lens,
        groups: usize,
        config: &BeliefConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let mut params = Params::new(device, seed);
        let set = SetConfig {
            input: lens.token(),
            width: config.width,
            heads: config.heads,
            blocks: config.blocks,
            hidden: 4 * config.width,
        };
        let encoder = SetTransformer::new(&mut params, "encoder", &set)?;
        let read = Linear::new(&mut params, "read", &[config.width], 2 * config.dim)?;
        let features = lens.features().width();
        let bag = features * (1 + lens.token() - features);
        let recall = MlpConfig::paper(&[bag], &[config.predictor], 2 * config.dim);
        let recall = Mlp::new(&mut params, "recall", &recall)?;
        let (input, dims) = (lens.features().width() + lens.moves().width(), lens.change().len());
        let predictor = Predictor::new(&mut params, "g", input, config, dims)?;
        let blind = Predictor::new(&mut params, "blind", input, config, dims)?;
        let there = Predictor::new(&mut params, "there", features, config, 1)?;
        // Long random vectors are far apart from the first step on.
        let codes = params.add("codes", [groups, config.dim], Init::Normal { std: 1.0 })?;
        Ok(Self {
            dim: config.dim,
            token: lens.token(),
            features,
            moves: lens.moves().width(),
            source: Source::Encoder,
            params,
            encoder,
            read,
            recall,
            predictor,
            blind,
            codes,
            there,
        })
    }

    /// The same belief with h from elsewhere.
    #[must_use]
    pub fn from_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// Numbers in h.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The means of h for sets of tokens, `[sets * dim]`.
    pub fn infer(&self, sets: &[Vec<f32>]) -> Vec<f32> {
        if self.source == Source::Codes {
            return sets.iter().flat_map(|set| self.posterior(set)).collect();
        }
        let weights = self.params.weights();
        let mut means = Vec::with_capacity(sets.len() * self.dim);
        for chunk in sets.chunks(CHUNK) {
            let (mean, _) = self.encode(&weights, &Sets::join(chunk, self.token, self.features));
            means.extend(to_vec(mean));
        }
        means
    }

    /// The spread of h for sets of tokens, one standard deviation for each number, `[sets * dim]`.
    pub fn spread(&self, sets: &[Vec<f32>]) -> Vec<f32> {
        let weights = self.params.weights();
        let mut spreads = Vec::with_capacity(sets.len() * self.dim);
        for chunk in sets.chunks(CHUNK) {
            let (_, log_std) = self.encode(&weights, &Sets::join(chunk, self.token, self.features));
            spreads.extend(to_vec(log_std.exp()));
        }
        spreads
    }

    /// The mean code given a set of tokens, by Bayes' rule with equal prior chances.
    fn posterior(&self, set: &[f32]) -> Vec<f32> {
        let codes = self.codes();
        let count = set.len() / self.token;
        let mut log: Vec<f32> = vec![0.0; codes.len() / self.dim];
        if count > 0 {
            let s = set.chunks_exact(self.token).flat_map(|token| &token[..self.features]).copied();
            let s = self.constant(s.collect(), [count, self.features]);
            for (log, code) in log.iter_mut().zip(codes.chunks_exact(self.dim)) {
                let support = self.support(s.clone(), self.constant(code.to_vec(), [1, self.dim]));
                // A heavy tail: one push that the predictor gets wrong rules nothing out.
                let each = self.misses(set, code).into_iter().zip(support);
                *log += each
                    .map(|(miss, support)| support.max(0.01).ln() - (1.0 + miss / DOUBT).ln())
                    .sum::<f32>();
            }
        }
        let best = log.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let chances: Vec<f32> = log.iter().map(|log| (log - best).exp()).collect();
        let total: f32 = chances.iter().sum();
        let mut mean = vec![0.0; self.dim];
        for (code, chance) in codes.chunks_exact(self.dim).zip(chances) {
            mean.iter_mut().zip(code).for_each(|(mean, x)| *mean += chance / total * x);
        }
        mean
    }

    /// The squared error of the predictor under `h [dim]` on each token of a set, over all coordinates, in usual changes.
    pub fn misses(&self, set: &[f32], h: &[f32]) -> Vec<f32> {
        let (sa, count) = self.queries(set);
        let dims = self.token - self.features - self.moves;
        let change = to_vec(self.predict(sa, Some(self.constant(h.to_vec(), [1, self.dim]))));
        debug_assert_eq!(change.len(), count * dims);
        let miss = |(token, change): (&[f32], &[f32])| {
            let seen = token[self.token - dims..].iter().map(|x| x / LOUD);
            seen.zip(change).map(|(seen, told)| (seen - told).powi(2)).sum()
        };
        set.chunks_exact(self.token).zip(change.chunks_exact(dims)).map(miss).collect()
    }

    /// States and moves of a set of tokens as the predictor takes them, and their number.
    fn queries(&self, set: &[f32]) -> (Tensor<2>, usize) {
        let count = set.len() / self.token;
        let mut sa = Vec::with_capacity(count * (self.features + self.moves));
        for token in set.chunks_exact(self.token) {
            sa.extend_from_slice(&token[..self.features]);
            sa.extend(token[self.features..][..self.moves].iter().map(|x| x / LOUD));
        }
        (self.constant(sa, [count, self.features + self.moves]), count)
    }

    /// What actions change, in units of each coordinate's usual change: `sa [rows, features + move]` and, unless nothing is
    /// known, `h [groups, dim]` with as many rows for each group -> `[rows, dims]`.
    pub fn predict(&self, sa: Tensor<2>, h: Option<Tensor<2>>) -> Tensor<2> {
        let weights = self.params.weights();
        match h {
            Some(h) => self.predictor.forward(&weights, sa, h),
            None => self.blind.forward(&weights, sa, self.nothing()),
        }
    }

    /// The predictor for single rows; [`Self::tell`] gives it a belief.
    pub(super) fn row_predictor(&self, knows: bool) -> RowPredictor {
        let weights = self.params.weights();
        let net = if knows { &self.predictor } else { &self.blind };
        let [act, trunk] = [&net.act, &net.trunk].map(|net| RowMlp::new(net, &weights));
        let mut row = RowPredictor { act, trunk, told: Vec::new(), product: Vec::new() };
        if !knows {
            row.told = to_vec(net.told.forward(&weights, Input::One(self.nothing()), Act::None));
        }
        row
    }

    /// Gives a predictor for single rows the belief `h [dim]`.
    pub(super) fn tell(&self, row: &mut RowPredictor, h: &[f32]) {
        let h = self.constant(h.to_vec(), [1, self.dim]);
        row.told = to_vec(self.predictor.told.forward(&self.params.weights(), Input::One(h), Act::None));
    }

    /// How much likelier states `s [rows, features]` are under `h [1, dim]` than in all data, at most 1: `[rows]`.
    pub fn support(&self, s: Tensor<2>, h: Tensor<2>) -> Vec<f32> {
        let logits = to_vec(self.there.forward(&self.params.weights(), s, h));
        logits.into_iter().map(|logit| logit.min(0.0).exp()).collect()
    }

    /// The code of each group, `[groups * dim]`.
    pub fn codes(&self) -> Vec<f32> {
        to_vec(self.params.get(self.codes).clone())
    }

    /// A belief that says nothing.
    pub(super) fn nothing(&self) -> Tensor<2> {
        Tensor::zeros([1, self.dim], self.params.device())
    }

    /// Mean and log-spread of h, `[sets, dim]` each.
    pub(super) fn encode(&self, weights: &Weights, sets: &Sets) -> (Tensor<2>, Tensor<2>) {
        let count = sets.lengths.len();
        let tokens = self.constant(sets.tokens.clone(), [sets.tokens.len() / self.token, self.token]);
        let pooled = self.encoder.forward(weights, tokens, count, Some(&sets.lengths)); // [sets, width]
        let bags = self.constant(sets.bags.clone(), [count, sets.bags.len() / count]);
        let recall = self.recall.forward(weights, Input::One(bags)); // [sets, 2 * dim]
        let read = self.read.forward(weights, Input::One(pooled), Act::None) + recall;
        let mean = read.clone().slice([0..count, 0..self.dim]);
        (mean, read.slice([0..count, self.dim..2 * self.dim]) + SHARP)
    }

    pub(super) fn constant<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values, shape), self.params.device())
    }
}

/// Rows of `a` and `b` side by side.
pub(super) fn joined(a: &[f32], a_width: usize, b: &[f32], b_width: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    for (a, b) in a.chunks_exact(a_width).zip(b.chunks_exact(b_width)) {
        out.extend_from_slice(a);
        out.extend_from_slice(b);
    }
    out
}
