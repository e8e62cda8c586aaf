//! Forward maps on listed states: one core for the FB family, and for successor features.
//!
//! The methods differ in few plugs: what the forward map is told about the dynamics ([`Situations`]), where task vectors are
//! drawn ([`TaskDraw`]), and whether B is learned with F (FB) or given beforehand (successor features: then F itself is
//! compared with its target, not F B). Every expectation over states is exact.

use super::model::{FbModel, Features, size};
use super::nets::{Forward, NetConfig};
use super::situations::{Situations, TaskDraw};
use super::survey::Survey;
use super::target;
use crate::config::Aggregate;
use crate::correction::weighted;
use crate::error::LearnError;
use crate::latent;
use crate::nn::{Adam, AdamConfig, Follow, Params, TensorFile, Weights, ops};
use crate::train::{Learner, Metrics, scalar, warm_cosine};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use rand::RngExt as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windvane_world::Rng;
use windvane_world::rng::stream;

/// Settings of FB and its training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FbConfig {
    /// Sizes and form of the networks.
    pub nets: NetConfig,
    /// Forward networks in the ensemble; their mean acts. Paper: 2.
    pub ensemble: usize,
    /// How they make one target.
    #[serde(default)]
    pub aggregate: Aggregate,
    /// Discount; paper: 0.99. On grids 0.95 makes the gaps between actions largest at the distances that matter.
    pub gamma: f32,
    /// Temperature of the target's policy relative to what actions are worth; 0 (paper) is greedy. The authors' code is
    /// Boltzmann too. Ties share the mass, so F B is a smoother target.
    pub temperature: f32,
    /// Bellman sweeps through the predictor in each target; 1 is the usual one-step target.
    pub target_sweeps: usize,
    /// Share of task vectors drawn at random; the others are B(s) of visited states. Paper: 0.5.
    pub random_tasks: f64,
    /// Weight of the orthonormality of B; the paper does not write it, its code has 1.
    pub ortho: f64,
    /// Weight of the error of F z itself, relative to its size, so that far goals count; paper: 0.
    pub value: f64,
    /// Gradient steps; paper: 1,000,000.
    pub steps: u64,
    /// Pairs of a situation and a task per step; each meets every state.
    pub groups: usize,
    /// Learning rate, warmed up over 100 steps and decayed by a cosine; paper: 1e-4 without decay.
    pub rate: f32,
    /// The way target networks go toward the trained ones each step; paper: 0.05.
    pub tau: f32,
}

impl Default for FbConfig {
    fn default() -> Self {
        Self {
            nets: NetConfig::default(),
            ensemble: 1,
            aggregate: Aggregate::Mean,
            gamma: 0.95,
            temperature: 1.0 / 64.0,
            target_sweeps: 8,
            random_tasks: 0.5,
            ortho: 1.0,
            value: 1.0,
            steps: 3000,
            groups: 32,
            rate: 2e-3,
            tau: 0.1,
        }
    }
}

/// Trains an [`FbModel`].
#[derive(Debug)]
pub struct FbTrainer {
    model: FbModel,
    target: Params,
    adam: Adam,
    survey: Arc<Survey>,
    situations: Situations,
    draw: TaskDraw,
    seed: u64,
}

/// One step's input.
struct Batch {
    conditions: Vec<f32>,
    tasks: Vec<f32>,
    /// The situation of each group.
    chosen: Vec<usize>,
    /// Whether the task is B of a state: then small values far from it matter.
    is_goal: Vec<bool>,
}

impl FbTrainer {
    /// A trainer from the first step.
    pub fn new(
        survey: Arc<Survey>,
        situations: Situations,
        draw: TaskDraw,
        config: FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let model = FbModel::new(&survey, situations.width, config, seed, device)?;
        Ok(Self::of(model, survey, situations, draw, seed))
    }

    /// A trainer of `model` from the first step.
    pub fn of(
        model: FbModel,
        survey: Arc<Survey>,
        situations: Situations,
        draw: TaskDraw,
        seed: u64,
    ) -> Self {
        let adam = AdamConfig { rate: model.config.rate, clip: Some(1.0), ..AdamConfig::default() };
        let adam = Adam::new(adam, &model.params);
        let situations = draw.prepared(situations, model.config.nets.dim);
        Self { target: model.params.clone(), model, adam, survey, situations, draw, seed }
    }

