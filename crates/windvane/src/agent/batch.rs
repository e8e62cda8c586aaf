//! Actions and values of many observations at once, under one belief and task or each under its own.

use super::acting::{Ready, UNKNOWN, states_in};
use super::session::Adapted;
use super::{Acting, Agent, Model};
use crate::belief::Evidence;
use crate::error::{LearnError, Result};
use crate::latent;
use std::sync::Arc;
use windvane_world::Actions;

/// An agent that is ready to act on batches. F alone acts.
#[derive(Debug)]
pub struct Prepared {
    agent: Arc<Agent>,
    /// One for all observations, or one for each.
    ready: Vec<Ready>,
}

impl Agent {
    /// Makes beliefs and task vectors ready to act on: as many of one as of the other, or a single one for all of the other.
    pub fn prepare(self: &Arc<Self>, beliefs: &[&Adapted], tasks: &[&[f32]]) -> Result<Prepared> {
        let groups = beliefs.len().max(tasks.len());
        let fits = |count: usize| count == 1 || count == groups;
        if !fits(beliefs.len()) || !fits(tasks.len()) {
            let (beliefs, tasks) = (beliefs.len(), tasks.len());
            let problem = format!("{beliefs} beliefs and {tasks} tasks; expected as many, or one");
            return Err(LearnError::config("batch", problem));
        }
        tasks.iter().try_for_each(|z| self.check_task(z))?;
        let (beliefs, tasks) = (beliefs.iter().cycle().take(groups), tasks.iter().cycle());
        let z = beliefs
            .clone()
            .zip(tasks)
            .map(|(belief, z)| latent::shifted(z.to_vec(), &belief.shift))
            .collect();
        let evidence: Vec<&Evidence> = beliefs.map(|belief| &belief.evidence).collect();
        let ready = self.ready(&vec![UNKNOWN; groups], &evidence, z, Acting::F_ALONE);
        Ok(Prepared { agent: self.clone(), ready })
    }
}

impl Prepared {
    /// One action for each observation `[rows * dims]`.
    pub fn act(&self, obs: &[f32]) -> Result<Actions> {
        let rows = self.check(obs)?;
        let mut actions = self.agent.spec().action.actions(rows);
        if rows > 0 {
            let chosen = self.agent.choose(&self.ready(), obs);
            chosen.iter().for_each(|action| actions.push(action.as_action()));
        }
        Ok(actions)
    }

    /// Value F z / d of each of the actions to choose from, `[rows * n]`; of vectors as actions, of the given ones or of those that
    /// an actor chooses, `[rows]`.
    pub fn q(&self, obs: &[f32], actions: Option<&Actions>) -> Result<Vec<f32>> {
        let rows = self.check(obs)?;
        let wrong = |problem: String| Err(LearnError::config("actions", problem));
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
        let vectors = match &self.agent.model {
            Model::Observations(model) if model.codec.actions.n_actions().is_none() => Some(model),
            _ => None,
        };
        if actions.is_some() && vectors.is_none() {
            return wrong("given, but values are of all actions there are; expected none".into());
        }
        if let (None, Some(q)) = (actions, self.agent.q(&self.ready(), obs)) {
            return Ok(q);
        }
        let Some(model) = vectors else { return Ok(Vec::new()) };
        let states = states_in(model, &self.ready(), obs);
        let encoded = match actions {
            None => model.actions(&states),
            Some(actions) => {
                let mut encoded = Vec::new();
                (0..rows).for_each(|row| {
                    model.codec.actions.encode(&[actions.get(row)], &mut encoded);
                });
                encoded
            }
        };
        Ok(model.values_of(&states, encoded))
    }

    /// How many values [`Self::q`] has of each observation; nothing where an actor chooses.
    pub fn n_actions(&self) -> Option<usize> {
        match &self.agent.model {
            Model::Listed(model) => Some(model.table.actions),
            Model::Observations(model) => model.n_choices(),
        }
    }

    fn ready(&self) -> Vec<&Ready> {
        self.ready.iter().collect()
    }

    /// How many observations there are, if each is whole and finite and belongs to a group.
    fn check(&self, obs: &[f32]) -> Result<usize> {
        let wrong = |problem: String| Err(LearnError::config("observation", problem));
        let (spec, dims) = (self.agent.spec(), self.agent.spec().obs_dim());
        if !obs.len().is_multiple_of(dims) {
            return wrong(format!("{} numbers, expected rows of {dims}", obs.len()));
        }
        if let Some(problem) = spec.not_finite(obs) {
            return wrong(problem);
        }
        let rows = obs.len() / dims;
        if self.ready.len() != 1 && self.ready.len() != rows && rows > 0 {
            return wrong(format!("{rows} rows for {} beliefs or tasks", self.ready.len()));
        }
        Ok(rows)
    }
}
