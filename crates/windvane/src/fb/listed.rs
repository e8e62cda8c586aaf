//! F and B on listed states: every expectation over states is exact.

use super::conditioning::TrainingContexts;
use super::config::{FbConfig, ForwardForm};
use super::loss;
use super::networks::{Backward, ForwardValue};
use super::target::{BackedUp, Backup, Dynamics, policy};
use super::tasks::{TaskDistribution, TaskDraws, Tasks};
use super::tokens::TokenNet;
use crate::data::{StateTable, bad_setting};
use crate::error::Result;
use crate::nn::{Params, Weights, ops, read, repeat_rows, upload, upload_indices};
use crate::train::Metrics;
use crate::train::trainer::{Objective, Total};
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use std::sync::Arc;
use windvane_world::rng::stream;

/// Pairs of a context and a task that go through the networks at once; bounds memory, not results.
const CHUNK: usize = 64;
/// Weight of a state that cannot be entered beside one that can.
const UNREACHABLE: f64 = 1e-3;

/// Goals whose policies generalised policy improvement compares; 8 to 16 do as well as all (lab notes).
const GOAL_POLICIES: usize = 16;

/// F and B with their weights.
#[derive(Clone, Debug)]
pub struct ListedModel {
    pub(crate) config: FbConfig,
    pub(crate) table: Arc<StateTable>,
    pub(crate) params: Params,
    backward: Backward,
    net: TokenNet,
    backup: Backup,
    /// Rows of F for each state: one for each action, or one for U.
    heads: usize,
    /// `[states, states]`: one-hot encodings of all states.
    one_hot: Tensor<2>,
}

impl ListedModel {
    /// Untrained maps over the states of `table`; over `given [states * d]` features instead of B, where there are any.
    pub fn new(
        table: Arc<StateTable>,
        given: Option<Vec<f32>>,
        config: &FbConfig,
        persistence: f32,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let device = &device.clone().without_autodiff();
        let states = table.states();
        let mut config = config.clone();
        if let Some(given) = &given {
            config.dim = given.len() / states;
        }
        if config.ensemble != 1 {
            return Err(bad_setting(format!("\"fb.ensemble\" is {}; listed states take 1", config.ensemble)));
        }
        let mut params = Params::new(device, seed);
        let backward = match given {
            Some(given) => Backward::GivenTable(upload(given, [states, config.dim], device)),
            None => Backward::new(&mut params, [states, 0], &config)?,
        };
        let heads = match config.forward {
            ForwardForm::Paper => table.actions,
            ForwardForm::Predictor => 1,
        };
        let output = heads * config.value_head.width(config.dim);
        Ok(Self {
            net: TokenNet::new(&mut params, &table, output, &config.net)?,
            backup: Backup::new(&table, config.gamma, persistence, device),
            one_hot: Tensor::eye(states, device),
            heads,
            config,
            table,
            params,
            backward,
        })
    }

    /// B of every state, or its given features, `[states * d]`.
    pub fn backward(&self) -> Vec<f32> {
        read(self.b(&self.params.weights()))
    }

    /// Whether features were learned beforehand, so that F becomes their successor features.
    pub fn has_given_features(&self) -> bool {
        self.backward.is_given()
    }

    fn b(&self, weights: &Weights) -> Tensor<2> {
        self.backward.forward(weights, &self.one_hot, self.config.dim)
    }

    /// The reward that task vectors stand for, `r(s) = B(s) z / d`, `[groups, states]`.
    fn rewards(&self, z: &Tensor<2>, b: &Tensor<2>) -> Tensor<2> {
        ops::products(z.clone(), b.clone()) / self.config.dim as f64
    }

    /// (1 - gamma) F or U, `[groups * rows, d]`, and its value F z / d, `[groups * rows, 1]`, of every state (and action) for groups
    /// of a context and a task.
    fn forward(
        &self,
        weights: &Weights,
        local: [Tensor<3>; 2],
        z: &Tensor<2>,
        reward: Tensor<2>,
    ) -> ForwardValue {
        self.config.value_head.assemble(self.net.forward(weights, local, reward), z)
    }

    /// Contexts and their tasks on the device, with the rewards of these: `[groups, vocabulary]`, `[groups, d]`, `[groups, states]`.
    fn on_device(&self, dynamics: &[f32], tasks: &[f32], b: &Tensor<2>) -> (Dynamics, Tensor<2>, Tensor<2>) {
        let (groups, device) = (tasks.len() / self.config.dim, self.params.device());
        let p = upload(dynamics.to_vec(), [groups, self.table.vocabulary()], device);
        let dynamics = self.backup.split(p);
        let z = upload(tasks.to_vec(), [groups, self.config.dim], device);
        let reward = self.rewards(&z, b);
        (dynamics, z, reward)
    }