    /// The model as it stands.
    pub fn model(&self) -> &FbModel {
        &self.model
    }

    /// Draws situations and tasks; `b` is B of every state, `[states * d]`.
    fn batch(&self, rng: &mut Rng, b: &[f32]) -> Batch {
        let FbConfig { groups, random_tasks, nets: NetConfig { dim, .. }, .. } = self.model.config;
        let Situations { width, conditions, axes, .. } = &self.situations;
        let mut batch = Batch {
            conditions: Vec::with_capacity(groups * width),
            tasks: vec![0.0; groups * dim],
            chosen: Vec::with_capacity(groups),
            is_goal: Vec::with_capacity(groups),
        };
        for z in batch.tasks.chunks_exact_mut(dim) {
            let situation = rng.random_range(0..self.situations.count());
            let goal = !rng.random_bool(random_tasks);
            match &self.draw {
                _ if goal => z.copy_from_slice(&b[weighted(self.survey.rho(), rng.random()) * dim..][..dim]),
                TaskDraw::Sphere => latent::uniform(rng, z),
                TaskDraw::Cone(cone) => cone.sample(&axes[situation * dim..][..dim], rng, z),
            }
            batch.conditions.extend_from_slice(&conditions[situation * width..][..*width]);
            batch.chosen.push(situation);
            batch.is_goal.push(goal);
        }
        batch
    }
}

impl FbTrainer {
    /// Puts other situations in place of those it draws from.
    pub(super) fn meet(&mut self, situations: Situations) {
        self.situations = self.draw.prepared(situations, self.model.config.nets.dim);
    }

    /// The weights to train with.
    pub(super) fn track(&self) -> Weights {
        self.model.params.track()
    }

