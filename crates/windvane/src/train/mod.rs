//! The only offline training loop: it owns time, observers, checkpoints and the decision to stop.
//!
//! A learner draws every batch and every noise from streams named by the step number, so the state of a run is its
//! tensors and one counter: a run that was killed and resumed is the same run, bit for bit.

pub mod checkpoint;
pub mod folder;
pub mod observe;
pub mod tensorboard;
pub(crate) mod trainer;

use crate::error::LearnError;
use crate::nn::{TensorFile, read};
use burn::tensor::Tensor;
use checkpoint::Times;
use cpu_time::ProcessTime;
use observe::{At, Observer};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What one step measured, in a fixed order; by convention the loss comes first. The numbers stay on the device until a row
/// of the log is due: make them with [`measured`].
pub type Metrics = Vec<(&'static str, Tensor<1>)>;

/// Named numbers on the host, in a fixed order.
pub type Scores = Vec<(&'static str, f64)>;

/// Anything that learns by gradient steps: the belief encoder and every agent.
pub trait Learner {
    /// Takes gradient step number `step`, counted from 0. All randomness comes from streams named by `step`. It reads nothing
    /// back from the device.
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError>;
    /// Puts everything the next step depends on into `file`: weights, targets, optimiser.
    fn save(&self, file: &mut TensorFile);
    /// Takes it all back.
    fn load(&mut self, file: &TensorFile) -> Result<(), LearnError>;
}

/// How long to train and how often to evaluate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Gradient steps in all.
    pub steps: u64,
    /// Steps between two rows of the log.
    pub log_every: u64,
    /// Steps between two evaluations; 0 for none but the last.
    pub eval_every: u64,
    /// Steps between two checkpoints.
    pub save_every: u64,
}

/// What an evaluation found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// The scores, in a fixed order.
    pub scores: Scores,
    /// The target is reached: no need to train further.
    pub good_enough: bool,
}

/// How a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All steps were taken.
    Finished,
    /// An evaluation reached the target after so many steps.
    Target(u64),
    /// It was asked to stop after so many steps; the checkpoint holds them all.
    Interrupted(u64),
}

/// Trains `learner` to the end of `schedule`, from the checkpoint at `path` if there is one.
///
/// `identity` says whose checkpoint it is (method, environment, configuration hash); a checkpoint of another identity
/// is refused. `evaluate` may look at the learner but not change it. `interrupt` is looked at after every step.
pub fn train<L: Learner>(
    learner: &mut L,
    schedule: &Schedule,
    path: &Path,
    identity: &str,
    mut evaluate: impl FnMut(&L, u64) -> Result<Evaluation, LearnError>,
    observers: &mut [Box<dyn Observer + '_>],
    interrupt: &AtomicBool,
) -> Result<Ended, LearnError> {
    let saved = checkpoint::load(path, identity)?;
    let (mut step, mut clock) = match &saved {
        Some(saved) => {
            learner.load(&saved.tensors)?;
            (saved.step, Clock::resume(saved.times))
        }
        None => (0, Clock::resume(Times::default())),
    };
    if saved.as_ref().is_some_and(|saved| saved.complete) {
        return Ok(Ended::Finished);
    }
    let looked_at = saved.map(|saved| saved.step); // before it was saved
    for observer in observers.iter_mut() {
        observer.begin(&clock.at(step, schedule.steps))?;
    }
    let mut since_log = Means::default();
    loop {
        let finished = step >= schedule.steps;
        let interrupted = interrupt.load(Ordering::Relaxed);
        let mut good_enough = false;
        let due = schedule.eval_every > 0 && step > 0 && step % schedule.eval_every == 0;
        if finished || (due && looked_at != Some(step)) {
            let evaluation = evaluate(learner, step)?;
            for observer in observers.iter_mut() {
                observer.evaluated(&clock.at(step, schedule.steps), &evaluation.scores)?;
            }
            good_enough = evaluation.good_enough;
        }
        let complete = finished || good_enough;
        if complete || interrupted || (step > 0 && step % schedule.save_every == 0) {
            since_log.check(step)?; // what is not finite is not saved
            let mut tensors = TensorFile::default();
            learner.save(&mut tensors);
            let at = clock.at(step, schedule.steps);
            checkpoint::save(path, identity, tensors, &at, complete)?;
        }
        match (finished, good_enough, interrupted) {
            (true, _, _) => return Ok(Ended::Finished),
            (_, true, _) => return Ok(Ended::Target(step)),
            (_, _, true) => return Ok(Ended::Interrupted(step)),
            _ => {}
        }
        since_log.add(learner.train_step(step)?);
        step += 1;
        if step % schedule.log_every == 0 || step == schedule.steps {
            let means = since_log.check(step)?;
            since_log = Means::default();
            for observer in observers.iter_mut() {
                observer.logged(&clock.at(step, schedule.steps), &means)?;
            }
        }
    }
}

/// Time spent on a run, over all the times it was resumed.
struct Clock {
    before: Times,
    cpu: ProcessTime,
    wall: Instant,
}

impl Clock {
    fn resume(before: Times) -> Self {
        Self { before, cpu: ProcessTime::now(), wall: Instant::now() }
    }

    fn at(&mut self, step: u64, steps: u64) -> At {
        At {
            step,
            steps,
            cpu_seconds: self.before.cpu_seconds + self.cpu.elapsed().as_secs_f64(),
            wall_seconds: self.before.wall_seconds + self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// Running means of metrics between two rows of the log, stored on the device.
#[derive(Default)]
struct Means {
    sums: Metrics,
    count: u32,
}

impl Means {
    fn add(&mut self, metrics: Metrics) {
        let metrics = metrics.into_iter().map(|(name, value)| (name, value.without_autodiff()));
        if self.count == 0 {
            self.sums = metrics.collect();
        } else {
            for ((_, sum), (_, value)) in self.sums.iter_mut().zip(metrics) {
                sum.inplace(|sum| sum + value);
            }
        }
        self.count += 1;
    }

    /// The means of the last steps before `step`, in one read; refuses what is not finite.
    fn check(&self, step: u64) -> Result<Scores, LearnError> {
        if self.sums.is_empty() {
            return Ok(Scores::new());
        }
        let sums = self.sums.iter().map(|(_, sum)| sum.clone()).collect();
        let means = read(Tensor::cat(sums, 0)).into_iter().map(|sum| f64::from(sum) / f64::from(self.count));
        let means: Scores = self.sums.iter().map(|(name, _)| *name).zip(means).collect();
        match means.iter().find(|(_, mean)| !mean.is_finite()) {
            None => Ok(means),
            Some((metric, value)) => Err(LearnError::NonFinite {
                metric: (*metric).to_owned(),
                value: *value,
                steps: step - u64::from(self.count)..=step - 1,
            }),
        }
    }
}

/// A number of one step as its metric: cut from the autodiff graph, so that it keeps nothing else alive.
pub fn measured(number: &Tensor<1>) -> Tensor<1> {
    number.clone().without_autodiff()
}

/// The usual schedule: up over the first 100 steps, then down half a cosine to a hundredth.
pub(crate) fn warm_cosine(step: u64, steps: u64) -> f32 {
    let warm = ((step + 1) as f64 / 100.0).min(1.0);
    let way = step as f64 / steps.max(1) as f64;
    (warm * (0.5 * (1.0 + (std::f64::consts::PI * way.min(1.0)).cos()) + 0.01)) as f32
}

#[cfg(test)]
mod tests;
