//! Training of F and B on observations: expectations over a batch of transitions, as in the paper.

use super::actor::{ActorKind, ddpg_loss, weighted_loss};
use super::conditioning::TrainingContexts;
use super::config::Aggregate;
use super::loss;
use super::networks::ForwardValue;
use super::observations::{ObservationModel, States};
use super::target::policy;
use super::tasks::{TaskDistribution, TaskDraws, Tasks, of_goals};
use crate::data::Replay;
use crate::data::replay::Transitions;
use crate::nn::{
    Adam, AdamConfig, ConditionedNet, Params, Weights, join_groups, mean_of, ops, repeat_rows, upload,
    upload_indices,
};
use crate::train::Metrics;
use crate::train::trainer::{Objective, Total};
use burn::tensor::Tensor;
use rand::RngExt as _;
use std::sync::Arc;
use windvane_world::Rng;
use windvane_world::rng::stream;

/// The objective of F and B on observations.
#[derive(Debug)]
pub(crate) struct ObservationObjective {
    pub(crate) model: ObservationModel,
    /// The actor's optimiser, where there is one.
    actor_adam: Option<Adam>,
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
    /// Where transitions begin.
    from: States,
    /// Where they lead, then where the policy goes on to from there, as the predictor sees it: as many as the target is deep.
    rollout: Vec<States>,
    transitions: Transitions,
    tasks: Tasks,
    /// 1 for transitions whose task is made of their own future, `[rows, 1]`.
    own: Tensor<2>,
    /// Noise of the actor's actions at the last of these; zeros where there is no actor.
    noise: Tensor<2>,
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
        let adam = AdamConfig { rate: model.actor_config.rate, clip: Some(1.0), ..AdamConfig::default() };
        let actor_adam = model.actor.as_ref().map(|actor| Adam::new(adam, &actor.params));
        Self { model, actor_adam, replay, contexts, distribution, inputs, beliefs, seed }
    }

    /// The target's F (times 1 - gamma) at the action that its policy takes in `states`, `[rows, d]`: by each net, or their mean.
    fn ahead(&self, frozen: &Weights, states: &States, noise: &Tensor<2>) -> Vec<Tensor<2>> {
        let model = &self.model;
        if model.actor.is_some() {
            let a = self.policy_action(states, noise);
            let f = model.forward.iter().map(|net| model.with_action(frozen, net, states, a.clone()).0);
            return self.joined(f.collect());
        }
        let (rows, dim) = (states.s.dims()[0], model.config.dim);
        let all = model.forward.iter().map(|net| model.all_actions(frozen, net, states));
        let (f, q): (Vec<_>, Vec<_>) = all.unzip();
        let (z, f, n) = (model.z(states), self.joined(f), q[0].dims()[0] / rows);
        if let [mean] = &f[..]
            && model.config.temperature == 0.0
            && z.dims()[0] == rows
        {
            return vec![ops::greedy_heads(mean.clone().reshape([rows, n * dim]), z)];
        }
        let policy = policy(mean_of(q).reshape([rows, n]), model.config.temperature);
        let chosen = |f: Tensor<2>| {
            let f = f.reshape([rows, n, dim]) * policy.clone().reshape([rows, n, 1]);
            f.sum_dim(1).reshape([rows, dim])
        };
        f.into_iter().map(chosen).collect()
    }

    /// The targets of all nets as one where their mean is asked for.
    fn joined(&self, f: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        match self.model.config.aggregate {
            Aggregate::Mean => vec![mean_of(f)],
            Aggregate::Min => f,
        }
    }

    /// F (times 1 - gamma) and value of the transitions' own actions by one net, `[rows, ..]`; through the predictor, of whatever
    /// action led to `states`.
    fn own(
        &self,
        weights: &Weights,
        net: &ConditionedNet,
        batch: &ObservationBatch,
        states: &States,
    ) -> ForwardValue {
        let model = &self.model;
        match (&model.predictor, model.codec.actions.n_actions()) {
            // U of where the action led.
            (Some(_), _) => model.heads(weights, net, states),
            (None, Some(n)) => {
                let input = model.input(weights, &batch.from, None);
                let raw = net.select(weights, input, n, batch.transitions.index.clone());
                model.config.value_head.assemble(raw, &model.z(&batch.from))
            }
            (None, None) => model.with_action(weights, net, &batch.from, batch.transitions.a.clone()),
        }
    }

    /// What F bootstraps from at each state of the rollout, by each net: (1 - gamma) times the successor features of B after it,
    /// `[rows, d]`. At the last state that is the target's F, before it B of the next state and what follows.
    fn bootstraps(&self, frozen: &Weights, batch: &ObservationBatch) -> Vec<Vec<Tensor<2>>> {
        let (model, gamma) = (&self.model, f64::from(self.model.config.gamma));
        let Some(last) = batch.rollout.last() else { return Vec::new() };
        let mut ahead = vec![self.ahead(frozen, last, &batch.noise)];
        for next in batch.rollout[1..].iter().rev() {
            let here = model.b(frozen, &next.s) * (1.0 - gamma); // [rows, d]
            let after = ahead.last().into_iter().flatten();
            ahead.push(after.map(|f| here.clone() + f.clone() * gamma).collect());
        }
        ahead.reverse();
        ahead
    }

    /// The FB losses of all nets together, of F and of what it bootstraps from (times 1 - gamma); all `[rows, d]`.
    fn pair_losses(
        &self,
        f: Vec<Tensor<2>>,
        b: Tensor<2>,
        ahead: Vec<Tensor<2>>,
        target_b: Tensor<2>,
    ) -> Tensor<1> {
        let gamma = self.model.config.gamma;
        let [f, ahead] =
            [f, ahead].map(|f| f.into_iter().map(|f| f / (1.0 - f64::from(gamma))).collect::<Vec<_>>());
        // Two nets with one target between them need no matrix of pairs.
        if let ([f0, f1], [ahead]) = (&f[..], &ahead[..]) {
            return ops::fb_loss([f0.clone(), f1.clone()], b, ahead.clone(), target_b, gamma, 0.0);
        }
        let device = b.device();
        let products = ahead.into_iter().map(|f| ops::products(f, target_b.clone())); // [rows, rows]
        // One that is the mean of several already, or several of which the smallest counts.
        let Some(target) = products.reduce(Tensor::min_pair) else { return Tensor::zeros([1], &device) };
        let one = |f: Tensor<2>| ops::pair_loss(f, b.clone(), target.clone(), gamma);
        f.into_iter().map(one).fold(Tensor::zeros([1], &device), |sum, loss| sum + loss)
    }

    /// The action of the policy in states: the actor's with `noise`, or the best of the choices, `[rows, width]`.
    fn policy_action(&self, states: &States, noise: &Tensor<2>) -> Tensor<2> {
        let (model, weights) = (&self.model, self.model.params.weights());
        if let Some(actor) = &model.actor {
            let a = actor.act(&actor.params.weights(), model.input(&weights, states, None));
            return (a + noise.clone()).clamp(-1.0, 1.0);
        }
        let Some(all) = &model.choices else { return noise.clone() };
        let q = model.mean(|net| model.all_actions(&weights, net, states).1);
        policy(q.reshape([states.s.dims()[0], all.dims()[0]]), 0.0).matmul(all.clone())
    }

    /// The actor's loss from its own `weights`, F and B `frozen`, and what is logged of it.
    fn actor_loss(
        &self,
        batch: &ObservationBatch,
        weights: &Weights,
        frozen: &Weights,
    ) -> Option<(Tensor<1>, &'static str, Tensor<1>)> {
        let (model, config) = (&self.model, &self.model.actor_config);
        // Cloning asks for the data's states.
        let from_data = config.clones() || batch.rollout.len() == 1;
        let states = if from_data { batch.from.clone() } else { States::joined(&batch.rollout) };
        let a = model.actor.as_ref()?.act(weights, model.input(frozen, &states, None)); // [rows, width]
        let data = &batch.transitions.a;
        let off = config.clones().then(|| (a.clone() - data.clone()).powf_scalar(2.0));
        let value = |a: &Tensor<2>| model.mean(|net| model.with_action(frozen, net, &states, a.clone()).1);
        if let (ActorKind::Cloning, Some(off)) = (config.kind, &off) {
            let loss = off.clone().mean();
            return Some((loss.clone(), "loss", loss));
        }
        let q = value(&a); // [rows, 1]
        let measured = q.clone().mean();
        let loss = match (config.kind, off) {
            (ActorKind::Weighted, Some(off)) => weighted_loss(config, (value(data) - q).detach(), off),
            (_, off) => ddpg_loss(config, q, off, &batch.own),
        };
        Some((loss, "actor value", measured))
    }
}

