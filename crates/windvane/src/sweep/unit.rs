//! One unit of a sweep: trained and scored once, by whoever comes first.

use super::attempt::{Attempts, How, Recorder};
use super::manifest::{Manifest, REFERENCE, Setting, Unit};
use super::paths::{curve, lock_of, logged};
use super::reference;
use super::row::{self, REWARDS, Row, SCORES, SweepRewardRow};
use crate::agent::{Agent, TaskPolicy};
use crate::error::LearnError;
use crate::eval::rewards::{evaluate_rewards, has_reward_tasks};
use crate::eval::{BeliefMode, EvalConfig};
use crate::methods;
use crate::planner::Planner;
use crate::run::{Progress, Run, RunContext};
use crate::stage::shared_names;
use crate::train::folder::{Lock, RunFolder};
use burn::tensor::Device;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use windvane_world::{Cmdp, Split};

/// The file of a unit's learning curve.
pub const CURVE: &str = "curve.jsonl";

/// How the work on a unit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was done now.
    Done,
    /// It had been done before.
    Already,
    /// Another process, here or on another machine, is doing it.
    Elsewhere,
    /// Another process is making what it needs first; only said to those who do not wait.
    Blocked,
    /// It was asked to stop; what was trained is saved.
    Interrupted,
    /// It was tried so often without getting further that it is not tried again.
    GivenUp,
}

/// Where a unit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its rows are there.
    Done,
    /// Someone works on it, or on what it needs first.
    Busy,
    /// It can be begun.
    Free,
}

/// A manifest in its folder.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The folder.
    pub folder: PathBuf,
    /// What is to be done.
    pub manifest: Manifest,
}

/// Where units are worked on, and who observes them.
pub struct Bench<'a> {
    /// Where tensors live.
    pub device: &'a Device,
    /// Someone to tell.
    pub progress: &'a mut dyn Progress,
    /// Set to stop after the current step.
    pub interrupt: &'a AtomicBool,
    /// The program's revision, for the rows.
    pub revision: &'a str,
    /// Whether to wait while others make what a unit needs first.
    pub waits: bool,
    /// How many attempts in a row may fail or be killed without getting further; nothing for any number.
    pub tries: Option<usize>,
}

impl std::fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bench({})", self.revision)
    }
}

