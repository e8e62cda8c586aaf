//! How an agent acts: by F alone or with the planner, in many contexts at once, each with its task.

use super::{Agent, Known, Model};
use crate::belief::Evidence;
use crate::eval::{BeliefMode, EvalConfig};
use crate::fb::observations::States;
use crate::fb::{ListedModel, ObservationModel};
use crate::latent;
use crate::methods::Draw;
use crate::planner::graph::argmax;
use crate::planner::{Graph, Planner};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, ActionBuf, ContextId};

/// How a task becomes actions by F alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskPolicy {
    /// Greedy on F(s, a, z) z for the task's own vector z (paper).
    #[default]
    Greedy,
    /// Generalised policy improvement on listed states: the best of the policies for the goals that the task rewards most, each
    /// valued by its own successor measure, max over g of F(s, a, B(g)) z.
    Gpi,
}

impl TaskPolicy {
    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Greedy => "greedy on z",
            Self::Gpi => "policy improvement over goals",
        }
    }
}

/// A context whose id nobody knows: to Oracle-ID it is none of training.
pub(super) const UNKNOWN: ContextId = ContextId(u64::MAX);

/// How an agent is to act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acting {
    /// Whether its belief goes on learning.
    pub belief: BeliefMode,
    /// Who chooses actions.
    pub planner: Planner,
    /// How a task becomes actions by F alone.
    pub task_policy: TaskPolicy,
    /// How far task vectors go toward the belief, where they were drawn around it in training; 0: not at all.
    pub blend: f32,
}

impl Acting {
    /// F alone, the belief frozen.
    pub const F_ALONE: Self = Self {
        belief: BeliefMode::Frozen,
        planner: Planner::None,
        task_policy: TaskPolicy::Greedy,
        blend: 0.0,
    };

    /// As an evaluation asks for.
    pub(crate) fn of(config: &EvalConfig, belief: BeliefMode) -> Self {
        let EvalConfig { planner, task_policy, blend, .. } = *config;
        Self { belief, planner, task_policy, blend }
    }
}

/// All that acting takes in one context with its task.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub(super) known: Known,
    /// The task vector.
    pub(super) z: Vec<f32>,
    /// Listed states: Q of every action everywhere, `[states * actions]`.
    q: Vec<f32>,
    /// Observations: the planner's values; nothing where F alone acts.
    pub(super) plan: Option<NodeValues>,
}

/// A plan over the nodes: their values, and whether one can be at each, 0 to 1, under the belief `h`.
#[derive(Debug)]
pub(super) struct NodeValues {
    v: Vec<f32>,
    reachable: Vec<f32>,
    h: Vec<f32>,
}

/// What is being held in an episode, and what happened since its evidence was last added to.
#[derive(Debug, Default)]
pub(super) struct Trail {
    /// The action, and the steps it is still to be held.
    held: Option<ActionBuf>,
    left: usize,
    obs: Vec<f32>,
    done: Vec<ActionBuf>,
    /// Steps since the belief was last formed.
    pub(super) stale: usize,
}

impl Trail {
    /// Begins to hold an action for so many steps.
    pub(super) fn hold(&mut self, action: ActionBuf, steps: usize) {
        (self.held, self.left) = (Some(action), steps);
    }

    /// The action of the next step; nothing if it is to be chosen.
    pub(super) fn next(&mut self) -> Option<ActionBuf> {
        self.left = self.left.checked_sub(1)?;
        self.held.clone()
    }

    /// Whether an action is to be chosen.
    pub(super) fn is_free(&self) -> bool {
        self.left == 0
    }

