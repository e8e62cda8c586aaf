//! Forward maps by networks: one core for the FB family, and for successor features over given ones, with heads for discrete
//! actions and an actor for continuous ones.

use super::actor::Actor;
use super::belief::{NeuralBelief, joined};
use super::config::{FbConfig, Form, NeuralPlan};
use super::lens::Lens;
use super::nets::{Backward, ForwardMap, Query};
use crate::error::LearnError;
use crate::nn::{Params, Weights, to_vec};
use crate::phi::Phi;
use burn::tensor::{Device, Tensor, TensorData};
use std::sync::Arc;

/// B, the forward maps and the actor with their weights: what acts.
#[derive(Clone, Debug)]
pub struct FbModel {
    pub(super) config: FbConfig,
    pub(super) params: Params,
    features: Embedding,
    pub(super) forward: Vec<ForwardMap>,
    pub(super) actor: Option<Actor>,
    pub(super) lens: Arc<Lens>,
    /// The predictor that F goes through, for [`Form::Predictor`].
    pub(super) predictor: Option<Arc<NeuralBelief>>,
}

/// Features of states.
#[derive(Clone, Debug)]
enum Embedding {
    /// B, learned with F.
    Learned(Backward),
    /// Learned before.
    Given(Phi),
}

/// States, and what is told in each group of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Observations, `[rows, dims]`.
    pub(super) obs: Vec<f32>,
    /// Features, `[rows, features]`.
    pub(super) features: Vec<f32>,
    /// Condition and task of each group, `[groups, condition + d]`.
    pub(super) told: Vec<f32>,
    /// The belief of each group, `[groups, dim]`; empty without.
    pub(super) beliefs: Vec<f32>,
    /// Number of groups; each has as many rows.
    pub(super) groups: usize,
}

impl FbModel {
    /// Untrained networks for what `lens` shows, under conditions of width `condition`.
    pub fn new(
        lens: Arc<Lens>,
        condition: usize,
        predictor: Option<Arc<NeuralBelief>>,
        plan: &NeuralPlan,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        Self::build(lens, condition, predictor, None, plan.fb.clone(), seed, device)
    }

    /// Untrained successor features of `phi`, told nothing of the dynamics.
    pub fn over(
        phi: Phi,
        lens: Arc<Lens>,
        predictor: Option<Arc<NeuralBelief>>,
        plan: &NeuralPlan,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let config = FbConfig { dim: phi.dim(), ..plan.fb.clone() };
        Self::build(lens, 0, predictor, Some(phi), config, seed, device)
    }

    fn build(
        lens: Arc<Lens>,
        condition: usize,
        predictor: Option<Arc<NeuralBelief>>,
        phi: Option<Phi>,
        config: FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let bad = |problem: &str| LearnError::Config { origin: "plan".into(), problem: problem.into() };
        let (width, choices) = (lens.features().width(), lens.moves().choices());
        let predictor = match (config.forward, predictor) {
            (Form::Paper, _) => None,
            (Form::Predictor, Some(predictor)) if choices.is_some() => Some(predictor),
            (Form::Predictor, _) => {
                return Err(bad(
                    "\"neural.fb.forward\" is \"predictor\"; continuous actions need \"paper\", or \
                                \"neural.compass\"",
                ));
            }
        };
        let action = if choices.is_some() { 0 } else { lens.moves().width() };
        let heads = if predictor.is_some() { 1 } else { choices.unwrap_or(1) };
        let mut params = Params::new(device, seed);
        let features = match phi {
            Some(phi) => Embedding::Given(phi),
            None => Embedding::Learned(Backward::new(&mut params, width, &config)?),
        };
        let forward = (0..config.ensemble)
            .map(|i| {
                ForwardMap::new(&mut params, &format!("f{i}"), [width, action, heads, condition], &config)
            })
            .collect::<Result<_, _>>()?;
        let actor = match choices {
            Some(_) => None,
            None => Some(Actor::new([width, action, condition], &config, seed, device)?),
        };
        Ok(Self { config, params, features, forward, actor, lens, predictor })
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.config.dim
    }

    /// B of observations, or their given features, `[rows * d]`.
    pub fn backward(&self, obs: &[f32]) -> Vec<f32> {
        if obs.is_empty() {
            return Vec::new();
        }
        to_vec(self.embedded(&self.params.weights(), self.lens.features_of(obs)))
    }

    /// The same of what networks see of states, `[rows, d]`.
    pub(super) fn embedded(&self, weights: &Weights, s: Vec<f32>) -> Tensor<2> {
        match &self.features {
            Embedding::Learned(backward) => {
                backward.forward(weights, self.matrix(s, self.lens.features().width()))
            }
            Embedding::Given(phi) => self.matrix(phi.of(s), self.dim()),
        }
    }

    /// Whether features were learned before, so that F becomes their successor features.
    pub(super) fn has_given_features(&self) -> bool {
        matches!(self.features, Embedding::Given(_))
    }

    /// What each forward net gives for every choice in every place: `[rows * choices * head]` for each net.
    pub(super) fn heads(&self, weights: &Weights, places: &Places) -> Vec<Vec<f32>> {
        let s = match self.afterstates(places) {
            Some(next) => self.lens.features_of(&next),
            None => places.features.clone(),
        };
        let query = self.query(s, None, places);
        self.forward.iter().map(|map| to_vec(map.heads(weights, query.clone()))).collect()
    }

