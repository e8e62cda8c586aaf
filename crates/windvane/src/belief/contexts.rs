//! Contexts of listed states as a belief is trained on: sets of transitions from episodes of one group, of every length, drawn
//! as row numbers on the host and put together on the device.

use crate::data::StateTable;
use crate::nn::{upload, upload_indices};
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windvane_world::Rng;

/// How contexts are drawn for training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextConfig {
    /// Most episodes of a group that one context joins; 5 episodes of 100 steps cover the 500-step contexts of the tables.
    pub episodes: usize,
    /// Probability that a context is part of one episode only (the paper's single short trajectory).
    pub single: f64,
    /// Probability that a context is thinned: each of its different transitions stays with one probability,
    /// which is drawn anew for every context. A random trajectory tries several actions where one on its way
    /// tries one; an encoder that counts witnesses must know both.
    #[serde(default)]
    pub thin: f64,
    /// Probability that one side of a random hyperplane through the state space is taken from another group, so that few
    /// groups teach place by place instead of by heart. Own idea; see the lab notes.
    pub mix: f64,
    /// Most groups in such a mixture.
    pub ways: usize,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self { episodes: 5, single: 0.6, thin: 0.0, mix: 0.0, ways: 2 }
    }
}

/// Draws contexts and the dynamics they should tell.
#[derive(Debug)]
pub(crate) struct ContextSampler {
    table: Arc<StateTable>,
    config: ContextConfig,
    /// All transitions of the data as tokens, `[transitions]`.
    tokens: Tensor<1, Int>,
    /// The dynamics that each group's data shows, `[groups, vocabulary]`; zeros for pairs that it never tried.
    shares: Tensor<2>,
    /// Coordinates of each state, centred and scaled to [-1, 1], `[dims, states]`.
    places: Tensor<2>,
    /// The state that each token leaves, `[vocabulary]`.
    leaves: Tensor<1, Int>,
}

/// Contexts and what they should tell, on the device.
#[derive(Clone, Debug)]
pub(crate) struct ContextBatch {
    /// Which transitions they met, `[contexts, vocabulary]`, 0 or 1.
    pub met: Tensor<2>,
    /// The share of each outcome in the groups' data, `[contexts, vocabulary]`.
    pub truth: Tensor<2>,
    /// The groups that each is made of.
    pub groups: Vec<Vec<usize>>,
}

impl ContextSampler {
    /// A sampler of contexts from a table's episodes.
    pub(crate) fn new(table: Arc<StateTable>, config: ContextConfig, device: &Device) -> Self {
        let (states, vocabulary, groups) = (table.states(), table.vocabulary(), table.groups.len());
        let dims = &table.spec().observation;
        let mut places = vec![0.0; states * dims.len()];
        for (s, place) in table.places().chunks_exact(dims.len()).enumerate() {
            for (i, (x, dim)) in place.iter().zip(dims).enumerate() {
                places[i * states + s] = 2.0 * (x - dim.low) / (dim.high - dim.low).max(1e-6) - 1.0;
            }
        }
        let shares = table.groups.iter().flat_map(|group| table.shares(group.counts.clone())).collect();
        Self {
            config,
            tokens: upload_indices(table.tokens.iter().map(|&token| i64::from(token)).collect(), device),
            shares: upload(shares, [groups, vocabulary], device),
            places: upload(places, [dims.len(), states], device),
            leaves: upload_indices((0..vocabulary).map(|token| table.leaves(token) as i64).collect(), device),
            table,
        }
    }

    /// The positions, among all tokens of the table, of a context of `group`.
    pub(crate) fn draw_positions(&self, rng: &mut Rng, group: usize) -> Vec<usize> {
        let (config, episodes) = (&self.config, &self.table.groups[group].episodes);
        let single = config.episodes < 2 || rng.random_bool(config.single);
        let whole = if single { 0 } else { rng.random_range(1..config.episodes) };
        let mut positions = Vec::new();
        for number in 0..=whole {
            let span = self.table.episodes[episodes[rng.random_range(0..episodes.len())]].clone();
            // The first is cut anywhere, a quarter of the time not at all; the others are whole.
            let length = match number {
                0 if !rng.random_bool(0.25) => rng.random_range(0..=span.len()),
                _ => span.len(),
            };
            positions.extend(span.start..span.start + length);
        }
        if self.config.thin > 0.0 && rng.random_bool(self.config.thin) {
            let share: f64 = rng.random();
            let stays: Vec<bool> = (0..self.table.vocabulary()).map(|_| rng.random_bool(share)).collect();
            positions.retain(|&position| stays[self.table.tokens[position] as usize]);
        }
        positions
    }

