//! The paper's belief encoder `f_dyn`: a transformer over a set of transitions gives h, from which a predictor g tells what an
//! action does in a state.
//!
//! A token is (s, a, s' - s) over a held action. There are no positions, so order cannot matter. Beside the transformer a
//! perceptron sees the mean outer product of state and (action, change): what was met in single places, which attention learns
//! slowly. g is trained on transitions of *other* episodes of the context's group: h has to hold what the group shares, which
//! is the dynamics.

use super::predictor::{PredictorNet, RowPredictor, linear_parts};
use super::regression::{self, Measured, SMALLEST_NOISE};
use super::token_set::TokenSet;
use super::trainer::BeliefObjective;
use super::{BeliefConfig, BeliefEncoder, Decoder, Evidence, Gaussian, Posterior, Posteriors, ood};
use crate::data::replay::{TOKEN_GAIN, Transitions};
use crate::data::{Codec, Replay};
use crate::error::Result;
use crate::nn::{
    Act, Init, Input, Linear, Mlp, MlpConfig, ParamId, Params, SetConfig, SetTransformer, Weights, read,
    upload, upload_indices,
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
/// Largest ood score of one transition: a wild one must not decide alone.
const LARGEST_SCORE: f32 = 100.0;
/// Weight of telling states of one group from those of another beside predicting changes.
const REACHABILITY: f64 = 0.1;
/// Weight of the likelihood that the size of the predictor's error is learned by.
const NOISE: f64 = 0.1;
/// Hidden width of the network that tells it.
const NOISE_WIDTH: usize = 64;
/// Squared errors count by their noise to the power of minus this: 0 lets collisions drown what little a wind does, 2 (the
/// likelihood) lets coordinates that move without noise drown all others.
const NOISE_POWER: f64 = 1.0;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[FIRST_LOG_STD, REACHABILITY, NOISE, NOISE_WIDTH as f64, NOISE_POWER];
/// Contexts that go through the transformer at once; bounds memory, not results.
const CHUNK: usize = 64;

/// `f_dyn` with its predictor and their weights.
#[derive(Clone, Debug)]
pub(crate) struct TransitionSet {
    pub(super) config: BeliefConfig,
    pub(crate) codec: Arc<Codec>,
    pub(crate) params: Params,
    /// Nothing where h is read through a linear decoder.
    encoder: Option<Amortised>,
    predictor: PredictorNet,
    /// Logarithm of the standard deviation of its error in each coordinate, from (s, a): where a body hits the ground nothing is
    /// foretold well, and what happens there must not outweigh the rest.
    noise: Mlp,
    /// The predictor without h: what there is to beat, and what FB acts on.
    unconditioned: PredictorNet,
    /// An embedding of each training group, `[groups, dim]`.
    embeddings: ParamId,
    /// How much likelier a state is under h than in all data, as a logarithm; nothing with a linear decoder.
    reachability: Option<PredictorNet>,
}

/// The transformer with its readouts.
#[derive(Clone, Debug)]
struct Amortised {
    transformer: SetTransformer,
    /// Mean and log-std of h: from what the transformer makes of the set, and from the mean outer product.
    read: Linear,
    read_outer: Mlp,
}

impl Amortised {
    fn new(params: &mut Params, token: usize, features: usize, config: &BeliefConfig) -> Result<Self> {
        let BeliefConfig { dim, width, heads, blocks, .. } = *config;
        let set = SetConfig { input: token, width, heads, blocks, hidden: 4 * width };
        let outer = features * (1 + token - features);
        let read_outer = MlpConfig::paper(&[outer], &[config.predictor_width], 2 * dim);
        Ok(Self {
            transformer: SetTransformer::new(params, "encoder", &set)?,
            read: Linear::new(params, "read", &[width], 2 * dim)?,
            read_outer: Mlp::new(params, "recall", &read_outer)?,
        })
    }
}

impl TransitionSet {
    /// An untrained encoder for what `codec` shows, with embeddings for so many groups.
    pub(crate) fn new(
        codec: Arc<Codec>,
        groups: usize,
        config: &BeliefConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let mut params = Params::new(device, seed);
        let features = codec.observations.width();
        let encoder = match config.posterior {
            Posterior::Regression => None,
            Posterior::Encoder => Some(Amortised::new(&mut params, codec.token_width(), features, config)?),
        };
        let reachability = match config.decoder {
            Decoder::Gated => Some(PredictorNet::new(&mut params, "there", features, config, 1)?),
            Decoder::Linear => None,
        };
        let (input, dims) = (features + codec.actions.width(), codec.dims());
        Ok(Self {
            predictor: PredictorNet::new(&mut params, "g", input, config, dims)?,
            unconditioned: PredictorNet::new(&mut params, "blind", input, config, dims)?,
            // Long random vectors are far apart from the first step on.
            embeddings: params.add("codes", [groups, config.dim], Init::Normal { std: 1.0 })?,
            noise: Mlp::new(&mut params, "noise", &MlpConfig::paper(&[input], &[NOISE_WIDTH], dims))?,
            reachability,
            config: config.clone(),
            codec,
            params,
            encoder,
        })
    }

    /// The embedding of each training group, `[groups * dim]`.
    pub(crate) fn embeddings(&self) -> Vec<f32> {
        read(self.params.get(self.embeddings).clone())
    }

    /// g on the device: what encoded actions `a [rows, width]` change in encoded states `s [rows, features]`, in units of the
    /// change scale, under `h [groups, dim]` with as many rows for each group; the unconditioned predictor without h. Its
    /// weights are constants, gradients pass to `s` and `a`.
    pub(crate) fn predict(&self, s: Tensor<2>, a: Tensor<2>, h: Option<Tensor<2>>) -> Tensor<2> {
        let weights = self.params.weights();
        let sa = Tensor::cat(vec![s, a], 1);
        match h {
            Some(h) => self.predictor.forward(&weights, sa, h),
            None => self.unconditioned.forward(&weights, sa, self.no_belief()),
        }
    }

    /// How much likelier encoded states `s [rows, features]` are under `h [1, dim]` than in all data, at most 1: `[rows]`.
    pub(crate) fn reachability(&self, s: Tensor<2>, h: Tensor<2>) -> Vec<f32> {
        let Some(net) = &self.reachability else { return vec![1.0; s.dims()[0]] };
        let logits = read(net.forward(&self.params.weights(), s, h));
        logits.into_iter().map(|logit| logit.min(0.0).exp()).collect()
    }

    /// The predictor for single rows.
    pub(crate) fn row_predictor(&self, conditioned: bool) -> RowPredictor {
        let net = if conditioned { &self.predictor } else { &self.unconditioned };
        RowPredictor::new(net, &self.params.weights(), self.config.dim)
    }

    fn no_belief(&self) -> Tensor<2> {
        Tensor::zeros([1, self.config.dim], self.params.device())
    }

    /// The Gaussian over h of each set of `tokens [sets * longest, token]`, filled up to the longest.
    fn encode(&self, net: &Amortised, weights: &Weights, tokens: Tensor<2>, lengths: &[usize]) -> Gaussian {
        let (sets, width) = (lengths.len(), self.codec.token_width());
        let longest = tokens.dims()[0] / sets;
        let pooled = net.transformer.forward(weights, tokens.clone(), sets, Some(lengths)); // [sets, width]
        // The mean over real tokens of (1, action, change) times the state.
        let features = self.codec.observations.width();
        let share =
            |&length: &usize| (0..longest).map(move |i| if i < length { 1.0 / length as f32 } else { 0.0 });
        let shares = lengths.iter().flat_map(share).collect();
        let shares: Tensor<3> = upload(shares, [sets, longest, 1], self.params.device());
        let tokens = tokens.reshape([sets, longest, width]);
        let state = tokens.clone().narrow(2, 0, features);
        let met = tokens.narrow(2, features, width - features) * shares.clone();
        let met = Tensor::cat(vec![shares, met], 2); // [sets, longest, 1 + action + change]
        let outer = met.swap_dims(1, 2).matmul(state).reshape([sets, features * (1 + width - features)]);
        let outer = net.read_outer.forward(weights, Input::One(outer)); // [sets, 2 * dim]
        let both = net.read.forward(weights, Input::One(pooled), Act::None) + outer;
        let dim = self.config.dim;
        Gaussian { mean: both.clone().narrow(1, 0, dim), log_std: both.narrow(1, dim, dim) + FIRST_LOG_STD }
    }

    /// The ood score of a set of tokens as [`BeliefEncoder::ood_score`] defines it.
    pub(crate) fn ood_of_tokens(&self, set: &[f32]) -> Option<f32> {
        let (width, dims) = (self.codec.token_width(), self.codec.dims());
        if set.len() / width < ood::FEWEST {
            return None;
        }
        let half = |first: usize| -> Vec<f32> {
            set.chunks_exact(width).skip(first).step_by(2).flatten().copied().collect()
        };
        let h = upload(self.infer_tokens(&[&half(0)]).mean, [1, self.config.dim], self.params.device());
        let (sa, changes) = self.parts(&half(1));
        let predicted = read(self.predictor.forward(&self.params.weights(), sa, h));
        let error = |(change, predicted): (&[f32], &[f32])| {
            let squares =
                change.iter().zip(predicted).map(|(change, predicted)| (change - predicted).powi(2));
            squares.sum::<f32>().min(LARGEST_SCORE)
        };
        let errors = changes.chunks_exact(dims).zip(predicted.chunks_exact(dims)).map(error);
        Some(errors.sum::<f32>() / (changes.len() / dims) as f32)
    }

    /// The Gaussians of sets of tokens.
    pub(crate) fn infer_tokens(&self, sets: &[&[f32]]) -> Posteriors {
        let (weights, width) = (self.params.weights(), self.codec.token_width());
        let mut all = Posteriors::default();
        let Some(net) = &self.encoder else {
            sets.iter().for_each(|set| all.extend(self.regress(set)));
            return all;
        };
        for sets in sets.chunks(CHUNK) {
            let lengths: Vec<usize> = sets.iter().map(|set| set.len() / width).collect();
            let longest = lengths.iter().copied().max().unwrap_or(0).max(1);
            let mut tokens = Vec::with_capacity(sets.len() * longest * width);
            for (i, set) in sets.iter().enumerate() {
                tokens.extend_from_slice(set);
                tokens.resize((i + 1) * longest * width, 0.0);
            }
            let tokens = upload(tokens, [sets.len() * longest, width], self.params.device());
            all.extend(self.encode(net, &weights, tokens, &lengths).read());
        }
        all
    }

    /// What a set of tokens says of h through a linear decoder.
    fn regress(&self, set: &[f32]) -> Posteriors {
        let (PredictorNet::Linear { net, dim }, false) = (&self.predictor, set.is_empty()) else {
            return regression::posterior(self.config.dim, &[]);
        };
        let weights = self.params.weights();
        let (sa, changes) = self.parts(set);
        let noise = read(self.log_noise(&weights, sa.clone()).exp()); // [rows * dims]
        let [offsets, slopes] = linear_parts(net, *dim, &weights, sa).map(read);
        let parts = offsets.iter().zip(slopes.chunks_exact(*dim)).zip(noise);
        let measured = |(change, ((offset, slopes), noise)): (&f32, ((&f32, _), _))| Measured {
            residual: change - offset,
            slopes,
            noise,
        };
        regression::posterior(*dim, &changes.iter().zip(parts).map(measured).collect::<Vec<_>>())
    }

    /// Logarithm of the standard deviation of the predictor's error, `[rows, dims]`.
    fn log_noise(&self, weights: &Weights, sa: Tensor<2>) -> Tensor<2> {
        self.noise.forward(weights, Input::One(sa)).clamp_min(SMALLEST_NOISE.ln())
    }

    /// States and actions of tokens, `[rows, features + action]`, and the changes that followed, `[rows * dims]`.
    fn parts(&self, set: &[f32]) -> (Tensor<2>, Vec<f32>) {
        let (features, action) = (self.codec.observations.width(), self.codec.actions.width());
        let (mut sa, mut changes) = (Vec::new(), Vec::new());
        for token in set.chunks_exact(self.codec.token_width()) {
            let (state, rest) = token.split_at(features);
            let (action, change) = rest.split_at(action);
            sa.extend_from_slice(state);
            sa.extend(action.iter().map(|x| x / TOKEN_GAIN));
            changes.extend(change.iter().map(|x| x / TOKEN_GAIN));
        }
        let shape = [changes.len() / self.codec.dims(), features + action];
        (upload(sa, shape, self.params.device()), changes)
    }
}

impl BeliefEncoder for TransitionSet {
    fn dim(&self) -> usize {
        self.config.dim
    }

    fn no_evidence(&self) -> Evidence {
        let most = self.config.max_context / self.codec.action_repeat;
        Evidence::Tokens(TokenSet::new(self.codec.token_width(), most))
    }

    fn observe(&self, evidence: &mut Evidence, obs: &[f32], actions: &[Action<'_>]) -> bool {
        let Evidence::Tokens(set) = evidence else { return false };
        let tokens = self.codec.tokens(obs, actions);
        set.extend(&tokens);
        !tokens.is_empty()
    }

    fn infer(&self, evidence: &[&Evidence]) -> Posteriors {
        let sets = evidence.iter().map(|evidence| match evidence {
            Evidence::Tokens(set) => set.tokens(),
            Evidence::States(_) => &[],
        });
        self.infer_tokens(&sets.collect::<Vec<_>>())
    }

    fn ood_score(&self, trajectory: &Trajectory) -> Option<f64> {
        self.ood_of_tokens(&self.codec.tokens_of(trajectory)).map(f64::from)
    }

    fn params(&self) -> &Params {
        &self.params
    }
}

/// The ELBO of a [`TransitionSet`]: from a context, predict transitions of other episodes of its group.
#[derive(Debug)]
pub(crate) struct TransitionSetObjective {
    pub(crate) model: TransitionSet,
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
    ) -> Result<Self> {
        let model = TransitionSet::new(replay.codec.clone(), replay.groups(), config, seed, device)?;
        Ok(Self { model, replay, seed })
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
        let Transitions { s, a, change, .. } = replay.transitions(replay.rows(&rows)); // [batch * queries, ..]
        let sa = Tensor::cat(vec![s.clone(), a], 1);
        let off = |net: &PredictorNet, h: Tensor<2>| {
            (net.forward(weights, sa.clone(), h) - change.clone()).powf_scalar(2.0)
        };
        // States of a group against those of another one in the batch.
        let reachability = |h: Tensor<2>| {
            let Some(net) = model.reachability.as_ref().filter(|_| batch > 1) else {
                return Tensor::zeros([1], device);
            };
            let turned = Tensor::cat(vec![h.clone().narrow(0, 1, batch - 1), h.clone().narrow(0, 0, 1)], 0);
            let [own, other] = net.forward_each(weights, s.clone(), [h, turned]);
            (softplus(own.neg(), 1.0) + softplus(other, 1.0)).mean()
        };
        let unconditioned = off(&model.unconditioned, model.no_belief()).mean();
        let (mut loss, mut metrics) = (unconditioned.clone(), vec![("unconditioned mse", unconditioned)]);
        let embedding = weights[model.embeddings].clone().select(0, upload_indices(groups, device)); // [batch, dim]
        if let Some(net) = &model.encoder {
            let lengths: Vec<usize> = contexts.iter().map(Vec::len).collect();
            let longest = lengths.iter().copied().max().unwrap_or(0).max(1);
            contexts.iter_mut().for_each(|rows| rows.resize(longest, 0));
            let tokens = replay.tokens(replay.rows(&contexts.concat()));
            let noise = StandardNormal.sample_iter(&mut rng).take(batch * dim).collect();
            let belief = model.encode(net, weights, tokens, &lengths);
            let h = belief.sample(upload(noise, [batch, dim], device)); // [batch, dim]
            let prediction = off(&model.predictor, h.clone()).mean();
            let (kl, reachable) = (belief.kl(), reachability(h));
            loss =
                loss + prediction.clone() + kl.clone() * model.config.kl + reachable.clone() * REACHABILITY;
            metrics.extend([("mse", prediction), ("reachability", reachable), ("kl", kl)]);
            if model.config.embeddings > 0.0 {
                let distance = (belief.mean - embedding.clone().detach()).powf_scalar(2.0).mean();
                loss = loss + distance.clone() * model.config.embeddings;
                metrics.push(("embedding distance", distance));
            }
        }
        if model.encoder.is_none() || model.config.embeddings > 0.0 {
            let off = off(&model.predictor, embedding.clone()); // [batch * queries, dims]
            let known = off.clone().mean();
            let log = model.log_noise(weights, sa); // [batch * queries, dims]
            let weighted = (off.clone() * (log.clone().detach() * -NOISE_POWER).exp()).mean();
            // The noise learns from errors, the predictor not from the noise.
            let likelihood = (off.detach() * (log.clone() * -2.0).exp() * 0.5 + log).mean();
            loss = loss
                + weighted
                + likelihood * NOISE
                + embedding.clone().powf_scalar(2.0).mean() * model.config.kl
                + reachability(embedding) * REACHABILITY;
            metrics.push(("embedding mse", known));
        }
        metrics.insert(0, ("loss", loss.clone()));
        (loss, metrics)
    }
}
