//! A trained agent on listed states: from evidence and a task to the worth of every action everywhere.

use super::belief::FiniteBelief;
use super::model::FbModel;
use super::nets::Forward;
use super::situations::{self, Situations};
use super::survey::Survey;
use super::sweeps;
use super::target::{Goal, Reward as Stakes};
use crate::agent::Outlook;
use crate::correction::Corrector;
use crate::error::LearnError;
use crate::latent;
use crate::task::Visited;
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::sync::Arc;
use windvane_world::trajectory::Trajectory;
use windvane_world::{ContextId, Reward};

/// Pairs of a situation and a task that go through the networks at once; bounds memory, not results.
const CHUNK: usize = 64;

/// Forward and backward maps, and what they listen to.
#[derive(Clone, Debug)]
pub struct FiniteAgent {
    survey: Arc<Survey>,
    listener: Listener,
    model: FbModel,
    average: Vec<f32>,
    /// B of every state, `[states * d]`, and the rewards its combinations stand for.
    b: Vec<f32>,
    stakes: Arc<Stakes>,
    /// What corrects rewards in new contexts.
    corrector: Option<Arc<Corrector>>,
    /// The mean of the beliefs that task vectors were drawn around; empty where they were drawn anywhere.
    middle: Vec<f32>,
    /// How surprising contexts of the data are, least first; empty if it was not measured.
    pub(super) usual: Vec<f32>,
}

/// What an agent listens to.
#[derive(Clone, Debug)]
pub enum Listener {
    /// Nothing: all dynamics are taken for one.
    Deaf,
    /// A belief, formed by evidence.
    Belief(Arc<FiniteBelief>),
    /// The number of the context.
    ContextId,
}

impl FiniteAgent {
    /// Joins trained parts.
    pub fn new(survey: Arc<Survey>, listener: Listener, model: FbModel) -> Self {
        let b = model.backward();
        let stakes = Arc::new(model.rewards(&b, survey.rho()));
        let average = survey.average();
        Self {
            average,
            listener,
            model,
            b,
            stakes,
            survey,
            corrector: None,
            middle: Vec::new(),
            usual: Vec::new(),
        }
    }

    /// The same, trained on tasks around beliefs with the mean `middle [states]`.
    #[must_use]
    pub fn drawn_around(self, middle: Vec<f32>) -> Self {
        Self { middle, ..self }
    }

    /// Task vectors (`[count * d]`) on their way toward what each situation is believed to be; see [`latent::toward`].
    pub(super) fn blended(&self, situations: &Situations, tasks: &[f32], share: f32) -> Vec<f32> {
        if share == 0.0 || self.middle.is_empty() {
            return tasks.to_vec();
        }
        let dim = self.model.config().nets.dim;
        let axes = situations::directions(&situations.axes, &self.middle, dim);
        let both = tasks.chunks_exact(dim).zip(axes.chunks_exact(dim));
        both.flat_map(|(z, axis)| latent::toward(z, axis, share)).collect()
    }

    /// The same, with rewards corrected in each new context.
    #[must_use]
    pub fn corrected_by(self, corrector: Corrector) -> Self {
        Self { corrector: Some(Arc::new(corrector)), ..self }
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
        match &self.listener {
            Listener::Belief(belief) => Some(belief),
            Listener::Deaf | Listener::ContextId => None,
        }
    }

    /// Whether belief, forward and backward maps are all there is to it.
    pub(super) fn is_plain(&self) -> bool {
        self.corrector.is_none()
            && !matches!(self.listener, Listener::ContextId)
            && self.model.goal() == Goal::Measure
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

    /// Whether evidence makes a difference to what it takes the dynamics for.
    pub fn listens(&self) -> bool {
        matches!(self.listener, Listener::Belief(_))
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

    /// What a context adds to every task vector; nothing where rewards are taken as they are.
    pub(super) fn shift(&self, context: &Trajectory) -> Result<Vec<f32>, LearnError> {
        let Some(corrector) = &self.corrector else { return Ok(Vec::new()) };
        corrector.shift(&self.survey.seen(self.survey.tokens_of(context).into_iter()))
    }

    /// What evidence (`[count * states * 2]`) tells the forward map, where nobody tells the contexts' numbers.
    pub fn situations(&self, evidence: &[f32]) -> Situations {
        match &self.listener {
            Listener::Deaf => situations(&self.survey, None, &self.average, evidence),
            Listener::Belief(belief) => situations(&self.survey, Some(belief), &self.average, evidence),
            Listener::ContextId => {
                let unknown = vec![None; evidence.len() / 2 / self.survey.states()];
                identities(&self.survey, &self.average, &unknown)
            }
        }
    }

    /// The same in contexts whose numbers are told to those who listen to them.
    pub fn situations_in(&self, contexts: &[ContextId], evidence: &[f32]) -> Situations {
        if !matches!(self.listener, Listener::ContextId) {
            return self.situations(evidence);
        }
        let groups: Vec<Option<usize>> =
            contexts.iter().map(|&context| self.survey.privileged_group(context)).collect();
        identities(&self.survey, &self.average, &groups)
    }

    /// The worth of every action in every state, `[count * states * actions]`, for pairs of a situation and a task
    /// (`tasks [count * d]`), after sweeps through the predictor from what U says.
    pub fn action_values(&self, situations: &Situations, tasks: &[f32], outlook: Outlook) -> Vec<f32> {
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
                            self.through_predictor(p, z, v, outlook)
                        }
                    }
                });
            worth.collect::<Vec<_>>().into_iter().for_each(|worth| values.extend(worth));
        }
        values
    }

    fn through_predictor(&self, p: &[f32], z: &[f32], mut v: Vec<f32>, outlook: Outlook) -> Vec<f32> {
        if outlook.lookahead > 0 {
            let gamma = self.model.config().gamma;
            return sweeps::optimise(&self.survey, p, &self.stakes.of(z), gamma, outlook, &mut v);
        }
        let mut q = vec![0.0; self.survey.pairs()];
        sweeps::expected(&self.survey, p, &v, &mut q);
        q
    }
}

/// What a belief tells the forward map: h as signs, `[sets, states]`.
pub(super) fn condition(h: Tensor<2>) -> Tensor<2> {
    (h / 2.0).tanh()
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
                all.conditions.extend(beliefs.mean.iter().map(|h| (h / 2.0).tanh())); // as [`condition`]
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

/// What Oracle-ID is told of groups: their numbers, one-hot, and the dynamics that their data shows. Of an unknown one: zeros,
/// and the average dynamics.
pub(crate) fn identities(survey: &Survey, average: &[f32], groups: &[Option<usize>]) -> Situations {
    let width = survey.groups().len();
    let mut all = Situations { width, ..Situations::default() };
    for &group in groups {
        all.conditions.extend((0..width).map(|i| f32::from(u8::from(Some(i) == group))));
        match group {
            Some(group) => all.dynamics.extend(survey.dynamics_of(group, average)),
            None => all.dynamics.extend_from_slice(average),
        }
    }
    all
}
