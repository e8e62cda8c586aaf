//! The belief h over the hidden dynamics: encoders of contexts, the predictors they come with, and their training.

pub(crate) mod contexts;
pub(crate) mod known_contexts;
pub(crate) mod ood;
mod predictor;
pub(crate) mod regression;
pub(crate) mod state_evidence;
pub(crate) mod token_set;
pub(crate) mod trainer;
pub(crate) mod transition_set;

use crate::nn::{Params, read};
use burn::tensor::Tensor;
use contexts::ContextConfig;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use token_set::TokenSet;
use windvane_world::Action;
use windvane_world::trajectory::Trajectory;

pub(crate) use predictor::RowPredictor;
pub(crate) use state_evidence::StateEvidence;
pub(crate) use transition_set::TransitionSet;

/// The belief encoder, its predictor and their training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeliefConfig {
    /// Numbers in h of `observations`; paper: d. Rotation-FB needs `fb.dim`. Listed states have one number each.
    pub dim: usize,
    /// `listed`: what the encoder is given of a context.
    #[serde(default)]
    pub encoder: EncoderKind,
    /// Width of the transformer.
    pub width: usize,
    /// Its blocks.
    pub blocks: usize,
    /// Its attention heads.
    pub heads: usize,
    /// `observations`: how h enters the predictor g; paper: through a perceptron.
    pub decoder: Decoder,
    /// `observations`: hidden width of the predictor g; paper: 256.
    pub predictor_width: usize,
    /// Weight of the KL term toward a unit Gaussian; the paper names the prior but no weight, its code has none.
    pub kl: f64,
    /// Gradient steps.
    pub steps: u64,
    /// Contexts per step.
    pub batch: usize,
    /// `observations`: transitions of other episodes that each context predicts.
    pub queries: usize,
    /// Learning rate, warmed up over 100 steps and decayed by a cosine; paper: 1e-4 without decay.
    pub rate: f32,
    /// `listed`: whether contexts are compared with the groups of the training data, to recognise one of them.
    pub known_contexts: bool,
    /// `listed`: probability that the group of a training context is hidden from that comparison, as an unseen one's would be.
    pub forget: f64,
    /// `listed`: how training contexts are drawn.
    pub context: ContextConfig,
    /// `observations`: longest context in environment steps; paper: 100.
    pub max_context: usize,
    /// `observations`: shortest context in training.
    pub min_context: usize,
    /// `observations`: weight of the distance between h and an embedding that each training group has of its own, from which g
    /// learns to predict as well. Only "same unknown dynamics" is used, no label. Paper: 0, and then there are none.
    pub embeddings: f64,
    /// `observations`: where h comes from once it is trained.
    pub posterior: Posterior,
    /// Contexts whose beliefs are computed once and drawn from while F is trained.
    pub cached: usize,
    /// `observations`: environment steps between two updates of an online belief.
    pub refresh: usize,
    /// `observations`: transitions under random actions that an online belief begins with, if no context came before; what a
    /// policy does by itself may tell little of the dynamics. Paper: 0.
    pub probe: usize,
    /// `listed`: whether a goal counts as a state that can be entered, beside what the context showed: nobody asks to be taken into a
    /// wall, and a known map that has one there is another one. Exact planners on Pointmass know as much. Paper: no.
    #[serde(default)]
    pub goal_evidence: bool,
    /// `listed`: probability that a move that was blocked once is blocked for good, as by a wall; 0: every try is a new one. F
    /// through the predictor and the planner value a self-transition by
    /// `(1 - block_persistence) V(s) + block_persistence r(s) / (1 - gamma)`; and dynamics agree with what the context itself
    /// showed: a state that was entered can be entered, one that was blocked cannot.
    pub block_persistence: f32,
}

/// What the encoder of listed states is given of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncoderKind {
    /// What the transitions say of each state: whether it was entered, whether it was blocked, and what known contexts say.
    #[default]
    States,
    /// The set of transitions itself, as the paper's `f_dyn`: each state sees every transition (s, a, s') from where it stands
    /// and has to learn what it says.
    Transitions,
}

/// Where h comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Posterior {
    /// The transformer (paper).
    Encoder,
    /// Bayesian linear regression through a linear decoder: exact, without a transformer, right beyond the dynamics that were
    /// met in training. The decoder is learned from an embedding of each training group.
    Regression,
}

/// How h enters the predictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decoder {
    /// Features of (s, a) times a gain from h, then a perceptron.
    Gated,
    /// `g(s, a) + J(s, a) h`.
    Linear,
}

