//! Actions and values of many observations at once, under one belief and task or each under its own.

use super::session::Adapted;
use super::{Agent, Known, Model, TaskPolicy};
use crate::belief::Evidence;
use crate::error::LearnError;
use crate::fb::observations::States;
use crate::latent;
use crate::planner::Planner;
use crate::planner::graph::argmax;
use std::sync::Arc;
use windvane_world::{Actions, ContextId};

/// An agent that is ready to act on batches. F alone acts.
#[derive(Debug)]
pub struct Prepared {
    agent: Arc<Agent>,
    known: Known,
    /// Task vectors, `[groups * d]`.
    z: Vec<f32>,
    groups: usize,
    /// Listed states: Q of every action everywhere, `[groups * states * actions]`.
    q: Vec<f32>,
}

impl Agent {
    /// Makes beliefs and task vectors ready to act on: as many of one as of the other, or a single one for all of the other.
    pub fn prepare(self: &Arc<Self>, beliefs: &[&Adapted], tasks: &[&[f32]]) -> Result<Prepared, LearnError> {
        let wrong = |problem: String| Err(LearnError::Config { origin: "batch".into(), problem });
        let groups = beliefs.len().max(tasks.len());
        let fits = |count: usize| count == 1 || count == groups;
        if !fits(beliefs.len()) || !fits(tasks.len()) {
            let counts = [beliefs.len(), tasks.len()];
            return wrong(format!("{} beliefs and {} tasks; expected as many, or one", counts[0], counts[1]));
        }
        if let Some(z) = tasks.iter().find(|z| z.len() != self.dim() || !z.iter().all(|x| x.is_finite())) {
            return wrong(format!("z has {} numbers, expected {} finite ones", z.len(), self.dim()));
        }
        let each = |i: usize| (beliefs[i % beliefs.len()], tasks[i % tasks.len()]);
        let z: Vec<f32> = (0..groups)
            .flat_map(|i| {
                let (belief, z) = each(i);
                latent::shifted(z.to_vec(), &belief.shift)
            })
            .collect();
        // Nobody tells the context's id, so Oracle-ID is told that it is none it knows.
        let evidence: Vec<&Evidence> = (0..groups).map(|i| &each(i).0.evidence).collect();
        let known = self.known(&vec![ContextId(u64::MAX); groups], &evidence);
        let q = match &self.model {
            Model::Listed(model) => self.listed_values(model, &known, &z, Planner::None, TaskPolicy::Greedy),
            Model::Observations(_) => Vec::new(),
        };
        Ok(Prepared { agent: self.clone(), known, z, groups, q })
    }
}

impl Prepared {
    /// One action for each observation `[rows * dims]`.
    pub fn act(&self, obs: &[f32]) -> Result<Actions, LearnError> {
        let rows = self.check(obs)?;
        let mut actions = self.agent.spec().action.actions(rows);
        if rows == 0 {
            return Ok(actions);
        }
        match &self.agent.model {
            Model::Listed(model) => {
                let (table, n) = (model.table(), model.table().actions());
                for q in self.listed_q(obs).chunks_exact(n) {
                    actions.push(table.discretizer().action(q, model.config().gamma).as_action());
                }
            }
            Model::Observations(model) => {
                let (codec, states) = (model.codec.actions(), self.states(obs)?);
                match model.n_choices() {
                    Some(n) => {
                        let candidates = codec.candidates();
                        for q in model.action_values(&states).chunks_exact(n) {
                            let best = argmax(q);
                            actions.push(codec.action(best, &candidates[best]).as_action());
                        }
                    }
                    None => {
                        for vector in model.actions(&states).chunks_exact(codec.width()) {
                            actions.push(codec.action(0, vector).as_action());
                        }
                    }
                }
            }
        }
        Ok(actions)
    }

    /// Value F z / d of each of the actions to choose from, `[rows * n]`; of vectors as actions, of the given ones or of those that
    /// an actor chooses, `[rows]`.
    pub fn q(&self, obs: &[f32], actions: Option<&Actions>) -> Result<Vec<f32>, LearnError> {
        let rows = self.check(obs)?;
        let wrong = |problem: String| Err(LearnError::Config { origin: "actions".into(), problem });
        if let Some(actions) = actions {
            if actions.len() != rows {
                return wrong(format!("{} for {rows} observations", actions.len()));
            }
            let space = &self.agent.spec().action;
            if let Some(row) = (0..rows).find(|&row| !space.contains(actions.get(row))) {
                return Err(space.reject(&self.agent.spec().name, actions.get(row)).into());
            }
        }
        if rows == 0 {
            return Ok(Vec::new());
        }
        let model = match &self.agent.model {
            Model::Observations(model) if model.codec.actions().n_actions().is_none() => model,
            _ if actions.is_some() => {
                return wrong("given, but values are of all actions there are; expected none".into());
            }
            Model::Listed(_) => return Ok(self.listed_q(obs)),
            Model::Observations(model) => model,
        };
        if actions.is_none() && model.n_choices().is_some() {
            return Ok(model.action_values(&self.states(obs)?));
        }
        let states = self.states(obs)?;
        let encoded = match actions {
            None => model.actions(&states),
            Some(actions) => {
                let mut encoded = Vec::new();
                (0..rows).for_each(|row| {
                    model.codec.actions().encode([actions.get(row)].into_iter(), &mut encoded);
                });
                encoded
            }
        };
        Ok(model.values_of(&states, encoded))
    }

    /// How many values [`Self::q`] has of each observation; nothing where an actor chooses.
    pub fn n_actions(&self) -> Option<usize> {
        match &self.agent.model {
            Model::Listed(model) => Some(model.table().actions()),
            Model::Observations(model) => model.n_choices(),
        }
    }

    fn listed_q(&self, obs: &[f32]) -> Vec<f32> {
        let Some(table) = self.agent.table() else { return Vec::new() };
        let (n, dims) = (table.actions(), self.agent.spec().obs_dim());
        let one = self.q.len() / self.groups;
        let row = |(i, obs): (usize, &[f32])| {
            let group = if self.groups == 1 { 0 } else { i };
            &self.q[group * one + table.nearest(obs) * n..][..n]
        };
        obs.chunks_exact(dims).enumerate().flat_map(row).copied().collect()
    }

    fn states(&self, obs: &[f32]) -> Result<States, LearnError> {
        match &self.agent.model {
            Model::Observations(model) => Ok(self.agent.states(model, obs, &self.known, &self.z)),
            Model::Listed(_) => {
                let problem = "states are listed; there is no encoding of them".into();
                Err(LearnError::Config { origin: "batch".into(), problem })
            }
        }
    }

    /// How many observations there are, if each is whole and finite and belongs to a group.
    fn check(&self, obs: &[f32]) -> Result<usize, LearnError> {
        let wrong = |problem: String| Err(LearnError::Config { origin: "observation".into(), problem });
        let dims = &self.agent.spec().observation;
        if !obs.len().is_multiple_of(dims.len()) {
            return wrong(format!("{} numbers, expected rows of {}", obs.len(), dims.len()));
        }
        if let Some(place) = obs.iter().position(|x| !x.is_finite()) {
            let (row, name) = (place / dims.len(), &dims[place % dims.len()].name);
            return wrong(format!("\"{name}\" of row {row} is {}, expected a finite number", obs[place]));
        }
        let rows = obs.len() / dims.len();
        if self.groups != 1 && self.groups != rows && rows > 0 {
            return wrong(format!("{rows} rows for {} beliefs or tasks", self.groups));
        }
        Ok(rows)
    }
}
