//! F, B and the actor on observations.

use super::actor::{Actor, ActorConfig, ActorKind};
use super::conditioning::Known;
use super::config::{FbConfig, ForwardForm, NetKind};
use super::networks::{Backward, ForwardValue, conditioned_net};
use crate::belief::TransitionSet;
use crate::data::Codec;
use crate::data::encoder::DeviceCodec;
use crate::error::Result;
use crate::features::Phi;
use crate::nn::{
    ConditionedInput, ConditionedNet, Params, Weights, join_groups, mean_of, read, repeat_rows, upload,
};
use burn::tensor::{Device, Tensor};
use std::sync::Arc;

/// F, B and the actor with their weights.
#[derive(Clone, Debug)]
pub(crate) struct ObservationModel {
    pub(crate) config: FbConfig,
    pub(crate) actor_config: ActorConfig,
    pub(crate) codec: Arc<Codec>,
    pub(super) constants: DeviceCodec,
    pub(crate) params: Params,
    pub(crate) backward: Backward,
    pub(crate) forward: Vec<ConditionedNet>,
    /// Chooses vectors; nothing where the best of `choices` is taken.
    pub(crate) actor: Option<Actor>,
    /// Encodings of the actions to choose from, `[n, width]`; nothing with an actor.
    pub(super) choices: Option<Tensor<2>>,
    /// The predictor that F goes through, for [`ForwardForm::Predictor`].
    pub(crate) predictor: Option<Arc<TransitionSet>>,
    /// Numbers in a conditioning input.
    pub(crate) condition: usize,
}

