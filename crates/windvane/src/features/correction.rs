//! Contextual-FB's reward in a new context: what is wanted, corrected by how much likelier a transition is there than in the
//! training data.
//!
//! Two classifiers, trained on the context's transitions against those of the data, give the correction
//! `log p(tgt|s,a,s') - log p(src|s,a,s') - log p(tgt|s,a) + log p(src|s,a)`, which is the log of P(s'|s,a) there over P(s'|s,a)
//! in the data. A task vector is linear in the reward, so the correction is one vector that is added to it.

use crate::data::{Codec, Replay, StateTable};
use crate::error::LearnError;
use crate::nn::{Adam, AdamConfig, Input, Mlp, MlpConfig, Params, TensorFile, read, upload};
use crate::train::warm_cosine;
use burn::tensor::activation::softplus;
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use windvane_world::rng::stream;

/// Settings of the classifiers and of what they add to a reward.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrectionConfig {
    /// Width of the classifiers' two hidden layers.
    pub width: usize,
    /// Gradient steps in each new context.
    pub steps: u64,
    /// Transitions per step from the context, and as many from the data.
    pub batch: usize,
    /// Learning rate, warmed up and decayed by a cosine.
    pub rate: f32,
    /// Largest correction either way: what never happened in a context would count without bounds.
    pub clip: f32,
    /// How much the correction counts beside a reward whose task vector has the length of all task vectors. The scale of a
    /// reward is free, so this is found by trying (lab notes); from 30 on the correction drowns the goal.
    pub weight: f32,
}

impl Default for CorrectionConfig {
    fn default() -> Self {
        Self { width: 64, steps: 150, batch: 64, rate: 3e-3, clip: 3.0, weight: 3.0 }
    }
}

/// Transitions as classifiers see them, row by row.
#[derive(Clone, Debug, Default)]
pub struct Transitions {
    /// Numbers of a state and an action.
    pub width: usize,
    /// States and actions, `[rows * width]`.
    pub sa: Vec<f32>,
    /// Numbers of a next state.
    pub next_width: usize,
    /// Next states, `[rows * next_width]`.
    pub next: Vec<f32>,
}

/// Trains the classifiers of a context against the data.
#[derive(Clone, Debug)]
pub struct Corrector {
    config: CorrectionConfig,
    /// Transitions that stand for the data, how much each weighs (1 in all), and the features of where it led, `[rows * d]`.
    data: Transitions,
    weights: Vec<f32>,
    features: Vec<f32>,
    seed: u64,
    device: Device,
}

impl Corrector {
    /// A corrector of rewards against `data`, whose rows weigh `weights` and lead to states with `features`.
    pub fn new(
        config: CorrectionConfig,
        data: Transitions,
        weights: Vec<f32>,
        features: Vec<f32>,
        seed: u64,
        device: &Device,
    ) -> Self {
        Self { config, data, weights, features, seed, device: device.clone() }
    }

    /// What a context adds to a task vector: the mean over the data of the correction times the features of the next state.
    pub fn shift(&self, context: &Transitions) -> Result<Vec<f32>, LearnError> {
        let dim = self.features.len() / self.weights.len().max(1);
        let mut shift = vec![0.0; dim];
        let rows = self.corrections(context)?.into_iter().zip(&self.weights);
        for ((correction, weight), b) in rows.zip(self.features.chunks_exact(dim)) {
            let amount = self.config.weight * weight * correction;
            shift.iter_mut().zip(b).for_each(|(to, b)| *to += amount * b);
        }
        Ok(shift)
    }

    /// The correction of each of the data's transitions; zeros for an empty context, which says nothing.
    pub fn corrections(&self, context: &Transitions) -> Result<Vec<f32>, LearnError> {
        if context.sa.is_empty() {
            return Ok(vec![0.0; self.weights.len()]);
        }
        let CorrectionConfig { width, steps, batch, rate, clip, .. } = self.config;
        let Transitions { width: sa, next_width: next, .. } = self.data;
        let mut params = Params::new(&self.device, self.seed);
        let shape = |inputs: &[usize]| MlpConfig::paper(inputs, &[width; 2], 1);
        let pair = Mlp::new(&mut params, "pair", &shape(&[sa]))?;
        let triple = Mlp::new(&mut params, "triple", &shape(&[sa, next]))?;
        let mut adam = Adam::new(AdamConfig { rate, ..AdamConfig::default() }, &params);
        // Half of each batch is the context's: log-odds that do not depend on how much was seen.
        let sign = (0..2 * batch).map(|row| if row < batch { -1.0 } else { 1.0 }).collect();
        let sign = self.rows(sign, 1);
        for step in 0..steps {
            let mut rng = stream(self.seed, "classifiers", &[step]);
            let (mut pairs, mut nexts) = (Vec::new(), Vec::new());
            for row in 0..2 * batch {
                let (from, row) = if row < batch {
                    (context, rng.random_range(0..context.sa.len() / sa))
                } else {
                    (&self.data, weighted(&self.weights, rng.random()))
                };
                pairs.extend_from_slice(&from.sa[row * sa..][..sa]);
                nexts.extend_from_slice(&from.next[row * next..][..next]);
            }
            let (pairs, nexts) = (self.rows(pairs, sa), self.rows(nexts, next));
            let weights = params.track();
            let both = pair.forward(&weights, Input::One(pairs.clone()));
            let all = triple.forward(&weights, Input::Two(pairs, nexts));
            // The logarithm of the odds that a row is the context's.
            let loss = softplus(both * sign.clone(), 1.0).mean() + softplus(all * sign.clone(), 1.0).mean();
            let gradients = loss.backward();
            drop(loss);
            adam.step(&mut params, weights, gradients, warm_cosine(step, steps), None);
        }
        let weights = params.weights();
        let (pairs, nexts) = (self.rows(self.data.sa.clone(), sa), self.rows(self.data.next.clone(), next));
        let both = read(pair.forward(&weights, Input::One(pairs.clone())));
        let all = read(triple.forward(&weights, Input::Two(pairs, nexts)));
        Ok(all.iter().zip(both).map(|(all, both)| (all - both).clamp(-clip, clip)).collect())
    }