    /// Takes a step into the evidence, or keeps it until its action was held to the end. True if the belief is to be formed
    /// anew: there is something new, and steps enough have passed.
    pub(super) fn observe(
        &mut self,
        agent: &Agent,
        evidence: &mut Evidence,
        (obs, action, next): (&[f32], Action<'_>, &[f32]),
    ) -> bool {
        let Some(belief) = agent.belief() else { return false };
        if self.done.is_empty() {
            self.obs.clear();
            self.obs.extend_from_slice(obs);
        }
        self.obs.extend_from_slice(next);
        self.done.push(action.into());
        self.stale += 1;
        if self.done.len() < agent.action_repeat() {
            return false;
        }
        let actions: Vec<Action<'_>> = self.done.iter().map(ActionBuf::as_action).collect();
        let news = belief.observe(evidence, &self.obs, &actions);
        self.done.clear();
        let refresh = if agent.listed().is_some() { 1 } else { agent.settings.belief.refresh };
        news && self.stale >= refresh
    }
}

impl Agent {
    /// Steps that an action is held.
    pub(super) fn action_repeat(&self) -> usize {
        match &self.model {
            Model::Listed(_) => 1,
            Model::Observations(model) => model.codec.action_repeat,
        }
    }

    /// Whether an online belief still wants random actions, so that there is something to learn from.
    pub(super) fn probes(&self, evidence: &Evidence) -> bool {
        self.listed().is_none() && evidence.transitions() < self.settings.belief.probe
    }

    /// Makes ready to act in contexts after evidence of each, each with its task vector. Only Oracle-ID gets the contexts' ids.
    pub(super) fn ready(
        &self,
        contexts: &[ContextId],
        evidence: &[&Evidence],
        mut tasks: Vec<Vec<f32>>,
        acting: Acting,
    ) -> Vec<Ready> {
        let known = self.known(contexts, evidence);
        if acting.blend != 0.0 && self.method.draw == Draw::Cone {
            for (z, Known { input, .. }) in
                tasks.iter_mut().zip(&known).filter(|(_, known)| !known.input.is_empty())
            {
                *z = latent::toward(z, &latent::cone_means(input, input.len(), self.dim()), acting.blend);
            }
        }
        let mut q = Vec::new();
        if let Model::Listed(model) = &self.model {
            let dynamics: Vec<f32> = known.iter().flat_map(|known| &known.dynamics).copied().collect();
            q = self.listed_values(model, &dynamics, &tasks.concat(), acting.planner, acting.task_policy);
        }
        let width = q.len() / known.len().max(1);
        let one = |(i, (known, z)): (usize, (Known, Vec<f32>))| {
            let plan = match &self.model {
                Model::Observations(model) if acting.planner == Planner::Sweeps => {
                    self.plan(model, &known.belief, &z)
                }
                _ => None,
            };
            Ready { known, z, q: q[i * width..][..width].to_vec(), plan }
        };
        known.into_iter().zip(tasks).enumerate().map(one).collect()
    }

    /// The value of each action that is considered, `[rows * n]`, at an observation in each context, or at several in a single
    /// one. Nothing where an actor chooses.
    pub(super) fn q(&self, ready: &[&Ready], obs: &[f32]) -> Option<Vec<f32>> {
        let rows = obs.chunks_exact(self.spec().obs_dim()).enumerate();
        let mut rows = rows.map(|(row, obs)| (ready[if ready.len() == 1 { 0 } else { row }], obs));
        match &self.model {
            Model::Listed(model) => {
                let (table, n) = (&model.table, model.table.actions);
                Some(rows.flat_map(|(ready, obs)| &ready.q[table.nearest(obs) * n..][..n]).copied().collect())
            }
            Model::Observations(model) if ready.iter().any(|ready| ready.plan.is_some()) => {
                let values = |(ready, obs): (&Ready, &[f32])| {
                    ready.plan.as_ref().map(|plan| self.planned_values(model, plan, obs))
                };
                rows.try_fold(Vec::new(), |all, row| Some([all, values(row)?].concat()))
            }
            Model::Observations(model) => {
                model.n_choices()?;
                Some(model.action_values(&states_in(model, ready, obs)))
            }
        }
    }