    /// Draws `count` contexts.
    pub(crate) fn draw(&self, rng: &mut Rng, count: usize) -> ContextBatch {
        let parts = if self.config.mix > 0.0 { self.config.ways.max(1) } else { 1 };
        let (dims, vocabulary) = (self.table.spec().obs_dim(), self.table.vocabulary());
        let mut parts: Vec<Part> = (0..parts).map(|_| Part::default()).collect();
        let mut groups = vec![Vec::with_capacity(1); count];
        for (context, groups) in groups.iter_mut().enumerate() {
            for (number, part) in parts.iter_mut().enumerate() {
                let present = number == 0 || rng.random_bool(self.config.mix);
                let mut group = 0;
                if present {
                    group = rng.random_range(0..self.table.groups.len());
                    groups.push(group);
                    let positions = self.draw_positions(rng, group);
                    part.bags.extend(positions.iter().map(|_| (context * vocabulary) as i64));
                    part.positions.extend(positions.iter().map(|&p| p as i64));
                }
                part.groups.push(group as i64);
                if number > 0 {
                    let normal: Vec<f32> = (0..dims).map(|_| StandardNormal.sample(rng)).collect();
                    let length = normal.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
                    part.normals.extend(normal.iter().map(|x| x / length));
                    part.offsets.push(if present { rng.random_range(-1.1..1.1) } else { f32::MAX });
                }
            }
        }
        let device = self.shares.device();
        let nothing = Tensor::<2>::zeros([count, vocabulary], &device);
        let (mut bag, mut truth) = (nothing.clone(), nothing);
        for (number, Part { positions, bags, groups, normals, offsets }) in parts.into_iter().enumerate() {
            let own_bag = self.bags(positions, bags, count);
            let own_truth = self.shares.clone().select(0, upload_indices(groups, &device));
            if number == 0 {
                (bag, truth) = (own_bag, own_truth);
                continue;
            }
            let normal: Tensor<2> = upload(normals, [count, dims], &device);
            let offset: Tensor<2> = upload(offsets, [count, 1], &device);
            let beyond = normal.matmul(self.places.clone()).greater(offset).float(); // [contexts, states]
            let beyond = beyond.select(1, self.leaves.clone()); // [contexts, vocabulary]
            bag = bag.clone() + (own_bag - bag) * beyond.clone();
            truth = truth.clone() + (own_truth - truth) * beyond;
        }
        ContextBatch { met: bag, truth, groups }
    }

    /// Marks the tokens at `positions` in the bags that begin at `bags`: `[contexts, vocabulary]`, 0 or 1.
    fn bags(&self, positions: Vec<i64>, bags: Vec<i64>, count: usize) -> Tensor<2> {
        let (vocabulary, device) = (self.table.vocabulary(), self.shares.device());
        let flat = Tensor::<1>::zeros([count * vocabulary], &device);
        if positions.is_empty() {
            return flat.reshape([count, vocabulary]);
        }
        let marks = Tensor::<1>::ones([positions.len()], &device);
        let tokens = self.tokens.clone().select(0, upload_indices(positions, &device));
        let places = tokens + upload_indices(bags, &device);
        flat.scatter(0, places, marks, IndexingUpdateOp::Add).clamp_max(1.0).reshape([count, vocabulary])
    }
}

/// What one group gives to each context of a batch: which rows of the token column, in which context's bag, of which group, and
/// the hyperplane beyond which it counts.
#[derive(Default)]
struct Part {
    positions: Vec<i64>,
    bags: Vec<i64>,
    groups: Vec<i64>,
    normals: Vec<f32>,
    offsets: Vec<f32>,
}