impl Default for BeliefConfig {
    fn default() -> Self {
        Self {
            dim: 100,
            encoder: EncoderKind::States,
            width: 32,
            blocks: 2,
            heads: 4,
            decoder: Decoder::Gated,
            predictor_width: 256,
            kl: 1e-5,
            steps: 2000,
            batch: 64,
            queries: 32,
            rate: 3e-3,
            known_contexts: true,
            forget: 0.1,
            context: ContextConfig::default(),
            max_context: 100,
            min_context: 20,
            embeddings: 0.1,
            posterior: Posterior::Encoder,
            cached: 4096,
            refresh: 10,
            probe: 0,
            goal_evidence: false,
            block_persistence: 0.0,
        }
    }
}

/// A diagonal Gaussian over h for each context, `[contexts, dim]` each.
#[derive(Clone, Debug)]
pub(crate) struct Gaussian {
    /// Means.
    pub mean: Tensor<2>,
    /// Logarithms of the standard deviations.
    pub log_std: Tensor<2>,
}

impl Gaussian {
    /// `mean + exp(log_std) * noise`.
    pub(crate) fn sample(&self, noise: Tensor<2>) -> Tensor<2> {
        self.mean.clone() + self.log_std.clone().exp() * noise
    }

    /// KL divergence to a unit Gaussian, summed over h and averaged over contexts.
    pub(crate) fn kl(&self) -> Tensor<1> {
        let contexts = self.mean.dims()[0] as f64;
        let variance = (self.log_std.clone() * 2.0).exp();
        (variance + self.mean.clone().powf_scalar(2.0) - self.log_std.clone() * 2.0 - 1.0).sum()
            * (0.5 / contexts)
    }

    /// Copied to the host.
    fn read(self) -> Posteriors {
        Posteriors { mean: read(self.mean), std: read(self.log_std.exp()) }
    }
}

/// The same on the host, `[contexts * dim]` each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Posteriors {
    /// Means.
    pub mean: Vec<f32>,
    /// Standard deviations.
    pub std: Vec<f32>,
}

impl Posteriors {
    /// Adds those of more contexts.
    fn extend(&mut self, more: Self) {
        self.mean.extend(more.mean);
        self.std.extend(more.std);
    }
}

/// What was seen of one context, in the form that its encoder takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// Of listed states.
    States(StateEvidenceSet),
    /// Transitions as tokens.
    Tokens(TokenSet),
}

/// What was seen between listed states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateEvidenceSet {
    /// Which transitions were met, 0 or 1 for each token, `[vocabulary]`.
    pub(crate) met: Vec<f32>,
    /// Which states are known to be enterable besides, 0 or 1, `[states]`.
    pub(crate) open: Vec<f32>,
    /// Transitions in all.
    pub(crate) count: usize,
}

impl StateEvidenceSet {
    fn add(&mut self, token: u32) {
        self.met[token as usize] = 1.0;
        self.count += 1;
    }
}

impl Evidence {
    /// Number of transitions it was formed from.
    pub fn transitions(&self) -> usize {
        match self {
            Self::States(set) => set.count,
            Self::Tokens(set) => set.len(),
        }
    }
}

/// `f_dyn` in any form: contexts -> Gaussian over h, with the predictor g(s, a, h) that h was learned through.
pub trait BeliefEncoder: Debug + Send + Sync {
    /// Numbers in h.
    fn dim(&self) -> usize;

    /// Evidence of nothing.
    fn no_evidence(&self) -> Evidence;

    /// Takes consecutive steps into the evidence; whether they say anything new. `obs` has one row more than there are actions.
    fn observe(&self, evidence: &mut Evidence, obs: &[f32], actions: &[Action<'_>]) -> bool;

    /// Takes in that a state can be entered, though nobody did; nothing where states are not listed.
    fn observe_open(&self, _evidence: &mut Evidence, _obs: &[f32]) {}

    /// The Gaussians that evidence leads to.
    fn infer(&self, evidence: &[&Evidence]) -> Posteriors;

    /// Dynamics over the tokens of the state table decoded from means of h, `[contexts * vocabulary]`, which agree with the
    /// `evidence` of each context as far as `belief.block_persistence` says (no evidence: as they are decoded); empty where states
    /// are not listed.
    fn dynamics(&self, _mean: &[f32], _evidence: &[&Evidence]) -> Vec<f32> {
        Vec::new()
    }

    /// How badly every second transition of a trajectory is predicted from the others; nothing if it is too short.
    fn ood_score(&self, trajectory: &Trajectory) -> Option<f64>;

    /// The weights.
    fn params(&self) -> &Params;
}

/// The evidence of trajectories.
pub(crate) fn evidence_of<'a>(
    belief: &dyn BeliefEncoder,
    trajectories: impl IntoIterator<Item = &'a Trajectory>,
) -> Evidence {
    let mut evidence = belief.no_evidence();
    for trajectory in trajectories {
        belief.observe(&mut evidence, trajectory.observations(), &trajectory.actions().all());
    }
    evidence
}
