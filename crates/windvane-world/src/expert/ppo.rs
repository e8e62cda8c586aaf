//! PPO: proximal policy optimisation, with the settings that taught ants to walk in minutes.

use super::adam::Adam;
use super::gait::{mirror, mirror_torques, torques};
use super::mlp::{Mlp, Pass};
use super::saved::{self, Saved};
use super::{Gait, INPUTS, POLICY, WIDTH, gauss};
use crate::error::WorldError;
use crate::mujoco::{Air, Ant, AntModel, Integrator, MOTORS, POSTURE};
use crate::rng::{self, Rng};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use std::path::Path;

/// Ants that walk at once, half of them seen in the mirror.
const ANTS: usize = 32;
/// Steps of each between two updates.
const STEPS: usize = 128;
/// Steps after which an episode is cut.
const HORIZON: usize = 256;
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
/// Between these shares of training, rewards become the true ones; afterwards physics are those of evaluation, at three times
/// the price.
const SETTLE: [f32; 2] = [0.6, 0.8];
/// Updates after which all ants begin anew and training can be saved: what they are doing need not be.
const SECTION: usize = 10;
/// Shares of training after which a checkpoint of the policy is taken.
const CHECKPOINTS: [f32; 4] = [0.1, 0.3, 0.6, 1.0];
/// Value network.
const CRITIC: Mlp = Mlp { sizes: [INPUTS, WIDTH, WIDTH, 1] };

/// How an expert is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Seed of everything random.
    pub seed: u64,
    /// Updates, of 4,096 steps each. 300: a mean return of 618 in the paper's training winds, within three CPU-minutes.
    pub updates: usize,
}

/// How far training is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Updates done.
    pub update: usize,
    /// Mean reward of a step in the last update, as `Ant-v5` has it.
    pub reward: f64,
    /// Mean length of the episodes that ended in it.
    pub length: f64,
    /// Mean deviation of targets.
    pub noise: f32,
}

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
    let key = saved::key(airs, config.seed, config.updates);
    let mut trainer = Trainer::new(model, airs, config)?;
    let before = part.and_then(|part| saved::load(part, key)).map_or(0, |saved| trainer.restore(saved));
    for update in before + 1..=config.updates {
        if (update - 1).is_multiple_of(SECTION) {
            trainer.begin_section((update - 1) / SECTION);
        }
        let done = update as f32 / config.updates as f32;
        let rollout = trainer.rollout(done)?;
        trainer.update(update, done);
        trainer.observe();
        let noise = trainer.deviations().iter().sum::<f32>() / MOTORS as f32;
        while trainer.checkpoints.len() < CHECKPOINTS.len() && done >= CHECKPOINTS[trainer.checkpoints.len()]
        {
            trainer.checkpoints.push(trainer.gait());
        }
        if let Some(part) = part.filter(|_| update.is_multiple_of(SECTION) && update < config.updates) {
            saved::save(part, key, &trainer.saved(update))?;
        }
        progress(Progress { update, noise, ..rollout });
    }
    Ok(trainer.checkpoints)
}

/// One ant in training.
struct Pupil {
    ant: Ant,
    wind: [f32; 2],
    mirrored: bool,
    obs: [f32; POSTURE],
    time: usize,
    rng: Rng,
}

impl Pupil {
    /// What the policy is shown: the ant, or its mirror image in mirrored wind.
    fn seen(&self) -> ([f32; POSTURE], [f32; 2]) {
        let [x, y] = self.wind;
        if self.mirrored { (mirror(&self.obs), [x, -y]) } else { (self.obs, self.wind) }
    }

    fn restart(&mut self) {
        self.ant.reset(&mut self.rng);
        self.ant.observe(&mut self.obs);
        self.time = 0;
    }
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
    /// Number, means and variances of observations.
    moments: (f64, [f64; POSTURE], [f64; POSTURE]),
    logs: Vec<Log>,
    /// What the networks would be shown after the last step.
    last: Vec<f32>,
    /// Policies as they were at earlier times.
    checkpoints: Vec<Gait>,
    seed: u64,
}

