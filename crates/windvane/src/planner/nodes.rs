//! A net of visited states to plan over where states cannot be listed: its edges are what the predictor says of each action.

use super::graph::Graph;
use crate::belief::TransitionSet;
use crate::data::Codec;
use crate::data::encoder::DeviceCodec;
use crate::nn::{read, repeat_rows, upload};
use burn::tensor::{Device, Tensor};
use std::sync::Arc;

/// Most nodes; with more the net is made wider.
const MOST: usize = 900;
/// Nodes that a value between them is taken from.
const NEAR: usize = 3;
/// Distance between nodes to begin with, in units of the change scale.
const SPACING: f32 = 0.5;

/// Visited states, evenly spread.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    codec: Arc<Codec>,
    constants: DeviceCodec,
    /// Encodings of the actions that are considered, `[n, width]`.
    candidates: Tensor<2>,
    /// `[count * dims]`.
    pub(crate) obs: Vec<f32>,
    /// Row of each among the visited states.
    pub(crate) rows: Vec<usize>,
    /// Distance between neighbours, in units of the change scale.
    spacing: f32,
}

/// Nodes near a state, and how much each counts.
#[derive(Clone, Copy, Debug)]
struct Link {
    places: [usize; NEAR],
    shares: [f32; NEAR],
}

impl Nodes {
    /// Picks nodes from visited states `[rows * dims]`.
    pub(crate) fn new(codec: Arc<Codec>, states: &[f32], device: &Device) -> Self {
        let (dims, scale) = (codec.dims(), &codec.change_scale);
        let thinned = |spacing: f32| {
            let mut rows: Vec<usize> = Vec::new();
            for (row, state) in states.chunks_exact(dims).enumerate() {
                let apart =
                    |&other: &usize| distance2(state, &states[other * dims..], scale) >= spacing * spacing;
                if rows.len() <= MOST && rows.iter().all(apart) {
                    rows.push(row);
                }
            }
            rows
        };
        let (mut spacing, mut rows) = (SPACING, thinned(SPACING));
        while rows.len() > MOST {
            spacing *= 1.15;
            rows = thinned(spacing);
        }
        let obs = rows.iter().flat_map(|&row| &states[row * dims..][..dims]).copied().collect();
        let candidates = codec.actions.candidates();
        let width = codec.actions.width();
        Self {
            constants: codec.on_device(device),
            candidates: upload(candidates.concat(), [candidates.len(), width], device),
            codec,
            obs,
            rows,
            spacing,
        }
    }

    /// What the predictor says that each candidate action changes in states `[rows * dims]`, in units of the change scale,
    /// under the belief `h` (empty: unconditioned): `[rows * n * dims]`.
    fn changes(&self, predictor: &TransitionSet, obs: &[f32], h: &[f32]) -> Vec<f32> {
        let (rows, n, device) =
            (obs.len() / self.codec.dims(), self.candidates.dims()[0], self.candidates.device());
        let s = self.constants.encode_host(obs);
        let h = (!h.is_empty()).then(|| upload(h.to_vec(), [1, h.len()], &device));
        read(predictor.predict(repeat_rows(&s, n), self.candidates.clone().repeat(&[rows, 1]), h))
    }

    /// Where each candidate action leads from states: `[rows * n * dims]`.
    pub(crate) fn after(&self, predictor: &TransitionSet, obs: &[f32], h: &[f32]) -> Vec<f32> {
        let (dims, n) = (self.codec.dims(), self.candidates.dims()[0]);
        let changes = self.changes(predictor, obs, h);
        let from = obs.chunks_exact(dims).flat_map(|obs| obs.iter().cycle().take(n * dims));
        let scale = self.codec.change_scale.iter().cycle();
        from.zip(changes).zip(scale).map(|((x, change), scale)| x + change * scale).collect()
    }

