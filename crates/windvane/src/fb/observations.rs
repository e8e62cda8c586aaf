//! F, B and the actor on observations.

use super::actor::{Actor, ActorConfig, ActorKind};
use super::config::{FbConfig, ForwardForm, NetKind};
use super::networks::{Backward, NetInput, TwoInputNet};
use crate::belief::TransitionSet;
use crate::data::Codec;
use crate::data::replay::DeviceCodec;
use crate::error::LearnError;
use crate::features::Phi;
use crate::nn::{Params, Weights, read, upload};
use burn::tensor::{Device, Tensor};
use std::sync::Arc;

/// F, B and the actor with their weights.
#[derive(Clone, Debug)]
pub struct ObservationModel {
    pub(crate) config: FbConfig,
    pub(crate) actor_config: ActorConfig,
    pub(crate) codec: Arc<Codec>,
    pub(super) constants: DeviceCodec,
    pub(crate) params: Params,
    pub(super) features: Features,
    pub(crate) forward: Vec<TwoInputNet>,
    /// Chooses vectors; nothing where the best of `choices` is taken.
    pub(crate) actor: Option<Actor>,
    /// Encodings of the actions to choose from, `[n, width]`; nothing with an actor.
    choices: Option<Tensor<2>>,
    /// The predictor that F goes through, for [`ForwardForm::Predictor`].
    pub(crate) predictor: Option<Arc<TransitionSet>>,
    /// Numbers in a conditioning input.
    condition: usize,
}

/// Features of states.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one of them in a model
pub(super) enum Features {
    /// B, learned with F or fixed.
    Backward(Backward),
    /// Learned beforehand.
    Given(Phi),
}

/// States in groups that share a context and a task.
#[derive(Clone, Debug)]
pub(crate) struct States {
    /// Observations, `[rows, dims]`.
    pub(crate) obs: Tensor<2>,
    /// Encodings, `[rows, features]`.
    pub(crate) s: Tensor<2>,
    /// Conditioning input and task of each group, `[groups, condition + d]`.
    pub(crate) task: Tensor<2>,
    /// The belief of each group, `[groups, dim]`; nothing without.
    pub(crate) h: Option<Tensor<2>>,
}

impl ObservationModel {
    /// Untrained maps for what `codec` shows, under conditions of width `condition`; over given features instead of B, where
    /// there are any.
    pub fn new(
        codec: Arc<Codec>,
        condition: usize,
        predictor: Option<Arc<TransitionSet>>,
        given: Option<Phi>,
        (config, actor): (&FbConfig, &ActorConfig),
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let mut config = config.clone();
        if let Some(phi) = &given {
            config.dim = phi.dim();
        }
        let device = &device.clone().without_autodiff();
        let (features, n_actions) = (codec.observations().width(), codec.actions().n_actions());
        let predictor = predictor.filter(|_| config.forward == ForwardForm::Predictor);
        let through = predictor.is_some();
        let action = if n_actions.is_some() || through { 0 } else { codec.actions().width() };
        let heads = if through { 1 } else { n_actions.unwrap_or(1) };
        let mut params = Params::new(device, seed);
        let embedding = match given {
            Some(phi) => Features::Given(phi),
            None => {
                Features::Backward(Backward::new(&mut params, [features, codec.dims()], &config, device)?)
            }
        };
        let output = heads * config.value_head.width(config.dim);
        let forward = (0..config.ensemble).map(|i| {
            TwoInputNet::new(&mut params, &format!("f{i}"), [features, action, condition], output, &config)
        });
        let forward = forward.collect::<Result<_, _>>()?;
        let (actor_net, choices) = if n_actions.is_none() && actor.kind != ActorKind::Candidates {
            let sizes = [features, codec.actions().width(), condition];
            (Some(Actor::new(sizes, (&config, actor), seed, device)?), None)
        } else {
            let candidates = codec.actions().candidates();
            let count = candidates.len();
            (None, Some(upload(candidates.concat(), [count, codec.actions().width()], device)))
        };
        Ok(Self {
            constants: DeviceCodec::new(&codec, device),
            actor: actor_net,
            choices,
            actor_config: *actor,
            features: embedding,
            config,
            codec,
            params,
            forward,
            predictor,
            condition,
        })
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.config.dim
    }

