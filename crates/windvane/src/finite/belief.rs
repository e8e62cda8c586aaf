//! The belief encoder `f_dyn` where transitions are tokens: a transformer over what a set of transitions says of each state.
//!
//! Every transition is evidence about states: the one it left and the one it entered can be entered; one that it could
//! have entered (some other episode did, by the same move) and did not was refused. Evidence of a set is the union, so
//! neither order nor repetition matters and one more transition is a constant-time update. The transformer attends over
//! states and gives h, one number per state: the log-odds that it can be entered. What was seen directly reaches h through
//! one weight that all states share: with few training contexts, that is what keeps a belief from snapping to the
//! nearest context it knows (docs/lab-notes.md).

use super::context::{ContextConfig, Contexts};
use super::memory::Memory;
use super::survey::Survey;
use crate::error::LearnError;
use crate::nn::{
    Act, Adam, AdamConfig, Init, Input, Linear, ParamId, Params, SetConfig, SetTransformer, TensorFile,
    Weights, to_vec,
};
use crate::train::{Learner, Metrics, scalar, warm_cosine};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use windvane_world::rng::stream;

/// How much a place for an outcome that does not exist is pushed down.
const NO_OUTCOME: f32 = -1e4;
/// Sizes of a state's features beside each other, so that evidence speaks loudest, then coordinates, then the state itself.
const EVIDENCE: f32 = 14.0;
const COORDINATE: f32 = 9.0;
const IDENTITY: f32 = 1.75;
/// Features of a state beside those: what was seen of it, and what memory says.
const SEEN: usize = 5;

/// Settings of the belief and its training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeliefConfig {
    /// Width of the transformer.
    pub width: usize,
    /// Its blocks.
    pub blocks: usize,
    /// Its heads.
    pub heads: usize,
    /// Weight of the KL term toward a unit Gaussian; the paper names the prior but no weight, its code has none.
    pub kl: f64,
    /// Whether training draws h from its spread, as the paper does, or takes its mean.
    pub sample: bool,
    /// Whether contexts are compared with the groups of the training data, to recognise one that was seen before.
    pub memory: bool,
    /// Probability that the group of a training context is hidden from that memory, as an unseen one's would be.
    pub forget: f64,
    /// Gradient steps.
    pub steps: u64,
    /// Whether it is trained in one loop with the agent, whose loss then shapes h as well, instead of alone and before it.
    pub joint: bool,
    /// Contexts per step.
    pub batch: usize,
    /// Learning rate, warmed up over 100 steps and decayed by a cosine; paper: 1e-4 without decay.
    pub rate: f32,
    /// How contexts are drawn.
    pub context: ContextConfig,
}

impl Default for BeliefConfig {
    fn default() -> Self {
        let context = ContextConfig::default();
        Self {
            width: 32,
            blocks: 2,
            heads: 4,
            kl: 1e-5,
            sample: true,
            memory: true,
            forget: 0.1,
            steps: 2000,
            joint: false,
            batch: 64,
            rate: 3e-3,
            context,
        }
    }
}

/// A belief encoder with its weights.
#[derive(Clone, Debug)]
pub struct FiniteBelief {
    config: BeliefConfig,
    params: Params,
    transformer: SetTransformer,
    /// From a state's features to the mean and log-spread of h there; one map for all states.
    read: Linear,
    /// What each state adds to that map, and to its outcome.
    own_read: ParamId,
    own_bias: ParamId,
    /// How much direct evidence counts: entered, refused.
    recall: ParamId,
    /// What each kind of step has for itself: this action, by this much, wherever it is taken.
    kind_bias: ParamId,
    tables: Tables,
    memory: Option<Memory>,
}

/// Constants of a survey, on the device.
#[derive(Clone, Debug)]
struct Tables {
    states: usize,
    pairs: usize,
    outcomes: usize,
    /// `[states, features]`: coordinates and identity of each state.
    places: Vec<f32>,
    features: usize,
    /// `[vocabulary]`: the state each token enters.
    enters: Tensor<1, Int>,
    /// `[vocabulary]`: the kind of step each token is.
    kinds: Tensor<1, Int>,
    kind_count: usize,
    /// `[1, vocabulary]`: 1 where that is another state than the one left.
    leaves: Tensor<2>,
    /// `[1, vocabulary]`: 0 for outcomes, [`NO_OUTCOME`] for places without one.
    mask: Tensor<2>,
}