    /// The loss of a step, and what was measured. `told` are the conditions of all situations where gradients are to reach
    /// them.
    pub(super) fn loss(&self, step: u64, weights: &Weights, told: Option<Tensor<2>>) -> (Tensor<1>, Metrics) {
        let config = self.model.config;
        let (states, dim) = (self.model.states, config.nets.dim);
        let mut rng = stream(self.seed, "fb-batch", &[step]);

        let target_weights = self.target.weights();
        let target_b = self.model.features_by(&target_weights); // [states * d]
        let batch = self.batch(&mut rng, &target_b);
        let (conditions, z) = self.model.inputs(batch.conditions, batch.tasks.clone());
        let target_f = self.model.target_forward(&target_weights, &conditions, &z);
        drop(target_weights);
        let conditions = match told {
            None => conditions,
            Some(told) => {
                let chosen: Vec<i64> = batch.chosen.iter().map(|&situation| situation as i64).collect();
                told.select(0, Tensor::from_data(TensorData::new(chosen, [config.groups]), &z.device()))
            }
        };

        // Targets, group by group: the successor densities and, under them, the worth of the task.
        let reward = self.model.rewards(&target_b, self.survey.rho());
        let rows = target_f[0].len() / dim / config.groups; // states, or states * actions
        let aim = |group: usize| {
            let situation = batch.chosen[group];
            let vocabulary = self.survey.vocabulary();
            let decoded = &self.situations.dynamics[situation * vocabulary..][..vocabulary];
            let estimates = target::Group {
                survey: &self.survey,
                f: target_f.iter().map(|f| &f[group * rows * dim..][..rows * dim]).collect(),
                b: &target_b,
                z: &batch.tasks[group * dim..][..dim],
                reward: &reward,
                gamma: config.gamma,
                temperature: config.temperature,
                goal: self.model.goal(),
            };
            let sweeps = config.target_sweeps;
            match (config.nets.forward, self.situations.groups.get(situation)) {
                (Forward::Predictor, _) => estimates.aim(target::Dynamics::Decoded { p: decoded, sweeps }),
                (Forward::Paper, None) => estimates.aim(target::Dynamics::Seen { p: decoded, sweeps }),
                (Forward::Paper, Some(&from)) => {
                    let mut p = vec![0.0; vocabulary];
                    self.survey.write_shares(&self.survey.groups()[from].counts, &mut p);
                    estimates.aim(target::Dynamics::Seen { p: &p, sweeps })
                }
            }
        };
        let aims: Vec<target::Aim> = (0..config.groups).into_par_iter().map(aim).collect();
        let gather =
            |part: fn(&target::Aim) -> &[f32]| aims.iter().flat_map(part).copied().collect::<Vec<_>>();
        let density = gather(|aim| &aim.density);
        let width = density.len() / config.groups / rows; // states, or d
        let spread = density.iter().map(|x| f64::from(x * x)).sum::<f64>() / density.len() as f64;
        let density = self.model.constant(density, [config.groups * rows, width]);
        let worth = self.model.constant(gather(|aim| &aim.worth), [config.groups * rows, 1]);
        let known = self.model.constant(gather(|aim| &aim.known), [config.groups * rows, 1]);
        let yardstick =
            aims.iter().zip(&batch.is_goal).flat_map(|(aim, &goal)| aim.yardstick(goal)).collect();
        let yardstick = self.model.constant(yardstick, [config.groups * rows, 1]);
        let rho: Vec<f32> = self.survey.rho().to_vec();
        let rho = self.model.constant(rho, [1, states]);

        let b = match &self.model.features {
            Features::Learned(backward) => Some(backward.forward(weights, &self.model.one_hot)), // [states, d]
            Features::Given(_) => None,
        };
        let total = known.clone().sum();
        let (mut fb, mut value) = (None, None);
        for map in &self.model.forward {
            let f = map.forward(weights, conditions.clone(), z.clone()); // [groups * rows, d]
            let miss = match &b {
                Some(b) => {
                    let m = f.clone().matmul(b.clone().transpose()); // [groups * rows, states]
                    let miss = ((m - density.clone()) / size(states, config.gamma)).powf_scalar(2.0);
                    (miss * rho.clone()).sum_dim(1) * states as f64
                }
                // Features and their sums have no size of their own: errors count relative to what is aimed at.
                None => (f.clone() - density.clone()).powf_scalar(2.0).mean_dim(1) / spread,
            };
            let miss = (miss * known.clone()).sum() / (total.clone() * 2.0); // [1]
            let q = f.reshape([config.groups, rows, dim]).matmul(z.clone().reshape([config.groups, dim, 1]));
            let q = q.reshape([config.groups * rows, 1]);
            let off = ((q - worth.clone()) / yardstick.clone()).powf_scalar(2.0);
            let off = (off * known.clone()).sum() / (total.clone() * 2.0);
            fb = Some(fb.map_or(miss.clone(), |sum| sum + miss));
            value = Some(value.map_or(off.clone(), |sum| sum + off));
        }
        let nothing = || Tensor::zeros([1], &z.device());
        let (fb, value) = (fb.unwrap_or_else(nothing), value.unwrap_or_else(nothing));
        let ortho = b.map(|b| ops::finite_ortho_loss(b, rho) / dim as f64);
        let mut loss = fb.clone() + value.clone() * config.value;
        let mut metrics: Metrics = Vec::new();
        if let Some(ortho) = ortho {
            metrics.push(("ortho", scalar(&ortho)));
            loss = loss + ortho * config.ortho;
        }
        metrics.splice(
            0..0,
            [("loss", &loss), ("fb", &fb), ("value", &value)].map(|(name, t)| (name, scalar(t))),
        );
        (loss, metrics)
    }

    /// Takes the step; returns the size of the gradient.
    pub(super) fn update(&mut self, weights: Weights, gradients: &mut Gradients, scale: f32) -> f64 {
        let follow = Follow { target: &mut self.target, tau: self.model.config.tau };
        f64::from(self.adam.step_apart(&mut self.model.params, weights, gradients, scale, Some(follow)))
    }
}

impl Learner for FbTrainer {
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
        let weights = self.track();
        let (loss, mut metrics) = self.loss(step, &weights, None);
        let mut gradients = loss.backward();
        drop(loss);
        let scale = warm_cosine(step, self.model.config.steps);
        metrics.push(("gradient", self.update(weights, &mut gradients, scale)));
        Ok(metrics)
    }

    fn save(&self, file: &mut TensorFile) {
        self.model.params.save(file, "fb/");
        self.target.save(file, "target/");
        self.adam.save(file, "adam/");
    }

    fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        self.model.params.load(file, "fb/")?;
        self.target.load(file, "target/")?;
        Ok(self.adam.load(file, "adam/")?)
    }
}