impl Sweep {
    /// The sweep of a manifest's file; its folder is the file's.
    pub fn open(path: &Path) -> Result<Self, LearnError> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { folder: folder.to_owned(), manifest: Manifest::read(path)? })
    }

    /// The unit with the given number.
    pub fn unit(&self, index: usize) -> Result<&Unit, LearnError> {
        self.manifest.units.get(index).ok_or_else(|| {
            let problem = format!(
                "there is no unit {index}; the manifest has {} units, from 0",
                self.manifest.units.len()
            );
            LearnError::Config { origin: "--index".into(), problem }
        })
    }

    /// The folder of a unit's rows.
    pub fn place(&self, unit: &Unit) -> PathBuf {
        self.folder.join(&self.manifest.sweep).join(unit.name())
    }

    /// The run behind a unit; nothing for the reference policies.
    pub fn run_of(&self, unit: &Unit) -> Result<Option<Run>, LearnError> {
        if unit.method == REFERENCE {
            return Ok(None);
        }
        let setting = self.manifest.setting(unit)?;
        let method = *methods::find(&unit.method)?;
        let [data, belief] = shared_names(&setting.plan, unit.seed)?;
        let mut run = Run::in_folder(setting.plan.clone(), method, unit.seed, &self.run_folder(unit)?);
        run.data = self.folder.join("data").join(data);
        run.belief = self.folder.join("beliefs").join(belief).with_extension("safetensors");
        Ok(Some(run))
    }

    /// The folder in which a unit is trained: the same for all sweeps that train it alike.
    pub fn run_folder(&self, unit: &Unit) -> Result<PathBuf, LearnError> {
        let hash = self.manifest.setting(unit)?.hash();
        Ok(self.folder.join("runs").join(format!("{}-{}-{}", unit.method, unit.seed, hash)))
    }

    /// Where a unit stands, by a quick look.
    pub fn state(&self, unit: &Unit) -> Result<State, LearnError> {
        if self.is_done(unit)? {
            return Ok(State::Done);
        }
        let mut locks = vec![self.place(unit).join("lock")];
        if let Some(run) = self.run_of(unit)? {
            locks.push(self.run_folder(unit)?.join("lock"));
            locks.push(lock_of(&run.data));
            locks.extend(run.needs_belief().then(|| lock_of(&run.belief)));
        }
        for lock in locks {
            if Lock::is_held(&lock)? {
                return Ok(State::Busy);
            }
        }
        Ok(State::Free)
    }

    /// Whether a unit's rows are there, whole and of the same settings.
    pub fn is_done(&self, unit: &Unit) -> Result<bool, LearnError> {
        let path = self.place(unit).join(SCORES);
        if !path.exists() {
            return Ok(false);
        }
        let (rows, bad) = row::read(&path)?;
        let setting = self.manifest.setting(unit)?;
        let hash = setting.hash();
        let lengths = setting.context_steps.iter();
        let scored = |steps: &usize| rows.iter().any(|row| row.context_steps == *steps);
        // Policies without a belief have rows of no length but 0.
        let scored = unit.method == REFERENCE || lengths.clone().all(scored);
        Ok(bad.is_empty() && scored && !rows.is_empty() && rows.iter().all(|row| row.config == hash))
    }

    /// How far a unit is, from 0 to 1, by the logs of its trainings.
    pub fn progress(&self, unit: &Unit) -> Result<f64, LearnError> {
        /// Of the whole: belief, agent, and what is left for scores.
        const PARTS: [f64; 2] = [0.35, 0.6];
        if self.is_done(unit)? {
            return Ok(1.0);
        }
        let Some(run) = self.run_of(unit)? else { return Ok(0.0) };
        let belief = if run.needs_belief() { logged(&run.belief) } else { 1.0 };
        Ok(PARTS[0] * belief + PARTS[1] * logged(&run.checkpoint()))
    }

    /// Does a unit, from where it was left.
    pub fn run(&self, unit: &Unit, bench: &mut Bench<'_>) -> Result<Ended, LearnError> {
        if self.is_done(unit)? {
            return Ok(Ended::Already);
        }
        let place = self.place(unit);
        let Some(rows) = RunFolder::try_open(&place)? else { return Ok(Ended::Elsewhere) };
        rows.lock().settle(&place.join(SCORES), bench.interrupt)?;
        // Who held the lock until now may have finished it.
        if self.is_done(unit)? {
            return Ok(Ended::Already);
        }
        let (attempts, steps) = (Attempts::read(&place), self.steps(unit)?);
        if bench.tries.is_some_and(|tries| attempts.fruitless(steps) >= tries) {
            Attempts::give_up(&place)?;
            return Ok(Ended::GivenUp);
        }
        let record = Recorder::begin(&place, attempts, steps)?;
        let ended = match self.run_of(unit)? {
            None => self.reference(unit, bench),
            Some(run) => self.train_and_score(unit, &run, bench),
        };
        match &ended {
            Ok(Ended::Done) => record.end(How::Done, None)?,
            Ok(_) => record.end(How::Stopped, None)?,
            Err(error) => {
                record.end(How::Failed, Some(error.to_string()))?;
                let again = |tries| Attempts::read(&place).fruitless(self.steps(unit).unwrap_or(0)) < tries;
                if !bench.tries.is_some_and(again) {
                    Attempts::give_up(&place)?;
                }
            }
        }
        if matches!(ended, Ok(Ended::Done)) {
            rows.lock().finished()?;
        }
        ended
    }

    /// Gradient steps in the checkpoints of a unit.
    pub fn steps(&self, unit: &Unit) -> Result<u64, LearnError> {
        let run = self.run_of(unit)?;
        // A checkpoint that cannot be read is the attempt's trouble, which then tells of it.
        Ok(run.map_or(0, |run| run.cost().map_or(0, |cost| cost.gradient_steps)))
    }

    fn reference(&self, unit: &Unit, bench: &mut Bench<'_>) -> Result<Ended, LearnError> {
        let setting = self.manifest.setting(unit)?;
        let mut blank = reference_run(setting, unit.seed);
        blank.data = self.folder.join("data").join(&shared_names(&setting.plan, unit.seed)?[0]);
        if setting.plan.has_experts() {
            // Experts come with the data, and are references.
            let world = blank.world()?;
            let mut at = RunContext {
                world: &*world,
                device: bench.device,
                progress: &mut *bench.progress,
                interrupt: bench.interrupt,
            };
            let made = || blank.data(&mut at).map(|_| true);
            if let Some(ended) = shared(&blank.data, bench.waits, bench.interrupt, made)? {
                return Ok(ended);
            }
        }
        let world = blank.world()?;
        let like = Row {
            method: REFERENCE.to_owned(),
            config: setting.hash(),
            ..Row::blank(&blank, &unit.setting, bench.revision)?
        };
        let lengths = &setting.context_steps;
        let eval = setting.eval_after(setting.plan.eval.context_steps);
        let mut rows = reference::rows(&*world, &eval, lengths, unit.seed, &like)?;
        let exact = rows.clone();
        reference::with_ceilings(&mut rows, &exact);
        row::write(&self.place(unit).join(SCORES), &rows)?;
        Ok(Ended::Done)
    }

    fn train_and_score(&self, unit: &Unit, run: &Run, bench: &mut Bench<'_>) -> Result<Ended, LearnError> {
        let world = run.world()?;
        let mut at = RunContext {
            world: &*world,
            device: bench.device,
            progress: &mut *bench.progress,
            interrupt: bench.interrupt,
        };
        let (waits, interrupt) = (bench.waits, bench.interrupt);
        let stopped = shared(&run.data, waits, interrupt, || run.data(&mut at).map(|_| true))?;
        if let Some(ended) = stopped {
            return Ok(ended);
        }
        if run.needs_belief() {
            let stopped = shared(&run.belief, waits, interrupt, || run.believe(&mut at))?;
            if let Some(ended) = stopped {
                return Ok(ended);
            }
        }
        let folder = self.run_folder(unit)?;
        let folder = if waits { RunFolder::wait(&folder, interrupt)? } else { RunFolder::try_open(&folder)? };
        let Some(folder) = folder else { return Ok(not_taken(waits)) };
        folder.lock().settle(&run.checkpoint(), interrupt)?;
        run.record(&folder)?;
        let Some(agent) = run.agent(&mut at)? else { return Ok(Ended::Interrupted) };
        folder.lock().finished()?;
        drop(folder);
        let setting = self.manifest.setting(unit)?;
        let like = Row { config: setting.hash(), ..Row::blank(run, &unit.setting, bench.revision)? };
        let modes = [BeliefMode::Frozen, BeliefMode::Online];
        let modes = if run.method.believes() { &modes[..] } else { &modes[..1] };
        let mut rows = Vec::new();
        for &context_steps in &setting.context_steps {
            let mut run = run.clone();
            run.plan.eval = setting.eval_after(context_steps);
            for &mode in modes {
                for planner in agent.standard_planners() {
                    for split in [Split::Train, Split::Test] {
                        let scores = run.scores(&*world, &agent, split, mode, *planner)?;
                        rows.extend(Row::of_episodes(&scores, &like));
                    }
                }
            }
        }
        self.score_rewards(unit, setting, &agent, &*world, &like)?;
        let exact = Unit { method: REFERENCE.to_owned(), ..unit.clone() };
        while matches!(self.run(&exact, bench)?, Ended::Elsewhere) {
            if Lock::wait(&self.place(&exact).join("lock"), bench.interrupt)?.is_none() {
                return Ok(Ended::Interrupted);
            }
        }
        if !self.is_done(&exact)? {
            let problem =
                format!("{} cannot be scored: the reference policies' rows are missing", unit.name());
            return Err(LearnError::run(&self.place(&exact), problem));
        }
        reference::with_ceilings(&mut rows, &row::read(&self.place(&exact).join(SCORES))?.0);
        row::write(&self.place(unit).join(CURVE), &curve(unit, &run.checkpoint()))?;
        row::write(&self.place(unit).join(SCORES), &rows)?;
        Ok(Ended::Done)
    }
}

