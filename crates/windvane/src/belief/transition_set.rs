//! The paper's belief encoder `f_dyn`: a transformer over a set of transitions gives h, from which a predictor g tells what an
//! action does in a state.
//!
//! A token is (s, a, s' - s) over a held action. There are no positions, so order cannot matter. Beside the transformer a
//! perceptron sees the mean outer product of state and (action, change): recall of single places, which attention learns
//! slowly. g is trained on transitions of *other* episodes of the context's group: h has to hold what the group shares, which
//! is the dynamics.

use super::token_set::TokenSet;
use super::trainer::BeliefObjective;
use super::{BeliefConfig, BeliefEncoder, Evidence, Gaussian, Posterior, Posteriors, ood};
use crate::data::replay::{TOKEN_GAIN, Transitions};
use crate::data::{Codec, Replay};
use crate::error::LearnError;
use crate::nn::{
    Act, Init, Input, Linear, Mlp, MlpConfig, ParamId, Params, RowMlp, SetConfig, SetTransformer, Weights,
    read, upload, upload_indices,
};
use crate::train::Metrics;
use burn::tensor::activation::softplus;
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use std::sync::Arc;
use windvane_world::Action;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;

/// Log-std that h begins with: a wide one drowns what an untrained encoder has to say.
const FIRST_LOG_STD: f64 = -3.0;
/// The squared error of a prediction that halves an embedding's chance.
const HALVING_ERROR: f32 = 0.1;
/// Largest ood score of one transition: a wild one must not decide alone.
const LARGEST_SCORE: f32 = 100.0;
/// Weight of telling states of one group from those of another beside predicting changes.
const REACHABILITY: f64 = 0.1;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[FIRST_LOG_STD, REACHABILITY];
/// Contexts that go through the transformer at once; bounds memory, not results.
const CHUNK: usize = 64;

/// `f_dyn` with its predictor and their weights.
#[derive(Clone, Debug)]
pub struct TransitionSet {
    config: BeliefConfig,
    codec: Arc<Codec>,
    params: Params,
    encoder: SetTransformer,
    /// Mean and log-std of h: from what the transformer makes of the set, and from the mean outer product.
    read: Linear,
    recall: Mlp,
    predictor: PredictorNet,
    /// The predictor without h: what there is to beat, and what FB acts on.
    unconditioned: PredictorNet,
    /// An embedding of each training group, `[groups, dim]`.
    embeddings: ParamId,
    /// How much likelier a state is under h than in all data, as a logarithm.
    reachability: PredictorNet,
}

/// g(s, a, h): features of (s, a), times what h says about them.
#[derive(Clone, Debug)]
struct PredictorNet {
    act: Mlp,
    gain: Linear,
    trunk: Mlp,
}

impl PredictorNet {
    fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        config: &BeliefConfig,
        output: usize,
    ) -> Result<Self, LearnError> {
        let width = config.predictor_width;
        let mlp = |inputs: &[usize], output| MlpConfig::paper(inputs, &[width], output);
        Ok(Self {
            act: Mlp::new(params, &format!("{name}/act"), &mlp(&[input], width))?,
            gain: Linear::new(params, &format!("{name}/told"), &[config.dim], width)?,
            trunk: Mlp::new(params, &format!("{name}/trunk"), &mlp(&[width, width], output))?,
        })
    }

    /// `sa [rows, input]`, `h [groups, dim]`, as many rows for each group -> `[rows, output]`.
    fn forward(&self, weights: &Weights, sa: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let act = self.act.forward(weights, Input::One(sa)); // [rows, width]
        let gain = self.gain.forward(weights, Input::One(h), Act::None); // [groups, width]
        let ([rows, width], [groups, _]) = (act.dims(), gain.dims());
        let product = act.clone().reshape([groups, rows / groups, width]) * gain.reshape([groups, 1, width]);
        self.trunk.forward(weights, Input::Two(product.reshape([rows, width]), act))
    }
}

/// A predictor for one row of plain numbers at a time, under one belief.
#[derive(Debug)]
pub(crate) struct RowPredictor {
    act: RowMlp,
    trunk: RowMlp,
    gain: Vec<f32>,
    product: Vec<f32>,
}

