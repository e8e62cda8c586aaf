//! One step of forward-backward learning.

use super::actor::ActorTrainer;
use super::config::{ActorConfig, FbConfig, NeuralPlan};
use super::fb::{FbModel, Places};
use super::memory::{Memory, Rows};
use super::situations::Situations;
use crate::config::Aggregate;
use crate::error::LearnError;
use crate::latent::{self, VonMisesFisher};
use crate::nn::{Adam, AdamConfig, Follow, Params, TensorFile, Weights, ops, to_vec};
use crate::train::{Learner, Metrics, scalar, warm_cosine};
use burn::tensor::{Int, Tensor, TensorData};
use rand::RngExt as _;
use std::sync::Arc;
use windvane_world::Rng;
use windvane_world::rng::stream;

/// Trains an [`FbModel`].
#[derive(Debug)]
pub struct FbTrainer {
    model: FbModel,
    memory: Arc<Memory>,
    target: Params,
    adam: Adam,
    actor: Option<ActorTrainer>,
    actor_config: ActorConfig,
    situations: Arc<Situations>,
    /// Cones that random tasks are drawn from; anywhere on the sphere without.
    cone: Option<VonMisesFisher>,
    seed: u64,
}

/// One step's input: groups of transitions that share dynamics, condition and task.
struct Batch {
    rows: Rows,
    /// Where transitions begin, and where they lead.
    from: Places,
    to: Places,
    /// `[groups * d]`.
    z: Vec<f32>,
}

impl FbTrainer {
    /// A trainer from the first step.
    pub fn new(
        model: FbModel,
        memory: Arc<Memory>,
        situations: Arc<Situations>,
        cone: Option<VonMisesFisher>,
        plan: &NeuralPlan,
        seed: u64,
    ) -> Self {
        let FbConfig { rate, clip, .. } = plan.fb;
        let adam = Adam::new(AdamConfig { rate, clip: Some(clip), ..AdamConfig::default() }, &model.params);
        let actor = model.actor.as_ref().map(|actor| ActorTrainer::new(actor, &plan.actor));
        let target = model.params.clone();
        Self { model, memory, target, adam, actor, actor_config: plan.actor, situations, cone, seed }
    }

    /// The model as it stands.
    pub fn model(&self) -> &FbModel {
        &self.model
    }

    fn batch(&self, rng: &mut Rng) -> Batch {
        let FbConfig { groups, items, dim, random_tasks, .. } = self.model.config;
        let Situations { width, conditions, beliefs, axes, groups: from } = &*self.situations;
        let memory = &self.memory;
        let mut rows = Rows::default();
        let mut z = vec![0.0; groups * dim];
        let (mut chosen, mut goals, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for (group, z) in z.chunks_exact_mut(dim).enumerate() {
            let situation = rng.random_range(0..from.len());
            match (rng.random_bool(random_tasks), &self.cone) {
                (true, Some(cone)) => cone.sample(&axes[situation * dim..][..dim], rng, z),
                (true, None) => latent::uniform(rng, z),
                (false, _) => {
                    goals.extend_from_slice(memory.state(rng, from[situation]).unwrap_or_default());
                    wanted.push(group);
                }
            }
            (0..items).for_each(|_| memory.draw(rng, from[situation], &mut rows));
            chosen.push(situation);
        }
        let b = self.model.backward(&goals);
        for (&group, b) in wanted.iter().zip(b.chunks_exact(dim)) {
            z[group * dim..][..dim].copy_from_slice(b);
        }
        let mut told = Vec::with_capacity(groups * (width + dim));
        for (&situation, z) in chosen.iter().zip(z.chunks_exact(dim)) {
            told.extend_from_slice(&conditions[situation * width..][..*width]);
            told.extend_from_slice(z);
        }
        let h = beliefs.len() / from.len();
        let beliefs = chosen.iter().flat_map(|&s| &beliefs[s * h..][..h]).copied().collect::<Vec<_>>();
        let sizes = memory.lens().change().iter().cycle();
        let next_obs =
            rows.obs.iter().zip(&rows.delta).zip(sizes).map(|((x, d), size)| x + d * size).collect();
        let places = |obs, features: &[f32]| Places {
            obs,
            features: features.to_vec(),
            told: told.clone(),
            beliefs: beliefs.clone(),
            groups,
        };
        Batch { from: places(rows.obs.clone(), &rows.s), to: places(next_obs, &rows.next), rows, z }
    }

    /// The target's F after each transition, `[rows * d]` for each net, and the value of going on, `[rows]`.
    fn going_on(&self, frozen: &Weights, batch: &Batch, rng: &mut Rng) -> (Vec<Vec<f32>>, Vec<f32>) {
        let model = &self.model;
        let dim = model.dim();
        let count = batch.rows.alive.len();
        let items = count / batch.to.groups;
        let z_of = |row: usize| &batch.z[row / items * dim..][..dim];
        if let Some(actor) = &model.actor {
            let noise = model.matrix(actor.noise(&self.actor_config, rng, count), model.lens.moves().width());
            let query = model.query(batch.to.features.clone(), None, &batch.to);
            let a = actor.act(&actor.params.weights(), query.s.clone(), query.told.clone()) + noise;
            let query = model.query(batch.to.features.clone(), Some(a.clamp(-1.0, 1.0)), &batch.to);
            let z = model.matrix((0..count).flat_map(z_of).copied().collect(), dim);
            let f: Vec<Vec<f32>> = model
                .forward
                .iter()
                .map(|map| to_vec(map.chosen(frozen, query.clone(), None, z.clone())))
                .collect();
            let share = 1.0 / f.len() as f32;
            let value = |row: usize| {
                let dot = |f: &Vec<f32>| {
                    f[row * dim..][..dim].iter().zip(z_of(row)).map(|(f, z)| f * z).sum::<f32>()
                };
                f.iter().map(dot).sum::<f32>() * share
            };
            let values = (0..count).map(value).collect();
            return (f, values);
        }
        let heads = model.heads(frozen, &batch.to);
        let values = model.values(&heads, &batch.z, batch.to.groups);
        let choices = values.len() / count;
        let mut going = Vec::with_capacity(count);
        let mut f = vec![vec![0.0; count * dim]; heads.len()];
        let mut one = vec![0.0; dim];
        for (row, q) in values.chunks_exact(choices).enumerate() {
            let policy = policy(q, model.config.temperature);
            going.push(policy.iter().zip(q).map(|(p, q)| p * q).sum());
            for ((map, heads), f) in model.forward.iter().zip(&heads).zip(&mut f) {
                for (choice, &p) in policy.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                    map.assemble(&heads[(row * choices + choice) * map.head()..], z_of(row), &mut one);
                    f[row * dim..][..dim].iter_mut().zip(&one).for_each(|(f, x)| *f += p * x);
                }
            }
        }
        (f, going)
    }

