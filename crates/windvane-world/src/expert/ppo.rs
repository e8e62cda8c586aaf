//! PPO: proximal policy optimisation, with the settings that taught ants to walk in minutes.

use super::adam::Adam;
use super::gait::torques;
use super::mlp::{Activation, Mlp, Pass};
use super::pupil::{
    ANTS, Moments, Pupil, SECTION, SETTLE, STEPS, UNSEEN, Walked, ants_in_training, begin_section,
    take_checkpoint, update_moments,
};
use super::saved::{self, Saved};
use super::{Config, Gait, INPUTS, POLICY, Progress, WIDTH, gauss};
use crate::collect::Learner;
use crate::error::WorldError;
use crate::mujoco::{Air, AntModel, MOTORS};
use crate::rng;
use rand::seq::SliceRandom as _;
use std::path::Path;

/// Passes over the steps of an update.
const EPOCHS: usize = 5;
/// Steps to a gradient.
const BATCH: usize = 512;
/// Discount of rewards.
const GAMMA: f32 = 0.98;
/// Decay of advantage estimates (GAE).
const LAMBDA: f32 = 0.95;
/// How far the chance of an action may move in an update.
const CLIP: f32 = 0.2;
/// Weight of the entropy of actions.
const ENTROPY: f32 = 0.002;
/// Divergence between two policies that an update aims at; the rate follows it.
const DIVERGENCE: f32 = 0.02;
/// The first rate, and its bounds.
const RATE: (f32, [f32; 2]) = (6e-4, [5e-5, 2e-3]);
/// Longest gradient.
const LONGEST: f32 = 1.0;
/// First deviation of targets, and its bounds.
const NOISE: (f32, [f32; 2]) = (0.5, [0.1, 0.8]);
/// Values are learned in units of this.
const VALUE: f32 = 20.0;
/// What forward velocity earns besides its share of the reward, at first: courage to walk.
const COURAGE: f32 = 0.5;
/// Value network.
const CRITIC: Mlp = Mlp { sizes: [INPUTS, WIDTH, WIDTH, 1], activation: Activation::Tanh };

