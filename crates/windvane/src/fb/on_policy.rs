//! Contexts as an acting agent makes them: trajectories of the greedy policy on the belief's own dynamics.
//!
//! A random trajectory seldom meets what an agent meets: doors that it hoped for, shut. F that has never seen such a belief goes on
//! hoping for them.

use super::config::FbConfig;
use crate::belief::{BeliefConfig, BeliefEncoder as _, StateEvidence};
use crate::data::StateTable;
use crate::planner::Graph;
use crate::planner::graph::argmax;
use rand::RngExt as _;
use rayon::prelude::*;
use windvane_world::Rng;

/// Share of trajectories in dynamics drawn from the belief itself; the others are in those that the data shows.
const IMAGINED: f64 = 0.8;
/// Longest trajectory, in steps.
const LONGEST: usize = 80;
/// Sweeps of value iteration before each step.
const SWEEPS: usize = 48;
/// Constants that change results.
pub(super) const CONSTANTS: &[f64] = &[IMAGINED, LONGEST as f64, SWEEPS as f64];

/// One agent on its way.
struct Way {
    context: usize,
    state: usize,
    goal: usize,
    left: usize,
    /// Which states can be entered in dynamics drawn from the belief; empty where the data tells.
    open: Vec<bool>,
}

/// Contexts that F is trained in, before they become beliefs.
pub(super) struct Contexts<'a> {
    pub(super) table: &'a StateTable,
    pub(super) belief: &'a StateEvidence,
    /// What was entered and what was blocked, `[contexts * states * 2]`.
    pub(super) evidence: &'a mut [f32],
    /// Groups that the belief must not recognise, for each context.
    pub(super) hidden: &'a [Vec<usize>],
    /// The dynamics that the data shows, `[contexts * vocabulary]`.
    pub(super) data_dynamics: &'a [f32],
}

impl Contexts<'_> {
    /// Lets a share `fb.on_policy_contexts` of the contexts go on with a trajectory of the greedy policy toward random goals.
    pub(super) fn go_on(&mut self, config: &BeliefConfig, fb: &FbConfig, rng: &mut Rng) {
        let mut ways = self.begin(fb, rng);
        let beliefs = self.dynamics(&ways, config);
        for (way, p) in ways.iter_mut().zip(beliefs.chunks_exact(self.table.vocabulary())) {
            if rng.random_bool(IMAGINED) {
                way.open = self.table.enterable(p).iter().map(|p| rng.random::<f32>() < *p).collect();
            }
        }
        let actions = self.table.actions();
        for _ in 0..LONGEST {
            ways.retain(|way| way.left > 0);
            let dynamics = self.dynamics(&ways, config);
            let each = ways.par_iter().zip(dynamics.par_chunks_exact(self.table.vocabulary()));
            let greedy = each.map(|(way, p)| {
                let mut reward = vec![0.0; self.table.states()];
                reward[way.goal] = 1.0;
                let graph = Graph::listed(self.table, p, config.block_persistence);
                let (_, q) = graph.optimise(&reward, fb.gamma, SWEEPS);
                argmax(&q[way.state * actions..][..actions])
            });
            let greedy: Vec<usize> = greedy.collect();
            for (way, action) in ways.iter_mut().zip(greedy) {
                self.step(way, action, rng);
            }
        }
    }

    /// Agents that begin where the context has been.
    fn begin(&self, fb: &FbConfig, rng: &mut Rng) -> Vec<Way> {
        let states = self.table.states();
        let mut ways = Vec::new();
        for (context, evidence) in self.evidence.chunks_exact(states * 2).enumerate() {
            let visited: Vec<usize> = (0..states).filter(|s| evidence[s * 2] > 0.0).collect();
            if rng.random_bool(fb.on_policy_contexts) && !visited.is_empty() {
                ways.push(Way {
                    context,
                    state: visited[rng.random_range(0..visited.len())],
                    goal: rng.random_range(0..states),
                    left: rng.random_range(1..=LONGEST),
                    open: Vec::new(),
                });
            }
        }
        ways
    }

    /// The predictor's dynamics after what each agent has seen, `[ways * vocabulary]`.
    fn dynamics(&self, ways: &[Way], config: &BeliefConfig) -> Vec<f32> {
        let width = self.table.states() * 2;
        let evidence: Vec<f32> =
            ways.iter().flat_map(|way| &self.evidence[way.context * width..][..width]).copied().collect();
        let hidden: Vec<Vec<usize>> = ways.iter().map(|way| self.hidden[way.context].clone()).collect();
        let mean = self.belief.infer_without(&evidence, &hidden).mean;
        let mut dynamics = self.belief.dynamics(&mean).unwrap_or_default();
        let rows = dynamics.chunks_exact_mut(self.table.vocabulary()).zip(evidence.chunks_exact(width));
        rows.for_each(|(p, evidence)| self.table.trust(p, evidence, config.block_persistence));
        dynamics
    }

    /// Takes one step, which becomes evidence; ends where nobody knows what it leads to.
    fn step(&mut self, way: &mut Way, action: usize, rng: &mut Rng) {
        let (table, pair) = (self.table, way.state * self.table.actions() + action);
        let tokens = pair * table.width()..(pair + 1) * table.width();
        let to = |token: &usize| table.successors()[*token] as usize;
        let token = if way.open.is_empty() {
            let shares = &self.data_dynamics[way.context * table.vocabulary()..][tokens.clone()];
            shares.iter().any(|p| *p > 0.0).then(|| tokens.start + argmax(shares))
        } else {
            let mut known = tokens.start..tokens.start + table.outcomes(pair).len();
            let ahead = known.clone().find(|token| to(token) != way.state && way.open[to(token)]);
            ahead.or_else(|| known.find(|token| to(token) == way.state))
        };
        let Some(token) = token else {
            way.left = 0;
            return;
        };
        let width = table.states() * 2;
        table.add_evidence(token, &mut self.evidence[way.context * width..][..width]);
        way.state = to(&token);
        way.left -= 1;
        if way.state == way.goal {
            way.goal = rng.random_range(0..table.states());
        }
    }
}