    /// The target densities, `[rows, rows]`.
    fn density(&self, f: Vec<Vec<f32>>, b: &Tensor<2>, alive: &[f32]) -> Tensor<2> {
        let (model, nets) = (&self.model, f.len());
        let products = f.into_iter().map(|f| ops::products(model.matrix(f, model.dim()), b.clone()));
        let joined = products.reduce(|a, b| match model.config.aggregate {
            Aggregate::Mean => a + b,
            Aggregate::Min => a.min_pair(b),
        });
        let joined = joined.unwrap_or_else(|| b.clone());
        let joined = match model.config.aggregate {
            Aggregate::Mean => joined / nets as f64,
            Aggregate::Min => joined,
        };
        if alive.iter().all(|&alive| alive > 0.0) {
            return joined;
        }
        joined * model.matrix(alive.to_vec(), 1)
    }

    /// The target's successor features, `[rows, d]`: those of the next state now, and what follows.
    fn successors(&self, f: &[Vec<f32>], phi: &Tensor<2>, alive: &[f32]) -> Tensor<2> {
        let (dim, share) = (self.model.dim(), self.model.config.gamma / f.len() as f32);
        let mut ahead = vec![0.0; alive.len() * dim];
        for f in f {
            ahead.iter_mut().zip(f).enumerate().for_each(|(i, (to, f))| *to += share * alive[i / dim] * f);
        }
        phi.clone() + self.model.matrix(ahead, dim)
    }

    /// A step of the actor up F z.
    fn actor_step(&mut self, batch: &Batch, z: &Tensor<2>, scale: f32) -> f64 {
        let model = &self.model;
        let (Some(trainer), Some(actor)) = (&mut self.actor, &model.actor) else { return 0.0 };
        let (frozen, weights) = (model.params.weights(), actor.params.track());
        let query = model.query(batch.from.features.clone(), None, &batch.from);
        let a = actor.act(&weights, query.s, query.told);
        let query = model.query(batch.from.features.clone(), Some(a), &batch.from);
        let nets = model.forward.iter();
        let f = nets.map(|map| map.chosen(&frozen, query.clone(), None, z.clone())).reduce(|a, b| a + b);
        let Some(f) = f else { return 0.0 };
        let size = 1.0 / f64::from(1.0 - model.config.gamma) * model.dim() as f64;
        let value = (f * z.clone()).sum_dim(1).mean() / (model.forward.len() as f64 * size); // [1]
        let measured = scalar(&value);
        drop((frozen, query));
        let loss = value.neg();
        if let Some(actor) = &mut self.model.actor {
            trainer.step(actor, weights, loss, scale);
        }
        measured
    }
}

/// The target's policy over choices worth `q`: greedy, or Boltzmann at a temperature relative to their spread.
fn policy(q: &[f32], temperature: f32) -> Vec<f32> {
    let best = (1..q.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best });
    let least = q.iter().copied().fold(f32::INFINITY, f32::min);
    let warmth = temperature * (q[best] - least);
    if warmth <= 0.0 {
        return (0..q.len()).map(|a| f32::from(u8::from(a == best))).collect();
    }
    let mut p: Vec<f32> = q.iter().map(|x| ((x - q[best]) / warmth).exp()).collect();
    let total: f32 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= total);
    p
}