/// What sets of transitions say about the hidden dynamics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beliefs {
    /// Mean of h, `[count * states]`.
    pub mean: Vec<f32>,
    /// Log of the standard deviation of h, `[count * states]`.
    pub log_std: Vec<f32>,
    /// Decoded dynamics, g(s, a, h): the probability of each token's outcome, `[count * vocabulary]`.
    pub dynamics: Vec<f32>,
}

impl Tables {
    fn new(survey: &Survey, device: &Device) -> Self {
        let (states, vocabulary) = (survey.states(), survey.vocabulary());
        let dims = &survey.spec().observation;
        let coordinates: usize = dims.iter().filter_map(windvane_world::Dim::values).sum();
        let features = SEEN + coordinates + states;
        let mut places = vec![0.0; states * features];
        let mut obs = vec![0.0; dims.len()];
        for (s, row) in places.chunks_exact_mut(features).enumerate() {
            survey.write_state(s, &mut obs);
            let mut at = SEEN;
            for (dim, x) in dims.iter().zip(&obs) {
                row[at + (x - dim.low) as usize] = COORDINATE;
                at += dim.values().unwrap_or(0);
            }
            row[at + s] = IDENTITY;
        }
        let state_of = |token: usize| token / survey.width() / survey.actions();
        let enters = survey.successors().iter().map(|&s| i64::from(s)).collect::<Vec<_>>();
        let leaves =
            enters.iter().enumerate().map(|(token, &s)| f32::from(u8::from(s as usize != state_of(token))));
        let mask = (0..vocabulary).map(|token| {
            let real = token % survey.width() < survey.outcomes(token / survey.width()).max(1);
            if real { 0.0 } else { NO_OUTCOME }
        });
        let (kinds, kind_count) = kinds(survey);
        let row = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, [1, vocabulary]), device);
        Self {
            states,
            pairs: survey.pairs(),
            outcomes: survey.width(),
            places,
            features,
            leaves: row(leaves.collect()),
            mask: row(mask.collect()),
            enters: Tensor::from_data(TensorData::new(enters, [vocabulary]), device),
            kinds: Tensor::from_data(TensorData::new(kinds, [vocabulary]), device),
            kind_count,
        }
    }
}

/// The kind of each token: which action, and by how much it moves. Kinds are the same everywhere.
fn kinds(survey: &Survey) -> (Vec<i64>, usize) {
    let dim = survey.spec().obs_dim();
    let place = |state: usize| {
        let mut place = vec![0.0; dim];
        survey.write_state(state, &mut place);
        place
    };
    let mut known: BTreeMap<(usize, Vec<i32>), i64> = BTreeMap::new();
    let kind = |(token, &to): (usize, &u32)| {
        let pair = token / survey.width();
        let from = place(pair / survey.actions());
        let step = place(to as usize).iter().zip(&from).map(|(to, from)| (to - from) as i32).collect();
        let next = known.len() as i64;
        *known.entry((pair % survey.actions(), step)).or_insert(next)
    };
    let kinds = survey.successors().iter().enumerate().map(kind).collect();
    (kinds, known.len())
}

impl FiniteBelief {
    /// An untrained encoder for the tokens of `survey`.
    pub fn new(
        survey: &Survey,
        config: BeliefConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let tables = Tables::new(survey, device);
        let mut params = Params::new(device, seed);
        let BeliefConfig { width, blocks, heads, .. } = config;
        let set = SetConfig { input: tables.features, width, heads, blocks, hidden: 2 * width };
        Ok(Self {
            config,
            transformer: SetTransformer::new(&mut params, "set", &set)?,
            read: Linear::new(&mut params, "read", &[width], 3)?,
            own_read: params.add("own/read", [tables.states, width], Init::Constant(0.0))?,
            own_bias: params.add("own/bias", [1, tables.states], Init::Constant(0.0))?,
            recall: params.add("recall", [2, 1], Init::Constant(3.0))?,
            kind_bias: params.add("kind/bias", [1, tables.kind_count], Init::Constant(0.0))?,
            params,
            tables,
            memory: config.memory.then(|| Memory::of(survey)),
        })
    }

    /// The settings it was built with.
    pub fn config(&self) -> &BeliefConfig {
        &self.config
    }

    /// Its weights.
    pub(super) fn params(&self) -> &Params {
        &self.params
    }

    /// Its weights, to read them from a file.
    pub(super) fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    /// The beliefs that evidence leads to; `evidence [count * states * 2]` as [`Survey::write_evidence`] gives it.
    pub fn infer(&self, evidence: &[f32]) -> Beliefs {
        self.infer_without(evidence, &[])
    }