    /// Q of every action, `[groups, states * actions]`, from F's values, `[groups, rows]`.
    fn q(&self, dynamics: &Dynamics, value: Tensor<2>, reward: &Tensor<2>) -> Tensor<2> {
        match self.config.forward {
            ForwardForm::Paper => value,
            ForwardForm::Predictor => self.backup.q(dynamics, value, reward),
        }
    }

    /// What F B (or given features, of which `b` are those of all states) is in each state alone, `[states, width]`.
    fn own_rows(&self, b: &Tensor<2>) -> Tensor<2> {
        if self.backward.is_given() { b.clone() } else { self.one_hot.clone() }
    }

    /// The measure F B / d, `[rows, states]`, or F itself where features are given, `[rows, d]`.
    fn measured(&self, f: Tensor<2>, b: &Tensor<2>) -> Tensor<2> {
        if self.backward.is_given() { f } else { ops::products(f, b.clone()) / self.config.dim as f64 }
    }

    /// Q of every action in every state, `[count * states * actions]`, in contexts with `dynamics [count * vocabulary]`, each for
    /// its own task vector `[count * d]`: by F alone.
    pub fn action_values(&self, dynamics: &[f32], tasks: &[f32]) -> Vec<f32> {
        let (vocabulary, dim) = (self.table.vocabulary(), self.config.dim);
        let weights = self.params.weights();
        let b = self.b(&weights);
        let mut values = Vec::with_capacity(tasks.len() / dim * self.table.pairs());
        for (p, z) in dynamics.chunks(CHUNK * vocabulary).zip(tasks.chunks(CHUNK * dim)) {
            let (dynamics, z, reward) = self.on_device(p, z, &b);
            let value = self.forward(&weights, self.backup.local(&dynamics), &z, reward.clone()).1;
            let value = value.reshape([z.dims()[0], self.table.states() * self.heads]);
            values.extend(read(self.q(&dynamics, value, &reward)));
        }
        values
    }

    /// The same by generalised policy improvement: the best over goals g, those that a task rewards most, of the task's value
    /// under the policy for g, F(s, a, B(g)) z.
    pub fn improved_values(&self, dynamics: &[f32], tasks: &[f32]) -> Vec<f32> {
        let (vocabulary, dim, states) = (self.table.vocabulary(), self.config.dim, self.table.states());
        let weights = self.params.weights();
        let b = self.b(&weights);
        let goals = GOAL_POLICIES.min(states);
        let mut values = Vec::with_capacity(tasks.len() / dim * self.table.pairs());
        for (p, z) in dynamics.chunks_exact(vocabulary).zip(tasks.chunks_exact(dim)) {
            let (dynamics, z, reward) = self.on_device(p, z, &b);
            let best = reward.clone().topk_with_indices(goals, 1).1.reshape([goals]);
            let z_goals = b.clone().select(0, best); // [goals, d]
            let reward_goals = self.rewards(&z_goals, &b);
            let f = self.forward(&weights, self.backup.local(&dynamics), &z_goals, reward_goals).0;
            let value = ops::products(f, z) / dim as f64; // [goals * rows, 1]
            let value = value.reshape([goals, states * self.heads]).max_dim(0); // [1, rows]
            values.extend(read(self.q(&dynamics, value, &reward)));
        }
        values
    }

    /// What F says of every state (and action) in a context with `dynamics [vocabulary]` for the task `z [d]`: the share of
    /// discounted time in each state, F B / d, `[rows * states]`, or successor features of given ones, `[rows * d]`.
    /// Rows are states for U, which counts the state itself, and pairs of state and action for heads, which count what follows.
    pub fn measure(&self, dynamics: &[f32], z: &[f32]) -> Vec<f32> {
        let weights = self.params.weights();
        let b = self.b(&weights);
        let (dynamics, z, reward) = self.on_device(dynamics, z, &b);
        let f = self.forward(&weights, self.backup.local(&dynamics), &z, reward).0;
        read(self.measured(f, &b))
    }
}