    /// The actions at observations as in [`Self::q`].
    pub(super) fn choose(&self, ready: &[&Ready], obs: &[f32]) -> Vec<ActionBuf> {
        if let Some(q) = self.q(ready, obs) {
            // A push that is less than a step worse than the best one leads on as well.
            let enough = self.settings.fb.gamma;
            return q.chunks_exact(self.candidates()).map(|q| self.best_action(q, enough)).collect();
        }
        let Model::Observations(model) = &self.model else { return Vec::new() };
        let vectors = model.actions(&states_in(model, ready, obs));
        let codec = &model.codec.actions;
        vectors.chunks_exact(codec.width()).map(|vector| codec.action(0, vector)).collect()
    }

    /// The best action under the values `q [n]`; in boxes every push whose value is above `enough` of the best.
    pub(crate) fn best_action(&self, q: &[f32], enough: f32) -> ActionBuf {
        match &self.model {
            Model::Listed(model) => model.table.discretizer.action(q, enough),
            Model::Observations(model) => model.codec.actions.candidate_action(argmax(q)),
        }
    }

    /// Number of actions that are considered where no actor chooses.
    pub(crate) fn candidates(&self) -> usize {
        match &self.model {
            Model::Listed(model) => model.table.actions,
            Model::Observations(model) => model.codec.actions.n_candidates(),
        }
    }

    /// Q of every action in every listed state, `[count * states * actions]`, for the dynamics of each context, `[count *
    /// vocabulary]`, and its task, `[count * d]`.
    pub(crate) fn listed_values(
        &self,
        model: &ListedModel,
        dynamics: &[f32],
        tasks: &[f32],
        planner: Planner,
        task_policy: TaskPolicy,
    ) -> Vec<f32> {
        match (planner, task_policy) {
            (Planner::None, TaskPolicy::Greedy) => return model.action_values(dynamics, tasks),
            (Planner::None, TaskPolicy::Gpi) => return model.improved_values(dynamics, tasks),
            (Planner::Sweeps, _) => {}
        }
        let each =
            dynamics.par_chunks_exact(model.table.vocabulary()).zip(tasks.par_chunks_exact(self.dim()));
        let values = each.map(|(p, z)| {
            let graph = Graph::listed(&model.table, p, self.settings.belief.block_persistence);
            graph.optimise(&self.rewards(z), model.config.gamma, self.settings.planner.sweeps).1
        });
        values.collect::<Vec<_>>().concat()
    }

    /// Q of every action in every listed state for one context and task: for figures and diagnostics.
    pub(crate) fn q_table(
        &self,
        context: ContextId,
        trajectory: &Trajectory,
        z: &[f32],
        planner: Planner,
    ) -> Option<Vec<f32>> {
        let dynamics = self.known_after(context, trajectory).dynamics;
        Some(self.listed_values(self.listed()?, &dynamics, z, planner, TaskPolicy::Greedy))
    }

    /// The values of all nodes under the belief `h` for a task; nothing without a predictor.
    fn plan(&self, model: &ObservationModel, h: &[f32], z: &[f32]) -> Option<NodeValues> {
        let predictor = self.predictor()?;
        let nodes = self.nodes(&model.codec);
        let rewards = self.rewards(z);
        let reward: Vec<f32> = nodes.rows.iter().map(|&row| rewards[row]).collect();
        let graph = nodes.graph(predictor, h);
        let (v, _) = graph.optimise(&reward, model.config.gamma, self.settings.planner.sweeps);
        Some(NodeValues { v, reachable: nodes.reachability(predictor, h), h: h.to_vec() })
    }

    /// The value of each candidate action at an observation under such a plan.
    fn planned_values(&self, model: &ObservationModel, plan: &NodeValues, obs: &[f32]) -> Vec<f32> {
        let Some(predictor) = self.predictor() else { return Vec::new() };
        let nodes = self.nodes(&model.codec);
        nodes.between(&plan.v, &plan.reachable, &nodes.after(predictor, obs, &plan.h))
    }
}

/// Observations in the contexts that are ready, as the model takes them.
pub(super) fn states_in(model: &ObservationModel, ready: &[&Ready], obs: &[f32]) -> States {
    model.states(obs, &ready.iter().map(|ready| (&ready.known, &ready.z[..])).collect::<Vec<_>>())
}
