//! Contexts as an acting agent makes them: trajectories of the greedy policy on the belief's own dynamics.
//!
//! A random trajectory seldom meets what an agent meets: doors that it hoped for, shut. F that has never seen such a belief goes on
//! hoping for them.

use super::config::FbConfig;
use crate::belief::{BeliefConfig, StateEvidence, StateEvidenceSet};
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

/// A trajectory that goes on from a context.
struct Trajectory {
    context: usize,
    state: usize,
    goal: usize,
    steps_left: usize,
    /// Which states can be entered in dynamics drawn from the belief; empty where the data tells.
    open: Vec<bool>,
}

/// Contexts that F is trained in, before they become beliefs.
pub(super) struct Contexts<'a> {
    pub(super) belief: &'a StateEvidence,
    /// What was seen of each.
    pub(super) evidence: &'a mut [StateEvidenceSet],
    /// Groups that the belief must not recognise, for each context.
    pub(super) hidden: &'a [Vec<usize>],
    /// The dynamics that the data shows, `[contexts * vocabulary]`.
    pub(super) data_dynamics: &'a [f32],
}

impl Contexts<'_> {
    /// Lets a share `fb.on_policy_contexts` of the contexts go on with a trajectory of the greedy policy toward random goals.
    pub(super) fn extend_on_policy(&mut self, config: &BeliefConfig, fb: &FbConfig, rng: &mut Rng) {
        let table = &self.belief.table;
        let (actions, vocabulary) = (table.actions, table.vocabulary());
        let mut trajectories = self.begin(fb, rng);
        let beliefs = self.dynamics(&trajectories);
        for (trajectory, p) in trajectories.iter_mut().zip(beliefs.chunks_exact(vocabulary)) {
            if rng.random_bool(IMAGINED) {
                trajectory.open = table.enterable(p).iter().map(|p| rng.random::<f32>() < *p).collect();
            }
        }
        for _ in 0..LONGEST {
            trajectories.retain(|trajectory| trajectory.steps_left > 0);
            let dynamics = self.dynamics(&trajectories);
            let each = trajectories.par_iter().zip(dynamics.par_chunks_exact(vocabulary));
            let greedy = each.map(|(trajectory, p)| {
                let mut reward = vec![0.0; table.states()];
                reward[trajectory.goal] = 1.0;
                let graph = Graph::listed(table, p, config.block_persistence);
                let (_, q) = graph.optimise(&reward, fb.gamma, SWEEPS);
                argmax(&q[trajectory.state * actions..][..actions])
            });
            let greedy: Vec<usize> = greedy.collect();
            for (trajectory, action) in trajectories.iter_mut().zip(greedy) {
                self.step(trajectory, action, rng);
            }
        }
    }

    /// Trajectories that begin where the context has been.
    fn begin(&self, fb: &FbConfig, rng: &mut Rng) -> Vec<Trajectory> {
        let (table, states) = (&self.belief.table, self.belief.table.states());
        let mut trajectories = Vec::new();
        for (context, evidence) in self.evidence.iter().enumerate() {
            let seen = table.evidence_in(&evidence.met);
            let visited: Vec<usize> = (0..states).filter(|s| seen[s * 2] > 0.0).collect();
            if rng.random_bool(fb.on_policy_contexts) && !visited.is_empty() {
                trajectories.push(Trajectory {
                    context,
                    state: visited[rng.random_range(0..visited.len())],
                    goal: rng.random_range(0..states),
                    steps_left: rng.random_range(1..=LONGEST),
                    open: Vec::new(),
                });
            }
        }
        trajectories
    }

    /// The predictor's dynamics after what each trajectory has met, `[trajectories * vocabulary]`.
    fn dynamics(&self, trajectories: &[Trajectory]) -> Vec<f32> {
        let evidence: Vec<&StateEvidenceSet> =
            trajectories.iter().map(|t| &self.evidence[t.context]).collect();
        let hidden: Vec<Vec<usize>> = trajectories.iter().map(|t| self.hidden[t.context].clone()).collect();
        let mean = self.belief.infer_without(&evidence, &hidden).mean;
        self.belief.dynamics_given(&mean, &evidence)
    }

    /// Takes one step, which becomes evidence; ends where nobody knows what it leads to.
    fn step(&mut self, trajectory: &mut Trajectory, action: usize, rng: &mut Rng) {
        let table = &self.belief.table;
        let pair = trajectory.state * table.actions + action;
        let tokens = pair * table.width()..(pair + 1) * table.width();
        let to = |token: &usize| table.successors()[*token] as usize;
        let token = if trajectory.open.is_empty() {
            let shares = &self.data_dynamics[trajectory.context * table.vocabulary()..][tokens.clone()];
            shares.iter().any(|p| *p > 0.0).then(|| tokens.start + argmax(shares))
        } else {
            let mut known = tokens.start..tokens.start + table.outcomes(pair).len();
            let ahead = known.clone().find(|t| to(t) != trajectory.state && trajectory.open[to(t)]);
            ahead.or_else(|| known.find(|token| to(token) == trajectory.state))
        };
        let Some(token) = token else {
            trajectory.steps_left = 0;
            return;
        };
        self.evidence[trajectory.context].met[token] = 1.0;
        trajectory.state = to(&token);
        trajectory.steps_left -= 1;
        if trajectory.state == trajectory.goal {
            trajectory.goal = rng.random_range(0..table.states());
        }
    }
}