    /// The same; `hidden` names, for each set (or for none), groups that memory is to leave out.
    pub(super) fn infer_without(&self, evidence: &[f32], hidden: &[Vec<usize>]) -> Beliefs {
        let weights = self.params.weights();
        let (mean, log_std) = self.encode(&weights, evidence, hidden); // [count, states] each
        let dynamics = self.decode(&weights, mean.clone()).exp(); // [count * pairs, outcomes]
        Beliefs { mean: to_vec(mean), log_std: to_vec(log_std), dynamics: to_vec(dynamics) }
    }

    /// Mean and log of the standard deviation of h, `[sets, states]` each. `hidden` names, for each set (or for none),
    /// groups that memory is to leave out.
    pub(super) fn encode(
        &self,
        weights: &Weights,
        evidence: &[f32],
        hidden: &[Vec<usize>],
    ) -> (Tensor<2>, Tensor<2>) {
        let Tables { states, features, places, .. } = &self.tables;
        let sets = evidence.len() / 2 / states;
        let mut tokens = Vec::with_capacity(sets * places.len());
        let mut odds = vec![0.0; sets * states];
        for (set, seen) in evidence.chunks_exact(2 * states).enumerate() {
            let start = tokens.len();
            tokens.extend_from_slice(places);
            let own = tokens[start..].chunks_exact_mut(*features);
            for (token, seen) in own.zip(seen.chunks_exact(2)) {
                token[0] = EVIDENCE * seen[0];
                token[1] = EVIDENCE * seen[1];
            }
            let Some(memory) = &self.memory else { continue };
            let recalled = memory.recall(seen, hidden.get(set).map_or(&[], Vec::as_slice));
            odds[set * states..][..*states].copy_from_slice(&recalled.odds);
            for (token, mean) in tokens[start..].chunks_exact_mut(*features).zip(&recalled.mean) {
                token[2] = EVIDENCE * mean;
                token[3] = EVIDENCE * recalled.fit;
                token[4] = EVIDENCE * recalled.alone;
            }
        }
        let tokens = self.constant(tokens, [sets * states, *features]);
        let x = self.transformer.tokens(weights, tokens, sets, None); // [sets * states, width]
        let both = self.read.forward(weights, Input::One(x.clone()), Act::None); // [sets * states, 2]
        let shared = both.clone().narrow(1, 0, 1).reshape([sets, *states]);
        // Between e^-5 and e^1: a spread that the KL term can shape but no batch can blow up.
        let log_std = both.clone().narrow(1, 1, 1).reshape([sets, *states]).tanh() * 3.0 - 2.0;
        let own = weights[self.own_read].clone().reshape([1, *states, self.config.width]);
        let own = (x.reshape([sets, *states, self.config.width]) * own).sum_dim(2).reshape([sets, *states]);
        let seen = |part: usize, sign: f32| -> Vec<f32> {
            evidence.iter().skip(part).step_by(2).map(|e| sign * e).collect()
        };
        let entered = self.constant(seen(0, 1.0), [sets, *states]);
        let refused = self.constant(seen(1, -1.0), [sets, *states]);
        let recall = &weights[self.recall];
        let direct = entered * recall.clone().narrow(0, 0, 1) + refused * recall.clone().narrow(0, 1, 1);
        let trust = both.narrow(1, 2, 1).reshape([sets, *states]);
        let recalled = self.constant(odds, [sets, *states]) * trust;
        (shared + own + weights[self.own_bias].clone() + direct + recalled, log_std)
    }

    /// g(s, a, h): the log-probability of each outcome, `[sets * pairs, outcomes]`. Entering another state weighs what h
    /// says of it, wherever one comes from, and every outcome what its kind of step does: a bias of each outcome's own would
    /// learn by heart.
    fn decode(&self, weights: &Weights, h: Tensor<2>) -> Tensor<2> {
        let Tables { pairs, outcomes, enters, leaves, mask, kinds, .. } = &self.tables;
        let sets = h.dims()[0];
        let entering = h.select(1, enters.clone()) * leaves.clone(); // [sets, vocabulary]
        let kind = weights[self.kind_bias].clone().select(1, kinds.clone()); // [1, vocabulary]
        let logits = entering + kind + mask.clone();
        log_softmax(logits.reshape([sets * pairs, *outcomes]), 1)
    }

    fn constant(&self, values: Vec<f32>, shape: [usize; 2]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values, shape), self.params.device())
    }
}