/// The objective of F and B on listed states.
#[derive(Debug)]
pub(crate) struct ListedObjective {
    pub(crate) model: ListedModel,
    contexts: TrainingContexts,
    distribution: TaskDistribution,
    /// Dynamics of the contexts as the predictor tells them, `[contexts, vocabulary]`, and as the data of their groups shows
    /// them, which is what heads learn from.
    dynamics: Tensor<2>,
    data_dynamics: Option<Tensor<2>>,
    /// How often each state is drawn as a goal in each context, `[contexts * states]`, summed up.
    goals: Vec<f32>,
    seed: u64,
}

/// One step's contexts and tasks.
#[derive(Debug)]
pub(crate) struct ListedBatch {
    /// Dynamics that F sees, and that targets are backed up through, once for each task.
    seen: Dynamics,
    backed_up: Dynamics,
    tasks: Tasks,
}

impl ListedObjective {
    /// The objective of an untrained model.
    pub(crate) fn new(
        model: ListedModel,
        contexts: TrainingContexts,
        distribution: TaskDistribution,
        seed: u64,
    ) -> Self {
        let (table, device) = (&model.table, model.params.device());
        let (states, vocabulary) = (table.states(), table.vocabulary());
        let count = contexts.groups.len();
        let mut goals = Vec::with_capacity(count * states);
        for p in contexts.dynamics.chunks_exact(vocabulary) {
            let mut total = 0.0;
            for open in table.enterable(p) {
                total += open + UNREACHABLE as f32;
                goals.push(total);
            }
        }
        let by_data = model.config.forward == ForwardForm::Paper && !contexts.data_dynamics.is_empty();
        let data_dynamics =
            by_data.then(|| upload(contexts.data_dynamics.clone(), [count, vocabulary], device));
        let dynamics = upload(contexts.dynamics.clone(), [count, vocabulary], device);
        Self { model, contexts, distribution, dynamics, data_dynamics, goals, seed }
    }
}

impl Objective for ListedObjective {
    const WEIGHTS: &str = "fb/";
    type Batch = ListedBatch;

    fn params(&self) -> &Params {
        &self.model.params
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.model.params
    }

    fn sample(&self, step: u64, frozen: &Weights) -> ListedBatch {
        let (model, device) = (&self.model, self.model.params.device());
        let FbConfig { dim, contexts, tasks, .. } = model.config;
        let states = model.table.states();
        let mut rng = stream(self.seed, "fb-batch", &[step]);
        let mut draws = TaskDraws::new(&model.config, &self.distribution, states);
        let mut chosen = Vec::with_capacity(contexts);
        for _ in 0..contexts {
            let context = rng.random_range(0..self.contexts.groups.len());
            let goals = &self.goals[context * states..][..states];
            let axis = self.contexts.axis(context, dim);
            for _ in 0..tasks {
                draws.draw(&mut rng, axis, |rng| {
                    let at = rng.random::<f32>() * goals[states - 1];
                    goals.partition_point(|total| *total <= at).min(states - 1)
                });
            }
            chosen.push(context as i64);
        }
        let chosen = upload_indices(chosen, device);
        let b = model.b(frozen);
        let tasks = draws.on_device(device, Some(&b), |goals| b.clone().select(0, goals));
        let pick = |p: &Tensor<2>| model.backup.split(p.clone().select(0, chosen.clone()));
        let seen = pick(&self.dynamics);
        let backed_up = self.data_dynamics.as_ref().map_or_else(|| seen.clone(), pick);
        ListedBatch { backed_up: backed_up.repeated(model.config.tasks), seen, tasks }
    }