impl Learner for FbTrainer {
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
        let mut rng = stream(self.seed, "fb-batch", &[step]);
        let batch = self.batch(&mut rng);
        let dim = self.model.dim();
        let config = self.model.config.clone();
        let rows = batch.rows.alive.len();
        let items = rows / batch.from.groups;
        let next = &batch.rows.next;

        let frozen = self.target.weights();
        let target_b = self.model.embedded(&frozen, next.clone()); // [rows, d]
        let (target_f, going) = self.going_on(&frozen, &batch, &mut rng);
        let given = self.model.has_given_features();
        let target = if given {
            self.successors(&target_f, &target_b, &batch.rows.alive) // [rows, d]
        } else {
            self.density(target_f, &target_b, &batch.rows.alive) // [rows, rows]
        };
        drop(frozen);
        let z: Vec<f32> = batch.z.chunks_exact(dim).flat_map(|z| z.repeat(items)).collect();
        // The reward that z stands for, once B is orthonormal, is B z.
        let reward = to_vec(target_b).chunks_exact(dim).zip(z.chunks_exact(dim)).map(dot).collect::<Vec<_>>();
        let worth = reward.iter().zip(&going).zip(&batch.rows.alive);
        let worth = worth.map(|((r, v), alive)| r + config.gamma * alive * v).collect();
        let worth = self.model.matrix(worth, 1);
        let z = self.model.matrix(z, dim);
        let choice = TensorData::new(batch.rows.choice.clone(), [rows]);
        let choice =
            self.model.has_heads().then(|| Tensor::<1, Int>::from_data(choice, self.model.params.device()));
        let query = self.model.own_query(&batch.from, &batch.rows.a);

        let weights = self.model.params.track();
        let b = (!given).then(|| self.model.embedded(&weights, next.clone())); // [rows, d]
        let size = f64::from(1.0 / (1.0 - config.gamma)) * dim as f64;
        let (mut fb, mut value) = (None, None);
        for map in &self.model.forward {
            let f = map.chosen(&weights, query.clone(), choice.clone(), z.clone()); // [rows, d]
            let q = (f.clone() * z.clone()).sum_dim(1); // [rows, 1]
            let off = ((q - worth.clone()) / size).powf_scalar(2.0).mean();
            let pair = match &b {
                Some(b) => ops::pair_loss(f, b.clone(), target.clone(), config.gamma),
                None => ((f - target.clone()) * dim as f64 / size).powf_scalar(2.0).sum_dim(1).mean(),
            };
            fb = Some(fb.map_or(pair.clone(), |sum| sum + pair));
            value = Some(value.map_or(off.clone(), |sum| sum + off));
        }
        let (Some(fb), Some(value)) = (fb, value) else { return Ok(Vec::new()) };
        let mut loss = fb.clone() / dim as f64 + value.clone() * config.value;
        let mut metrics: Metrics = vec![
            ("fb", scalar(&fb) / dim as f64),
            ("value miss", scalar(&value)),
            ("q", going.iter().map(|q| f64::from(*q)).sum::<f64>() / rows as f64 / size),
        ];
        if let Some(b) = b {
            let ortho = ops::ortho_loss(b) / dim as f64;
            // Orthonormal features have a mean squared product of d between two states; 0 is right.
            metrics.push(("ortho error", 2.0 * (scalar(&ortho) + 1.0) - 1.0));
            loss = loss + ortho * config.ortho;
        }
        metrics.insert(0, ("loss", scalar(&loss)));
        let gradients = loss.backward();
        drop((loss, fb, value));
        let scale = warm_cosine(step, config.steps);
        let follow = Follow { target: &mut self.target, tau: config.tau };
        let norm = self.adam.step(&mut self.model.params, weights, gradients, scale, Some(follow));
        metrics.push(("gradient", f64::from(norm)));
        if self.actor.is_some() {
            metrics.push(("actor", self.actor_step(&batch, &z, scale)));
        }
        Ok(metrics)
    }

    fn save(&self, file: &mut TensorFile) {
        self.model.params.save(file, "fb/");
        self.target.save(file, "target/");
        self.adam.save(file, "adam/");
        if let (Some(actor), Some(trainer)) = (&self.model.actor, &self.actor) {
            actor.params.save(file, "actor/");
            trainer.save(file);
        }
    }

    fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        self.model.params.load(file, "fb/")?;
        self.target.load(file, "target/")?;
        self.adam.load(file, "adam/")?;
        if let (Some(actor), Some(trainer)) = (&mut self.model.actor, &mut self.actor) {
            actor.params.load(file, "actor/")?;
            trainer.load(file)?;
        }
        Ok(())
    }
}

fn dot((a, b): (&[f32], &[f32])) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