/// Trains a [`FiniteBelief`]: from part of a group's transitions, predict the outcome of all of them.
#[derive(Debug)]
pub struct BeliefTrainer {
    belief: FiniteBelief,
    adam: Adam,
    survey: Arc<Survey>,
    seed: u64,
}

impl BeliefTrainer {
    /// A trainer from the first step.
    pub fn new(
        survey: Arc<Survey>,
        config: BeliefConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let belief = FiniteBelief::new(&survey, config, seed, device)?;
        let adam = AdamConfig { rate: config.rate, clip: Some(1.0), ..AdamConfig::default() };
        Ok(Self { adam: Adam::new(adam, &belief.params), belief, survey, seed })
    }

    /// The encoder as it stands.
    pub fn belief(&self) -> &FiniteBelief {
        &self.belief
    }

    /// The weights to train with.
    pub(super) fn track(&self) -> Weights {
        self.belief.params.track()
    }

    /// The loss of a step, and what was measured.
    pub(super) fn loss(&self, step: u64, weights: &Weights) -> (Tensor<1>, Metrics) {
        let config = *self.belief.config();
        let (vocabulary, states) = (self.survey.vocabulary(), self.survey.states());
        let mut rng = stream(self.seed, "belief-batch", &[step]);
        let contexts = Contexts::new(&self.survey, config.context);
        let mut bag = vec![0.0; vocabulary];
        let mut evidence = vec![0.0; config.batch * states * 2];
        let mut truth = vec![0.0; config.batch * vocabulary];
        let mut hidden = Vec::with_capacity(config.batch);
        for (evidence, truth) in evidence.chunks_exact_mut(states * 2).zip(truth.chunks_exact_mut(vocabulary))
        {
            let groups = contexts.draw(&mut rng, &mut bag, truth);
            self.survey.write_evidence(&bag, evidence);
            // What is made of several groups is none of them.
            let forgotten = groups.len() > 1 || rng.random_bool(config.forget);
            hidden.push(if forgotten { groups } else { Vec::new() });
        }
        let known: f32 = truth.iter().sum(); // number of pairs that anyone tried
        let noise: Vec<f32> = (0..config.batch * states).map(|_| StandardNormal.sample(&mut rng)).collect();

        let belief = &self.belief;
        let (mean, log_std) = belief.encode(weights, &evidence, &hidden);
        let h = if config.sample {
            mean.clone() + log_std.clone().exp() * belief.constant(noise, [config.batch, states])
        } else {
            mean.clone()
        };
        let log_p = belief.decode(weights, h); // [batch * pairs, outcomes]
        let truth = belief.constant(truth, [config.batch * belief.tables.pairs, belief.tables.outcomes]);
        let surprise = -(log_p * truth).sum() / f64::from(known.max(1.0)); // [1]
        let variance = (log_std.clone() * 2.0).exp();
        let kl = (variance + mean.powf_scalar(2.0) - log_std * 2.0 - 1.0).sum() * (0.5 / config.batch as f64); // [1]
        let loss = surprise.clone() + kl.clone() * config.kl;
        let measured = [("loss", &loss), ("surprise", &surprise), ("kl", &kl)];
        let metrics = measured.map(|(name, tensor)| (name, scalar(tensor))).to_vec();
        (loss, metrics)
    }

    /// Takes the step; returns the size of the gradient.
    pub(super) fn update(&mut self, weights: Weights, gradients: &mut Gradients, scale: f32) -> f64 {
        f64::from(self.adam.step_apart(&mut self.belief.params, weights, gradients, scale, None))
    }

    /// Writes weights and optimiser, the latter below `prefix`.
    pub(super) fn save_as(&self, file: &mut TensorFile, prefix: &str) {
        self.belief.params.save(file, "belief/");
        self.adam.save(file, prefix);
    }

    /// Reads back what [`BeliefTrainer::save_as`] wrote.
    pub(super) fn load_as(&mut self, file: &TensorFile, prefix: &str) -> Result<(), LearnError> {
        self.belief.params.load(file, "belief/")?;
        Ok(self.adam.load(file, prefix)?)
    }
}

impl Learner for BeliefTrainer {
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
        let weights = self.track();
        let (loss, mut metrics) = self.loss(step, &weights);
        let mut gradients = loss.backward();
        drop(loss);
        let scale = warm_cosine(step, self.belief.config.steps);
        metrics.push(("gradient", self.update(weights, &mut gradients, scale)));
        Ok(metrics)
    }

    fn save(&self, file: &mut TensorFile) {
        self.save_as(file, "adam/");
    }

    fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        self.load_as(file, "adam/")
    }
}