    fn loss(&self, batch: &ListedBatch, weights: &Weights, frozen: &Weights) -> (Tensor<1>, Metrics) {
        let (model, config) = (&self.model, &self.model.config);
        let (states, actions, dim) = (model.table.states(), model.table.actions, config.dim);
        let Tasks { z, is_goal } = &batch.tasks;
        let groups = z.dims()[0];
        let local = model.backup.local(&batch.seen);
        // How much each state counts: as much as it can be entered. [groups, states]
        let weight = local[1].clone().max_dim(2) + UNREACHABLE;
        let weight = repeat_rows(&weight.reshape([config.contexts, states]), config.tasks);

        // Targets: values first, then the measure of the policy that they give.
        let target_b = model.b(frozen); // [states, d]
        let reward = model.rewards(z, &target_b); // [groups, states]
        let ahead = model.forward(frozen, local.clone(), z, reward.clone());
        let (v, m) = self.state_estimates(ahead, &reward, &target_b);
        let BackedUp { value, q, occupancy, bootstrap } =
            model.backup.back_up(&batch.backed_up, v, &reward, config.target_depth, config.temperature);

        // What is trained.
        let b = model.b(weights); // [states, d]
        let (f, own_value) = model.forward(weights, local, z, model.rewards(z, &b.clone().detach()));
        let heads = model.heads;
        let rows = states * heads;
        let weight_rows = repeat_rows(&weight.clone().reshape([groups * states, 1]), heads); // [groups * rows, 1]
        let (immediate, per_number) = if model.has_given_features() {
            (occupancy.matmul(target_b.clone().reshape([1, states, dim])), 1.0 / dim as f64)
        } else {
            (occupancy, 1.0)
        };
        let estimate = model.measured(f, &b);
        let width = estimate.dims()[1];
        let mut target = ops::group_products(bootstrap, m, Some(immediate)); // [groups, states, width]
        if heads > 1 {
            target = model.backup.lift(&batch.backed_up, target, model.own_rows(&target_b));
        }
        let target = target.reshape([groups * rows, width]);
        let off = (estimate - target.clone()).powf_scalar(2.0).sum_dim(1); // [groups * rows, 1]
        let size = target.powf_scalar(2.0).sum_dim(1);
        let mut total = Total::default();
        total.add("fb", loss::weighted_mean(off.clone() * per_number, weight_rows.clone()), config.fb_coef);
        if model.backward.is_trained() {
            let gram = ops::products(b.clone(), b.clone()) / dim as f64; // [states, states]
            let off = (gram - model.one_hot.clone()).powf_scalar(2.0);
            total.add("ortho", off.sum() / states as f64, config.ortho_coef);
        }
        let value_target = if heads == 1 { value } else { q.clone() }.reshape([groups * rows, 1]);
        if !model.has_given_features() {
            // For a goal the value is the measure of the goal itself; all else of the measure is what other rewards are made of.
            let away = |all: Tensor<2>, at_goal: Tensor<2>| {
                let rest = (all - at_goal.powf_scalar(2.0)).clamp_min(0.0) * weight_rows.clone();
                (rest.reshape([groups, rows]) * is_goal.clone()).sum().detach()
            };
            let error = away(off, own_value.clone() - value_target.clone());
            total.log("error away from goal", error / (away(size, value_target.clone()) + 1e-12));
        }
        let counts = batch.tasks.on_log_scale(config); // [groups, 1]
        if config.value_coef > 0.0 {
            let off = (own_value.clone() - value_target.clone()).powf_scalar(2.0);
            total.add("value mse", loss::weighted_mean(off, weight_rows.clone()), config.value_coef);
        }
        if config.log_value_coef > 0.0 {
            let weights = (weight_rows.reshape([groups, rows]) * counts.clone()).reshape([groups * rows, 1]);
            let log = loss::log_value(own_value.clone(), value_target, weights);
            total.add("log value", log, config.log_value_coef);
        }
        if config.gap_coef > 0.0 {
            let own = model.q(&batch.seen.repeated(config.tasks), own_value.reshape([groups, rows]), &reward);
            let shape = [groups * states, actions];
            let weights = (weight * counts).reshape([groups * states, 1]);
            total.add(
                "gap",
                loss::action_gap(own.reshape(shape), q.reshape(shape), weights),
                config.gap_coef,
            );
        }
        total.finish()
    }
}

impl ListedObjective {
    /// The value of being in each state, `[groups, states]`, and its measure (or successor features), `[groups, states, width]`,
    /// by the target's F.
    fn state_estimates(
        &self,
        (f, value): ForwardValue,
        reward: &Tensor<2>,
        b: &Tensor<2>,
    ) -> (Tensor<2>, Tensor<3>) {
        let model = &self.model;
        let ([groups, states], actions, gamma) = (reward.dims(), model.table.actions, model.config.gamma);
        let m = model.measured(f, b);
        let width = m.dims()[1];
        if model.heads == 1 {
            return (value.reshape([groups, states]), m.reshape([groups, states, width]));
        }
        let q = value.reshape([groups * states, actions]);
        let policy = policy(q.clone(), model.config.temperature); // [groups * states, actions]
        let bootstrap = (q * policy.clone()).sum_dim(1).reshape([groups, states]);
        let v = reward.clone() * (1.0 - gamma) + bootstrap * gamma;
        let m = m.reshape([groups * states, actions, width]) * policy.reshape([groups * states, actions, 1]);
        let m = m.sum_dim(1).reshape([groups, states, width]) * gamma;
        (v, m + model.own_rows(b).reshape([1, states, width]) * (1.0 - gamma))
    }
}