    /// Where each choice leads from each place, as the predictor sees it: `[rows * choices, dims]`; nothing without one.
    pub(super) fn afterstates(&self, places: &Places) -> Option<Vec<f32>> {
        let predictor = self.predictor.as_ref()?;
        let moves = self.lens.moves();
        let choices = moves.choices().unwrap_or(1);
        let seen: Vec<Vec<f32>> = (0..choices).map(|choice| moves.seen(choice)).collect();
        let width = self.lens.features().width();
        let mut sa = Vec::with_capacity(places.features.len() * choices + seen.len());
        for s in places.features.chunks_exact(width) {
            for a in &seen {
                sa.extend_from_slice(s);
                sa.extend_from_slice(a);
            }
        }
        let dims = self.lens.change().len();
        let repeated: Vec<f32> = places.obs.chunks_exact(dims).flat_map(|obs| obs.repeat(choices)).collect();
        Some(self.after(predictor, sa, &repeated, &places.beliefs))
    }

    /// Where the moves in `sa [rows, features + move]` lead from `obs [rows, dims]`.
    fn after(&self, predictor: &NeuralBelief, sa: Vec<f32>, obs: &[f32], beliefs: &[f32]) -> Vec<f32> {
        let width = self.lens.features().width() + self.lens.moves().width();
        let h = (!beliefs.is_empty()).then(|| self.matrix(beliefs.to_vec(), predictor.dim()));
        let change = to_vec(predictor.predict(self.matrix(sa, width), h)); // [rows, dims]
        let sizes = self.lens.change().iter().cycle();
        obs.iter().zip(&change).zip(sizes).map(|((x, change), size)| x + change * size).collect()
    }

    /// The query of a transition's own action: its head, its vector, or where the predictor says it leads.
    pub(super) fn own_query(&self, places: &Places, a: &[f32]) -> Query {
        let (features, moves) = (self.lens.features().width(), self.lens.moves());
        if let Some(predictor) = &self.predictor {
            let sa = joined(&places.features, features, a, moves.width());
            let next = self.after(predictor, sa, &places.obs, &places.beliefs);
            return self.query(self.lens.features_of(&next), None, places);
        }
        let a = moves.choices().is_none().then(|| self.matrix(a.to_vec(), moves.width()));
        self.query(places.features.clone(), a, places)
    }

    /// The mean U z of places whose groups want `z [groups, d]`, `[rows]`; for [`Form::Predictor`].
    pub(super) fn worth(&self, places: &Places, z: &[f32]) -> Vec<f32> {
        let (weights, query) = (self.params.weights(), self.query(places.features.clone(), None, places));
        let heads: Vec<Vec<f32>> =
            self.forward.iter().map(|map| to_vec(map.heads(&weights, query.clone()))).collect();
        self.values(&heads, z, places.groups)
    }

    /// Whether one can be at the places of a single group at all, as its belief sees it, 0 to 1; nothing without a belief.
    pub(super) fn support(&self, places: &Places) -> Option<Vec<f32>> {
        let predictor = self.predictor.as_ref().filter(|_| !places.beliefs.is_empty())?;
        let s = self.matrix(places.features.clone(), self.lens.features().width());
        Some(predictor.support(s, self.matrix(places.beliefs.clone(), predictor.dim())))
    }

    /// Whether F goes through a predictor.
    pub(super) fn predicts(&self) -> bool {
        self.predictor.is_some()
    }

    /// Whether each choice has a head of its own.
    pub(super) fn has_heads(&self) -> bool {
        self.actor.is_none() && self.predictor.is_none()
    }

    pub(super) fn query(&self, s: Vec<f32>, a: Option<Tensor<2>>, places: &Places) -> Query {
        let told = places.told.len() / places.groups;
        let s = self.matrix(s, self.lens.features().width());
        Query { s, a, told: self.matrix(places.told.clone(), told) }
    }

    /// The mean value of each choice in each place over the forward nets, `[rows * choices]`; `heads` from
    /// [`Self::heads`], `z [groups, d]`.
    pub(super) fn values(&self, heads: &[Vec<f32>], z: &[f32], groups: usize) -> Vec<f32> {
        let head = self.forward[0].head();
        let per_group = heads[0].len() / head / groups;
        let share = 1.0 / heads.len() as f32;
        let mut values = vec![0.0; heads[0].len() / head];
        for (map, heads) in self.forward.iter().zip(heads) {
            for (i, (value, head)) in values.iter_mut().zip(heads.chunks_exact(head)).enumerate() {
                *value += share * map.value(head, &z[i / per_group * self.dim()..][..self.dim()]);
            }
        }
        values
    }

    /// The greedy move in each place: its choice, or its vector.
    pub(super) fn greedy(&self, places: &Places, z: &[f32]) -> (Vec<usize>, Vec<f32>) {
        if let Some(actor) = &self.actor {
            let query = self.query(places.features.clone(), None, places);
            let vectors = to_vec(actor.act(&actor.params.weights(), query.s, query.told));
            return (vec![0; vectors.len() / self.lens.moves().width()], vectors);
        }
        let values = self.values(&self.heads(&self.params.weights(), places), z, places.groups);
        let choices = self.lens.moves().choices().unwrap_or(1);
        let best = |q: &[f32]| (1..q.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best });
        (values.chunks_exact(choices).map(best).collect(), Vec::new())
    }

    /// Rows of a constant.
    pub(super) fn matrix(&self, values: Vec<f32>, width: usize) -> Tensor<2> {
        let rows = values.len() / width.max(1);
        Tensor::from_data(TensorData::new(values, [rows, width]), self.params.device())
    }
}
