//! A trained agent: from a context to a belief, from a reward to a task vector, from both to actions.

mod acting;
pub mod batch;
mod card;
pub mod confidence;
pub mod export;
mod rollout;
mod rows;
pub mod session;
pub mod task;

pub use acting::{Acting, TaskPolicy};
pub use confidence::Confidence;
pub(crate) use rollout::Rollout;
pub use session::{Adapted, Session};

use crate::belief::{
    BeliefConfig, BeliefEncoder, Evidence, StateEvidence, StateEvidenceSet, TransitionSet, evidence_of,
};
use crate::data::{Codec, EncoderConfig, StateTable};
use crate::error::Result;
use crate::fb::actor::ActorConfig;
use crate::fb::conditioning::Conditioner;
pub(crate) use crate::fb::conditioning::Known;
use crate::fb::{FbConfig, ListedModel, ObservationModel};
use crate::features::correction::{Corrector, Transitions};
use crate::latent;
use crate::methods::Method;
use crate::planner::nodes::Nodes;
use crate::planner::{Planner, PlannerConfig};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};
use task::Visited;
use windvane_world::trajectory::Trajectory;
use windvane_world::{ContextId, EnvSpec, Reward};

/// The settings that an agent keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSettings {
    /// How observations and actions are encoded.
    pub encoder: EncoderConfig,
    /// The belief.
    pub belief: BeliefConfig,
    /// F and B.
    pub fb: FbConfig,
    /// The actor.
    pub actor: ActorConfig,
    /// The planner.
    pub planner: PlannerConfig,
}

/// F and B, on listed states or on observations.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one of them in an agent
pub(crate) enum Model {
    Listed(ListedModel),
    Observations(ObservationModel),
}

/// The belief encoder.
#[derive(Clone, Debug)]
pub(crate) enum Belief {
    Listed(Arc<StateEvidence>),
    Observations(Arc<TransitionSet>),
}

impl Belief {
    pub(crate) fn encoder(&self) -> &dyn BeliefEncoder {
        match self {
            Self::Listed(belief) => &**belief,
            Self::Observations(belief) => &**belief,
        }
    }
}

/// A trained agent.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(crate) method: Method,
    pub(crate) seed: u64,
    pub(crate) settings: AgentSettings,
    pub(crate) model: Model,
    /// The encoder that gave h or, for methods without, the predictor that F goes through.
    pub(crate) belief: Option<Belief>,
    pub(crate) conditioner: Conditioner,
    pub(crate) visited: Arc<Visited>,
    pub(crate) corrector: Option<Arc<Corrector>>,
    /// Ood scores of contexts that were not learned from, smallest first; empty if they were not measured.
    pub(crate) calibration: Vec<f32>,
    /// Listed states: the average dynamics of the data.
    average: Arc<Vec<f32>>,
    nodes: Arc<OnceLock<Nodes>>,
}

impl Agent {
    /// Joins trained parts.
    pub(crate) fn new(
        method: Method,
        seed: u64,
        settings: AgentSettings,
        model: Model,
        belief: Option<Belief>,
        conditioner: Conditioner,
        visited: Visited,
    ) -> Self {
        let average = match &model {
            Model::Listed(model) => model.table.average(),
            Model::Observations(_) => Vec::new(),
        };
        Self {
            method,
            seed,
            settings,
            model,
            belief,
            conditioner,
            visited: Arc::new(visited),
            corrector: None,
            calibration: Vec::new(),
            average: Arc::new(average),
            nodes: Arc::default(),
        }
    }

    /// The same with another number of planner sweeps.
    #[must_use]
    pub fn with_sweeps(mut self, sweeps: usize) -> Self {
        self.settings.planner.sweeps = sweeps;
        self
    }

