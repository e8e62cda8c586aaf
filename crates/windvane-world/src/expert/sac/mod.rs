//! SAC: soft actor-critic, with the usual settings. Two critics, whose smaller value counts; a squashed Gaussian policy; a learned
//! temperature; a replay buffer.

mod agent;
mod losses;
mod replay;

pub(super) use losses::deviation;

use super::adam::Adam;
use super::gait::{self, FARTHEST};
use super::mlp::{Mlp, Pass};
use super::pupil::{
    ANTS, Moments, Pupil, SECTION, STEPS, UNSEEN, Walked, ants_in_training, begin_section, take_checkpoint,
    update_moments,
};
use super::saved::{self, Saved};
use super::{Config, Gait, INPUTS, Progress, gauss};
use crate::collect::Learner;
use crate::error::WorldError;
use crate::mujoco::{Air, AntModel, MOTORS, POSTURE};
use crate::rng;
use agent::{Agent, Batch, networks};
use rand::RngExt as _;
use replay::Replay;
use std::path::Path;

/// Width of both hidden layers. Authors: four layers of 512, for each wind a policy of its own.
const WIDTH: usize = 256;
/// Policy and critic.
const NETWORKS: [Mlp; 2] = networks(INPUTS, MOTORS, WIDTH);
/// The policy's network: to the mean of each action before it is squashed, then the logarithm of its deviation.
pub(super) const POLICY: Mlp = NETWORKS[0];
/// Steps to a gradient.
const BATCH: usize = 256;
/// Gradients after a step of all ants.
const GRADIENTS: usize = 1;
/// Steps that the replay buffer holds.
const CAPACITY: usize = 250_000;
/// Entropy of actions that the temperature aims at, in nats: one less than nothing for each motor, as is usual. Authors: -4.
const ENTROPY: f32 = -(MOTORS as f32);
/// Updates at the start that walk by uniform actions and learn nothing.
const WARM_UP: usize = 1;
/// A step that was walked: what was seen, raw, and the wind; the action; the reward; what was seen next; 1 unless the ant fell.
const ROW: usize = INPUTS + MOTORS + 1 + POSTURE + 1;

/// The torques of an action, each -1 to 1: itself, or what turns joints toward it.
pub(super) fn torques(learner: Learner, obs: &[f32], action: [f32; MOTORS]) -> [f32; MOTORS] {
    match learner {
        Learner::SacTargets => gait::torques(obs, &action.map(|a| FARTHEST * a)),
        _ => action,
    }
}

/// Trains an expert in `airs`, as PPO's `learn` does: the same schedule of ants, the same checkpoints, the same bits after any kill.
pub(super) fn learn(
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
        let walked = trainer.update(update, done)?;
        let mut checkpoints = std::mem::take(&mut trainer.checkpoints);
        take_checkpoint(&mut checkpoints, done, || trainer.gait());
        trainer.checkpoints = checkpoints;
        if let Some(part) = part.filter(|_| update.is_multiple_of(SECTION) && update < config.updates) {
            saved::save(part, key, &trainer.saved(update))?;
        }
        progress(walked);
    }
    Ok(trainer.checkpoints)
}

struct Trainer {
    learner: Learner,
    pupils: Vec<Pupil>,
    agent: Agent,
    replay: Replay<ROW>,
    moments: Moments,
    /// Policies as they were at earlier times.
    checkpoints: Vec<Gait>,
    seed: u64,
}

impl Trainer {
    fn new(model: &AntModel, airs: &[Air], config: &Config) -> Result<Self, WorldError> {
        Ok(Self {
            learner: config.learner,
            pupils: ants_in_training(model, airs, config.seed)?,
            agent: Agent::new(NETWORKS, ENTROPY, &mut rng::stream(config.seed, "networks", &[])),
            replay: Replay::new(CAPACITY),
            moments: UNSEEN,
            checkpoints: Vec::new(),
            seed: config.seed,
        })
    }

    /// All that the updates after a section depend on.
    fn saved(&self, update: usize) -> Saved {
        let Adam { mean, square, steps } = self.agent.adam.clone();
        let parameters = [self.agent.parameters.clone(), mean, square];
        let more = [&self.agent.target_critics, self.replay.numbers()].concat();
        let (moments, checkpoints) = (self.moments, self.checkpoints.clone());
        Saved { update, parameters, steps, rate: 0.0, moments, more, checkpoints }
    }