impl RowPredictor {
    /// What an action changes, in units of the change scale: `sa [features + action]` -> `[dims]`.
    pub(crate) fn predict(&mut self, sa: &[f32]) -> &[f32] {
        let act = self.act.forward(&[sa]);
        self.product.clear();
        self.product.extend(act.iter().zip(&self.gain).map(|(act, gain)| act * gain));
        self.trunk.forward(&[&self.product, act])
    }
}

/// Sets of tokens of several lengths, filled up to the longest.
struct TokenBatch {
    /// `[sets * longest, token]`.
    tokens: Tensor<2>,
    lengths: Vec<usize>,
}

impl TransitionSet {
    /// An untrained encoder for what `codec` shows, with embeddings for so many groups.
    pub fn new(
        codec: Arc<Codec>,
        groups: usize,
        config: &BeliefConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let mut params = Params::new(device, seed);
        let BeliefConfig { dim, width, heads, blocks, .. } = *config;
        let set = SetConfig { input: codec.token_width(), width, heads, blocks, hidden: 4 * width };
        let encoder = SetTransformer::new(&mut params, "encoder", &set)?;
        let read = Linear::new(&mut params, "read", &[width], 2 * dim)?;
        let features = codec.observations().width();
        let outer = features * (1 + codec.token_width() - features);
        let recall = MlpConfig::paper(&[outer], &[config.predictor_width], 2 * dim);
        let recall = Mlp::new(&mut params, "recall", &recall)?;
        let (input, dims) = (features + codec.actions().width(), codec.dims());
        Ok(Self {
            predictor: PredictorNet::new(&mut params, "g", input, config, dims)?,
            unconditioned: PredictorNet::new(&mut params, "blind", input, config, dims)?,
            reachability: PredictorNet::new(&mut params, "there", features, config, 1)?,
            // Long random vectors are far apart from the first step on.
            embeddings: params.add("codes", [groups, dim], Init::Normal { std: 1.0 })?,
            config: config.clone(),
            codec,
            params,
            encoder,
            read,
            recall,
        })
    }

    /// How observations and actions look to it.
    pub fn codec(&self) -> &Arc<Codec> {
        &self.codec
    }

    /// Its weights, to read them from a file.
    pub fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    /// The embedding of each training group, `[groups * dim]`.
    pub fn embeddings(&self) -> Vec<f32> {
        read(self.params.get(self.embeddings).clone())
    }

    /// g on the device: what encoded actions `a [rows, width]` change in encoded states `s [rows, features]`, in units of the
    /// change scale, under `h [groups, dim]` with as many rows for each group; the unconditioned predictor without h. Its
    /// weights are constants, gradients pass to `s` and `a`.
    pub fn predict(&self, s: Tensor<2>, a: Tensor<2>, h: Option<Tensor<2>>) -> Tensor<2> {
        let weights = self.params.weights();
        let sa = Tensor::cat(vec![s, a], 1);
        match h {
            Some(h) => self.predictor.forward(&weights, sa, h),
            None => self.unconditioned.forward(&weights, sa, self.no_belief()),
        }
    }

    /// How much likelier encoded states `s [rows, features]` are under `h [1, dim]` than in all data, at most 1: `[rows]`.
    pub fn reachability(&self, s: Tensor<2>, h: Tensor<2>) -> Vec<f32> {
        let logits = read(self.reachability.forward(&self.params.weights(), s, h));
        logits.into_iter().map(|logit| logit.min(0.0).exp()).collect()
    }

    /// The predictor for single rows; [`Self::tell`] gives it a belief.
    pub(crate) fn row_predictor(&self, conditioned: bool) -> RowPredictor {
        let weights = self.params.weights();
        let net = if conditioned { &self.predictor } else { &self.unconditioned };
        let [act, trunk] = [&net.act, &net.trunk].map(|net| RowMlp::new(net, &weights));
        let gain = net.gain.forward(&weights, Input::One(self.no_belief()), Act::None);
        RowPredictor { act, trunk, gain: read(gain), product: Vec::new() }
    }

    /// Gives a predictor for single rows the belief `h [dim]`.
    pub(crate) fn tell(&self, row: &mut RowPredictor, h: &[f32]) {
        let h = upload(h.to_vec(), [1, h.len()], self.params.device());
        row.gain = read(self.predictor.gain.forward(&self.params.weights(), Input::One(h), Act::None));
    }

