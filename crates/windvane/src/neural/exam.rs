//! What can be said of a trained agent without exact answers: B, F, the belief, and how tasks and beliefs lie to each
//! other.

use super::agent::NeuralAgent;
use super::fb::Places;
use super::memory::Memory;
use super::situations::Listener;
use crate::doctor::{self, Finding, Limits};
use crate::latent;
use crate::linalg::linear_probe;
use rand::RngExt as _;
use windvane_world::rng::stream;

/// States that B and F are examined on.
const STATES: usize = 400;
/// Tasks that F is examined under.
const TASKS: usize = 8;
/// Contexts of each group for the probe, half of them to learn it.
const CONTEXTS: usize = 16;
/// Most groups that the probe tells apart.
const GROUPS: usize = 50;
/// States that coverage is measured against.
const NET: usize = 1000;

impl NeuralAgent {
    /// Findings about all parts.
    pub(super) fn findings(&self, seed: u64) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.about_data().into_iter().collect();
        findings.extend(self.about_backward());
        findings.extend(self.about_forward(seed));
        if let Some(memory) = &self.memory {
            findings.extend(self.about_belief(memory, seed));
        }
        findings
    }

    fn about_data(&self) -> Option<Finding> {
        let (states, change) = (&self.visited.states, self.lens().change());
        let dims = change.len();
        let net = NET.min(states.len() / dims / 2);
        let nearest = |state: &[f32]| {
            let distance = |other: &[f32]| -> f32 {
                state.iter().zip(other).zip(change).map(|((a, b), size)| ((a - b) / size).powi(2)).sum()
            };
            states.chunks_exact(dims).take(net).map(distance).fold(f32::INFINITY, f32::min).sqrt()
        };
        let others: Vec<f32> = states.chunks_exact(dims).skip(net).take(STATES).map(nearest).collect();
        let mean = others.iter().map(|d| f64::from(*d)).sum::<f64>() / others.len() as f64;
        let what = format!("steps from a visited state to the nearest of {net} others (coverage)");
        (!others.is_empty()).then(|| Finding::report("data", what, mean))
    }

    fn about_backward(&self) -> Vec<Finding> {
        let dim = self.model.dim();
        let rows = STATES.min(self.visited.shares.len());
        let [error, rank] = doctor::spread(&self.visited.b[..rows * dim], &vec![1.0 / rows as f32; rows]);
        let advice = "raise neural.fb.ortho or train longer: goals that look alike to B get the same z";
        let what = "mean cosine of two visited states";
        let floor = (dim as f64 / 2.0).min(20.0);
        vec![
            Finding::at_most("B", what, error, Limits { good: 0.2, fair: 0.4 }, advice),
            Finding::at_least("B", "effective rank", rank, Limits { good: floor, fair: floor / 2.5 }, advice),
        ]
    }

    /// F under a few goals, each in a few places, told what is told on average.
    fn about_forward(&self, seed: u64) -> Vec<Finding> {
        let Some(choices) = self.lens().moves().choices() else { return Vec::new() };
        let (dim, dims) = (self.model.dim(), self.lens().change().len());
        let count = self.visited.shares.len();
        let mut rng = stream(seed, "exam", &[]);
        let mut pick = || rng.random_range(0..count);
        let per_task = (STATES / TASKS).min(count);
        let mut places = Places { groups: TASKS, ..Places::default() };
        let mut z = Vec::new();
        for _ in 0..TASKS {
            let goal = pick();
            z.extend_from_slice(&self.visited.b[goal * dim..][..dim]);
            places.told.resize(places.told.len() + self.listener.width(), 0.0);
            places.told.extend_from_slice(&self.visited.b[goal * dim..][..dim]);
            if let Listener::Belief { middle, .. } = &self.listener {
                places.beliefs.extend_from_slice(middle);
            }
            (0..per_task)
                .for_each(|_| places.obs.extend_from_slice(&self.visited.states[pick() * dims..][..dims]));
        }
        places.features = self.lens().features_of(&places.obs);
        let heads = self.model.heads(&self.model.params.weights(), &places);
        let values = self.model.values(&heads, &z, TASKS);
        let (mut f, mut one) = (Vec::new(), vec![0.0; dim]);
        let map = &self.model.forward[0];
        for (row, head) in heads[0].chunks_exact(map.head()).enumerate() {
            let task = row / (per_task * choices);
            map.assemble(head, &z[task * dim..][..dim], &mut one);
            f.extend_from_slice(&one);
        }
        let rows = STATES.min(f.len() / dim);
        let [_, rank] = doctor::spread(&f[..rows * dim], &vec![1.0 / rows as f32; rows]);
        let size = values.iter().map(|q| f64::from(q.abs())).sum::<f64>() / values.len() as f64;
        let gap = |q: &[f32]| {
            let mut q = q.to_vec();
            q.sort_unstable_by(|a, b| b.total_cmp(a));
            f64::from(q[0] - q.get(1).copied().unwrap_or(q[0]))
        };
        let gaps: f64 = values.chunks_exact(choices).map(gap).sum::<f64>() / (values.len() / choices) as f64;
        let advice = "train longer, hold actions longer (neural.repeat) or lower neural.fb.gamma: actions look alike to F";
        vec![
            Finding::report("F", "effective rank", rank),
            Finding::at_least(
                "F",
                "gap between the two best actions, as a share of Q",
                gaps / size.max(1e-12),
                Limits { good: 0.01, fair: 0.001 },
                advice,
            ),
        ]
    }

    fn about_belief(&self, memory: &Memory, seed: u64) -> Vec<Finding> {
        let Some(belief) = self.listener.belief() else { return Vec::new() };
        let config = &self.plan.belief;
        let groups = memory.groups().min(GROUPS);
        let (mut sets, mut labels) = (Vec::new(), Vec::new());
        for i in 0..CONTEXTS * groups {
            let mut rng = stream(seed, "probe", &[i as u64]);
            sets.push(memory.context(&mut rng, i % groups, config.longest));
            labels.push(i % groups);
        }
        let h = self.listener.conditions(&belief.infer(&sets));
        let half = sets.len() / 2;
        let (learn, test) = h.split_at(half * belief.dim());
        let named = linear_probe(learn, &labels[..half], test, &labels[half..], groups);
        let chance = 1.0 / groups as f64;
        let advice = "train the belief longer, or with longer contexts: h does not tell groups apart";
        let what = format!("a linear map names the group ({groups} of them)");
        let limits = Limits { good: 0.5_f64.max(2.0 * chance).min(1.0), fair: 3.0 * chance };
        let mut findings = vec![Finding::at_least("belief", what, named, limits, advice)];
        findings.extend(self.about_angles(&h));
        let sure = self.sureness(&sets[..groups]);
        findings.push(Finding::report("belief", "spread of h beside its differences between contexts", sure));
        if let (Some(first), Some(last)) = (self.usual.first(), self.usual.last()) {
            let median = self.usual[self.usual.len() / 2];
            let what = format!("surprise of contexts not learned from, median ({first:.3} to {last:.3})");
            findings.push(Finding::report("belief", what, f64::from(median)));
        }
        findings
    }

    /// The mean angle between goals and beliefs, where they live on the same sphere.
    fn about_angles(&self, conditions: &[f32]) -> Option<Finding> {
        let dim = self.model.dim();
        if self.listener.width() != dim {
            return None;
        }
        let pairs = conditions.chunks_exact(dim).zip(self.visited.b.chunks_exact(dim));
        let angles: Vec<f64> = pairs.map(|(h, z)| latent::angle(h, z)).collect();
        let mean = angles.iter().sum::<f64>() / angles.len().max(1) as f64;
        Some(Finding::report("belief", "angle between z of a goal and h, degrees", mean))
    }

    /// The spread of h, as a share of how much it differs between contexts.
    pub(super) fn sureness(&self, sets: &[Vec<f32>]) -> f64 {
        let Listener::Belief { belief, scale, .. } = &self.listener else { return 0.0 };
        let spread = belief.spread(sets);
        let square =
            spread.iter().map(|s| f64::from(s * scale).powi(2)).sum::<f64>() / spread.len().max(1) as f64;
        square.sqrt()
    }
}
