//! A trained agent on listed states: from evidence and a task to the worth of every action everywhere.

use super::belief::FiniteBelief;
use super::fb::{FbModel, Situations};
use super::nets::Forward;
use super::survey::Survey;
use super::sweeps;
use super::target::Reward as Stakes;
use crate::latent;
use crate::task::Visited;
use rayon::prelude::*;
use std::sync::Arc;
use windvane_world::Reward;

/// Pairs of a situation and a task that go through the networks at once; bounds memory, not results.
const CHUNK: usize = 64;

/// A forward-backward agent and, for Belief-FB and Rotation-FB, the belief it listens to.
#[derive(Clone, Debug)]
pub struct FiniteAgent {
    survey: Arc<Survey>,
    belief: Option<Arc<FiniteBelief>>,
    model: FbModel,
    average: Vec<f32>,
    /// B of every state, `[states * d]`, and the rewards its combinations stand for.
    b: Vec<f32>,
    stakes: Arc<Stakes>,
    /// How surprising contexts of the data are, least first; empty if it was not measured.
    pub(super) usual: Vec<f32>,
}

impl FiniteAgent {
    /// Joins trained parts; without a belief it is plain FB, which takes all dynamics for one.
    pub fn new(survey: Arc<Survey>, belief: Option<Arc<FiniteBelief>>, model: FbModel) -> Self {
        let b = model.backward();
        let stakes = Arc::new(Stakes::new(&b, survey.rho(), model.config().nets.dim));
        Self { average: survey.average(), belief, model, b, stakes, survey, usual: Vec::new() }
    }

    /// What the data says of the world.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// The forward and backward maps.
    pub fn model(&self) -> &FbModel {
        &self.model
    }

    /// The belief it listens to.
    pub fn belief(&self) -> Option<&FiniteBelief> {
        self.belief.as_deref()
    }

    /// The states of its data with B of each.
    pub fn visited(&self) -> Visited {
        let mut states = vec![0.0; self.survey.states() * self.survey.spec().obs_dim()];
        let rows = states.chunks_exact_mut(self.survey.spec().obs_dim());
        rows.enumerate().for_each(|(state, obs)| self.survey.write_obs(state, obs));
        let dim = self.model.config().nets.dim;
        Visited { states, shares: self.survey.rho().to_vec(), b: self.b.clone(), dim }
    }

    /// B of the states nearest to observations, `[rows * d]`.
    pub fn backward(&self, obs: &[f32]) -> Vec<f32> {
        let dim = self.model.config().nets.dim;
        let b = |obs: &[f32]| &self.b[self.survey.nearest(obs) * dim..][..dim];
        obs.chunks_exact(self.survey.spec().obs_dim()).flat_map(b).copied().collect()
    }

    /// Whether evidence makes a difference to it.
    pub fn listens(&self) -> bool {
        self.belief.is_some()
    }

    /// The task vector of a reward: `z = E over rho of r(s) B(s)`, on the sphere. A goal is B of its state, also where
    /// the data hardly went.
    pub fn task(&self, reward: &Reward) -> Vec<f32> {
        let dim = self.model.config().nets.dim;
        let mut z = vec![0.0; dim];
        if let Reward::Goal { goal, .. } = reward {
            z.copy_from_slice(&self.b[self.survey.nearest(goal) * dim..][..dim]);
        } else {
            let mut obs = vec![0.0; self.survey.spec().obs_dim()];
            for (s, (b, rho)) in self.b.chunks_exact(dim).zip(self.survey.rho()).enumerate() {
                self.survey.write_obs(s, &mut obs);
                let stake = rho * reward.of(&obs);
                z.iter_mut().zip(b).for_each(|(z, b)| *z += stake * b);
            }
        }
        latent::project(&mut z);
        z
    }

    /// What evidence (`[count * states * 2]`) tells the forward map.
    pub fn situations(&self, evidence: &[f32]) -> Situations {
        situations(&self.survey, self.belief.as_deref(), &self.average, evidence)
    }

    /// The worth of every action in every state, `[count * states * actions]`, for pairs of a situation and a task
    /// (`tasks [count * d]`), after `lookahead` sweeps through the predictor from what U says.
    pub fn action_values(&self, situations: &Situations, tasks: &[f32], lookahead: usize) -> Vec<f32> {
        let (dim, pairs) = (self.model.config().nets.dim, self.survey.pairs());
        let mut values = Vec::with_capacity(tasks.len() / dim * pairs);
        let conditions = situations.conditions.chunks(CHUNK * situations.width);
        for (chunk, (conditions, tasks)) in conditions.zip(tasks.chunks(CHUNK * dim)).enumerate() {
            let f = self.model.forward(conditions.to_vec(), tasks.to_vec()); // [count * rows * d]
            let rows = f.len() / (tasks.len() / dim); // numbers of one situation
            let worth =
                f.par_chunks_exact(rows).zip(tasks.par_chunks_exact(dim)).enumerate().map(|(i, (f, z))| {
                    let v: Vec<f32> =
                        f.chunks_exact(dim).map(|f| f.iter().zip(z).map(|(f, z)| f * z).sum()).collect();
                    match self.model.config().nets.forward {
                        Forward::Paper => v,
                        Forward::Predictor => {
                            let vocabulary = self.survey.vocabulary();
                            let p = &situations.dynamics[(chunk * CHUNK + i) * vocabulary..][..vocabulary];
                            self.through_predictor(p, z, v, lookahead)
                        }
                    }
                });
            worth.collect::<Vec<_>>().into_iter().for_each(|worth| values.extend(worth));
        }
        values
    }

    fn through_predictor(&self, p: &[f32], z: &[f32], mut v: Vec<f32>, lookahead: usize) -> Vec<f32> {
        if lookahead > 0 {
            sweeps::optimise(
                &self.survey,
                p,
                &self.stakes.of(z),
                self.model.config().gamma,
                lookahead,
                &mut v,
            );
        }
        let mut q = vec![0.0; self.survey.pairs()];
        sweeps::expected(&self.survey, p, &v, &mut q);
        q
    }
}

/// What evidence (`[count * states * 2]`) tells the forward map: beliefs, or without a belief the average dynamics.
pub(crate) fn situations(
    survey: &Survey,
    belief: Option<&FiniteBelief>,
    average: &[f32],
    evidence: &[f32],
) -> Situations {
    let states = survey.states();
    let count = evidence.len() / 2 / states;
    let mut all = Situations { width: states, ..Situations::default() };
    for evidence in evidence.chunks(CHUNK * 2 * states) {
        match belief {
            Some(belief) => {
                let beliefs = belief.infer(evidence);
                all.conditions.extend(beliefs.mean.iter().map(|h| (h / 2.0).tanh()));
                all.axes.extend(beliefs.mean);
                all.dynamics.extend(beliefs.dynamics);
            }
            None => all.conditions.resize(all.conditions.len() + evidence.len() / 2, 0.0),
        }
    }
    if belief.is_none() {
        all.dynamics = average.repeat(count);
    }
    all
}