    fn no_belief(&self) -> Tensor<2> {
        Tensor::zeros([1, self.config.dim], self.params.device())
    }

    /// Sets of tokens as one batch.
    fn batch(&self, sets: &[&[f32]]) -> TokenBatch {
        let width = self.codec.token_width();
        let lengths: Vec<usize> = sets.iter().map(|set| set.len() / width).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0).max(1);
        let mut tokens = Vec::with_capacity(sets.len() * longest * width);
        for (i, set) in sets.iter().enumerate() {
            tokens.extend_from_slice(set);
            tokens.resize((i + 1) * longest * width, 0.0);
        }
        let tokens = upload(tokens, [sets.len() * longest, width], self.params.device());
        TokenBatch { tokens, lengths }
    }

    /// The Gaussian over h of each set.
    fn encode(&self, weights: &Weights, batch: &TokenBatch) -> Gaussian {
        let (sets, width) = (batch.lengths.len(), self.codec.token_width());
        let longest = batch.tokens.dims()[0] / sets;
        let pooled = self.encoder.forward(weights, batch.tokens.clone(), sets, Some(&batch.lengths)); // [sets, width]
        // The mean over real tokens of (1, action, change) times the state.
        let features = self.codec.observations().width();
        let share =
            |&length: &usize| (0..longest).map(move |i| if i < length { 1.0 / length as f32 } else { 0.0 });
        let shares = batch.lengths.iter().flat_map(share).collect();
        let shares: Tensor<3> = upload(shares, [sets, longest, 1], self.params.device());
        let tokens = batch.tokens.clone().reshape([sets, longest, width]);
        let state = tokens.clone().narrow(2, 0, features);
        let met = tokens.narrow(2, features, width - features) * shares.clone();
        let met = Tensor::cat(vec![shares, met], 2); // [sets, longest, 1 + action + change]
        let outer = met.swap_dims(1, 2).matmul(state).reshape([sets, features * (1 + width - features)]);
        let recall = self.recall.forward(weights, Input::One(outer)); // [sets, 2 * dim]
        let both = self.read.forward(weights, Input::One(pooled), Act::None) + recall;
        let dim = self.config.dim;
        Gaussian { mean: both.clone().narrow(1, 0, dim), log_std: both.narrow(1, dim, dim) + FIRST_LOG_STD }
    }

    /// The mean embedding given a set of tokens, by Bayes' rule with equal prior chances.
    fn mean_embedding(&self, set: &[f32]) -> Vec<f32> {
        let (embeddings, dim, width) = (self.embeddings(), self.config.dim, self.codec.token_width());
        let (count, features) = (set.len() / width, self.codec.observations().width());
        let mut log: Vec<f32> = vec![0.0; embeddings.len() / dim];
        if count > 0 {
            let s = set.chunks_exact(width).flat_map(|token| &token[..features]).copied().collect();
            let s: Tensor<2> = upload(s, [count, features], self.params.device());
            for (log, h) in log.iter_mut().zip(embeddings.chunks_exact(dim)) {
                let reachable =
                    self.reachability(s.clone(), upload(h.to_vec(), [1, dim], self.params.device()));
                // A heavy tail: one transition that the predictor gets wrong rules nothing out.
                let each = self.squared_errors(set, h).into_iter().zip(reachable);
                *log += each.map(|(e, r)| r.max(0.01).ln() - (1.0 + e / HALVING_ERROR).ln()).sum::<f32>();
            }
        }
        let best = log.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let chances: Vec<f32> = log.iter().map(|log| (log - best).exp()).collect();
        let total: f32 = chances.iter().sum();
        let mut mean = vec![0.0; dim];
        for (h, chance) in embeddings.chunks_exact(dim).zip(chances) {
            mean.iter_mut().zip(h).for_each(|(mean, x)| *mean += chance / total * x);
        }
        mean
    }

    /// The squared error of g under `h [dim]` on each token of a set, summed over coordinates, in units of the change scale.
    fn squared_errors(&self, set: &[f32], h: &[f32]) -> Vec<f32> {
        let (width, features) = (self.codec.token_width(), self.codec.observations().width());
        let (actions, dims) = (self.codec.actions().width(), self.codec.dims());
        let count = set.len() / width;
        let part = |from: usize, size: usize, gain: f32| {
            let tokens = set.chunks_exact(width).flat_map(|token| &token[from..from + size]);
            upload(tokens.map(|x| x / gain).collect(), [count, size], self.params.device())
        };
        let h = upload(h.to_vec(), [1, h.len()], self.params.device());
        let predicted = self.predict(part(0, features, 1.0), part(features, actions, TOKEN_GAIN), Some(h));
        let error = |(token, predicted): (&[f32], &[f32])| {
            let seen = token[width - dims..].iter().map(|x| x / TOKEN_GAIN);
            seen.zip(predicted).map(|(seen, predicted)| (seen - predicted).powi(2)).sum()
        };
        set.chunks_exact(width).zip(read(predicted).chunks_exact(dims)).map(error).collect()
    }

    /// The ood score of a set of tokens as [`BeliefEncoder::ood_score`] defines it.
    pub(crate) fn ood_of_tokens(&self, set: &[f32]) -> Option<f32> {
        let width = self.codec.token_width();
        if set.len() / width < ood::FEWEST {
            return None;
        }
        let half = |first: usize| -> Vec<f32> {
            set.chunks_exact(width).skip(first).step_by(2).flatten().copied().collect()
        };
        let h = self.infer_tokens(&[&half(0)]).mean;
        let errors = self.squared_errors(&half(1), &h);
        Some(errors.iter().map(|error| error.min(LARGEST_SCORE)).sum::<f32>() / errors.len() as f32)
    }

    /// The Gaussians of sets of tokens.
    pub(crate) fn infer_tokens(&self, sets: &[&[f32]]) -> Posteriors {
        let weights = self.params.weights();
        let mut all = Posteriors::default();
        for chunk in sets.chunks(CHUNK) {
            let Gaussian { mean, log_std } = self.encode(&weights, &self.batch(chunk));
            all.mean.extend(read(mean));
            all.std.extend(read(log_std.exp()));
        }
        if self.config.posterior == Posterior::Embeddings {
            all.mean = sets.iter().flat_map(|set| self.mean_embedding(set)).collect();
        }
        all
    }

    /// Most tokens that an online belief is formed from.
    pub(crate) fn most_tokens(&self) -> usize {
        (self.config.max_context / self.codec.action_repeat()).max(1)
    }
}