    /// How unsure it is what each candidate action changes in states, `[rows * n]`: the variance over samples of h, summed over
    /// coordinates.
    pub(crate) fn uncertainty(
        &self,
        predictor: &TransitionSet,
        obs: &[f32],
        samples: &[Vec<f32>],
    ) -> Vec<f32> {
        let (dims, count) = (self.codec.dims(), samples.len().max(1) as f32);
        let changes: Vec<Vec<f32>> = samples.iter().map(|h| self.changes(predictor, obs, h)).collect();
        let variance = |i: usize| {
            let mean = changes.iter().map(|x| x[i]).sum::<f32>() / count;
            changes.iter().map(|x| (x[i] - mean).powi(2)).sum::<f32>() / count
        };
        let rows = obs.len() / dims * self.candidates.dims()[0];
        (0..rows).map(|row| (row * dims..(row + 1) * dims).map(variance).sum()).collect()
    }

    /// The graph of the nodes under the belief `h` (empty: unconditioned).
    pub(crate) fn graph(&self, predictor: &TransitionSet, h: &[f32]) -> Graph {
        let reachable = self.reachability(predictor, h);
        let (mut successors, mut p) = (Vec::new(), Vec::new());
        for link in self.links(&self.after(predictor, &self.obs, h)) {
            successors.extend(link.places.map(|place| place as u32));
            p.extend(link.chances(&reachable));
        }
        Graph::new(self.candidates.dims()[0], NEAR, successors, p)
    }

    /// Whether one can be at each node at all, 0 to 1, as the belief sees it; 1 without one.
    pub(crate) fn reachability(&self, predictor: &TransitionSet, h: &[f32]) -> Vec<f32> {
        if h.is_empty() {
            return vec![1.0; self.rows.len()];
        }
        let h = upload(h.to_vec(), [1, h.len()], &self.candidates.device());
        predictor.reachability(self.constants.encode_host(&self.obs), h)
    }

    /// The values of states `[rows * dims]` between nodes with values `v`.
    pub(crate) fn between(&self, v: &[f32], reachable: &[f32], states: &[f32]) -> Vec<f32> {
        let lowest = v.iter().copied().fold(f32::INFINITY, f32::min);
        let value = |link: Link| {
            let chances = link.chances(reachable);
            let known: f32 = chances.iter().sum();
            let sum: f32 = chances.iter().zip(link.places).map(|(p, place)| p * v[place]).sum();
            sum + (1.0 - known) * lowest
        };
        self.links(states).into_iter().map(value).collect()
    }

    /// The nodes near each state.
    fn links(&self, states: &[f32]) -> Vec<Link> {
        let scale = &self.codec.change_scale;
        let link = |state: &[f32]| {
            let mut near = [(f32::INFINITY, 0); NEAR];
            for (i, node) in self.obs.chunks_exact(scale.len()).enumerate() {
                let d2 = distance2(state, node, scale);
                if d2 < near[NEAR - 1].0 {
                    near[NEAR - 1] = (d2, i);
                    let mut place = NEAR - 1;
                    while place > 0 && near[place].0 < near[place - 1].0 {
                        near.swap(place, place - 1);
                        place -= 1;
                    }
                }
            }
            // Relative to the nearest, so that far away it alone counts and nothing underflows.
            let width = 2.0 * (self.spacing * 0.5).powi(2);
            let shares = near.map(|(d2, _)| (-(d2 - near[0].0) / width).exp());
            let total: f32 = shares.iter().sum();
            Link { places: near.map(|(_, i)| i), shares: shares.map(|share| share / total) }
        };
        states.chunks_exact(scale.len()).map(link).collect()
    }
}

impl Link {
    /// The chance of each node, less where one can hardly be there, as behind a wall.
    fn chances(&self, reachable: &[f32]) -> [f32; NEAR] {
        let mut chances = [0.0; NEAR];
        for ((chance, place), share) in chances.iter_mut().zip(self.places).zip(self.shares) {
            *chance = share * reachable[place];
        }
        let total: f32 = chances.iter().sum();
        let known = (2.0 * total).min(1.0) / total.max(1e-6);
        chances.map(|chance| chance * known)
    }
}

/// The squared distance in units of the change scale.
fn distance2(a: &[f32], b: &[f32], scale: &[f32]) -> f32 {
    a.iter().zip(b).zip(scale).map(|((a, b), scale)| ((a - b) / scale).powi(2)).sum()
}