    /// Goes on from what was saved; gives the updates done.
    fn restore(&mut self, saved: Saved) -> usize {
        let [parameters, mean, square] = saved.parameters;
        let (target_critics, rows) = saved.more.split_at(self.agent.target_critics.len());
        self.agent.target_critics = target_critics.to_vec();
        self.agent.parameters = parameters;
        self.agent.adam = Adam { mean, square, steps: saved.steps };
        self.replay = Replay::restored(rows, CAPACITY, saved.update * STEPS * ANTS);
        (self.moments, self.checkpoints) = (saved.moments, saved.checkpoints);
        saved.update
    }

    /// The policy as it is.
    fn gait(&self) -> Gait {
        let noise = std::array::from_fn(|motor| self.agent.deviations[motor]);
        Gait::new(self.learner, &self.moments, noise, self.agent.gait().to_vec())
    }

    /// Lets all ants walk for an update's steps and learns on the way; `done` is the share of training that this update completes.
    fn update(&mut self, update: usize, done: f32) -> Result<Progress, WorldError> {
        let scale = Gait::new(self.learner, &self.moments, [0.0; MOTORS], Vec::new());
        let warming_up = update <= WARM_UP;
        let mut pass = Pass::default();
        let mut seen = Vec::with_capacity(STEPS * ANTS * POSTURE);
        let (mut earned, mut ended, mut lengths) = (0.0, 0, 0);
        for step in 0..STEPS {
            let views: Vec<_> = self.pupils.iter().map(Pupil::seen).collect();
            let mut input = Vec::with_capacity(ANTS * INPUTS);
            views.iter().for_each(|(obs, wind)| scale.show(obs, *wind, &mut input));
            POLICY.forward(self.agent.gait(), &input, &mut pass);
            let outputs = pass.output().as_chunks::<{ 2 * MOTORS }>().0;
            for ((pupil, (obs, wind)), output) in self.pupils.iter_mut().zip(&views).zip(outputs) {
                let action: [f32; MOTORS] = if warming_up {
                    std::array::from_fn(|_| pupil.rng.random_range(-1.0..=1.0))
                } else {
                    let draws: [f32; MOTORS] = std::array::from_fn(|_| gauss(&mut pupil.rng));
                    let drawn = losses::draw(output, &draws, MOTORS);
                    std::array::from_fn(|motor| drawn.actions[motor])
                };
                let Walked { measured, over } = pupil.step(torques(self.learner, obs, action), done)?;
                earned += measured.reward();
                let alive = if measured.healthy { 1.0 } else { 0.0 };
                let row = obs.iter().chain(wind).chain(&action).copied();
                let row = row.chain([measured.reward() as f32]).chain(pupil.seen().0).chain([alive]);
                let mut stored = [0.0; ROW];
                stored.iter_mut().zip(row).for_each(|(stored, x)| *stored = x);
                self.replay.push(stored);
                seen.extend_from_slice(obs);
                if over {
                    (ended, lengths) = (ended + 1, lengths + pupil.time);
                    pupil.restart();
                }
            }
            for gradient in 0..if warming_up { 0 } else { GRADIENTS } {
                let place = [update as u64, step as u64, gradient as u64];
                let mut rng = rng::stream(self.seed, "batch", &place);
                let batch = batch(self.replay.sample(BATCH, &mut rng), &scale);
                self.agent.learn(&batch, &mut rng::stream(self.seed, "draws", &place));
            }
        }
        update_moments(&mut self.moments, &[&seen]);
        Ok(Progress {
            update,
            reward: earned / (ANTS * STEPS) as f64,
            length: f64::from(lengths as u32) / f64::from(ended.max(1)),
            noise: self.agent.deviations.iter().sum::<f32>() / MOTORS as f32,
        })
    }
}

/// Rows as the networks are shown them.
fn batch<'a>(rows: impl Iterator<Item = &'a [f32; ROW]>, scale: &Gait) -> Batch {
    let mut batch = Batch::default();
    for row in rows {
        let (seen, rest) = row.split_at(INPUTS);
        let (action, rest) = rest.split_at(MOTORS);
        let wind = [seen[POSTURE], seen[POSTURE + 1]];
        scale.show(&seen[..POSTURE], wind, &mut batch.states);
        scale.show(&rest[1..=POSTURE], wind, &mut batch.next);
        batch.actions.extend_from_slice(action);
        batch.rewards.push(rest[0]);
        batch.alive.push(rest[POSTURE + 1]);
    }
    batch
}

#[cfg(test)]
mod tests;
