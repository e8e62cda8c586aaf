//! A trained agent: from a context and a task to actions.

use super::config::NeuralPlan;
use super::fb::FbModel;
use super::lens::Lens;
use super::lookahead::Landmarks;
use super::memory::Memory;
use super::situations::Listener;
use super::surprise;
use crate::correction::{CorrectionConfig, Corrector};
use crate::error::LearnError;
use crate::latent;
use crate::task::Visited;
use std::sync::{Arc, OnceLock};
use windvane_world::Reward;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;

/// Visited states that a reward function is labelled on; paper: 10,000.
const LABELS: usize = 10_000;

/// Forward and backward maps, and what they listen to.
#[derive(Clone, Debug)]
pub struct NeuralAgent {
    pub(super) model: FbModel,
    pub(super) listener: Listener,
    pub(super) plan: NeuralPlan,
    /// Visited states, drawn once, and B of them.
    pub(super) visited: Arc<Visited>,
    /// How surprising contexts of the data are that were not learned from, least first; empty if it was not measured.
    pub(super) usual: Vec<f32>,
    landmarks: Arc<OnceLock<Landmarks>>,
    /// What it was trained on; nothing for one that was read from a folder of its own.
    pub(super) memory: Option<Arc<Memory>>,
    /// What corrects rewards in new contexts.
    corrector: Option<Arc<Corrector>>,
    /// Whether task vectors were drawn around beliefs in training.
    pub(super) cones: bool,
}

impl NeuralAgent {
    /// Joins trained parts.
    pub fn new(
        model: FbModel,
        listener: Listener,
        memory: &Arc<Memory>,
        plan: &NeuralPlan,
        seed: u64,
    ) -> Self {
        let mut rng = stream(seed, "labels", &[]);
        let mut states = Vec::new();
        for _ in 0..LABELS {
            let group = memory.group(&mut rng);
            states.extend_from_slice(memory.state(&mut rng, group).unwrap_or_default());
        }
        let agent = Self::of_parts(model, listener, plan.clone(), states, Vec::new());
        Self { memory: Some(memory.clone()), ..agent }
    }

    /// The same, with rewards corrected in each new context.
    #[must_use]
    pub fn corrected_by(self, memory: &Memory, config: CorrectionConfig, seed: u64) -> Self {
        let (seen, led) = memory.transitions();
        let b = self.model.backward(&led);
        let count = b.len() / self.model.dim();
        let weights = vec![1.0 / count as f32; count];
        let corrector = Corrector::new(config, seen, weights, b, seed, self.model.params.device());
        Self { corrector: Some(Arc::new(corrector)), ..self }
    }

    /// The same, trained on tasks around beliefs.
    #[must_use]
    pub fn drawn_around_beliefs(self) -> Self {
        Self { cones: true, ..self }
    }

    /// What a context adds to every task vector; nothing where rewards are taken as they are.
    pub(super) fn shift(&self, context: &Trajectory) -> Result<Vec<f32>, LearnError> {
        let Some(corrector) = &self.corrector else { return Ok(Vec::new()) };
        corrector.shift(&self.lens().seen_in(context))
    }

    /// The same, which knows how surprising a context may be.
    #[must_use]
    pub fn calibrated(self, memory: &Memory, seed: u64) -> Self {
        let usual = surprise::usual(&self, memory, seed);
        Self { usual, ..self }
    }

    /// An agent of parts that were kept.
    pub(super) fn of_parts(
        model: FbModel,
        listener: Listener,
        plan: NeuralPlan,
        states: Vec<f32>,
        usual: Vec<f32>,
    ) -> Self {
        let b = model.backward(&states);
        let count = states.len() / model.lens.change().len();
        let visited = Visited { shares: vec![1.0 / count.max(1) as f32; count], dim: model.dim(), states, b };
        Self {
            model,
            listener,
            plan,
            visited: Arc::new(visited),
            usual,
            landmarks: Arc::default(),
            memory: None,
            corrector: None,
            cones: false,
        }
    }

    /// How it looks at its world.
    pub fn lens(&self) -> &Lens {
        &self.model.lens
    }

    /// The forward and backward maps.
    pub fn model(&self) -> &FbModel {
        &self.model
    }

    /// Visited states and B of them.
    pub fn visited(&self) -> &Visited {
        &self.visited
    }

    /// A net of visited states to look ahead over, made when it is first needed.
    pub(super) fn landmarks(&self) -> &Landmarks {
        self.landmarks.get_or_init(|| Landmarks::new(&self.model, &self.visited.states, &self.visited.b))
    }

    /// Most tokens that a belief is formed from while it goes on learning.
    pub(super) fn most_tokens(&self) -> usize {
        (self.plan.belief.longest / self.plan.repeat).max(1)
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
            Reward::Function(_) | Reward::Hold { .. } => {
                let Visited { states, b, .. } = &*self.visited;
                let dims = self.lens().change().len();
                let rows = states.chunks_exact(dims).zip(b.chunks_exact(dim));
                rows.for_each(|(obs, b)| add(b, reward.of(obs)));
            }
        }
        latent::project(&mut z);
        z
    }
}