impl Sweep {
    /// Scores a unit on tasks that are no goals, where there are any: F alone in both ways, and the planner.
    fn score_rewards(
        &self,
        unit: &Unit,
        setting: &Setting,
        agent: &Agent,
        world: &dyn Cmdp,
        like: &Row,
    ) -> Result<(), LearnError> {
        if !has_reward_tasks(world, agent)? {
            return Ok(());
        }
        let policies = [
            (Planner::None, TaskPolicy::Greedy),
            (Planner::None, TaskPolicy::Gpi),
            (Planner::Sweeps, TaskPolicy::Greedy),
        ];
        // After the context that the plan names, where the setting has several.
        let steps = setting.plan.eval.context_steps;
        let steps = if setting.context_steps.contains(&steps) { steps } else { setting.context_steps[0] };
        let mut rows = Vec::new();
        let can = |(planner, policy): &(Planner, TaskPolicy)| {
            (*planner == Planner::None || agent.can_plan())
                && (*policy == TaskPolicy::Greedy || agent.listed().is_some())
        };
        for (planner, task_policy) in policies.into_iter().filter(can) {
            let eval = EvalConfig { planner, task_policy, ..setting.eval_after(steps) };
            for split in [Split::Train, Split::Test] {
                let scored = evaluate_rewards(world, agent, split, &eval, unit.seed)?;
                rows.extend(scored.into_iter().map(|row| SweepRewardRow::new(row, like)));
            }
        }
        row::write(&self.place(unit).join(REWARDS), &rows)
    }
}

/// The run of a setting by no method in particular: it decides nothing about its world.
fn reference_run(setting: &Setting, seed: u64) -> Run {
    Run::in_folder(setting.plan.clone(), methods::METHODS[0], seed, Path::new(""))
}

/// Makes something that several units need, under its lock; says how it ended if it could not be made now.
fn shared(
    product: &Path,
    waits: bool,
    interrupt: &AtomicBool,
    make: impl FnOnce() -> Result<bool, LearnError>,
) -> Result<Option<Ended>, LearnError> {
    let path = lock_of(product);
    let lock = if waits { Lock::wait(&path, interrupt)? } else { Lock::try_take(&path)? };
    let Some(lock) = lock else { return Ok(Some(not_taken(waits))) };
    lock.settle(product, interrupt)?;
    if !make()? {
        return Ok(Some(Ended::Interrupted));
    }
    lock.finished()?;
    Ok(None)
}

/// What it means that a lock was not taken: those who wait give up only when they are interrupted.
fn not_taken(waits: bool) -> Ended {
    if waits { Ended::Interrupted } else { Ended::Blocked }
}