impl Objective for ObservationObjective {
    const WEIGHTS: &str = "fb/";
    type Batch = ObservationBatch;

    fn params(&self) -> &Params {
        &self.model.params
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.model.params
    }

    fn actor(&self) -> Option<(&Params, &Adam)> {
        self.model.actor.as_ref().map(|actor| &actor.params).zip(self.actor_adam.as_ref())
    }

    fn actor_mut(&mut self) -> Option<(&mut Params, &mut Adam)> {
        self.model.actor.as_mut().map(|actor| &mut actor.params).zip(self.actor_adam.as_mut())
    }

    fn is_trained(&self) -> bool {
        self.model.actor.is_none() || self.model.actor_config.kind != ActorKind::Cloning
    }

    fn sample(&self, step: u64, _: &Weights) -> ObservationBatch {
        let (model, replay, device) = (&self.model, &self.replay, self.model.params.device());
        let config = &model.config;
        let mut rng = stream(self.seed, "fb-batch", &[step]);
        let mut draws = TaskDraws::new(config, &self.distribution, 0);
        let (mut chosen, mut rows) = (Vec::new(), Vec::new());
        let (mut own, mut goals, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let discount = f64::from(config.gamma).ln();
        let later = |rng: &mut Rng| 1 + ((1.0 - rng.random::<f64>()).ln() / discount) as usize;
        for _ in 0..config.contexts {
            let context = rng.random_range(0..self.contexts.groups.len());
            let group = self.contexts.groups[context];
            let axis = self.contexts.axis(context, config.dim);
            for _ in 0..config.tasks {
                let first = rows.len();
                rows.extend((0..config.transitions).map(|_| replay.draw(&mut rng, group)));
                let hindsight = rng.random_bool(config.hindsight);
                let distance = later(&mut rng);
                let from = rows[first];
                let mut goal = None;
                draws.draw(&mut rng, axis, |rng| {
                    let state =
                        if hindsight { replay.later(from, distance) } else { replay.draw_state(rng, group) };
                    *goal.insert(state)
                });
                own.resize(rows.len(), 0.0);
                own[first] = f32::from(u8::from(hindsight && goal.is_some()));
                let state = goal.unwrap_or(0) as i64;
                goals.push(state);
                goals.extend((1..config.hindsight_states).map(|_| {
                    if own[first] > 0.0 { replay.later(from, later(&mut rng)) as i64 } else { state }
                }));
                if config.centred_goals {
                    others.extend(
                        (0..config.hindsight_states).map(|_| replay.draw_state(&mut rng, group) as i64),
                    );
                }
                chosen.push(context as i64);
            }
        }
        let weights = model.params.weights();
        let b = |rows| model.b(&weights, &replay.encoded(upload_indices(rows, device))); // [tasks * states, d]
        let others = config.centred_goals.then(|| b(others));
        let tasks = draws.on_device(device, None, |single| {
            let states = config.hindsight_states;
            let goals = if states == 1 { model.b(&weights, &replay.encoded(single)) } else { b(goals) };
            of_goals(goals, others, states)
        });
        let own = upload(own, [rows.len(), 1], device);
        let transitions = replay.transitions(replay.rows(&rows));
        let chosen = upload_indices(chosen, device);
        let pick = |column: &Option<Tensor<2>>| {
            column.as_ref().map(|column| column.clone().select(0, chosen.clone()))
        };
        let task = match pick(&self.inputs) {
            Some(inputs) => Tensor::cat(vec![inputs, tasks.z.clone()], 1),
            None => tasks.z.clone(),
        };
        let h = pick(&self.beliefs);
        let at = |obs: &Tensor<2>, s: &Tensor<2>| States {
            obs: obs.clone(),
            s: s.clone(),
            task: task.clone(),
            h: h.clone(),
        };
        let width = model.codec.actions.width();
        let mut draw_noise = || match &model.actor {
            Some(actor) => actor.noise(&model.actor_config, &mut rng, rows.len()),
            None => Tensor::zeros([1, width], device),
        };
        let mut noise = draw_noise();
        let mut here = at(&transitions.next_obs, &transitions.next);
        let mut rollout = vec![here.clone()];
        if let Some(predictor) = &model.predictor {
            for _ in 1..config.target_depth {
                noise = draw_noise();
                here = model.after(predictor, &here, self.policy_action(&here, &noise));
                rollout.push(here.clone());
            }
        }
        let from = at(&transitions.obs, &transitions.s);
        ObservationBatch { from, rollout, transitions, tasks, own, noise }
    }

    fn loss(&self, batch: &ObservationBatch, weights: &Weights, frozen: &Weights) -> (Tensor<1>, Metrics) {
        let (model, config) = (&self.model, &self.model.config);
        let (dim, gamma) = (config.dim as f64, f64::from(config.gamma));
        let z = &batch.tasks.z;
        let [groups, _] = z.dims();
        // Pairs are of states that the data visits; features that are given make a regression of every state of the rollout.
        let trained = if model.backward.is_trained() { 1 } else { batch.rollout.len() };
        let states = States::joined(&batch.rollout[..trained]);
        let rows = states.s.dims()[0];
        let z_rows = repeat_rows(z, rows / groups); // [rows, d]
        let mut not_terminal = vec![batch.transitions.not_terminal.ones_like(); trained]; // [transitions, 1]
        not_terminal[0] = batch.transitions.not_terminal.clone();
        let not_terminal = join_groups(&not_terminal, groups); // [rows, 1]

        let target_b = model.b(frozen, &states.s); // [rows, d]
        let ahead = self.bootstraps(frozen, batch); // [transitions, d] at each state of the rollout by each net
        let of_net = |net: usize| ahead[..trained].iter().map(|f| f[net].clone()).collect::<Vec<_>>();
        let ahead: Vec<Tensor<2>> =
            (0..ahead[0].len()).map(|net| join_groups(&of_net(net), groups)).collect(); // [rows, d] by each net
        let mean_ahead = mean_of(ahead.iter().cloned()) * not_terminal.clone();
        let reward = (target_b.clone() * z_rows.clone()).sum_dim(1) / dim; // [rows, 1]
        let bootstrap = (mean_ahead.clone() * z_rows).sum_dim(1) / dim;
        let value_target = reward * (1.0 - gamma) + bootstrap * gamma; // [rows, 1]

        let b = model.b(weights, &states.s); // [rows, d]
        let counts = repeat_rows(&batch.tasks.on_log_scale(config), rows / groups); // [rows, 1]
        let own = model.forward.iter().map(|net| self.own(weights, net, batch, &states)); // [rows, d], [rows, 1]
        let (f, values): (Vec<_>, Vec<_>) = own.unzip();
        let fb = if model.backward.is_trained() {
            let ahead = ahead.into_iter().map(|f| f * not_terminal.clone()).collect();
            self.pair_losses(f, b.clone(), ahead, target_b)
        } else {
            let target = target_b * (1.0 - gamma) + mean_ahead * gamma; // [rows, d]
            let off = |f: Tensor<2>| (f - target.clone()).powf_scalar(2.0).sum_dim(1).mean();
            f.into_iter().map(off).fold(Tensor::zeros([1], &z.device()), |sum, off| sum + off)
        };
        let mut total = Total::default();
        total.log("q", value_target.clone().mean());
        total.add("fb", fb / dim, config.fb_coef);
        for value in values {
            if config.value_coef > 0.0 {
                let off = (value.clone() - value_target.clone()).powf_scalar(2.0);
                total.add("value mse", off.mean(), config.value_coef);
            }
            if config.log_value_coef > 0.0 {
                let log = loss::log_value(value, value_target.clone(), counts.clone());
                total.add("log value", log, config.log_value_coef);
            }
        }
        if model.backward.is_trained() {
            let ortho = ops::ortho_loss(b) / dim;
            // Orthonormal features have a mean squared product of d between two states; 0 is right.
            total.log("ortho error", ortho.clone() * 2.0 + 1.0);
            total.weigh(ortho, config.ortho_coef);
        }
        total.finish()
    }

    fn actor_step(&mut self, batch: &ObservationBatch, scale: f32) -> Metrics {
        let Some(actor) = &self.model.actor else { return Metrics::new() };
        let (frozen, weights) = (self.model.params.weights(), actor.params.track());
        let Some((loss, name, measured)) = self.actor_loss(batch, &weights, &frozen) else {
            return Metrics::new();
        };
        let measured = measured.without_autodiff();
        let gradients = loss.backward();
        drop((loss, frozen));
        if let Some((params, adam)) = self.actor_mut() {
            adam.step(params, weights, gradients, scale, None);
        }
        vec![(name, measured)]
    }
}