    /// Whether features were learned beforehand, so that F becomes their successor features.
    pub fn has_given_features(&self) -> bool {
        matches!(self.features, Features::Given(_))
    }

    /// The features that were learned beforehand.
    pub(crate) fn given_features(&self) -> Option<&Phi> {
        match &self.features {
            Features::Given(phi) => Some(phi),
            Features::Backward(_) => None,
        }
    }

    /// B of observations, or their given features, `[rows * d]`.
    pub fn backward(&self, obs: &[f32]) -> Vec<f32> {
        if obs.is_empty() {
            return Vec::new();
        }
        let dims = self.codec.dims();
        let s = self.constants.observations.encode(upload(
            obs.to_vec(),
            [obs.len() / dims, dims],
            self.params.device(),
        ));
        read(self.b(&self.params.weights(), &s))
    }

    /// B itself, where it is not given.
    pub(crate) fn backward_map(&self) -> Option<&Backward> {
        match &self.features {
            Features::Backward(backward) => Some(backward),
            Features::Given(_) => None,
        }
    }

    /// The same of encoded states, `[rows, d]`.
    pub(super) fn b(&self, weights: &Weights, s: &Tensor<2>) -> Tensor<2> {
        match &self.features {
            Features::Backward(backward) => backward.forward(weights, s, self.config.dim),
            Features::Given(phi) => phi.embed(s.clone()),
        }
    }

    pub(super) fn input(&self, weights: &Weights, states: &States, a: Option<Tensor<2>>) -> NetInput {
        let b = (self.config.net.kind == NetKind::Film).then(|| self.b(weights, &states.s));
        NetInput { s: states.s.clone(), a, task: states.task.clone(), b }
    }

    /// The task vectors of groups, `[groups, d]`.
    pub(super) fn z(&self, states: &States) -> Tensor<2> {
        states.task.clone().narrow(1, self.condition, self.config.dim)
    }

    /// Where encoded actions lead, as the predictor sees it; `a [rows, width]`.
    pub(super) fn after(&self, predictor: &TransitionSet, states: &States, a: Tensor<2>) -> States {
        let change =
            predictor.predict(states.s.clone(), a, states.h.clone()) * self.constants.change_scale.clone();
        let obs = states.obs.clone() + change;
        States { s: self.constants.observations.encode(obs.clone()), obs, ..states.clone() }
    }

    /// Encodings of the actions to choose from, `[n, width]`; nothing with an actor.
    pub(super) fn choices(&self) -> Option<&Tensor<2>> {
        self.choices.as_ref()
    }

    /// Their number; nothing with an actor.
    pub(crate) fn n_choices(&self) -> Option<usize> {
        self.choices.as_ref().map(|choices| choices.dims()[0])
    }

    /// States once for each action to choose from, and the actions: `[rows * n, ..]`.
    pub(super) fn with_all_actions(states: &States, all: &Tensor<2>) -> (States, Tensor<2>) {
        let n = all.dims()[0];
        let spread = |x: &Tensor<2>| {
            let [rows, width] = x.dims();
            x.clone().reshape([rows, 1, width]).repeat(&[1, n, 1]).reshape([rows * n, width])
        };
        let rows = states.s.dims()[0];
        let spread_states = States { obs: spread(&states.obs), s: spread(&states.s), ..states.clone() };
        (spread_states, all.clone().repeat(&[rows, 1]))
    }

