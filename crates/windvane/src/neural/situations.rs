//! What the forward map can be told of the dynamics, once for each context it is trained in.

use super::belief::NeuralBelief;
use super::config::NeuralPlan;
use super::memory::Memory;
use crate::methods::{Condition, Draw, Method};
use rand::RngExt as _;
use std::sync::Arc;
use windvane_world::ContextId;
use windvane_world::rng::stream;

/// Conditions with the groups they belong to.
#[derive(Clone, Debug, Default)]
pub struct Situations {
    /// Width of a condition.
    pub width: usize,
    /// The conditions, `[count * width]`.
    pub conditions: Vec<f32>,
    /// The beliefs behind them, `[count * dim]`; empty without.
    pub beliefs: Vec<f32>,
    /// The axis each cone is drawn around, `[count * d]`; empty without.
    pub axes: Vec<f32>,
    /// The group each comes from.
    pub groups: Vec<usize>,
}

/// Makes conditions of what is known.
#[derive(Clone, Debug)]
pub enum Listener {
    /// Nothing is told.
    Deaf,
    /// The belief, with what all beliefs have in common taken out and scaled to unit size.
    Belief {
        /// The encoder.
        belief: Arc<NeuralBelief>,
        /// The mean of h over the training contexts.
        middle: Vec<f32>,
        /// One over the spread of h around it.
        scale: f32,
    },
    /// One-hot among so many groups, with the code that the predictor knows each by, `[groups * dim]`; zeros for others.
    ContextId {
        /// Number of groups.
        groups: usize,
        /// The context of each, where the data tells.
        contexts: Vec<ContextId>,
        /// Their codes; empty without a predictor.
        codes: Vec<f32>,
    },
}

impl Listener {
    /// The listener of `method`, and the situations it is trained in: many contexts, each computed once.
    pub fn train(
        method: &Method,
        memory: &Memory,
        belief: Option<&Arc<NeuralBelief>>,
        plan: &NeuralPlan,
        seed: u64,
    ) -> (Self, Situations) {
        let groups = memory.groups();
        match (method.condition, belief) {
            (Condition::Belief, Some(belief)) => {
                let config = &plan.belief;
                let mut numbers = Vec::with_capacity(config.cached);
                let mut contexts = Vec::with_capacity(config.cached);
                for i in 0..config.cached.max(groups) {
                    let mut rng = stream(seed, "beliefs", &[i as u64]);
                    let steps = rng.random_range(config.shortest..=config.longest);
                    contexts.push(memory.context(&mut rng, i % groups, steps));
                    numbers.push(i % groups);
                }
                let beliefs = belief.infer(&contexts);
                let (middle, scale) = centre(&beliefs, belief.dim());
                let listener = Self::Belief { belief: belief.clone(), middle, scale };
                let conditions = listener.conditions(&beliefs);
                let axes = if method.draw == Draw::Cone { conditions.clone() } else { Vec::new() };
                (listener, Situations { width: belief.dim(), conditions, beliefs, axes, groups: numbers })
            }
            (Condition::ContextId, _) => {
                let conditions =
                    (0..groups * groups).map(|i| f32::from(u8::from(i / groups == i % groups))).collect();
                let numbers = (0..groups).collect();
                let codes = belief.map(|belief| belief.codes()).unwrap_or_default();
                let beliefs = codes.clone();
                let situations = Situations {
                    width: groups,
                    conditions,
                    beliefs,
                    groups: numbers,
                    ..Situations::default()
                };
                let contexts = memory.privileged_contexts().unwrap_or_default();
                (Self::ContextId { groups, contexts, codes }, situations)
            }
            (Condition::Nothing | Condition::Belief, _) => {
                (Self::Deaf, Situations { groups: (0..groups).collect(), ..Situations::default() })
            }
        }
    }

    /// Width of a condition.
    pub fn width(&self) -> usize {
        match self {
            Self::Deaf => 0,
            Self::Belief { middle, .. } => middle.len(),
            Self::ContextId { groups, .. } => *groups,
        }
    }

    /// The belief encoder, where there is one.
    pub fn belief(&self) -> Option<&NeuralBelief> {
        match self {
            Self::Belief { belief, .. } => Some(belief),
            Self::Deaf | Self::ContextId { .. } => None,
        }
    }

    /// The beliefs of sets of tokens, `[sets * dim]`; of one that holds nothing, the mean of all in training.
    pub fn beliefs(&self, sets: &[Vec<f32>]) -> Vec<f32> {
        let Self::Belief { belief, middle, .. } = self else { return Vec::new() };
        let mut means = belief.infer(sets);
        let rows = sets.iter().zip(means.chunks_exact_mut(middle.len()));
        rows.filter(|(set, _)| set.is_empty()).for_each(|(_, h)| h.copy_from_slice(middle));
        means
    }

    /// Conditions from beliefs, `[count * dim]` each.
    pub fn conditions(&self, beliefs: &[f32]) -> Vec<f32> {
        let Self::Belief { middle, scale, .. } = self else { return Vec::new() };
        let centred = |h: &[f32]| h.iter().zip(middle).map(|(h, m)| (h - m) * scale).collect::<Vec<_>>();
        beliefs.chunks_exact(middle.len()).flat_map(centred).collect()
    }

    /// The condition of a context whose label is known, and its code; zeros for one that training did not meet.
    pub fn told(&self, context: ContextId) -> (Vec<f32>, Vec<f32>) {
        let Self::ContextId { groups, contexts, codes } = self else { return (Vec::new(), Vec::new()) };
        let group = contexts.iter().position(|known| *known == context);
        let width = codes.len() / groups;
        let code = group.map_or(vec![0.0; width], |group| codes[group * width..][..width].to_vec());
        ((0..*groups).map(|i| f32::from(u8::from(Some(i) == group))).collect(), code)
    }
}

/// The mean of rows, and one over the root mean square of what is left.
fn centre(rows: &[f32], width: usize) -> (Vec<f32>, f32) {
    let count = (rows.len() / width).max(1) as f32;
    let mut middle = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        middle.iter_mut().zip(row).for_each(|(m, x)| *m += x / count);
    }
    let square: f64 = rows
        .chunks_exact(width)
        .flat_map(|row| row.iter().zip(&middle).map(|(x, m)| f64::from(x - m).powi(2)))
        .sum();
    (middle, 1.0 / ((square / rows.len().max(1) as f64).sqrt().max(1e-6) as f32))
}
