//! Exploring on purpose: the way to where the belief is least sure of what an action does.

use super::graph::best;
use crate::agent::Agent;
use crate::belief::Evidence;
use rand::RngExt as _;
use windvane_world::collect::Actor;
use windvane_world::{ActionBuf, Rng};

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
        let tries = vec![0.0; agent.node_count() * agent.candidates()];
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
