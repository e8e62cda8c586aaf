//! Where a belief is least sure of what actions do, for exploring on purpose.

use super::{Agent, Model};
use crate::belief::{Evidence, Posteriors};
use crate::planner::Graph;
use crate::planner::explorer::Explorer;
use rand_distr::{Distribution as _, StandardNormal};
use windvane_world::Action;
use windvane_world::collect::Actor;
use windvane_world::rng::stream;

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
            Model::Listed(model) => model.table.states(),
            Model::Observations(model) => self.nodes(&model.codec).rows.len(),
        }
    }

    /// The pairs of node and action that a step tells of.
    pub(crate) fn tried(&self, obs: &[f32], action: Action<'_>, next: &[f32]) -> Vec<usize> {
        let Model::Listed(model) = &self.model else { return Vec::new() };
        let (table, mut steps) = (&model.table, Vec::new());
        table.discretizer.add_steps(obs, action, next, &mut steps);
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
                let p = belief.map(|belief| belief.dynamics(&posterior.mean, &[])).unwrap_or_default();
                let graph = Graph::listed(&model.table, &p, 0.0);
                let entropy = |p: &[f32]| -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f32>();
                let uncertainty = graph.edges().map(entropy).collect();
                (graph, uncertainty)
            }
            Model::Observations(model) => {
                let nodes = self.nodes(&model.codec);
                let Some(predictor) = self.predictor() else {
                    return (Graph::new(1, 1, vec![], vec![]), vec![]);
                };
                let samples = self.sampled(&posterior);
                let changes = samples.iter().map(|h| nodes.changes(predictor, &nodes.obs, h));
                let variance = spread(&changes.collect::<Vec<_>>(), model.codec.dims());
                (nodes.graph(predictor, &posterior.mean), variance)
            }
        }
    }

    /// The value of each candidate action at an observation, its own uncertainty and what lies behind, where the nodes have the
    /// values `v` and their actions `q`.
    pub(crate) fn exploration_values(
        &self,
        evidence: &Evidence,
        obs: &[f32],
        [v, q]: [&[f32]; 2],
        gamma: f32,
    ) -> Vec<f32> {
        let actions = self.candidates();
        let model = match &self.model {
            Model::Listed(model) => return q[model.table.nearest(obs) * actions..][..actions].to_vec(),
            Model::Observations(model) => model,
        };
        let (Some(predictor), Some(belief)) = (self.predictor(), self.belief()) else {
            return vec![0.0; actions];
        };
        let posterior = belief.infer(&[evidence]);
        let nodes = self.nodes(&model.codec);
        let samples = self.sampled(&posterior);
        let changes: Vec<Vec<f32>> = samples.iter().map(|h| nodes.changes(predictor, obs, h)).collect();
        let own = spread(&changes, model.codec.dims());
        let reachable = nodes.reachability(predictor, &posterior.mean);
        let behind = nodes.between(v, &reachable, &nodes.after(predictor, obs, &posterior.mean));
        own.iter().zip(behind).map(|(own, v)| own + gamma * v).collect()
    }

    /// Samples of h.
    fn sampled(&self, Posteriors { mean, std }: &Posteriors) -> Vec<Vec<f32>> {
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
