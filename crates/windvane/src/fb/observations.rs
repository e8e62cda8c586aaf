//! F, B and the actor on observations: expectations over a batch of transitions, as in the paper.

use super::actor::{Actor, ActorConfig, ActorTrainer};
use super::conditioning::TrainingContexts;
use super::config::{Aggregate, FbConfig, ForwardForm, NetKind};
use super::loss;
use super::networks::{Backward, NetInput, TwoInputNet};
use super::target::policy;
use super::tasks::{TaskDistribution, TaskDraws, Tasks};
use super::trainer::FbObjective;
use crate::belief::TransitionSet;
use crate::data::replay::{DeviceCodec, Transitions};
use crate::data::{Codec, Replay};
use crate::error::LearnError;
use crate::features::Phi;
use crate::nn::{Params, Weights, ops, read, upload, upload_indices};
use crate::train::Metrics;
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use std::sync::Arc;
use windvane_world::rng::stream;

/// F, B and the actor with their weights.
#[derive(Clone, Debug)]
pub struct ObservationModel {
    pub(crate) config: FbConfig,
    pub(crate) actor_config: ActorConfig,
    pub(crate) codec: Arc<Codec>,
    constants: DeviceCodec,
    pub(crate) params: Params,
    features: Features,
    pub(crate) forward: Vec<TwoInputNet>,
    pub(crate) actor: Option<Actor>,
    /// The predictor that F goes through, for [`ForwardForm::Predictor`].
    pub(crate) predictor: Option<Arc<TransitionSet>>,
    /// Numbers in a conditioning input.
    condition: usize,
}

