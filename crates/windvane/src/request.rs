//! A training as people ask for it: worlds, methods and presets by name, settings on top. What `windvane train` and Python's
//! `windvane.train` share, so that both make the same run.

use crate::agent::Agent;
use crate::config::layers::Layers;
use crate::config::{Plan, RECORDED};
use crate::error::LearnError;
use crate::eval::{BeliefMode, ScoreKind};
use crate::methods;
use crate::planner::Planner;
use crate::run::Run;
use crate::sweep::row::{self, Row};
use crate::train::folder::RunFolder;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use windvane_world::episodes::Episodes;
use windvane_world::{ActionSpace, Cmdp, EnvSpec, Split};

/// What is to be trained.
#[derive(Clone, Debug)]
pub struct Request {
    /// The world; without one, the data set is all that is learned from.
    pub env: Option<String>,
    /// The method.
    pub method: String,
    /// Built-in settings to start from.
    pub preset: String,
    /// A TOML file of settings to lay on top.
    pub config: Option<PathBuf>,
    /// Single settings to lay on top of that, each `key=value`.
    pub set: Vec<String>,
    /// Decides contexts, data, weights and everything else that is random.
    pub seed: u64,
    /// The run's folder.
    pub out: PathBuf,
    /// A data set to use or make instead of the one in the run's folder.
    pub data: Option<PathBuf>,
    /// A belief to use or make instead of the one in the run's folder.
    pub belief: Option<PathBuf>,
}

/// How a trained run fares in one split, with one kind of belief, by each planner.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Contexts seen in training, or not.
    pub split: Split,
    /// Whether the belief went on learning.
    pub belief: BeliefMode,
    /// Who chose actions, and the score of that ([`ScoreKind`]); nothing where there are no contexts.
    pub by: Vec<(Planner, Option<f64>)>,
}

impl Request {
    /// The settings, each with its origin, and the environment where only the data set tells of it.
    pub fn settings(&self) -> Result<(Layers<Plan>, Option<EnvSpec>), LearnError> {
        let own = match (&self.env, &self.data) {
            (None, Some(data)) => Some(Episodes::open(data)?.spec().clone()),
            _ => None,
        };
        let mut layers = Plan::preset(self.env.as_deref().unwrap_or(RECORDED), &self.preset)?;
        if let Some(EnvSpec { action: ActionSpace::Continuous { .. }, .. }) = own {
            layers = layers.set("fb.net.kind=film")?; // an actor goes through the predictor
        }
        Ok((laid(layers, self.config.as_deref(), &self.set)?, own))
    }

    /// The run, recorded in its folder, which is locked as long as the second value lives.
    pub fn open(&self) -> Result<(Run, RunFolder), LearnError> {
        let (layers, own) = self.settings()?;
        let mut plan = layers.value().check()?;
        if let Some(own) = &own {
            plan.env.clone_from(&own.name);
        }
        let method = *methods::find(&self.method)?;
        let folder = RunFolder::open(&self.out)?;
        let mut run = Run::in_folder(plan, method, self.seed, folder.path());
        run.data = self.data.clone().unwrap_or(run.data);
        run.belief = self.belief.clone().unwrap_or(run.belief);
        run.recorded = own;
        run.record(&folder)?;
        Ok((run, folder))
    }
}

/// A plan with a file and single settings laid on top.
pub fn laid(
    mut layers: Layers<Plan>,
    config: Option<&Path>,
    set: &[String],
) -> Result<Layers<Plan>, LearnError> {
    if let Some(path) = config {
        let text = std::fs::read_to_string(path).map_err(LearnError::io(path, "reading settings"))?;
        layers = layers.toml(&path.display().to_string(), &text)?;
    }
    set.iter().try_fold(layers, |layers, assignment| layers.set(assignment))
}

/// Plays seen and unseen contexts with a trained agent and writes the rows of all episodes into the run's folder; `None` if it was
/// interrupted. `names` are what rows call the settings, and the program's revision.
pub fn take_scores(
    run: &Run,
    folder: &RunFolder,
    world: &dyn Cmdp,
    agent: &Agent,
    [setting, revision]: [&str; 2],
    interrupt: &AtomicBool,
) -> Result<Option<Vec<Score>>, LearnError> {
    let like = Row::blank(run, setting, revision)?;
    let modes: &[BeliefMode] =
        if run.method.believes() { &[BeliefMode::Frozen, BeliefMode::Online] } else { &[BeliefMode::Frozen] };
    let kind = ScoreKind::of(world)?;
    let (mut all, mut scores) = (Vec::new(), Vec::new());
    for &belief in modes {
        for split in [Split::Train, Split::Test] {
            let mut by = Vec::new();
            for &planner in agent.standard_planners() {
                if interrupt.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let rows = run.scores(world, agent, split, belief, planner)?;
                by.push((planner, (!rows.is_empty()).then(|| kind.mean(&rows))));
                all.extend(Row::of_episodes(&rows, &like));
            }
            scores.push(Score { split, belief, by });
        }
    }
    row::write(&folder.file(row::SCORES), &all)?;
    Ok(Some(scores))
}
