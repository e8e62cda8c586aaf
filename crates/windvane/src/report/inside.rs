//! Figures that look into trained agents.

use super::{cones, directions, hidden, plane, qmap, views};
use crate::agent::{Agent, Belief};
use crate::belief::{BeliefEncoder, StateEvidence, TransitionSet, evidence_of};
use crate::diagnostics::readout::readout;
use crate::error::LearnError;
use crate::eval::{EvalConfig, explore, optimal_steps};
use crate::latent::VonMisesFisher;
use crate::methods::Draw;
use crate::run::Run;
use burn::tensor::Device;
use serde_json::json;
use std::fmt;
use windvane_world::picture::{Maze, Picture};
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Cmdp, ContextId, Reward, Split};

/// Contexts that beliefs are drawn for, and trajectories in each.
const CONTEXTS: usize = 6;
const TRAJECTORIES: u64 = 14;
/// Task vectors drawn around each belief.
const AROUND: usize = 3;

/// A trained run to look into.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// What it is.
    pub run: &'a Run,
    /// Its world.
    pub world: &'a dyn Cmdp,
    /// The agent.
    pub agent: &'a Agent,
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject({} on {})", self.run.method.name, self.run.plan.env)
    }
}

/// An error for a figure that cannot be drawn of what is there.
pub(super) fn cannot(figure: &str, problem: &str) -> LearnError {
    LearnError::Config { origin: format!("figure {figure}"), problem: problem.to_owned() }
}

/// The agents on listed states among the subjects, with their names.
fn listed<'a>(subjects: &[Subject<'a>]) -> Vec<(&'static str, &'a Agent)> {
    let listed = subjects.iter().filter(|s| s.agent.listed().is_some());
    listed.map(|s| (s.run.method.title, s.agent)).collect()
}