/// Encodings of the actions to choose from without an actor, `[n, width]`.
fn candidates(codec: &Codec, device: &Device) -> Tensor<2> {
    let candidates = codec.actions.candidates();
    upload(candidates.concat(), [candidates.len(), codec.actions.width()], device)
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

impl States {
    /// States of the same groups side by side: those of a group stay together.
    pub(super) fn joined(all: &[Self]) -> Self {
        let [groups, _] = all[0].task.dims();
        let join = |part: fn(&Self) -> &Tensor<2>| {
            join_groups(&all.iter().map(|states| part(states).clone()).collect::<Vec<_>>(), groups)
        };
        Self { obs: join(|states| &states.obs), s: join(|states| &states.s), ..all[0].clone() }
    }
}

impl ObservationModel {
    /// Untrained maps for what `codec` shows, under conditions of width `condition`; over given features instead of B, where
    /// there are any.
    pub(crate) fn new(
        codec: Arc<Codec>,
        condition: usize,
        predictor: Option<Arc<TransitionSet>>,
        given: Option<Phi>,
        (config, actor): (&FbConfig, &ActorConfig),
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let mut config = config.clone();
        if let Some(phi) = &given {
            config.dim = phi.dim();
        }
        let device = &device.clone().without_autodiff();
        let (features, n_actions) = (codec.observations.width(), codec.actions.n_actions());
        let predictor = predictor.filter(|_| config.forward == ForwardForm::Predictor);
        let through = predictor.is_some();
        let action = if n_actions.is_some() || through { 0 } else { codec.actions.width() };
        let heads = if through { 1 } else { n_actions.unwrap_or(1) };
        let mut params = Params::new(device, seed);
        let backward = match given {
            Some(phi) => Backward::Given(phi),
            None => Backward::new(&mut params, [features, codec.dims()], &config)?,
        };
        let output = heads * config.value_head.width(config.dim);
        let forward = (0..config.ensemble).map(|i| {
            conditioned_net(&mut params, &format!("f{i}"), [features, action, condition], output, &config)
        });
        let forward = forward.collect::<Result<_, _>>()?;
        let (actor_net, choices) = if n_actions.is_none() && actor.kind != ActorKind::Candidates {
            let sizes = [features, codec.actions.width(), condition];
            (Some(Actor::new(sizes, (&config, actor), seed, device)?), None)
        } else {
            (None, Some(candidates(&codec, device)))
        };
        Ok(Self {
            constants: codec.on_device(device),
            actor: actor_net,
            choices,
            actor_config: *actor,
            backward,
            config,
            codec,
            params,
            forward,
            predictor,
            condition,
        })
    }

    /// The same F and B, where the best of candidates is taken.
    pub(crate) fn without_actor(&self) -> Self {
        let choices = candidates(&self.codec, &self.constants.change_scale.device());
        Self { actor: None, choices: Some(choices), ..self.clone() }
    }

    /// B of observations, or their given features, `[rows * d]`.
    pub(crate) fn backward(&self, obs: &[f32]) -> Vec<f32> {
        if obs.is_empty() {
            return Vec::new();
        }
        read(self.b(&self.params.weights(), &self.constants.encode_host(obs)))
    }

    /// The same of encoded states, `[rows, d]`.
    pub(super) fn b(&self, weights: &Weights, s: &Tensor<2>) -> Tensor<2> {
        self.backward.forward(weights, s, self.config.dim)
    }

    pub(super) fn input(&self, weights: &Weights, states: &States, a: Option<Tensor<2>>) -> ConditionedInput {
        let b = (self.config.net.kind == NetKind::Film).then(|| self.b(weights, &states.s));
        ConditionedInput { s: states.s.clone(), a, task: states.task.clone(), b }
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
        States { s: self.constants.encode(obs.clone()), obs, ..states.clone() }
    }

    /// Number of the actions to choose from; nothing with an actor.
    pub(crate) fn n_choices(&self) -> Option<usize> {
        self.choices.as_ref().map(|choices| choices.dims()[0])
    }

    /// F (times 1 - gamma) and value of every action to choose from in states, `[rows * n, ..]`, by one net.
    pub(super) fn all_actions(
        &self,
        weights: &Weights,
        net: &ConditionedNet,
        states: &States,
    ) -> ForwardValue {
        let as_input = self.predictor.is_some() || self.codec.actions.n_actions().is_none();
        if let Some(choices) = self.choices.as_ref().filter(|_| as_input) {
            let ([n, _], [rows, _]) = (choices.dims(), states.s.dims());
            let [obs, s] = [&states.obs, &states.s].map(|x| repeat_rows(x, n)); // each state once for each choice
            let states = States { obs, s, ..states.clone() };
            return self.with_action(weights, net, &states, choices.clone().repeat(&[rows, 1]));
        }
        self.heads(weights, net, states)
    }

    /// F (times 1 - gamma) and value in states by one net that takes no action: of every head, or of U.
    pub(super) fn heads(&self, weights: &Weights, net: &ConditionedNet, states: &States) -> ForwardValue {
        let raw = net.forward(weights, self.input(weights, states, None));
        self.config.value_head.assemble(raw, &self.z(states))
    }

    /// F (times 1 - gamma) and value of encoded actions `a` in states, by one net.
    pub(super) fn with_action(
        &self,
        weights: &Weights,
        net: &ConditionedNet,
        states: &States,
        a: Tensor<2>,
    ) -> ForwardValue {
        if let Some(predictor) = &self.predictor {
            return self.heads(weights, net, &self.after(predictor, states, a));
        }
        let raw = net.forward(weights, self.input(weights, states, Some(a)));
        self.config.value_head.assemble(raw, &self.z(states))
    }

    /// The mean over the nets of what `of` gives for each.
    pub(super) fn mean(&self, of: impl Fn(&ConditionedNet) -> Tensor<2>) -> Tensor<2> {
        mean_of(self.forward.iter().map(of))
    }

    /// Mean value of each action to choose from in states, `[rows * n]`.
    pub(crate) fn action_values(&self, states: &States) -> Vec<f32> {
        let weights = self.params.weights();
        read(self.mean(|net| self.all_actions(&weights, net, states).1))
    }

    /// Actions of the actor in states, `[rows * width]`; empty without one.
    pub(crate) fn actions(&self, states: &States) -> Vec<f32> {
        let Some(actor) = &self.actor else { return Vec::new() };
        read(actor.act(&actor.params.weights(), self.input(&self.params.weights(), states, None)))
    }

    /// Mean value F z / d of encoded continuous actions `[rows * width]` in states, `[rows]`.
    pub(crate) fn values_of(&self, states: &States, a: Vec<f32>) -> Vec<f32> {
        let weights = self.params.weights();
        let rows = states.s.dims()[0];
        let a: Tensor<2> = upload(a.clone(), [rows, a.len() / rows], self.params.device());
        read(self.mean(|net| self.with_action(&weights, net, states, a.clone()).1))
    }

    /// States from the host: observations `[rows * dims]`, as many for each context and its task vector.
    pub(crate) fn states(&self, obs: &[f32], groups: &[(&Known, &[f32])]) -> States {
        let (device, dims) = (self.params.device(), self.codec.dims());
        let (mut task, mut beliefs) = (Vec::new(), Vec::new());
        for (known, z) in groups {
            let begins = task.len();
            task.extend_from_slice(&known.input);
            task.resize(begins + self.condition, 0.0);
            task.extend_from_slice(z);
            beliefs.extend_from_slice(&known.belief);
        }
        let obs: Tensor<2> = upload(obs.to_vec(), [obs.len() / dims, dims], device);
        let (count, width, dim) = (groups.len(), task.len() / groups.len(), beliefs.len() / groups.len());
        States {
            s: self.constants.encode(obs.clone()),
            obs,
            task: upload(task, [count, width], device),
            h: (dim > 0).then(|| upload(beliefs, [count, dim], device)),
        }
    }
}
