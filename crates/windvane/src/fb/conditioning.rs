//! What F is conditioned on: nothing, the belief, or the context's id; and the contexts it is trained in, computed once.

use super::config::{FbConfig, ForwardForm};
use super::on_policy;
use crate::belief::contexts::{ContextConfig, ContextSampler};
use crate::belief::{BeliefConfig, BeliefEncoder, StateEvidence, StateEvidenceSet, TransitionSet};
use crate::data::{Replay, StateTable};
use crate::latent::cone_means;
use crate::linalg::mean_of_rows;
use crate::methods::{Condition, Draw, Method};
use crate::nn::read;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windvane_world::ContextId;
use windvane_world::rng::stream;

/// Makes conditioning inputs of what is known of a context.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Conditioner {
    /// F is unconditioned.
    Nothing,
    /// The belief, centred and scaled to unit size.
    Belief {
        /// Mean of h over the training contexts; a tensor in an exported agent.
        #[serde(skip)]
        mean: Vec<f32>,
        /// One over the root mean square of h around it.
        scale: f32,
    },
    /// One-hot among the training groups; zeros for others.
    ContextId {
        /// The context of each group, where the data tells.
        contexts: Vec<ContextId>,
    },
}

impl Conditioner {
    /// Numbers in a conditioning input of observations.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Belief { mean, .. } => mean.len(),
            Self::ContextId { contexts } => contexts.len(),
        }
    }

    /// Centred and scaled beliefs, `[count * dim]` each.
    pub(crate) fn centred(&self, beliefs: &[f32]) -> Vec<f32> {
        let Self::Belief { mean, scale } = self else { return Vec::new() };
        let centred = |h: &[f32]| h.iter().zip(mean).map(|(h, m)| (h - m) * scale).collect::<Vec<_>>();
        beliefs.chunks_exact(mean.len()).flat_map(centred).collect()
    }

    /// The training group of a context by its id; nothing for one that training did not meet.
    pub(crate) fn group_of(&self, context: ContextId) -> Option<usize> {
        let Self::ContextId { contexts } = self else { return None };
        contexts.iter().position(|known| *known == context)
    }

    /// The conditioner of beliefs `[count * dim]`.
    fn of_beliefs(beliefs: &[f32], dim: usize) -> Self {
        let mean = mean_of_rows(beliefs, dim);
        let square: f64 = beliefs
            .chunks_exact(dim)
            .flat_map(|row| row.iter().zip(&mean).map(|(x, m)| f64::from(x - m).powi(2)))
            .sum();
        let scale = 1.0 / ((square / beliefs.len().max(1) as f64).sqrt().max(1e-6) as f32);
        Self::Belief { mean, scale }
    }
}

/// What is known of a context, in the form that the model takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Mean of h, `[dim]`; for Oracle-ID the embedding of its group; empty without.
    pub(crate) belief: Vec<f32>,
    /// Conditioning input of observations, `[width]`.
    pub(crate) input: Vec<f32>,
    /// Dynamics of listed states, `[vocabulary]`.
    pub(crate) dynamics: Vec<f32>,
}

/// Contexts that F is trained in, each computed once.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrainingContexts {
    /// Observations: conditioning inputs, `[count * width]`; empty for a width of 0.
    pub(crate) inputs: Vec<f32>,
    /// Observations: the beliefs that the predictor is given, `[count * dim]`; empty without.
    pub(crate) beliefs: Vec<f32>,
    /// Listed states: the predictor's dynamics, `[count * vocabulary]`.
    pub(crate) dynamics: Vec<f32>,
    /// Listed states: the dynamics that the data of their groups shows, `[count * vocabulary]`, which is what heads learn from.
    pub(crate) data_dynamics: Vec<f32>,
    /// Mean directions of cones, `[count * d]`; empty without.
    axes: Vec<f32>,
    /// The group that each comes from.
    pub(crate) groups: Vec<usize>,
}

impl TrainingContexts {
    /// The mean direction of a context's cone, `[d]`; empty without.
    pub(crate) fn axis(&self, context: usize, dim: usize) -> &[f32] {
        self.axes.get(context * dim..(context + 1) * dim).unwrap_or_default()
    }
}