/// Q-maps of an unseen context for its farthest goal: the exact one beside each agent's.
pub fn q_map(subjects: &[Subject<'_>]) -> Result<Picture, LearnError> {
    let agents = listed(subjects);
    let first = subjects.first().filter(|s| s.world.grid().is_some() && !agents.is_empty());
    let Some(Subject { run, world, .. }) = first else {
        return Err(cannot("qmap", "needs agents on listed states in a grid"));
    };
    q_map_of(*world, world.contexts(Split::Test)[0], &run.plan.eval, run.seed, &agents)
}

/// Q-maps of one context for its farthest goal.
pub fn q_map_of(
    world: &dyn Cmdp,
    context: ContextId,
    eval: &EvalConfig,
    seed: u64,
    agents: &[(&'static str, &Agent)],
) -> Result<Picture, LearnError> {
    let mut tasks = Vec::new();
    for task in world.tasks(context)? {
        tasks.push((optimal_steps(world, context, &task)?, task));
    }
    let Some((steps, task)) = tasks.into_iter().max_by_key(|(steps, _)| *steps) else {
        return Err(cannot("qmap", "needs a context with a task"));
    };
    let mut about = world.describe(context)?;
    if let Reward::Goal { goal, .. } = &task.reward {
        about["goals"] = json!([goal]); // the others are not asked for
    }
    let maze = Maze::from_description(&about).ok_or_else(|| cannot("qmap", "needs a world with a map"))?;
    let views = views::of_context(world, context, &task, eval, seed, agents)?;
    let subtitle = format!(
        "unseen layout {}, {} ({} steps from the start), after a random trajectory of {} steps",
        context.0,
        task.name,
        steps.unwrap_or(0),
        eval.context_steps
    );
    Ok(qmap::draw(&maze, "Value of each cell and greedy moves", &subtitle, &views))
}

/// Trajectories in the first contexts of a split, context by context.
fn trajectories(
    world: &dyn Cmdp,
    eval: &EvalConfig,
    seed: u64,
    split: Split,
) -> Result<Vec<Trajectory>, LearnError> {
    let contexts = world.contexts(split).iter().take(CONTEXTS);
    let all = contexts.flat_map(|&context| (0..TRAJECTORIES).map(move |round| (context, round)));
    all.map(|(context, round)| explore(world, context, eval, seed, round)).collect()
}

/// The beliefs of the first subject that has any, in their first two principal components.
pub fn beliefs(subjects: &[Subject<'_>]) -> Result<Picture, LearnError> {
    for Subject { run, world, agent } in subjects {
        let mut sets = Vec::new();
        for split in [Split::Train, Split::Test] {
            let trajectories = trajectories(*world, &run.plan.eval, run.seed, split)?;
            let h = agent.beliefs(&trajectories.iter().collect::<Vec<_>>());
            sets.push((split, plane::rows(&h, trajectories.len())));
        }
        if sets.iter().all(|(_, rows)| rows.first().is_some_and(|row| !row.is_empty())) {
            let about = format!(
                "{}, seed {}: h after {TRAJECTORIES} random trajectories of {} steps in each of {CONTEXTS} contexts",
                run.plan.env, run.seed, run.plan.eval.context_steps
            );
            return Ok(plane::draw_beliefs(&about, &sets, TRAJECTORIES as usize));
        }
    }
    Err(cannot("beliefs", "needs a run of a method with a belief (bfb or rfb)"))
}

/// What is hidden as the belief of the first subject that has one holds it, where that is a wind or legs.
pub fn hidden(subjects: &[Subject<'_>]) -> Result<Picture, LearnError> {
    for Subject { run, world, agent } in subjects {
        let (eval, steps) = (&run.plan.eval, run.plan.eval.context_steps);
        if let Some(found) = readout(*world, agent, eval, run.seed, steps)? {
            let about =
                format!("{}, seed {}: h after random trajectories of {steps} steps", run.plan.env, run.seed);
            return Ok(hidden::draw(&found, &about));
        }
    }
    Err(cannot("hidden", "needs a belief (bfb or rfb) in a world that hides a wind or legs (ants)"))
}

/// Task vectors around beliefs before and after training, of the first subject that draws them so.
pub fn around_beliefs(subjects: &[Subject<'_>], device: &Device) -> Result<Picture, LearnError> {
    let subject = subjects.iter().find(|s| s.run.method.draw == Draw::Cone);
    let Some(Subject { run, world, agent }) = subject else {
        return Err(cannot("cones", "needs a run of a method that draws tasks around beliefs (rfb)"));
    };
    let trajectories = trajectories(*world, &run.plan.eval, run.seed, Split::Train)?;
    let trajectories: Vec<&Trajectory> = trajectories.iter().collect();
    let (kappa, dim) = (run.plan.fb.kappa, run.plan.fb.dim);
    let before = untrained_beliefs(run, agent, &trajectories, device)?;
    let after = agent.beliefs(&trajectories);
    let cone = VonMisesFisher::new(dim, kappa).ok_or_else(|| cannot("cones", "kappa is no concentration"))?;
    let mut rng = stream(run.seed, "cones figure", &[]);
    let mut stage = |h: &[f32]| {
        let axes = cones::axes(h, trajectories.len(), dim);
        let mut draw = |axis: &Vec<f32>| {
            let mut z = vec![0.0; dim];
            cone.sample(axis, &mut rng, &mut z);
            z
        };
        let tasks = axes.iter().flat_map(|axis| [axis; AROUND]).map(&mut draw).collect();
        cones::Stage { axes, tasks }
    };
    let (before, after) = (stage(&before), stage(&after));
    let about = format!(
        "{}, seed {}, kappa {kappa}, d = {dim}: {CONTEXTS} layouts, {TRAJECTORIES} trajectories each; arrows are h, dots are z",
        run.plan.env, run.seed
    );
    Ok(cones::draw(&about, &before, &after, TRAJECTORIES as usize, AROUND))
}

/// What the encoder says of trajectories before it is trained.
fn untrained_beliefs(
    run: &Run,
    agent: &Agent,
    trajectories: &[&Trajectory],
    device: &Device,
) -> Result<Vec<f32>, LearnError> {
    let config = &run.plan.belief;
    let untrained: Box<dyn BeliefEncoder> = match &agent.belief {
        Some(Belief::Listed(belief)) => {
            Box::new(StateEvidence::new(belief.table.clone(), config, run.seed, device)?)
        }
        Some(Belief::Observations(belief)) => {
            let groups = belief.embeddings().len() / belief.dim();
            Box::new(TransitionSet::new(belief.codec.clone(), groups, config, run.seed, device)?)
        }
        None => return Ok(Vec::new()),
    };
    let evidence: Vec<_> =
        trajectories.iter().map(|trajectory| evidence_of(&*untrained, [*trajectory])).collect();
    Ok(untrained.infer(&evidence.iter().collect::<Vec<_>>()).mean)
}

/// The interference figure: exact, and of each agent on listed states.
pub fn interference(subjects: &[Subject<'_>]) -> Result<Picture, LearnError> {
    let agents = listed(subjects);
    let first = subjects.first().and_then(|s| Some((s, s.world.grid()?)));
    let Some((Subject { run, world, .. }, grid)) = first else {
        return Err(cannot("directions", "needs a run in a grid"));
    };
    directions::draw(*world, grid, run, &agents)
}
