//! A trained agent: from a context and a task to actions.

use super::fb::FbModel;
use super::lookahead::Landmarks;
use super::memory::Memory;
use super::situations::Listener;
use crate::correction::{CorrectionConfig, Corrector};
use crate::doctor::{self, Finding, Limits};
use crate::error::LearnError;
use crate::latent;
use std::sync::Arc;
use windvane_world::Reward;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;

/// Visited states that a reward function is labelled on; paper: 10,000.
const LABELS: usize = 10_000;
/// States that B is examined on.
const EXAMINED: usize = 400;

/// Forward and backward maps, and what they listen to.
#[derive(Clone, Debug)]
pub struct NeuralAgent {
    pub(super) model: FbModel,
    pub(super) listener: Listener,
    pub(super) refresh: usize,
    /// Visited states, drawn once, and B of them.
    labelled: Arc<(Vec<f32>, Vec<f32>)>,
    pub(super) landmarks: Arc<Landmarks>,
    /// What corrects rewards in new contexts.
    corrector: Option<Arc<Corrector>>,
}

impl NeuralAgent {
    /// Joins trained parts; `refresh` steps lie between two updates of a belief that goes on learning.
    pub fn new(model: FbModel, listener: Listener, refresh: usize, seed: u64) -> Self {
        let memory = &model.memory;
        let mut rng = stream(seed, "labels", &[]);
        let mut states = Vec::new();
        for _ in 0..LABELS {
            let group = memory.group(&mut rng);
            states.extend_from_slice(memory.state(&mut rng, group).unwrap_or_default());
        }
        let b = model.backward(&states);
        let landmarks = Arc::new(Landmarks::new(&model, &states, &b));
        Self { listener, refresh, labelled: Arc::new((states, b)), landmarks, model, corrector: None }
    }

    /// The same, with rewards corrected in each new context.
    #[must_use]
    pub fn corrected_by(self, config: CorrectionConfig, seed: u64) -> Self {
        let (seen, led) = self.memory().transitions();
        let b = self.model.backward(&led);
        let count = b.len() / self.model.dim();
        let weights = vec![1.0 / count as f32; count];
        let corrector = Corrector::new(config, seen, weights, b, seed, self.model.params.device());
        Self { corrector: Some(Arc::new(corrector)), ..self }
    }

    /// What a context adds to every task vector; nothing where rewards are taken as they are.
    pub(super) fn shift(&self, context: &Trajectory) -> Result<Vec<f32>, LearnError> {
        let Some(corrector) = &self.corrector else { return Ok(Vec::new()) };
        corrector.shift(&self.memory().seen_in(context))
    }

    /// The data set it knows.
    pub fn memory(&self) -> &Memory {
        &self.model.memory
    }

    /// The forward and backward maps.
    pub fn model(&self) -> &FbModel {
        &self.model
    }

    /// The task vector of a reward, on the sphere: B of a goal; the mean of r(s) B(s) over labelled states; over states
    /// visited in the data for a function.
    pub fn task(&self, reward: &Reward) -> Vec<f32> {
        let dim = self.model.dim();
        let mut z = vec![0.0; dim];
        let mut add = |b: &[f32], r: f32| z.iter_mut().zip(b).for_each(|(z, b)| *z += r * b);
        match reward {
            Reward::Goal { goal, .. } => add(&self.model.backward(goal), 1.0),
            Reward::Labelled { states, .. } => {
                let obs: Vec<f32> = states.iter().flat_map(|(obs, _)| obs).copied().collect();
                let b = self.model.backward(&obs);
                states.iter().zip(b.chunks_exact(dim)).for_each(|((_, r), b)| add(b, *r));
            }
            Reward::Function(_) => {
                let (states, b) = &*self.labelled;
                let dims = self.memory().change().len();
                let rows = states.chunks_exact(dims).zip(b.chunks_exact(dim));
                rows.for_each(|(obs, b)| add(b, reward.of(obs)));
            }
        }
        latent::project(&mut z);
        z
    }

    /// What can be said of B without knowing the world.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let dim = self.model.dim();
        let rows = EXAMINED.min(self.labelled.1.len() / dim);
        let [error, rank] = doctor::spread(&self.labelled.1[..rows * dim], &vec![1.0 / rows as f32; rows]);
        let advice = "raise neural.fb.ortho or train longer: goals that look alike to B get the same z";
        let what = "mean cosine of two visited states";
        vec![
            Finding::at_most("B", what, error, Limits { good: 0.2, fair: 0.4 }, advice),
            Finding::at_least("B", "effective rank", rank, Limits { good: 20.0, fair: 8.0 }, advice),
        ]
    }
}