impl BeliefEncoder for TransitionSet {
    fn dim(&self) -> usize {
        self.config.dim
    }

    fn no_evidence(&self) -> Evidence {
        Evidence::Tokens(TokenSet::new(Vec::new(), self.codec.token_width(), self.most_tokens()))
    }

    fn observe(&self, evidence: &mut Evidence, walk: &Trajectory) {
        let Evidence::Tokens(set) = evidence else { return };
        let tokens = self.codec.tokens_of(walk);
        if set.is_empty() {
            // A first context is kept whole, however long it is.
            *set = TokenSet::new(tokens, self.codec.token_width(), self.most_tokens());
        } else {
            tokens.chunks_exact(self.codec.token_width()).for_each(|token| set.push(token));
        }
    }

    fn observe_step(&self, evidence: &mut Evidence, obs: &[f32], actions: &[Action<'_>]) -> bool {
        let Evidence::Tokens(set) = evidence else { return false };
        let mut token = Vec::with_capacity(self.codec.token_width());
        self.codec.push_tokens(actions.len(), obs, |step| actions[step], &mut token);
        if !token.is_empty() {
            set.push(&token);
        }
        !token.is_empty()
    }

    fn infer(&self, evidence: &[&Evidence]) -> Posteriors {
        let sets = evidence.iter().map(|evidence| match evidence {
            Evidence::Tokens(set) => set.tokens(),
            Evidence::States(..) => &[],
        });
        self.infer_tokens(&sets.collect::<Vec<_>>())
    }

    fn dynamics(&self, _: &[f32]) -> Option<Vec<f32>> {
        None
    }

    fn ood_score(&self, walk: &Trajectory) -> Option<f64> {
        self.ood_of_tokens(&self.codec.tokens_of(walk)).map(f64::from)
    }

    fn params(&self) -> &Params {
        &self.params
    }
}

/// The ELBO of a [`TransitionSet`]: from a context, predict transitions of other episodes of its group.
#[derive(Debug)]
pub(crate) struct TransitionSetObjective {
    model: TransitionSet,
    replay: Arc<Replay>,
    seed: u64,
}

impl TransitionSetObjective {
    /// The objective of an untrained encoder.
    pub(crate) fn new(
        replay: Arc<Replay>,
        config: &BeliefConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let model = TransitionSet::new(replay.codec().clone(), replay.groups(), config, seed, device)?;
        Ok(Self { model, replay, seed })
    }

