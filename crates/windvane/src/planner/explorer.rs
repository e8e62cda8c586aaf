//! Exploring on purpose: the way to where the belief is least sure of what an action does.

use super::graph::{Graph, best};
use super::nodes::Nodes;
use crate::agent::{Agent, Model};
use crate::belief::{BeliefEncoder, Evidence, Posteriors, TransitionSet};
use crate::data::StateTable;
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use windvane_world::collect::Actor;
use windvane_world::rng::stream;
use windvane_world::{ActionBuf, Rng};

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
    belief: &'a dyn BeliefEncoder,
    places: Places<'a>,
    evidence: Evidence,
    /// How often each action was tried at each node: what was tried is less of a question, however unsure the belief stays.
    tries: Vec<f32>,
    /// What was seen and done before.
    before: Option<(Vec<f32>, ActionBuf)>,
    plan: Option<ExplorationPlan>,
}

/// The nodes that it plans over.
#[derive(Clone, Copy, Debug)]
enum Places<'a> {
    Listed(&'a StateTable),
    Net(&'a Nodes, &'a TransitionSet),
}

/// Where there is something to learn.
#[derive(Debug)]
struct ExplorationPlan {
    /// Mean of h, and samples of it.
    h: Vec<f32>,
    samples: Vec<Vec<f32>>,
    /// The value of being at each node, and of each action there.
    v: Vec<f32>,
    q: Vec<f32>,
    /// The largest uncertainty of all.
    most: f32,
}

impl<'a> Explorer<'a> {
    /// An explorer who has seen nothing; nothing for an agent without a belief.
    pub(crate) fn new(agent: &'a Agent) -> Option<Self> {
        let belief = agent.belief()?;
        let (places, nodes) = match &agent.model {
            Model::Listed(model) => (Places::Listed(&model.table), model.table.states()),
            Model::Observations(model) => {
                let nodes = agent.nodes(&model.codec);
                (Places::Net(nodes, agent.predictor()?), nodes.rows.len())
            }
        };
        let tries = vec![0.0; nodes * agent.candidates()];
        Some(Self { agent, belief, places, evidence: belief.no_evidence(), tries, before: None, plan: None })
    }

    /// Takes in where the last action led; false if that says nothing new.
    fn notice(&mut self, obs: &[f32]) -> bool {
        let Some((before, action)) = &self.before else { return true };
        let (rows, actions) = ([&before[..], obs].concat(), [action.as_action()]);
        let mut news = self.belief.observe(&mut self.evidence, &rows, &actions);
        if let Places::Listed(table) = self.places {
            for token in table.tokens_between(&rows, &actions).flatten() {
                self.tries[token as usize / table.width()] += 1.0;
                news = true;
            }
        }
        news
    }

    /// The value of being at each node: the uncertainty of its actions, and what lies behind.
    fn plan(&self) -> ExplorationPlan {
        let Posteriors { mean: h, std } = self.belief.infer(&[&self.evidence]);
        let sample = |i: u64| {
            let mut rng = stream(self.agent.seed, "explore", &[i]);
            let noise = |(m, s): (&f32, &f32)| {
                let x: f32 = StandardNormal.sample(&mut rng);
                m + s * x
            };
            h.iter().zip(&std).map(noise).collect()
        };
        let samples: Vec<Vec<f32>> = (0..SAMPLES as u64).map(sample).collect();
        // How unsure the outcome of each action at each node is: the entropy of its outcomes in nats on listed states, else the variance
        // of the predicted change.
        let (graph, mut uncertainty): (Graph, Vec<f32>) = match self.places {
            Places::Listed(table) => {
                let p = self.belief.dynamics(&h, &[]);
                let entropy = |p: &[f32]| -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f32>();
                let entropies = p.chunks_exact(table.width()).map(entropy).collect();
                (Graph::listed(table, &p, 0.0), entropies)
            }
            Places::Net(nodes, predictor) => {
                (nodes.graph(predictor, &h), nodes.uncertainty(predictor, &nodes.obs, &samples))
            }
        };
        uncertainty.iter_mut().zip(&self.tries).for_each(|(x, tries)| *x /= (1.0 + tries).powi(2));
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
        ExplorationPlan { h, samples, v, q, most: best(&uncertainty) }
    }

    /// The value of each candidate action at an observation: its own uncertainty, and what lies behind.
    fn values(&self, ExplorationPlan { h, samples, v, q, .. }: &ExplorationPlan, obs: &[f32]) -> Vec<f32> {
        match self.places {
            Places::Listed(table) => q[table.nearest(obs) * table.actions..][..table.actions].to_vec(),
            Places::Net(nodes, predictor) => {
                let own = nodes.uncertainty(predictor, obs, samples);
                let reachable = nodes.reachability(predictor, h);
                let behind = nodes.between(v, &reachable, &nodes.after(predictor, obs, h));
                own.iter().zip(behind).map(|(own, v)| own + GAMMA * v).collect()
            }
        }
    }
}

impl Actor for Explorer<'_> {
    fn begin(&mut self, _: &mut Rng) {
        if let Some(fresh) = Self::new(self.agent) {
            *self = fresh;
        }
    }

    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        let plan = match self.plan.take() {
            Some(plan) if !self.notice(obs) => plan,
            _ => self.plan(),
        };
        let mut q = self.values(&plan, obs);
        if plan.most <= SURE {
            let any = rng.random_range(0..q.len());
            q.fill(0.0);
            q[any] = 1.0;
        }
        *action = self.agent.best_action(&q, 1.0);
        self.before = Some((obs.to_vec(), action.clone()));
        self.plan = Some(plan);
    }
}

impl Agent {
    /// An actor who goes where the belief is least sure; nothing for a method without a belief.
    pub fn explorer(&self) -> Option<Box<dyn Actor + '_>> {
        Explorer::new(self).map(|explorer| Box::new(explorer) as Box<dyn Actor + '_>)
    }
}
