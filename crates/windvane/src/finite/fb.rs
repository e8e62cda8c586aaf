//! Forward-backward learning on listed states: one core for FB, Belief-FB, Rotation-FB and Oracle-ID.
//!
//! The methods differ in two plugs only: what the forward map is told about the dynamics ([`Situations`]) and where task
//! vectors are drawn ([`TaskDraw`]). Every expectation over states is exact.

use super::nets::{Backward, Forward, NetConfig, StateMap};
use super::survey::Survey;
use super::target::{self, Reward};
use crate::error::LearnError;
use crate::latent::{self, VonMisesFisher};
use crate::nn::{Adam, AdamConfig, Follow, Params, TensorFile, Weights, ops, to_vec};
use crate::train::{Learner, Metrics, scalar, warm_cosine};
use burn::tensor::{Device, Tensor, TensorData};
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

/// Where random task vectors come from.
#[derive(Clone, Debug)]
pub enum TaskDraw {
    /// Anywhere on the sphere (FB, Belief-FB).
    Sphere,
    /// A cone around the belief (Rotation-FB).
    Cone(VonMisesFisher),
}

/// What the forward map can be told, once for each context it is trained in.
#[derive(Clone, Debug, Default)]
pub struct Situations {
    /// Width of a condition.
    pub width: usize,
    /// The conditions, `[count * width]`.
    pub conditions: Vec<f32>,
    /// The predictor's dynamics under each, `[count * vocabulary]`.
    pub dynamics: Vec<f32>,
    /// The belief each cone is drawn around, `[count * d]`; empty without beliefs.
    pub axes: Vec<f32>,
    /// The group each comes from.
    pub groups: Vec<usize>,
}

/// B and the forward maps with their weights: what acts.
#[derive(Clone, Debug)]
pub struct FbModel {
    config: FbConfig,
    params: Params,
    backward: Backward,
    forward: Vec<StateMap>,
    one_hot: Tensor<2>,
    states: usize,
}

impl FbModel {
    /// Untrained networks for `survey` under conditions of width `condition`.
    pub fn new(
        survey: &Survey,
        condition: usize,
        config: FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let states = survey.states();
        let heads = match config.nets.forward {
            Forward::Paper => survey.actions(),
            Forward::Predictor => 1,
        };
        let mut params = Params::new(device, seed);
        let backward = Backward::new(&mut params, states, &config.nets)?;
        // The successor measure's density is about states / (1 - gamma) where it is large; z and B have d components.
        let scale = size(states, config.gamma) / config.nets.dim as f64;
        let forward = (0..config.ensemble).map(|i| {
            StateMap::new(&mut params, &format!("f{i}"), [states, heads, condition], &config.nets, scale)
        });
        let forward = forward.collect::<Result<_, _>>()?;
        let one_hot = (0..states * states).map(|i| f32::from(u8::from(i / states == i % states))).collect();
        let one_hot = Tensor::from_data(TensorData::new(one_hot, [states, states]), device);
        Ok(Self { config, params, backward, forward, one_hot, states })
    }

    /// The settings it was built with.
    pub fn config(&self) -> &FbConfig {
        &self.config
    }

    /// Its weights.
    pub(super) fn params(&self) -> &Params {
        &self.params
    }

    /// Its weights, to read them from a file.
    pub(super) fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    /// B of every state, `[states * d]`.
    pub fn backward(&self) -> Vec<f32> {
        to_vec(self.backward.forward(&self.params.weights(), &self.one_hot))
    }

    /// The mean forward vectors of every state under each (condition, task): `[groups * states * heads * d]`.
    pub fn forward(&self, conditions: Vec<f32>, tasks: Vec<f32>) -> Vec<f32> {
        let (conditions, z) = self.inputs(conditions, tasks);
        to_vec(self.mean_forward(&self.params.weights(), conditions, z))
    }

    fn mean_forward(&self, weights: &Weights, conditions: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
        let mut outs = self.forward.iter().map(|map| map.forward(weights, conditions.clone(), z.clone()));
        let first = outs.next().unwrap_or_else(|| z.clone());
        outs.fold(first, |sum, out| sum + out) / self.forward.len() as f64
    }

    fn inputs(&self, conditions: Vec<f32>, tasks: Vec<f32>) -> (Tensor<2>, Tensor<2>) {
        let dim = self.config.nets.dim;
        let groups = tasks.len() / dim;
        let width = conditions.len() / groups.max(1);
        (self.constant(conditions, [groups, width]), self.constant(tasks, [groups, dim]))
    }

    fn constant<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values, shape), self.params.device())
    }
}

/// About how large the density of a successor measure becomes.
fn size(states: usize, gamma: f32) -> f64 {
    states as f64 / (1.0 - f64::from(gamma))
}