    /// The encoder as it stands.
    pub(crate) fn model(&self) -> &TransitionSet {
        &self.model
    }
}

impl BeliefObjective for TransitionSetObjective {
    fn params(&self) -> &Params {
        &self.model.params
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.model.params
    }

    fn loss(&self, weights: &Weights, step: u64) -> (Tensor<1>, Metrics) {
        let (model, replay, device) = (&self.model, &self.replay, self.model.params.device());
        let BeliefConfig { dim, batch, queries, min_context, max_context, .. } = self.model.config;
        let mut rng = stream(self.seed, "belief-batch", &[step]);
        let (mut groups, mut contexts, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..batch {
            let group = replay.draw_group(&mut rng);
            let steps = rng.random_range(min_context..=max_context);
            contexts.push(replay.draw_context(&mut rng, group, steps));
            rows.extend((0..queries).map(|_| replay.draw(&mut rng, group)));
            groups.push(group as i64);
        }
        let longest = contexts.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let lengths: Vec<usize> = contexts.iter().map(Vec::len).collect();
        contexts.iter_mut().for_each(|rows| rows.resize(longest, 0));
        let contexts = TokenBatch { tokens: replay.tokens(replay.rows(&contexts.concat())), lengths };
        let Transitions { s, a, change, .. } = replay.transitions(replay.rows(&rows)); // [batch * queries, ..]
        let noise = StandardNormal.sample_iter(&mut rng).take(batch * dim).collect();

        let belief = model.encode(weights, &contexts);
        let h = belief.sample(upload(noise, [batch, dim], device)); // [batch, dim]
        let embedding = weights[model.embeddings].clone().select(0, upload_indices(groups, device)); // [batch, dim]
        let sa = Tensor::cat(vec![s.clone(), a], 1);
        let mse = |net: &PredictorNet, h: Tensor<2>| {
            (net.forward(weights, sa.clone(), h) - change.clone()).powf_scalar(2.0).mean()
        };
        // States of a group against those of another one in the batch.
        let reachability = |h: Tensor<2>| {
            let turned = Tensor::cat(vec![h.clone().narrow(0, 1, batch - 1), h.clone().narrow(0, 0, 1)], 0);
            let [own, other] = [h, turned].map(|h| model.reachability.forward(weights, s.clone(), h));
            (softplus(own.neg(), 1.0) + softplus(other, 1.0)).mean()
        };
        let prediction = mse(&model.predictor, h.clone());
        let unconditioned = mse(&model.unconditioned, model.no_belief());
        let (kl, reachable) =
            (belief.kl(), if batch > 1 { reachability(h) } else { Tensor::zeros([1], device) });
        let mut loss = prediction.clone()
            + unconditioned.clone()
            + kl.clone() * model.config.kl
            + reachable.clone() * REACHABILITY;
        let mut metrics = vec![("mse", prediction), ("unconditioned mse", unconditioned)];
        if model.config.embeddings > 0.0 {
            let known = mse(&model.predictor, embedding.clone());
            let distance = (belief.mean.clone() - embedding.clone().detach()).powf_scalar(2.0).mean();
            let known_reachable =
                if batch > 1 { reachability(embedding) } else { Tensor::zeros([1], device) };
            loss = loss
                + known.clone()
                + known_reachable * REACHABILITY
                + distance.clone() * model.config.embeddings;
            metrics.extend([("embedding mse", known), ("embedding distance", distance)]);
        }
        metrics.extend([("reachability", reachable), ("kl", kl)]);
        metrics.insert(0, ("loss", loss.clone()));
        (loss, metrics)
    }
}
