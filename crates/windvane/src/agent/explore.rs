//! Where a belief is least sure of what actions do, for exploring on purpose.

use super::{Agent, Model};
use crate::belief::Evidence;
use crate::planner::Graph;
use crate::planner::explorer::Explorer;
use rand_distr::{Distribution as _, StandardNormal};
use windvane_world::collect::Actor;
use windvane_world::rng::stream;
use windvane_world::{Action, ActionBuf};

/// Samples of h that the uncertainty of a prediction is measured on.
const SAMPLES: usize = 6;

impl Agent {
    /// An actor who goes where the belief is least sure; nothing for a method without a belief.
    pub fn explorer(&self) -> Option<Box<dyn Actor + '_>> {
        Explorer::new(self).map(|explorer| Box::new(explorer) as Box<dyn Actor + '_>)
    }

    /// Number of nodes that are planned over.
    pub(crate) fn node_count(&self) -> usize {
        match &self.model {
            Model::Listed(model) => model.table().states(),
            Model::Observations(model) => self.nodes(&model.codec).rows().len(),
        }
    }

    /// Number of actions that a planner considers.
    pub(crate) fn candidates(&self) -> usize {
        match &self.model {
            Model::Listed(model) => model.table().actions(),
            Model::Observations(model) => model.codec.actions().candidates().len(),
        }
    }

    /// The pairs of node and action that a step tells of.
    pub(crate) fn tried(&self, obs: &[f32], action: Action<'_>, next: &[f32]) -> Vec<usize> {
        let Model::Listed(model) = &self.model else { return Vec::new() };
        let (table, mut steps) = (model.table(), Vec::new());
        table.discretizer().add_steps(obs, action, next, &mut steps);
        let tokens = steps.into_iter().filter_map(|step| table.token_of(step));
        tokens.map(|token| token as usize / table.width()).collect()
    }

    /// The graph that evidence leads to, and how unsure the outcome of each action at each node is: the entropy of its
    /// outcomes in nats on listed states, else the variance of the predicted change over samples of h.
    pub(crate) fn uncertainty(&self, evidence: &Evidence) -> (Graph, Vec<f32>) {
        let belief = self.belief.as_ref().map(super::Belief::encoder);
        let posterior = belief.map(|belief| belief.infer(&[evidence])).unwrap_or_default();
        match &self.model {
            Model::Listed(model) => {
                let p = belief.and_then(|belief| belief.dynamics(&posterior.mean)).unwrap_or_default();
                let graph = Graph::listed(model.table(), &p, 0.0);
                let entropy = |p: &[f32]| -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f32>();
                let uncertainty = graph.edges().map(entropy).collect();
                (graph, uncertainty)
            }
            Model::Observations(model) => {
                let nodes = self.nodes(&model.codec);
                let Some(predictor) = self.predictor() else {
                    return (Graph::new(1, 1, vec![], vec![]), vec![]);
                };
                let dims = model.codec.dims();
                let changes = self.sampled(&posterior.mean, &posterior.std).into_iter();
                let changes: Vec<Vec<f32>> =
                    changes.map(|h| nodes.changes(predictor, nodes.observations(), &h)).collect();
                let variance = spread(&changes, dims);
                (nodes.graph(predictor, &posterior.mean), variance)
            }
        }
    }

    /// The value of each candidate action at an observation: its own uncertainty, and what lies behind.
    pub(crate) fn exploration_values(
        &self,
        evidence: &Evidence,
        obs: &[f32],
        v: &[f32],
        uncertainty: &[f32],
        gamma: f32,
    ) -> Vec<f32> {
        let actions = self.candidates();
        match &self.model {
            Model::Listed(model) => {
                let belief = self.belief.as_ref().map(super::Belief::encoder);
                let mean = belief.map(|belief| belief.infer(&[evidence]).mean).unwrap_or_default();
                let p = belief.and_then(|belief| belief.dynamics(&mean)).unwrap_or_default();
                let table = model.table();
                let here = table.nearest(obs);
                let value = |a: usize| {
                    let tokens =
                        (here * actions + a) * table.width()..(here * actions + a + 1) * table.width();
                    let outcomes = p[tokens.clone()].iter().zip(&table.successors()[tokens]);
                    let behind: f32 = outcomes.map(|(p, &s)| p * v[s as usize]).sum();
                    uncertainty[here * actions + a] + gamma * behind
                };
                (0..actions).map(value).collect()
            }
            Model::Observations(model) => {
                let (Some(predictor), Some(belief)) = (self.predictor(), self.belief()) else {
                    return vec![0.0; actions];
                };
                let posterior = belief.infer(&[evidence]);
                let nodes = self.nodes(&model.codec);
                let changes: Vec<Vec<f32>> = self
                    .sampled(&posterior.mean, &posterior.std)
                    .iter()
                    .map(|h| nodes.changes(predictor, obs, h))
                    .collect();
                let own = spread(&changes, model.codec.dims());
                let reachable = nodes.reachability(predictor, &posterior.mean);
                let behind = nodes.between(v, &reachable, &nodes.after(predictor, obs, &posterior.mean));
                own.iter().zip(behind).map(|(own, v)| own + gamma * v).collect()
            }
        }
    }

    /// The action behind a candidate, when candidates have the values `q`.
    pub(crate) fn candidate_action(&self, index: usize, q: &[f32]) -> ActionBuf {
        match &self.model {
            Model::Listed(model) => model.table().discretizer().action(q, 1.0),
            Model::Observations(model) => {
                let codec = model.codec.actions();
                codec.action(index, &codec.candidates()[index])
            }
        }
    }

    /// Samples of h.
    fn sampled(&self, mean: &[f32], std: &[f32]) -> Vec<Vec<f32>> {
        let sample = |i: usize| {
            let mut rng = stream(self.seed, "explore", &[i as u64]);
            let noise = |(m, s): (&f32, &f32)| {
                let x: f32 = StandardNormal.sample(&mut rng);
                m + s * x
            };
            mean.iter().zip(std).map(noise).collect()
        };
        (0..SAMPLES).map(sample).collect()
    }
}

/// The variance over samples of rows of `dims` numbers, summed over them.
fn spread(samples: &[Vec<f32>], dims: usize) -> Vec<f32> {
    let count = samples.len().max(1) as f32;
    let rows = samples.first().map_or(0, Vec::len) / dims;
    let variance = |row: usize| {
        (row * dims..(row + 1) * dims)
            .map(|i| {
                let mean = samples.iter().map(|x| x[i]).sum::<f32>() / count;
                samples.iter().map(|x| (x[i] - mean).powi(2)).sum::<f32>() / count
            })
            .sum()
    };
    (0..rows).map(variance).collect()
}