/// Features of states.
#[derive(Clone, Debug)]
enum Features {
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
            None => Features::Backward(Backward::new(&mut params, [features, codec.dims()], &config, device)?),
        };
        let output = heads * config.value_head.width(config.dim);
        let forward = (0..config.ensemble).map(|i| {
            TwoInputNet::new(&mut params, &format!("f{i}"), [features, action, condition], output, &config)
        });
        let forward = forward.collect::<Result<_, _>>()?;
        let actor_net = match n_actions {
            Some(_) => None,
            None => Some(Actor::new([features, codec.actions().width(), condition], &config, seed, device)?),
        };
        Ok(Self {
            constants: DeviceCodec::new(&codec, device),
            actor: actor_net,
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
        let s = self.constants.observations.encode(upload(obs.to_vec(), [obs.len() / dims, dims], self.params.device()));
        read(self.b(&self.params.weights(), &s))
    }

    /// The same of encoded states, `[rows, d]`.
    fn b(&self, weights: &Weights, s: &Tensor<2>) -> Tensor<2> {
        match &self.features {
            Features::Backward(backward) => backward.forward(weights, s, self.config.dim),
            Features::Given(phi) => phi.embed(s.clone()),
        }
    }

    fn input(&self, weights: &Weights, states: &States, a: Option<Tensor<2>>) -> NetInput {
        let b = (self.config.net.kind == NetKind::Film).then(|| self.b(weights, &states.s));
        NetInput { s: states.s.clone(), a, task: states.task.clone(), b }
    }

    /// The task vectors of groups, `[groups, d]`.
    fn z(&self, states: &States) -> Tensor<2> {
        states.task.clone().narrow(1, self.condition, self.config.dim)
    }

    /// Where encoded actions lead, as the predictor sees it; `a [rows, width]`.
    fn after(&self, predictor: &TransitionSet, states: &States, a: Tensor<2>) -> States {
        let change = predictor.predict(states.s.clone(), a, states.h.clone()) * self.constants.change_scale.clone();
        let obs = states.obs.clone() + change;
        States { s: self.constants.observations.encode(obs.clone()), obs, ..states.clone() }
    }

    /// States once for each discrete action, and the actions: `[rows * n, ..]`.
    fn with_all_actions(&self, states: &States, all: &Tensor<2>) -> (States, Tensor<2>) {
        let n = all.dims()[0];
        let spread = |x: &Tensor<2>| {
            let [rows, width] = x.dims();
            x.clone().reshape([rows, 1, width]).repeat(&[1, n, 1]).reshape([rows * n, width])
        };
        let rows = states.s.dims()[0];
        let spread_states = States { obs: spread(&states.obs), s: spread(&states.s), ..states.clone() };
        (spread_states, all.clone().repeat(&[rows, 1]))
    }

    /// F (times 1 - gamma) and value of every discrete action in states, `[rows * n, ..]`, by one net.
    fn all_actions(&self, weights: &Weights, net: &TwoInputNet, states: &States) -> (Tensor<2>, Tensor<2>) {
        let head = self.config.value_head;
        let raw = match (&self.predictor, &self.constants.all_actions) {
            (Some(predictor), Some(all)) => {
                let (states, a) = self.with_all_actions(states, all);
                let after = self.after(predictor, &states, a);
                net.forward(weights, self.input(weights, &after, None))
            }
            _ => {
                let raw = net.forward(weights, self.input(weights, states, None));
                let [rows, width] = raw.dims();
                let one = head.width(self.config.dim);
                raw.reshape([rows * width / one, one])
            }
        };
        head.assemble(raw, &self.z(states))
    }

    /// F (times 1 - gamma) and value of continuous actions `a` in states, by one net.
    fn with_action(&self, weights: &Weights, net: &TwoInputNet, states: &States, a: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
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
    fn act(&self, actor: &Actor, actor_weights: &Weights, weights: &Weights, states: &States) -> Tensor<2> {
        actor.act(actor_weights, self.input(weights, states, None))
    }

    /// Mean value of each discrete action in states, `[rows * n]`.
    pub(crate) fn action_values(&self, states: &States) -> Vec<f32> {
        let weights = self.params.weights();
        let values = self.forward.iter().map(|net| self.all_actions(&weights, net, states).1);
        read(values.reduce(|a, b| a + b).map_or_else(|| states.s.clone(), |sum| sum / self.forward.len() as f64))
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
        read(values.reduce(|a, b| a + b).map_or_else(|| states.s.clone(), |sum| sum / self.forward.len() as f64))
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
            h: (!beliefs.is_empty()).then(|| upload(beliefs.to_vec(), [groups, beliefs.len() / groups], device)),
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

/// The objective of F and B on observations.
#[derive(Debug)]
pub(crate) struct ObservationObjective {
    model: ObservationModel,
    replay: Arc<Replay>,
    contexts: TrainingContexts,
    distribution: TaskDistribution,
    /// Conditioning inputs `[contexts, width]` and beliefs `[contexts, dim]` of the training contexts.
    inputs: Option<Tensor<2>>,
    beliefs: Option<Tensor<2>>,
    seed: u64,
}

/// One step's transitions, grouped by context and task.
#[derive(Debug)]
pub(crate) struct ObservationBatch {
    /// Where transitions begin and where they lead.
    from: States,
    to: States,
    transitions: Transitions,
    tasks: Tasks,
    /// Noise of the actor's actions at each depth of the target.
    noise: Vec<Tensor<2>>,
}

impl ObservationObjective {
    /// The objective of an untrained model.
    pub(crate) fn new(
        model: ObservationModel,
        replay: Arc<Replay>,
        contexts: TrainingContexts,
        distribution: TaskDistribution,
        seed: u64,
    ) -> Self {
        let (count, device) = (contexts.groups.len(), model.params.device());
        let column = |values: &[f32]| {
            (!values.is_empty()).then(|| upload(values.to_vec(), [count, values.len() / count], device))
        };
        let (inputs, beliefs) = (column(&contexts.inputs), column(&contexts.beliefs));
        Self { model, replay, contexts, distribution, inputs, beliefs, seed }
    }

    /// The model as it stands.
    pub(crate) fn model(&self) -> &ObservationModel {
        &self.model
    }

    /// The target's F (times 1 - gamma) at the action that its policy takes in `states`, `[rows, d]` by each net.
    fn ahead(&self, frozen: &Weights, states: &States, noise: Option<&Tensor<2>>) -> Vec<Tensor<2>> {
        let model = &self.model;
        if let (Some(actor), Some(noise)) = (&model.actor, noise) {
            let a = model.act(actor, &actor.params.weights(), &model.params.weights(), states) + noise.clone();
            let a = a.clamp(-1.0, 1.0);
            return model.forward.iter().map(|net| model.with_action(frozen, net, states, a.clone()).0).collect();
        }
        let (rows, dim) = (states.s.dims()[0], model.dim());
        let (f, values): (Vec<_>, Vec<_>) =
            model.forward.iter().map(|net| model.all_actions(frozen, net, states)).unzip();
        let n = f.first().map_or(1, |f| f.dims()[0] / rows);
        let q = values.into_iter().reduce(|a, b| a + b);
        let Some(q) = q else { return f };
        let policy = policy(q.reshape([rows, n]) / model.forward.len() as f64, model.config.temperature);
        let chosen = |f: Tensor<2>| {
            let f = f.reshape([rows, n, dim]) * policy.clone().reshape([rows, n, 1]);
            f.sum_dim(1).reshape([rows, dim])
        };
        f.into_iter().map(chosen).collect()
    }

    /// F (times 1 - gamma) and value of the transitions' own actions by one net, `[rows, ..]`.
    fn own(&self, weights: &Weights, net: &TwoInputNet, batch: &ObservationBatch) -> (Tensor<2>, Tensor<2>) {
        let model = &self.model;
        let head = model.config.value_head;
        match (&model.predictor, model.codec.actions().n_actions()) {
            // U of where the transition really led.
            (Some(_), _) => {
                let raw = net.forward(weights, model.input(weights, &batch.to, None));
                head.assemble(raw, &model.z(&batch.to))
            }
            (None, Some(n)) => {
                let input = model.input(weights, &batch.from, None);
                let raw = net.select(weights, input, n, batch.transitions.index.clone());
                head.assemble(raw, &model.z(&batch.from))
            }
            (None, None) => model.with_action(weights, net, &batch.from, batch.transitions.a.clone()),
        }
    }

    /// What F of the transitions bootstraps from, by each net: (1 - gamma) times the successor features of B after the state
    /// they led to, `[rows, d]`; `depth` held actions deep through the predictor.
    fn bootstraps(&self, frozen: &Weights, batch: &ObservationBatch) -> Vec<Tensor<2>> {
        let (model, gamma) = (&self.model, f64::from(self.model.config.gamma));
        let Some(predictor) = model.predictor.as_ref().filter(|_| batch.noise.len() > 1) else {
            return self.ahead(frozen, &batch.to, batch.noise.first());
        };
        // Along the policy's own way through the predictor: B of each state met, then the target's U.
        let mut states = batch.to.clone();
        let mut met: Option<Tensor<2>> = None;
        let mut discount = 1.0;
        for noise in &batch.noise[..batch.noise.len() - 1] {
            let a = self.policy_action(&states, noise);
            states = model.after(predictor, &states, a);
            let b = model.b(frozen, &states.s) * ((1.0 - gamma) * discount);
            met = Some(match met {
                Some(sum) => sum + b,
                None => b,
            });
            discount *= gamma;
        }
        let ahead = self.ahead(frozen, &states, batch.noise.last());
        let met = |f: Tensor<2>| met.clone().map_or_else(|| f.clone(), |met| met + f.clone() * discount);
        ahead.into_iter().map(met).collect()
    }

    fn policy_action(&self, states: &States, noise: &Tensor<2>) -> Tensor<2> {
        let model = &self.model;
        if let Some(actor) = &model.actor {
            let a = model.act(actor, &actor.params.weights(), &model.params.weights(), states);
            return (a + noise.clone()).clamp(-1.0, 1.0);
        }
        let (weights, rows) = (model.params.weights(), states.s.dims()[0]);
        let values = model.forward.iter().map(|net| model.all_actions(&weights, net, states).1);
        match (values.reduce(|a, b| a + b), &model.constants.all_actions) {
            (Some(q), Some(all)) => {
                let n = all.dims()[0];
                policy(q.reshape([rows, n]), 0.0).matmul(all.clone())
            }
            _ => noise.clone(),
        }
    }
}

impl FbObjective for ObservationObjective {
    type Batch = ObservationBatch;

    fn params(&self) -> &Params {
        &self.model.params
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.model.params
    }

    fn actor_params(&self) -> Option<&Params> {
        self.model.actor.as_ref().map(|actor| &actor.params)
    }

    fn actor_params_mut(&mut self) -> Option<&mut Params> {
        self.model.actor.as_mut().map(|actor| &mut actor.params)
    }

    fn sample(&self, step: u64, _: &Weights) -> ObservationBatch {
        let (model, replay, device) = (&self.model, &self.replay, self.model.params.device());
        let config = &model.config;
        let mut rng = stream(self.seed, "fb-batch", &[step]);
        let mut draws = TaskDraws::new(config.dim);
        let (mut chosen, mut rows) = (Vec::new(), Vec::new());
        for _ in 0..config.contexts {
            let context = rng.random_range(0..self.contexts.groups.len());
            let group = self.contexts.groups[context];
            let axis = self.contexts.axes.get(context * config.dim..(context + 1) * config.dim).unwrap_or_default();
            for _ in 0..config.tasks {
                let first = rows.len();
                rows.extend((0..config.transitions).map(|_| replay.draw(&mut rng, group)));
                let hindsight = rng.random_bool(config.hindsight);
                let later = 1 + ((1.0 - rng.random::<f64>()).ln() / f64::from(config.gamma).ln()) as usize;
                let from = rows[first];
                draws.draw(&mut rng, config, &self.distribution, axis, 0, |rng| {
                    if hindsight { replay.later(from, later) } else { replay.draw_state(rng, group) }
                });
                chosen.push(context as i64);
            }
        }
        let weights = model.params.weights();
        let tasks = draws.on_device(device, None, |goals| model.b(&weights, &replay.encoded(goals)));
        let transitions = replay.transitions(replay.rows(&rows));
        let chosen = upload_indices(chosen, device);
        let pick = |column: &Option<Tensor<2>>| column.as_ref().map(|column| column.clone().select(0, chosen.clone()));
        let task = match pick(&self.inputs) {
            Some(inputs) => Tensor::cat(vec![inputs, tasks.z.clone()], 1),
            None => tasks.z.clone(),
        };
        let h = pick(&self.beliefs);
        let depth = if model.predictor.is_some() { config.target_depth } else { 1 };
        let width = model.codec.actions().width();
        let noise = (0..depth).map(|_| match &model.actor {
            Some(actor) => actor.noise(&model.actor_config, &mut rng, rows.len()),
            None => Tensor::zeros([1, width], device),
        });
        ObservationBatch {
            noise: noise.collect(),
            from: States { obs: transitions.obs.clone(), s: transitions.s.clone(), task: task.clone(), h: h.clone() },
            to: States { obs: transitions.next_obs.clone(), s: transitions.next.clone(), task, h },
            transitions,
            tasks,
        }
    }

    fn loss(&self, batch: &ObservationBatch, weights: &Weights, frozen: &Weights) -> (Tensor<1>, Metrics) {
        let (model, config) = (&self.model, &self.model.config);
        let (dim, gamma) = (config.dim as f64, f64::from(config.gamma));
        let rows = batch.transitions.s.dims()[0];
        let Tasks { z, is_goal } = &batch.tasks;
        let [groups, _] = z.dims();
        let z_rows = z.clone().reshape([groups, 1, config.dim]).repeat(&[1, rows / groups, 1]).reshape([rows, config.dim]);
        let alive = &batch.transitions.not_terminal; // [rows, 1]

        let target_b = model.b(frozen, &batch.to.s); // [rows, d]
        let ahead = self.bootstraps(frozen, batch); // [rows, d] by each net
        let nets = ahead.len() as f64;
        let mean_ahead = ahead.iter().cloned().reduce(|a, b| a + b).map_or_else(|| target_b.clone(), |sum| sum / nets);
        let mean_ahead = mean_ahead * alive.clone();
        let reward = (target_b.clone() * z_rows.clone()).sum_dim(1) / dim; // [rows, 1]
        let going_on = (mean_ahead.clone() * z_rows).sum_dim(1) / dim;
        let value_target = reward * (1.0 - gamma) + going_on * gamma; // [rows, 1]

        let given = model.has_given_features();
        let b = model.b(weights, &batch.to.s); // [rows, d]
        let target = if given {
            target_b * (1.0 - gamma) + mean_ahead * gamma // [rows, d]
        } else {
            let products = |f: &Tensor<2>| ops::products(f.clone() / (1.0 - gamma), target_b.clone()) * alive.clone();
            let all = ahead.iter().map(products);
            let joined = match config.aggregate {
                Aggregate::Mean => all.reduce(|a, b| a + b).map(|sum| sum / nets),
                Aggregate::Min => all.reduce(Tensor::min_pair),
            };
            joined.unwrap_or_else(|| target_b.clone()) // [rows, rows]
        };
        let mut metrics: Metrics = vec![("q", value_target.clone().mean())];
        let mut loss = Tensor::zeros([1], &z.device());
        let counts = if config.log_losses_on_all_tasks { is_goal.clone() * 0.0 + 1.0 } else { is_goal.clone() };
        let counts = counts.reshape([groups, 1]).repeat(&[1, rows / groups]).reshape([rows, 1]);
        let add = |name: &'static str, part: Tensor<1>, metrics: &mut Metrics| match metrics.iter_mut().find(|m| m.0 == name) {
            Some((_, sum)) => *sum = sum.clone() + part,
            None => metrics.push((name, part)),
        };
        for net in &model.forward {
            let (f, value) = self.own(weights, net, batch); // [rows, d], [rows, 1]
            let fb = if given {
                (f - target.clone()).powf_scalar(2.0).sum_dim(1).mean() / dim
            } else {
                ops::pair_loss(f / (1.0 - gamma), b.clone(), target.clone(), config.gamma) / dim
            };
            add("fb", fb.clone(), &mut metrics);
            loss = loss + fb * config.fb_coef;
            if config.value_coef > 0.0 {
                let off = (value.clone() - value_target.clone()).powf_scalar(2.0).mean();
                add("value mse", off.clone(), &mut metrics);
                loss = loss + off * config.value_coef;
            }
            if config.log_value_coef > 0.0 {
                let off = loss::log_value(value, value_target.clone(), counts.clone());
                add("log value", off.clone(), &mut metrics);
                loss = loss + off * config.log_value_coef;
            }
        }
        if let Features::Backward(backward) = &model.features
            && backward.is_trained()
        {
            let ortho = ops::ortho_loss(b) / dim;
            // Orthonormal features have a mean squared product of d between two states; 0 is right.
            metrics.push(("ortho error", ortho.clone() * 2.0 + 1.0));
            loss = loss + ortho * config.ortho_coef;
        }
        metrics.insert(0, ("loss", loss.clone()));
        (loss, metrics)
    }

    fn actor_step(&mut self, batch: &ObservationBatch, trainer: &mut ActorTrainer, scale: f32) -> Metrics {
        let model = &self.model;
        let Some(actor) = &model.actor else { return Metrics::new() };
        let (frozen, weights) = (model.params.weights(), actor.params.track());
        let a = model.act(actor, &weights, &frozen, &batch.from);
        let values = model.forward.iter().map(|net| model.with_action(&frozen, net, &batch.from, a.clone()).1);
        let Some(q) = values.reduce(|a, b| a + b) else { return Metrics::new() };
        let q = q / model.forward.len() as f64; // [rows, 1]
        let measured = q.clone().mean().without_autodiff();
        let mut loss = if model.actor_config.normalize_q {
            q.clone().neg().mean() / q.detach().abs().mean().clamp_min(1e-3)
        } else {
            q.neg().mean()
        };
        if model.actor_config.bc > 0.0 {
            let off = (a - batch.transitions.a.clone()).powf_scalar(2.0).mean();
            loss = loss + off * model.actor_config.bc;
        }
        let gradients = loss.backward();
        drop((loss, frozen));
        if let Some(actor) = &mut self.model.actor {
            trainer.step(actor, weights, gradients, scale);
        }
        vec![("actor value", measured)]
    }
}