    /// F (times 1 - gamma) and value of every action to choose from in states, `[rows * n, ..]`, by one net.
    pub(super) fn all_actions(
        &self,
        weights: &Weights,
        net: &TwoInputNet,
        states: &States,
    ) -> (Tensor<2>, Tensor<2>) {
        let as_input = self.predictor.is_some() || self.codec.actions().n_actions().is_none();
        if let Some(choices) = self.choices.as_ref().filter(|_| as_input) {
            let (states, a) = Self::with_all_actions(states, choices);
            return self.with_action(weights, net, &states, a);
        }
        let head = self.config.value_head;
        let raw = net.forward(weights, self.input(weights, states, None));
        let [rows, width] = raw.dims();
        let one = head.width(self.config.dim);
        head.assemble(raw.reshape([rows * width / one, one]), &self.z(states))
    }

    /// F (times 1 - gamma) and value of encoded actions `a` in states, by one net.
    pub(super) fn with_action(
        &self,
        weights: &Weights,
        net: &TwoInputNet,
        states: &States,
        a: Tensor<2>,
    ) -> (Tensor<2>, Tensor<2>) {
        let raw = match &self.predictor {
            Some(predictor) => {
                let after = self.after(predictor, states, a);
                net.forward(weights, self.input(weights, &after, None))
            }
            None => net.forward(weights, self.input(weights, states, Some(a))),
        };
        self.config.value_head.assemble(raw, &self.z(states))
    }

    /// What the actor does in states, `[rows, width]`.
    pub(super) fn act(
        &self,
        actor: &Actor,
        actor_weights: &Weights,
        weights: &Weights,
        states: &States,
    ) -> Tensor<2> {
        actor.act(actor_weights, self.input(weights, states, None))
    }

    /// Mean value of each action to choose from in states, `[rows * n]`.
    pub(crate) fn action_values(&self, states: &States) -> Vec<f32> {
        let weights = self.params.weights();
        let values = self.forward.iter().map(|net| self.all_actions(&weights, net, states).1);
        read(
            values
                .reduce(|a, b| a + b)
                .map_or_else(|| states.s.clone(), |sum| sum / self.forward.len() as f64),
        )
    }

    /// Actions of the actor in states, `[rows * width]`; empty without one.
    pub(crate) fn actions(&self, states: &States) -> Vec<f32> {
        let Some(actor) = &self.actor else { return Vec::new() };
        read(self.act(actor, &actor.params.weights(), &self.params.weights(), states))
    }

    /// Mean value F z / d of encoded continuous actions `[rows * width]` in states, `[rows]`.
    pub(crate) fn values_of(&self, states: &States, a: Vec<f32>) -> Vec<f32> {
        let weights = self.params.weights();
        let rows = states.s.dims()[0];
        let a: Tensor<2> = upload(a.clone(), [rows, a.len() / rows], self.params.device());
        let values = self.forward.iter().map(|net| self.with_action(&weights, net, states, a.clone()).1);
        read(
            values
                .reduce(|a, b| a + b)
                .map_or_else(|| states.s.clone(), |sum| sum / self.forward.len() as f64),
        )
    }

    /// States from the host: observations `[rows * dims]`, conditioning inputs and tasks `[groups * (condition + d)]`, beliefs
    /// `[groups * dim]` or none.
    pub(crate) fn states(&self, obs: &[f32], task: Vec<f32>, beliefs: &[f32], groups: usize) -> States {
        let (device, dims) = (self.params.device(), self.codec.dims());
        let obs: Tensor<2> = upload(obs.to_vec(), [obs.len() / dims, dims], device);
        let width = task.len() / groups;
        States {
            s: self.constants.observations.encode(obs.clone()),
            obs,
            task: upload(task, [groups, width], device),
            h: (!beliefs.is_empty())
                .then(|| upload(beliefs.to_vec(), [groups, beliefs.len() / groups], device)),
        }
    }

    /// Whether F goes through a predictor.
    pub fn predicts(&self) -> bool {
        self.predictor.is_some()
    }

    /// Numbers in a conditioning input.
    pub fn condition_width(&self) -> usize {
        self.condition
    }
}