impl Trainer {
    fn new(model: &AntModel, airs: &[Air], config: &Config) -> Result<Self, WorldError> {
        let mut pupils = Vec::with_capacity(ANTS);
        for number in 0..ANTS {
            let air = airs[number % airs.len()];
            pupils.push(Pupil {
                ant: Ant::new(model, air, Integrator::Euler)?,
                wind: air.wind.map(|w| w as f32),
                mirrored: number >= ANTS / 2,
                obs: [0.0; POSTURE],
                time: 0,
                rng: rng::stream(config.seed, "pupil", &[number as u64]),
            });
        }
        let (policy, critic) = (POLICY.parameters(), CRITIC.parameters());
        let mut parameters = vec![NOISE.0.ln(); policy + critic + MOTORS];
        let mut rng = rng::stream(config.seed, "networks", &[]);
        POLICY.init(&mut parameters[..policy], 0.05, &mut rng);
        CRITIC.init(&mut parameters[policy..policy + critic], 1.0, &mut rng);
        Ok(Self {
            pupils,
            adam: Adam::new(parameters.len()),
            parameters,
            rate: RATE.0,
            moments: (1e-4, [0.0; POSTURE], [1.0; POSTURE]),
            logs: vec![Log::default(); STEPS],
            last: Vec::new(),
            checkpoints: Vec::new(),
            seed: config.seed,
        })
    }

    /// Lets all ants begin anew.
    fn begin_section(&mut self, section: usize) {
        for (number, pupil) in self.pupils.iter_mut().enumerate() {
            pupil.rng = rng::stream(self.seed, "pupil", &[number as u64, section as u64]);
            pupil.restart();
            // So that episodes do not all end at once.
            pupil.time = pupil.rng.random_range(0..200);
        }
    }

    /// All that the updates after a section depend on.
    fn saved(&self, update: usize) -> Saved {
        let Adam { mean, square, steps } = self.adam.clone();
        let parameters = [self.parameters.clone(), mean, square];
        Saved {
            update,
            parameters,
            steps,
            rate: self.rate,
            moments: self.moments,
            checkpoints: self.checkpoints.clone(),
        }
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
        let (_, mean, variance) = &self.moments;
        Gait {
            mean: mean.map(|m| m as f32),
            deviation: variance.map(|v| v.sqrt() as f32),
            noise: self.deviations(),
            parameters: self.parts()[0].to_vec(),
        }
    }

    /// Lets all ants act for an update's steps; `done` is the share of training that this update completes.
    fn rollout(&mut self, done: f32) -> Result<Progress, WorldError> {
        let gait = self.gait();
        let integrator = if done <= SETTLE[1] { Integrator::Euler } else { Integrator::RungeKutta };
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
                let turned = torques(view, &targets);
                let turned = if pupil.mirrored { mirror_torques(turned) } else { turned };
                pupil.ant.integrate(integrator);
                let measured = pupil.ant.step(turned.map(f64::from)).map_err(|problem| {
                    WorldError::Invalid(format!(
                        "expert: wind {:?}, {:.0}% of training: the simulation diverged: {problem}",
                        pupil.wind,
                        100.0 * done
                    ))
                })?;
                pupil.ant.observe(&mut pupil.obs);
                pupil.time += 1;
                earned += measured.reward();
                log.targets.push(targets);
                log.density.push(density);
                log.reward.push(measured.reward() as f32 + courage * measured.velocity[0] as f32);
                let cut = pupil.time >= HORIZON;
                log.end.push((cut || !measured.healthy).then(|| {
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
                if cut || !measured.healthy {
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

    /// Takes what was seen into the moments of observations.
    fn observe(&mut self) {
        let (count, mean, variance) = &mut self.moments;
        let rows = (STEPS * ANTS) as f64;
        let total = *count + rows;
        for place in 0..POSTURE {
            let column = || {
                let seen = self.logs.iter().flat_map(|log| log.seen.iter().skip(place).step_by(POSTURE));
                seen.map(|&x| f64::from(x))
            };
            let new = column().sum::<f64>() / rows;
            let spread = column().map(|x| (x - new) * (x - new)).sum::<f64>() / rows;
            let off = new - mean[place];
            let both = variance[place] * *count + spread * rows + off * off * *count * rows / total;
            variance[place] = (both / total).max(1e-3);
            mean[place] += off * rows / total;
        }
        *count = total;
    }
}