    fn rows(&self, values: Vec<f32>, width: usize) -> Tensor<2> {
        let count = values.len() / width;
        upload(values, [count, width], &self.device)
    }
}

impl Corrector {
    /// Writes what it needs below `correction/`.
    pub(crate) fn export(&self, file: &mut TensorFile) -> ExportedCorrector {
        let rows = self.weights.len();
        let mut put = |name: &str, values: &[f32]| {
            file.insert_values(format!("correction/{name}"), values.to_vec(), [rows, values.len() / rows]);
        };
        put("sa", &self.data.sa);
        put("next", &self.data.next);
        put("weights", &self.weights);
        put("features", &self.features);
        ExportedCorrector {
            config: self.config,
            width: self.data.width,
            next_width: self.data.next_width,
            seed: self.seed,
        }
    }

    /// Reads back what [`Corrector::export`] wrote.
    pub(crate) fn import(
        exported: ExportedCorrector,
        file: &TensorFile,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let values = |name: &str| file.vector(&format!("correction/{name}"));
        let ExportedCorrector { config, width, next_width, seed } = exported;
        let data = Transitions { width, sa: values("sa")?, next_width, next: values("next")? };
        Ok(Self::new(config, data, values("weights")?, values("features")?, seed, device))
    }
}

/// What an exported file says of a corrector.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExportedCorrector {
    config: CorrectionConfig,
    width: usize,
    next_width: usize,
    seed: u64,
}

impl Transitions {
    /// Transitions between listed states by their tokens: the coordinates of both states one-hot, and the action.
    pub(crate) fn listed(table: &StateTable, tokens: impl Iterator<Item = u32>) -> Self {
        let coordinates = table.one_hot(0).len();
        let mut all = Self { width: coordinates + table.actions, next_width: coordinates, ..Self::default() };
        for token in tokens.map(|token| token as usize) {
            all.sa.extend(table.one_hot(table.leaves(token)));
            let action = token / table.width() % table.actions;
            all.sa.extend((0..table.actions).map(|a| f32::from(u8::from(a == action))));
            all.next.extend(table.one_hot(table.successors()[token] as usize));
        }
        all
    }

    /// Transitions between observations as tokens: the state and the action, and the change that followed.
    pub(crate) fn observations(codec: &Codec, tokens: &[f32]) -> Self {
        let width = codec.observations.width() + codec.actions.width();
        let mut all = Self { width, next_width: codec.dims(), ..Self::default() };
        for token in tokens.chunks_exact(codec.token_width()) {
            let (sa, change) = token.split_at(width);
            all.sa.extend_from_slice(sa);
            all.next.extend_from_slice(change);
        }
        all
    }
}

/// Transitions that stand for all observations.
const REFERENCE: u64 = 4096;

impl Corrector {
    /// A corrector against every transition of listed states; `b [states * d]` are their features.
    pub(crate) fn listed(
        config: CorrectionConfig,
        table: &StateTable,
        b: &[f32],
        seed: u64,
        device: &Device,
    ) -> Self {
        let dim = b.len() / table.states();
        let (tokens, weights) = shares(table);
        let led = tokens.iter().map(|&token| table.successors()[token as usize] as usize);
        let features = led.flat_map(|state| &b[state * dim..][..dim]).copied().collect();
        let data = Transitions::listed(table, tokens.iter().copied());
        Self::new(config, data, weights, features, seed, device)
    }

    /// A corrector against transitions drawn from learned groups; `backward` gives the features of observations.
    pub(crate) fn observations(
        config: CorrectionConfig,
        replay: &Replay,
        backward: impl FnOnce(&[f32]) -> Vec<f32>,
        seed: u64,
        device: &Device,
    ) -> Self {
        let row = |i: u64| {
            let mut rng = stream(0, "transitions", &[i]);
            let group = replay.draw_group(&mut rng);
            replay.draw(&mut rng, group)
        };
        let rows: Vec<usize> = (0..REFERENCE).map(row).collect();
        let led: Vec<f32> =
            rows.iter().flat_map(|&row| replay.host_state(replay.later(row, 1))).copied().collect();
        let tokens = read(replay.tokens(replay.rows(&rows)));
        let weights = vec![1.0 / rows.len() as f32; rows.len()];
        let data = Transitions::observations(&replay.codec, &tokens);
        Self::new(config, data, weights, backward(&led), seed, device)
    }
}

/// Every token of the data with its share, each group counting alike.
pub(super) fn shares(table: &StateTable) -> (Vec<u32>, Vec<f32>) {
    let mut shares = vec![0.0; table.vocabulary()];
    for group in &table.groups {
        let total: f32 = group.counts.iter().sum();
        let share = 1.0 / total.max(1.0) / table.groups.len() as f32;
        shares.iter_mut().zip(&group.counts).for_each(|(to, count)| *to += count * share);
    }
    let seen = shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0);
    seen.map(|(token, share)| (token as u32, share)).unzip()
}

/// The item that a number between 0 and 1 falls on, each as wide as its weight.
pub(crate) fn weighted(weights: &[f32], mut at: f32) -> usize {
    let found = weights.iter().position(|weight| {
        at -= weight;
        at < 0.0
    });
    found.unwrap_or(weights.len() - 1)
}