    /// The same with an exact B of listed states, orthogonal vectors of length sqrt(d), so that planning on a belief is judged apart
    /// from B; as it is where there are more states than numbers in B.
    pub(crate) fn with_exact_backward(&self) -> Self {
        let dim = self.dim();
        let Some(states) = self.table().map(|table| table.states()).filter(|states| *states <= dim) else {
            return self.clone();
        };
        let one_hot = |i: usize| if i / dim == i % dim { (dim as f32).sqrt() } else { 0.0 };
        let b = (0..states * dim).map(one_hot).collect();
        Self { visited: Arc::new(Visited { b, ..(*self.visited).clone() }), ..self.clone() }
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The visible side of its environment.
    pub fn spec(&self) -> &EnvSpec {
        match &self.model {
            Model::Listed(model) => &model.table.world,
            Model::Observations(model) => &model.codec.spec,
        }
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.visited.dim
    }

    /// The listed states; nothing where observations are encoded.
    pub fn table(&self) -> Option<&Arc<StateTable>> {
        self.listed().map(|model| &model.table)
    }

    /// F and B on listed states; nothing where observations are encoded.
    pub fn listed(&self) -> Option<&ListedModel> {
        match &self.model {
            Model::Listed(model) => Some(model),
            Model::Observations(_) => None,
        }
    }

    /// The belief encoder, for methods that condition on it.
    pub fn belief(&self) -> Option<&dyn BeliefEncoder> {
        self.belief.as_ref().filter(|_| self.method.believes()).map(Belief::encoder)
    }

    /// The predictor on observations, whatever F is conditioned on.
    pub(crate) fn predictor(&self) -> Option<&Arc<TransitionSet>> {
        match &self.belief {
            Some(Belief::Observations(belief)) => Some(belief),
            _ => None,
        }
    }

    /// Who acts in tables of scores: F alone, and the planner beside it where F, too, goes through the predictor's dynamics.
    pub fn standard_planners(&self) -> &'static [Planner] {
        let plans = match &self.model {
            Model::Listed(_) => true,
            Model::Observations(model) => model.predictor.is_some(),
        };
        if plans { &[Planner::None, Planner::Sweeps] } else { &[Planner::None] }
    }

    /// Whether it can plan: the predictor's dynamics are there.
    pub fn can_plan(&self) -> bool {
        self.listed().is_some() || self.predictor().is_some()
    }

    /// Means of h after each trajectory, `[count * dim]`; empty for a method without a belief.
    pub fn beliefs(&self, contexts: &[&Trajectory]) -> Vec<f32> {
        let Some(belief) = self.belief() else { return Vec::new() };
        let evidence: Vec<Evidence> =
            contexts.iter().map(|trajectory| evidence_of(belief, [*trajectory])).collect();
        belief.infer(&evidence.iter().collect::<Vec<_>>()).mean
    }

    /// Ood score of a trajectory; nothing without a belief, or if it is too short.
    pub fn ood_score(&self, context: &Trajectory) -> Option<f64> {
        self.belief()?.ood_score(context)
    }

    /// What is known of contexts after evidence of each; only Oracle-ID gets their ids.
    pub(crate) fn known(&self, contexts: &[ContextId], evidence: &[&Evidence]) -> Vec<Known> {
        match (&self.conditioner, self.belief()) {
            (Conditioner::Belief { mean, .. }, Some(belief)) => {
                let means = belief.infer(evidence).mean;
                let dynamics = belief.dynamics(&means, evidence);
                let vocabulary = dynamics.len() / evidence.len().max(1);
                let one = |(i, h): (usize, &[f32])| {
                    // A set of nothing: the mean of all beliefs in training.
                    let nothing = self.listed().is_none() && evidence[i].transitions() == 0;
                    let belief = if nothing { mean.clone() } else { h.to_vec() };
                    let dynamics = dynamics[i * vocabulary..][..vocabulary].to_vec();
                    Known { input: self.conditioner.centred(&belief), belief, dynamics }
                };
                means.chunks_exact(mean.len()).enumerate().map(one).collect()
            }
            (Conditioner::ContextId { contexts: known }, _) => {
                let embeddings = self.predictor().map(|predictor| predictor.embeddings()).unwrap_or_default();
                let width = embeddings.len() / known.len().max(1);
                let one = |context: &ContextId| match (self.table(), self.conditioner.group_of(*context)) {
                    (Some(table), Some(group)) => {
                        Known { dynamics: table.dynamics_of(group, &self.average), ..Known::default() }
                    }
                    (Some(_), None) => Known { dynamics: self.average.to_vec(), ..Known::default() },
                    (None, group) => {
                        let own = group.and_then(|group| embeddings.chunks_exact(width.max(1)).nth(group));
                        Known {
                            input: (0..known.len()).map(|i| f32::from(u8::from(Some(i) == group))).collect(),
                            belief: own.map_or_else(|| vec![0.0; width], <[f32]>::to_vec),
                            dynamics: Vec::new(),
                        }
                    }
                };
                contexts.iter().map(one).collect()
            }
            _ => vec![Known { dynamics: self.average.to_vec(), ..Known::default() }; contexts.len()],
        }
    }