/// The conditioner of `method` on listed states, and the contexts that F is trained in.
pub(crate) fn listed(
    method: &Method,
    table: &Arc<StateTable>,
    belief: Option<&StateEvidence>,
    (config, fb): (&BeliefConfig, &FbConfig),
    seed: u64,
) -> (Conditioner, TrainingContexts) {
    let (average, groups) = (table.average(), table.groups.len());
    let mut all = TrainingContexts::default();
    match (method.condition, belief) {
        (Condition::Belief, Some(belief)) => {
            let drawn = ContextConfig { mix: fb.context_mix, ways: fb.context_ways, ..config.context };
            let sampler = ContextSampler::new(table.clone(), drawn, belief.params().device());
            let mut rng = stream(seed, "beliefs", &[]);
            let (mut evidence, mut hidden) = (Vec::new(), Vec::new());
            while all.groups.len() < config.cached {
                let batch = sampler.draw(&mut rng, config.batch.min(config.cached - all.groups.len()));
                for met in read(batch.met).chunks_exact(table.vocabulary()) {
                    evidence.push(StateEvidenceSet { met: met.to_vec(), ..belief.seen([]) });
                }
                all.data_dynamics.extend(read(batch.truth));
                for of in batch.groups {
                    all.groups.push(of[0]);
                    // What is made of several groups is none of them.
                    let unknown = of.len() > 1 || rng.random_bool(fb.unknown_contexts);
                    hidden.push(if unknown { of } else { Vec::new() });
                }
            }
            let all_shares = all.data_dynamics.chunks_exact_mut(table.vocabulary());
            for (shares, evidence) in all_shares.zip(&mut evidence) {
                if config.goal_evidence {
                    let goal = table.mark_of_goal(&mut rng).into_iter();
                    let entered = table.evidence_in(shares).into_iter().step_by(2);
                    evidence.open = goal.zip(entered).map(|(goal, entered)| goal * entered).collect();
                }
                table.fill_untried(shares, &average);
            }
            // Heads learn from the data, which an imagined trajectory may contradict.
            if fb.on_policy_contexts > 0.0 && fb.forward == ForwardForm::Predictor {
                let (evidence, data_dynamics) = (&mut evidence, &all.data_dynamics);
                let mut contexts = on_policy::Contexts { belief, evidence, hidden: &hidden, data_dynamics };
                contexts.extend_on_policy(config, fb, &mut rng);
            }
            let evidence: Vec<&StateEvidenceSet> = evidence.iter().collect();
            let mean = belief.infer_without(&evidence, &hidden).mean;
            all.dynamics = belief.dynamics_given(&mean, &evidence);
            let conditioner = Conditioner::of_beliefs(&mean, table.states());
            all.axes = axes(method, &conditioner.centred(&mean), table.states(), fb.dim);
            (conditioner, all)
        }
        (Condition::ContextId, _) => {
            let contexts = table.groups.iter().filter_map(|group| group.privileged_context).collect();
            all.dynamics = (0..groups).flat_map(|group| table.dynamics_of(group, &average)).collect();
            all.groups = (0..groups).collect();
            (Conditioner::ContextId { contexts }, all)
        }
        (Condition::Nothing | Condition::Belief, _) => {
            (all.dynamics, all.groups) = (average, vec![0]);
            (Conditioner::Nothing, all)
        }
    }
}

/// The conditioner of `method` on observations, and the contexts that F is trained in.
pub(crate) fn observations(
    method: &Method,
    replay: &Replay,
    belief: Option<&TransitionSet>,
    (config, fb): (&BeliefConfig, &FbConfig),
    seed: u64,
) -> (Conditioner, TrainingContexts) {
    let groups = replay.groups();
    let mut all = TrainingContexts { groups: (0..groups).collect(), ..Default::default() };
    match (method.condition, belief) {
        (Condition::Belief, Some(belief)) => {
            all.groups = (0..config.cached.max(groups)).map(|i| i % groups).collect();
            let contexts = all.groups.iter().enumerate().map(|(i, &group)| {
                let mut rng = stream(seed, "beliefs", &[i as u64]);
                let steps = rng.random_range(config.min_context..=config.max_context);
                let rows = replay.draw_context(&mut rng, group, steps);
                read(replay.tokens(replay.rows(&rows)))
            });
            let contexts: Vec<Vec<f32>> = contexts.collect();
            all.beliefs = belief.infer_tokens(&contexts.iter().map(Vec::as_slice).collect::<Vec<_>>()).mean;
            let conditioner = Conditioner::of_beliefs(&all.beliefs, belief.dim());
            all.inputs = conditioner.centred(&all.beliefs);
            all.axes = axes(method, &all.inputs, belief.dim(), fb.dim);
            (conditioner, all)
        }
        (Condition::ContextId, _) => {
            all.inputs =
                (0..groups * groups).map(|i| f32::from(u8::from(i / groups == i % groups))).collect();
            all.beliefs = belief.map(TransitionSet::embeddings).unwrap_or_default();
            (Conditioner::ContextId { contexts: replay.privileged_contexts().unwrap_or_default() }, all)
        }
        (Condition::Nothing | Condition::Belief, _) => (Conditioner::Nothing, all),
    }
}

/// Mean directions of the cones of centred beliefs `[count * width]`; none for a method without cones.
fn axes(method: &Method, centred: &[f32], width: usize, dim: usize) -> Vec<f32> {
    if method.draw == Draw::Cone { cone_means(centred, width, dim) } else { Vec::new() }
}