/// Trains an [`FbModel`].
#[derive(Debug)]
pub struct FbTrainer {
    model: FbModel,
    target: Params,
    adam: Adam,
    survey: Arc<Survey>,
    situations: Arc<Situations>,
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
        situations: Arc<Situations>,
        draw: TaskDraw,
        config: FbConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let model = FbModel::new(&survey, situations.width, config, seed, device)?;
        let adam = AdamConfig { rate: config.rate, clip: Some(1.0), ..AdamConfig::default() };
        let adam = Adam::new(adam, &model.params);
        Ok(Self { target: model.params.clone(), model, adam, survey, situations, draw, seed })
    }

    /// The model as it stands.
    pub fn model(&self) -> &FbModel {
        &self.model
    }

    /// Draws situations and tasks; `b` is B of every state, `[states * d]`.
    fn batch(&self, rng: &mut Rng, b: &[f32]) -> Batch {
        let FbConfig { groups, random_tasks, nets: NetConfig { dim, .. }, .. } = self.model.config;
        let Situations { width, conditions, axes, groups: from, .. } = &*self.situations;
        let mut batch = Batch {
            conditions: Vec::with_capacity(groups * width),
            tasks: vec![0.0; groups * dim],
            chosen: Vec::with_capacity(groups),
            is_goal: Vec::with_capacity(groups),
        };
        for z in batch.tasks.chunks_exact_mut(dim) {
            let situation = rng.random_range(0..from.len());
            let goal = !rng.random_bool(random_tasks);
            match &self.draw {
                _ if goal => z.copy_from_slice(&b[visited(self.survey.rho(), rng) * dim..][..dim]),
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

/// A state drawn by how often it was visited.
fn visited(rho: &[f32], rng: &mut Rng) -> usize {
    let mut left: f32 = rng.random();
    rho.iter()
        .position(|share| {
            left -= share;
            left < 0.0
        })
        .unwrap_or(rho.len() - 1)
}

impl Learner for FbTrainer {
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
        let config = self.model.config;
        let (states, dim) = (self.model.states, config.nets.dim);
        let mut rng = stream(self.seed, "fb-batch", &[step]);

        let target_weights = self.target.weights();
        let target_b = to_vec(self.model.backward.forward(&target_weights, &self.model.one_hot)); // [states, d]
        let batch = self.batch(&mut rng, &target_b);
        let (conditions, z) = self.model.inputs(batch.conditions, batch.tasks.clone());
        let target_f = to_vec(self.model.mean_forward(&target_weights, conditions.clone(), z.clone()));
        drop(target_weights);

        // Targets, group by group: the successor densities and, under them, the worth of the task.
        let reward = Reward::new(&target_b, self.survey.rho(), dim);
        let rows = target_f.len() / dim / config.groups; // states, or states * actions
        let aim = |group: usize| {
            let situation = batch.chosen[group];
            let vocabulary = self.survey.vocabulary();
            target::Group {
                survey: &self.survey,
                f: &target_f[group * rows * dim..][..rows * dim],
                b: &target_b,
                z: &batch.tasks[group * dim..][..dim],
                reward: &reward,
                gamma: config.gamma,
                temperature: config.temperature,
            }
            .aim(match config.nets.forward {
                Forward::Predictor => target::Dynamics::Decoded {
                    p: &self.situations.dynamics[situation * vocabulary..][..vocabulary],
                    sweeps: config.target_sweeps,
                },
                Forward::Paper => target::Dynamics::Seen {
                    counts: &self.survey.groups()[self.situations.groups[situation]].counts,
                },
            })
        };
        let aims: Vec<target::Aim> = (0..config.groups).into_par_iter().map(aim).collect();
        let size = size(states, config.gamma);
        let gather =
            |part: fn(&target::Aim) -> &[f32]| aims.iter().flat_map(part).copied().collect::<Vec<_>>();
        let density = self.model.constant(gather(|aim| &aim.density), [config.groups * rows, states]);
        let worth = self.model.constant(gather(|aim| &aim.worth), [config.groups * rows, 1]);
        let known = self.model.constant(gather(|aim| &aim.known), [config.groups * rows, 1]);
        let yardstick =
            aims.iter().zip(&batch.is_goal).flat_map(|(aim, &goal)| aim.yardstick(goal)).collect();
        let yardstick = self.model.constant(yardstick, [config.groups * rows, 1]);
        let rho: Vec<f32> = self.survey.rho().to_vec();
        let rho = self.model.constant(rho, [1, states]);

        let weights = self.model.params.track();
        let b = self.model.backward.forward(&weights, &self.model.one_hot); // [states, d]
        let total = known.clone().sum();
        let (mut fb, mut value) = (None, None);
        for map in &self.model.forward {
            let f = map.forward(&weights, conditions.clone(), z.clone()); // [groups * rows, d]
            let m = f.clone().matmul(b.clone().transpose()); // [groups * rows, states]
            let miss = ((m - density.clone()) / size).powf_scalar(2.0) * rho.clone() * states as f64;
            let miss = (miss.sum_dim(1) * known.clone()).sum() / (total.clone() * 2.0); // [1]
            let q = f.reshape([config.groups, rows, dim]).matmul(z.clone().reshape([config.groups, dim, 1]));
            let q = q.reshape([config.groups * rows, 1]);
            let off = ((q - worth.clone()) / yardstick.clone()).powf_scalar(2.0);
            let off = (off * known.clone()).sum() / (total.clone() * 2.0);
            fb = Some(fb.map_or(miss.clone(), |sum| sum + miss));
            value = Some(value.map_or(off.clone(), |sum| sum + off));
        }
        let ortho = ops::finite_ortho_loss(b, rho) / dim as f64;
        let (Some(fb), Some(value)) = (fb, value) else { return Ok(Vec::new()) };
        let loss = fb.clone() + value.clone() * config.value + ortho.clone() * config.ortho;
        let measured = [("loss", &loss), ("fb", &fb), ("value", &value), ("ortho", &ortho)];
        let mut metrics: Metrics = measured.map(|(name, t)| (name, scalar(t))).to_vec();
        let gradients = loss.backward();
        drop((loss, fb, value, ortho));
        let scale = warm_cosine(step, config.steps);
        let follow = Follow { target: &mut self.target, tau: config.tau };
        let norm = self.adam.step(&mut self.model.params, weights, gradients, scale, Some(follow));
        metrics.push(("gradient", f64::from(norm)));
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
