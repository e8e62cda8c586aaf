//! Exploring on purpose: the way to where the belief is least sure of what an action does.

use super::graph::{Graph, best};
use crate::agent::{Agent, Belief, Model};
use crate::belief::{Evidence, Posteriors};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use windvane_world::collect::Actor;
use windvane_world::rng::stream;
use windvane_world::{Action, ActionBuf, Rng};

/// Samples of h that the uncertainty of a prediction is measured on.
const SAMPLES: usize = 6;

/// Discount of what is to be learned farther away.
const GAMMA: f32 = 0.95;
/// Bellman sweeps for a way there.
const SWEEPS: usize = 40;
/// With less uncertainty than this everywhere there is nothing left to look for.
const SURE: f32 = 0.02;

/// Plans through the belief's dynamics to the most uncertain outcomes, and updates the belief by each step.
#[derive(Debug)]
pub(crate) struct Explorer<'a> {
    agent: &'a Agent,
    evidence: Evidence,
    /// How often each action was tried at each node: what was tried is less of a question, however unsure the belief stays.
    tries: Vec<f32>,
    /// What was seen and done before.
    before: Option<(Vec<f32>, ActionBuf)>,
    plan: Option<ExplorationPlan>,
}

/// Where there is something to learn.
#[derive(Debug)]
struct ExplorationPlan {
    /// The value of being at each node, and of each action there.
    v: Vec<f32>,
    q: Vec<f32>,
    /// The largest uncertainty of all.
    most: f32,
}

impl<'a> Explorer<'a> {
    /// An explorer who has seen nothing; nothing for an agent without a belief.
    pub(crate) fn new(agent: &'a Agent) -> Option<Self> {
        let evidence = agent.belief()?.no_evidence();
        let nodes = match &agent.model {
            Model::Listed(model) => model.table.states(),
            Model::Observations(model) => agent.nodes(&model.codec).rows.len(),
        };
        let tries = vec![0.0; nodes * agent.candidates()];
        Some(Self { agent, evidence, tries, before: None, plan: None })
    }

    /// Takes in where the last action led; false if that says nothing new.
    fn notice(&mut self, obs: &[f32]) -> bool {
        let (Some((before, action)), Some(belief)) = (&self.before, self.agent.belief()) else { return true };
        let tried = self.agent.tried(before, action.as_action(), obs);
        tried.iter().for_each(|&pair| self.tries[pair] += 1.0);
        let rows = [&before[..], obs].concat();
        belief.observe_step(&mut self.evidence, &rows, &[action.as_action()]) || !tried.is_empty()
    }

    /// The value of being at each node: the uncertainty of its actions, and what lies behind.
    fn plan(&mut self) {
        let (graph, uncertainty) = self.agent.uncertainty(&self.evidence);
        let uncertainty: Vec<f32> =
            uncertainty.iter().zip(&self.tries).map(|(x, tries)| x / (1.0 + tries).powi(2)).collect();
        // Uncertainty is paid to who acts on it, not to who stands beside it.
        let mut v = vec![0.0; graph.nodes];
        let mut q = vec![0.0; graph.nodes * graph.actions];
        let back_up = |v: &[f32], q: &mut [f32]| {
            graph.backup(v, v, q);
            q.iter_mut().zip(&uncertainty).for_each(|(q, x)| *q = x + GAMMA * *q);
        };
        for _ in 0..SWEEPS {
            back_up(&v, &mut q);
            v.iter_mut().zip(q.chunks_exact(graph.actions)).for_each(|(v, q)| *v = best(q));
        }
        back_up(&v, &mut q);
        self.plan = Some(ExplorationPlan { v, q, most: best(&uncertainty) });
    }
}

impl Actor for Explorer<'_> {
    fn begin(&mut self, _: &mut Rng) {
        if let Some(fresh) = Self::new(self.agent) {
            *self = fresh;
        }
    }

    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        if self.notice(obs) || self.plan.is_none() {
            self.plan();
        }
        let Some(ExplorationPlan { v, q, most }) = &self.plan else { return };
        let mut q = self.agent.exploration_values(&self.evidence, obs, [v, q], GAMMA);
        if *most <= SURE {
            let any = rng.random_range(0..q.len());
            q.fill(0.0);
            q[any] = 1.0;
        }
        *action = self.agent.best_action(&q, 1.0);
        self.before = Some((obs.to_vec(), action.clone()));
    }
}

impl Agent {
    /// An actor who goes where the belief is least sure; nothing for a method without a belief.
    pub fn explorer(&self) -> Option<Box<dyn Actor + '_>> {
        Explorer::new(self).map(|explorer| Box::new(explorer) as Box<dyn Actor + '_>)
    }

    /// The pairs of node and action that a step tells of.
    fn tried(&self, obs: &[f32], action: Action<'_>, next: &[f32]) -> Vec<usize> {
        let Model::Listed(model) = &self.model else { return Vec::new() };
        let (table, mut steps) = (&model.table, Vec::new());
        table.discretizer.add_steps(obs, action, next, &mut steps);
        let tokens = steps.into_iter().filter_map(|step| table.token_of(step));
        tokens.map(|token| token as usize / table.width()).collect()
    }

    /// The graph that evidence leads to, and how unsure the outcome of each action at each node is: the entropy of its
    /// outcomes in nats on listed states, else the variance of the predicted change over samples of h.
    fn uncertainty(&self, evidence: &Evidence) -> (Graph, Vec<f32>) {
        let belief = self.belief.as_ref().map(Belief::encoder);
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
    fn exploration_values(
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