/// Trains an expert in `airs`; gives the policies after 10, 30, 60 and 100% of training. It is saved at `part` now and then, and goes
/// on from there.
///
/// The same arguments give the same bits, after any kill: ants walk one after the other, and every draw has its stream.
pub(crate) fn learn(
    model: &AntModel,
    airs: &[Air],
    config: &Config,
    part: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Gait>, WorldError> {
    let key = saved::key(airs, config);
    let mut trainer = Trainer::new(model, airs, config)?;
    let before = part.and_then(|part| saved::load(part, key)).map_or(0, |saved| trainer.restore(saved));
    for update in before + 1..=config.updates {
        if (update - 1).is_multiple_of(SECTION) {
            begin_section(&mut trainer.pupils, config.seed, (update - 1) / SECTION);
        }
        let done = update as f32 / config.updates as f32;
        let rollout = trainer.rollout(done)?;
        trainer.update(update, done);
        let seen: Vec<&[f32]> = trainer.logs.iter().map(|log| &log.seen[..]).collect();
        update_moments(&mut trainer.moments, &seen);
        let noise = trainer.deviations().iter().sum::<f32>() / MOTORS as f32;
        let mut checkpoints = std::mem::take(&mut trainer.checkpoints);
        take_checkpoint(&mut checkpoints, done, || trainer.gait());
        trainer.checkpoints = checkpoints;
        if let Some(part) = part.filter(|_| update.is_multiple_of(SECTION) && update < config.updates) {
            saved::save(part, key, &trainer.saved(update))?;
        }
        progress(Progress { update, noise, ..rollout });
    }
    Ok(trainer.checkpoints)
}

/// What one step of all ants left behind.
#[derive(Clone, Default)]
struct Log {
    /// Raw observations, for their moments; [ants, posture].
    seen: Vec<f32>,
    /// What the networks were shown, [ants, inputs].
    input: Vec<f32>,
    targets: Vec<[f32; MOTORS]>,
    /// Logarithm of the targets' density, less a constant.
    density: Vec<f32>,
    reward: Vec<f32>,
    /// Value of where an episode was cut; 0 for a fall. Nothing where it goes on.
    end: Vec<Option<f32>>,
}

struct Trainer {
    pupils: Vec<Pupil>,
    /// Parameters of policy, critic and the logarithms of the targets' deviations.
    parameters: Vec<f32>,
    adam: Adam,
    rate: f32,
    moments: Moments,
    logs: Vec<Log>,
    /// What the networks would be shown after the last step.
    last: Vec<f32>,
    /// Policies as they were at earlier times.
    checkpoints: Vec<Gait>,
    seed: u64,
}

impl Trainer {
    fn new(model: &AntModel, airs: &[Air], config: &Config) -> Result<Self, WorldError> {
        let (policy, critic) = (POLICY.parameters(), CRITIC.parameters());
        let mut parameters = vec![NOISE.0.ln(); policy + critic + MOTORS];
        let mut rng = rng::stream(config.seed, "networks", &[]);
        POLICY.init(&mut parameters[..policy], 0.05, &mut rng);
        CRITIC.init(&mut parameters[policy..policy + critic], 1.0, &mut rng);
        Ok(Self {
            pupils: ants_in_training(model, airs, config.seed)?,
            adam: Adam::new(parameters.len()),
            parameters,
            rate: RATE.0,
            moments: UNSEEN,
            logs: vec![Log::default(); STEPS],
            last: Vec::new(),
            checkpoints: Vec::new(),
            seed: config.seed,
        })
    }

    /// All that the updates after a section depend on.
    fn saved(&self, update: usize) -> Saved {
        let Adam { mean, square, steps } = self.adam.clone();
        let parameters = [self.parameters.clone(), mean, square];
        let (moments, checkpoints) = (self.moments, self.checkpoints.clone());
        Saved { update, parameters, steps, rate: self.rate, moments, more: Vec::new(), checkpoints }
    }

    /// Goes on from what was saved; gives the updates done.
    fn restore(&mut self, saved: Saved) -> usize {
        let [parameters, mean, square] = saved.parameters;
        (self.parameters, self.adam) = (parameters, Adam { mean, square, steps: saved.steps });
        (self.rate, self.moments, self.checkpoints) = (saved.rate, saved.moments, saved.checkpoints);
        saved.update
    }

    /// Policy, critic and logarithms of deviations among the parameters.
    fn parts(&self) -> [&[f32]; 3] {
        let (policy, rest) = self.parameters.split_at(POLICY.parameters());
        let (critic, noise) = rest.split_at(CRITIC.parameters());
        [policy, critic, noise]
    }

    fn deviations(&self) -> [f32; MOTORS] {
        std::array::from_fn(|motor| libm::expf(self.parts()[2][motor]))
    }

    /// The policy as it is.
    fn gait(&self) -> Gait {
        Gait::new(Learner::Ppo, &self.moments, self.deviations(), self.parts()[0].to_vec())
    }

    /// Lets all ants act for an update's steps; `done` is the share of training that this update completes.
    fn rollout(&mut self, done: f32) -> Result<Progress, WorldError> {
        let gait = self.gait();
        let courage = COURAGE * (1.0 - ((done - SETTLE[0]) / (SETTLE[1] - SETTLE[0])).clamp(0.0, 1.0));
        let [_, critic, noise] = self.parts();
        let (critic, noise) = (critic.to_vec(), noise.to_vec());
        let mut pass = Pass::default();
        let (mut earned, mut ended, mut lengths) = (0.0, 0, 0);
        for log in &mut self.logs {
            *log = Log::default();
            let mut views = Vec::with_capacity(ANTS);
            for pupil in &self.pupils {
                let (obs, wind) = pupil.seen();
                log.seen.extend_from_slice(&obs);
                gait.show(&obs, wind, &mut log.input);
                views.push(obs);
            }
            POLICY.forward(&gait.parameters, &log.input, &mut pass);
            let means = pass.output().as_chunks::<MOTORS>().0;
            for ((pupil, view), mean) in self.pupils.iter_mut().zip(&views).zip(means) {
                let draws: [f32; MOTORS] = std::array::from_fn(|_| gauss(&mut pupil.rng));
                let targets = std::array::from_fn(|motor| mean[motor] + gait.noise[motor] * draws[motor]);
                let density = draws.iter().zip(&noise).map(|(d, log)| -0.5 * d * d - log).sum();
                let Walked { measured, over } = pupil.step(torques(view, &targets), done)?;
                earned += measured.reward();
                log.targets.push(targets);
                log.density.push(density);
                log.reward.push(measured.reward() as f32 + courage * measured.velocity[0] as f32);
                log.end.push(over.then(|| {
                    if !measured.healthy {
                        return 0.0;
                    }
                    let (obs, wind) = pupil.seen();
                    let mut input = Vec::with_capacity(INPUTS);
                    gait.show(&obs, wind, &mut input);
                    let mut alone = Pass::default();
                    CRITIC.forward(&critic, &input, &mut alone);
                    VALUE * alone.output()[0]
                }));
                if over {
                    (ended, lengths) = (ended + 1, lengths + pupil.time);
                    pupil.restart();
                }
            }
        }
        self.last.clear();
        for pupil in &self.pupils {
            let (obs, wind) = pupil.seen();
            gait.show(&obs, wind, &mut self.last);
        }
        Ok(Progress {
            update: 0,
            reward: earned / (ANTS * STEPS) as f64,
            length: f64::from(lengths as u32) / f64::from(ended.max(1)),
            noise: 0.0,
        })
    }

    /// Advantages and targets of the critic, step by step, [steps * ants].
    fn advantages(&self) -> (Vec<f32>, Vec<f32>) {
        let mut pass = Pass::default();
        let mut values = |input: &[f32]| {
            CRITIC.forward(self.parts()[1], input, &mut pass);
            pass.output().iter().map(|v| VALUE * v).collect::<Vec<f32>>()
        };
        let mut next = values(&self.last);
        let mut running = [0.0; ANTS];
        let mut advantages = vec![0.0; STEPS * ANTS];
        let mut wanted = vec![0.0; STEPS * ANTS];
        for (step, log) in self.logs.iter().enumerate().rev() {
            let here = values(&log.input);
            for ant in 0..ANTS {
                let (after, keep) = log.end[ant].map_or((next[ant], 1.0), |end| (end, 0.0));
                let delta = log.reward[ant] + GAMMA * after - here[ant];
                running[ant] = delta + GAMMA * LAMBDA * keep * running[ant];
                advantages[step * ANTS + ant] = running[ant];
                wanted[step * ANTS + ant] = running[ant] + here[ant];
            }
            next = here;
        }
        let count = advantages.len() as f32;
        let mean = advantages.iter().sum::<f32>() / count;
        let variance = advantages.iter().map(|a| (a - mean) * (a - mean)).sum::<f32>() / count;
        let scale = 1.0 / (variance.sqrt() + 1e-6);
        advantages.iter_mut().for_each(|a| *a = (*a - mean) * scale);
        (advantages, wanted)
    }

    /// Improves the networks by the rollout.
    fn update(&mut self, update: usize, done: f32) {
        let (advantages, wanted) = self.advantages();
        let mut order: Vec<usize> = (0..STEPS * ANTS).collect();
        let mut rng = rng::stream(self.seed, "order", &[update as u64]);
        let slower = if done < 0.75 { 1.0 } else { ((1.0 - done) / 0.25).max(0.2) };
        let mut divergence = 0.0;
        for _ in 0..EPOCHS {
            order.shuffle(&mut rng);
            divergence = 0.0;
            for batch in order.chunks_exact(BATCH) {
                divergence += self.descend(batch, &advantages, &wanted, self.rate * slower);
            }
            divergence /= (STEPS * ANTS / BATCH) as f32;
            if divergence > 1.8 * DIVERGENCE {
                break;
            }
        }
        let factor = match divergence {
            d if d < 0.7 * DIVERGENCE => 1.15,
            d if d > 1.5 * DIVERGENCE => 1.0 / 1.3,
            _ => 1.0,
        };
        self.rate = (self.rate * factor).clamp(RATE.1[0], RATE.1[1]);
        let noise = POLICY.parameters() + CRITIC.parameters();
        let [low, high] = NOISE.1.map(f32::ln);
        self.parameters[noise..].iter_mut().for_each(|log| *log = log.clamp(low, high));
    }

    /// One step down the gradient of a batch; gives how far the policy is from the one that acted.
    fn descend(&mut self, batch: &[usize], advantages: &[f32], wanted: &[f32], rate: f32) -> f32 {
        let mut input = Vec::with_capacity(BATCH * INPUTS);
        for &place in batch {
            let row = INPUTS * (place % ANTS);
            input.extend_from_slice(&self.logs[place / ANTS].input[row..row + INPUTS]);
        }
        let [policy, critic, noise] = self.parts();
        let deviations = self.deviations();
        let mut pass = [Pass::default(), Pass::default()];
        POLICY.forward(policy, &input, &mut pass[0]);
        CRITIC.forward(critic, &input, &mut pass[1]);
        let count = BATCH as f32;
        let mut slopes = vec![0.0; BATCH * MOTORS];
        let mut values = vec![0.0; BATCH];
        let mut noise_slopes = [-ENTROPY; MOTORS];
        let mut divergence = 0.0;
        for (row, &place) in batch.iter().enumerate() {
            let (log, ant) = (&self.logs[place / ANTS], place % ANTS);
            let mean = &pass[0].output()[row * MOTORS..(row + 1) * MOTORS];
            let off: [f32; MOTORS] =
                std::array::from_fn(|motor| (log.targets[ant][motor] - mean[motor]) / deviations[motor]);
            let density: f32 = off.iter().zip(noise).map(|(off, log)| -0.5 * off * off - log).sum();
            let change = density - log.density[ant];
            let ratio = libm::expf(change);
            divergence += ratio - 1.0 - change;
            let advantage = advantages[place];
            // Beyond the clip there is nothing to gain.
            let free = ratio * advantage <= ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * advantage;
            if free {
                let pull = -ratio * advantage / count;
                for motor in 0..MOTORS {
                    slopes[row * MOTORS + motor] = pull * off[motor] / deviations[motor];
                    noise_slopes[motor] += pull * (off[motor] * off[motor] - 1.0);
                }
            }
            values[row] = (pass[1].output()[row] - wanted[place] / VALUE) / count;
        }
        let mut gradient = vec![0.0; self.parameters.len()];
        let (first, rest) = gradient.split_at_mut(POLICY.parameters());
        let (second, last) = rest.split_at_mut(CRITIC.parameters());
        POLICY.backward(policy, &mut pass[0], &slopes, first);
        CRITIC.backward(critic, &mut pass[1], &values, second);
        last.copy_from_slice(&noise_slopes);
        self.adam.step(&mut self.parameters, &gradient, rate, LONGEST);
        divergence / count
    }
}