    /// The task vector of a reward, on the sphere: B of a goal; the mean of r(s) B(s) over labelled states, or over visited
    /// states for a function.
    pub fn task(&self, reward: &Reward) -> Vec<f32> {
        let dim = self.dim();
        let mut z = vec![0.0; dim];
        let mut add = |b: &[f32], r: f32| z.iter_mut().zip(b).for_each(|(z, b)| *z += r * b);
        match reward {
            Reward::Goal { goal, .. } => add(&self.backward(goal), 1.0),
            Reward::Labelled { states, .. } => {
                let obs: Vec<f32> = states.iter().flat_map(|(obs, _)| obs).copied().collect();
                let b = self.backward(&obs);
                states.iter().zip(b.chunks_exact(dim)).for_each(|((_, r), b)| add(b, *r));
            }
            _ => {
                let Visited { states, shares, b, .. } = &*self.visited;
                let mut rewards: Vec<f32> =
                    states.chunks_exact(self.spec().obs_dim()).map(|obs| reward.of(obs)).collect();
                self.visited.weigh(&mut rewards);
                let rows = rewards.iter().zip(shares).zip(b.chunks_exact(dim));
                rows.for_each(|((reward, share), b)| add(b, share * reward));
            }
        }
        latent::project(&mut z);
        z
    }

    /// B of observations, `[rows * d]`; of listed states, of the nearest.
    pub fn backward(&self, obs: &[f32]) -> Vec<f32> {
        match &self.model {
            Model::Listed(model) => {
                let (table, dim) = (&model.table, self.dim());
                let b = |obs: &[f32]| &self.visited.b[table.nearest(obs) * dim..][..dim];
                obs.chunks_exact(self.spec().obs_dim()).flat_map(b).copied().collect()
            }
            Model::Observations(model) => model.backward(obs),
        }
    }

    /// What a context adds to every task vector; nothing where rewards are taken as they are.
    pub(crate) fn shift(&self, context: &[Trajectory]) -> Result<Vec<f32>> {
        let Some(corrector) = &self.corrector else { return Ok(Vec::new()) };
        let seen = match &self.model {
            Model::Listed(model) => {
                let table = &model.table;
                Transitions::listed(table, context.iter().flat_map(|trajectory| table.tokens_of(trajectory)))
            }
            Model::Observations(model) => {
                let tokens: Vec<f32> =
                    context.iter().flat_map(|trajectory| model.codec.tokens_of(trajectory)).collect();
                Transitions::observations(&model.codec, &tokens)
            }
        };
        corrector.shift(&seen)
    }

    /// What is known of a context after a trajectory in it.
    pub(crate) fn known_after(&self, context: ContextId, trajectory: &Trajectory) -> Known {
        let evidence = self.evidence(std::slice::from_ref(trajectory));
        self.known(&[context], &[&evidence]).remove(0)
    }

    /// The evidence of trajectories; of nothing for a method without a belief.
    pub(crate) fn evidence(&self, trajectories: &[Trajectory]) -> Evidence {
        match self.belief() {
            Some(belief) => evidence_of(belief, trajectories),
            None => Evidence::States(StateEvidenceSet::default()),
        }
    }

    /// Takes what a goal says of the dynamics into the evidence, where `belief.goal_evidence` asks for that.
    pub(crate) fn observe_goal(&self, evidence: &mut Evidence, goal: &[f32]) {
        if let Some(belief) = self.belief().filter(|_| self.settings.belief.goal_evidence) {
            belief.observe_open(evidence, goal);
        }
    }

    /// The reward of every visited state that a task vector stands for, `B(s) z / d`.
    pub(crate) fn rewards(&self, z: &[f32]) -> Vec<f32> {
        let dot = |b: &[f32]| b.iter().zip(z).map(|(b, z)| b * z).sum::<f32>() / z.len() as f32;
        self.visited.b.chunks_exact(z.len()).map(dot).collect()
    }

    /// A net of visited states to plan over, made when it is first needed.
    pub(crate) fn nodes(&self, codec: &Arc<Codec>) -> &Nodes {
        self.nodes.get_or_init(|| {
            let device = self.belief.as_ref().map(|belief| belief.encoder().params().device().clone());
            Nodes::new(codec.clone(), &self.visited.states, &device.unwrap_or_default())
        })
    }
}
