//! The evaluation protocol's score rows: every context of a split, every task, greedy, after a reward-free context.

pub mod rewards;

use crate::agent::{Acting, Agent, TaskPolicy};
use crate::error::LearnError;
use crate::planner::Planner;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use windvane_world::collect::{Actor, Behaviour as _, BehaviourPolicy};
use windvane_world::protocol::{EvalEpisode, Outcome, RandomPolicy, VectorPolicy, play_from, rollout};
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Actions, Cmdp, ContextId, Env, Reward, Rng, Split, Start, Task};

/// How the belief is used while acting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BeliefMode {
    /// Frozen after the context, as in the paper.
    Frozen,
    /// Refreshed by every transition met while acting.
    Online,
}

/// What to evaluate, and how.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalConfig {
    /// Steps of the random trajectory that forms the belief; paper: 100.
    pub context_steps: usize,
    /// Where that trajectory begins.
    pub context_start: Start,
    /// Who acts on it; paper: the policy that collected the data.
    pub context_policy: BehaviourPolicy,
    /// Episodes of each context and task, each after another random trajectory.
    pub rounds: u64,
    /// Most contexts of a split that are played: the first ones. Thousands of training contexts need not all be.
    pub contexts: usize,
    /// Who chooses actions: F alone, or the planner.
    pub planner: Planner,
    /// How a task becomes actions by F alone; paper: greedy.
    pub task_policy: TaskPolicy,
    /// Rotation-FB: how far task vectors go toward the belief before acting, 0 to 1. The paper does not say; its code
    /// leaves them as they are. Agents that were exported leave them so, too.
    pub blend: f32,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            context_steps: 100,
            context_start: Start::Fixed,
            context_policy: BehaviourPolicy::Uniform,
            rounds: 4,
            contexts: 200,
            planner: Planner::None,
            task_policy: TaskPolicy::Greedy,
            blend: 0.0,
        }
    }
}

/// One episode's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreRow {
    /// Contexts seen in training, or not.
    pub split: Split,
    /// The context.
    pub context: u64,
    /// The task's name.
    pub task: String,
    /// Which of the episodes with this context and task.
    pub round: u64,
    /// Whether the goal was reached within the horizon.
    pub success: bool,
    /// The sum of rewards.
    #[serde(rename = "return")]
    pub reward: f32,
    /// Steps taken.
    pub steps: usize,
    /// Steps that a policy that knows the map takes; nothing where none is known.
    pub optimal_steps: Option<usize>,
    /// Length of the random trajectory seen before.
    pub context_steps: usize,
    /// Where it began.
    pub context_start: Start,
    /// Who acted on it.
    pub context_policy: BehaviourPolicy,
    /// Whether the belief went on learning.
    pub belief: BeliefMode,
    /// Who chose actions.
    pub planner: Planner,
}

/// Lets `agent` play every task in every context of a split; rows in order of context, task and round.
///
/// The random trajectories depend on `seed`, context and round only, so all methods see the same ones.
pub fn evaluate(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    belief: BeliefMode,
    config: &EvalConfig,
    seed: u64,
) -> Result<Vec<ScoreRow>, LearnError> {
    Ok(evaluate_timed(world, agent, split, belief, config, seed)?.0)
}

/// The same, and the seconds that the agent took to adapt to a new context, on average: all it does between seeing the
/// random trajectories and its first actions, for all tasks of a context together.
pub fn evaluate_timed(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    belief: BeliefMode,
    config: &EvalConfig,
    seed: u64,
) -> Result<(Vec<ScoreRow>, f64), LearnError> {
    let trajectory = |context, round| explore(world, context, config, seed, round);
    evaluate_after(world, agent, split, belief, config, seed, trajectory)
}

/// The same after trajectories that `trajectory` makes for each context and round.
pub fn evaluate_after(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    belief: BeliefMode,
    config: &EvalConfig,
    seed: u64,
    trajectory: impl Fn(ContextId, u64) -> Result<Trajectory, LearnError>,
) -> Result<(Vec<ScoreRow>, f64), LearnError> {
    let tasks = |context| Ok(world.tasks(context)?);
    evaluate_tasks(world, agent, split, belief, config, seed, trajectory, (Start::Fixed, tasks))
}

/// The same of the world's own task alone where scores are returns ([`ScoreKind`]), as they are looked at during training.
pub(crate) fn evaluate_own(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    config: &EvalConfig,
    seed: u64,
) -> Result<Vec<ScoreRow>, LearnError> {
    let kind = ScoreKind::of(world)?;
    let other = |task: &Task| matches!(&kind, ScoreKind::Return(name) if *name != task.name);
    let tasks = |context| Ok(world.tasks(context)?.into_iter().filter(|task| !other(task)).collect());
    let trajectory = |context, round| explore(world, context, config, seed, round);
    let belief = BeliefMode::Frozen;
    Ok(evaluate_tasks(world, agent, split, belief, config, seed, trajectory, (Start::Fixed, tasks))?.0)
}

/// Lets `agent` go from anywhere to every place of every context of a split, each from `config.rounds` starts
/// drawn at random; an error where places are not distinct.
pub fn evaluate_places(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    belief: BeliefMode,
    config: &EvalConfig,
    seed: u64,
) -> Result<Vec<ScoreRow>, LearnError> {
    let places = |context: ContextId| {
        let places = world.places(context)?;
        if places.is_empty() {
            let problem = format!("{} has no distinct places", world.spec().name);
            return Err(LearnError::Config { origin: "places".into(), problem });
        }
        Ok(places)
    };
    let trajectory = |context, round| explore(world, context, config, seed, round);
    let played =
        evaluate_tasks(world, agent, split, belief, config, seed, trajectory, (Start::Random, places));
    Ok(played?.0)
}

/// Lets `agent` play the tasks that `tasks` names, from where `start` says.
#[allow(clippy::too_many_arguments)] // what an evaluation is made of
fn evaluate_tasks(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    belief: BeliefMode,
    config: &EvalConfig,
    seed: u64,
    trajectory: impl Fn(ContextId, u64) -> Result<Trajectory, LearnError>,
    (start, tasks): (Start, impl Fn(ContextId) -> Result<Vec<Task>, LearnError>),
) -> Result<(Vec<ScoreRow>, f64), LearnError> {
    if config.planner == Planner::Sweeps && !agent.can_plan() {
        let problem = "this agent has no predictor to plan on; expected planner = \"none\"".into();
        return Err(LearnError::Config { origin: "eval.planner".into(), problem });
    }
    let mut episodes = Vec::new();
    let mut rows = Vec::new();
    let mut contexts = Vec::new();
    for &context in world.contexts(split).iter().take(config.contexts) {
        for round in 0..config.rounds {
            contexts.push(trajectory(context, round)?);
        }
        for task in tasks(context)? {
            let optimal_steps = match start {
                Start::Fixed => optimal_steps(world, context, &task)?,
                Start::Random => None,
            };
            for round in 0..config.rounds {
                let which = contexts.len() - (config.rounds - round) as usize;
                rows.push((which, row(context, &task, round, optimal_steps, split, belief, config)));
                episodes.push(episode(context, &task, round, seed));
            }
        }
    }
    let seen: Vec<&Trajectory> = rows.iter().map(|(which, _)| &contexts[*which]).collect();
    let clock = Instant::now();
    let policy = agent.rollout(&seen, Acting::of(config, belief))?;
    let mut policy = Timed { policy, clock, seconds: 0.0 };
    let outcomes = play_from(world, episodes, start, &mut policy)?;
    let finish = |((_, row), outcome): ((usize, ScoreRow), Outcome)| ScoreRow {
        success: outcome.success,
        reward: outcome.reward,
        steps: outcome.steps,
        ..row
    };
    let rows = rows.into_iter().zip(outcomes).map(finish).collect();
    Ok((rows, policy.seconds / contexts.len().max(1) as f64))
}

/// The share of episodes that random actions win, under the same protocol.
pub fn random_success(
    world: &dyn Cmdp,
    split: Split,
    config: &EvalConfig,
    seed: u64,
) -> Result<f64, LearnError> {
    let (mut won, mut all) = (0_usize, 0_usize);
    for &context in world.contexts(split).iter().take(config.contexts) {
        for task in world.tasks(context)? {
            for round in 0..config.rounds {
                let mut policy = RandomPolicy(world.spec().action.clone());
                won +=
                    usize::from(rollout(world, episode(context, &task, round, seed), &mut policy)?.success);
                all += 1;
            }
        }
    }
    Ok(won as f64 / all.max(1) as f64)
}

fn episode(context: ContextId, task: &Task, round: u64, seed: u64) -> EvalEpisode {
    EvalEpisode { context, task: task.clone(), rng: stream(seed, "episode", &[context.0, round]) }
}

/// A policy, and the seconds it took to get ready.
struct Timed<'a> {
    policy: crate::agent::Rollout<'a>,
    clock: Instant,
    seconds: f64,
}

impl VectorPolicy for Timed<'_> {
    type Error = LearnError;

    fn begin(&mut self, episodes: &[EvalEpisode], obs: &[f32]) -> Result<(), LearnError> {
        self.policy.begin(episodes, obs)?;
        self.seconds = self.clock.elapsed().as_secs_f64();
        Ok(())
    }

    fn act(
        &mut self,
        running: &[usize],
        obs: &[f32],
        episodes: &mut [EvalEpisode],
        actions: &mut Actions,
    ) -> Result<(), LearnError> {
        self.policy.act(running, obs, episodes, actions)
    }

    fn observe(
        &mut self,
        running: &[usize],
        obs: &[f32],
        actions: &Actions,
        next: &[f32],
    ) -> Result<(), LearnError> {
        self.policy.observe(running, obs, actions, next)
    }
}

/// What the episodes of a world are scored by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScoreKind {
    /// The share that reached their goal, or held what was to be held.
    Success,
    /// The mean return of the task with this name: rewards without a goal.
    Return(String),
}

impl ScoreKind {
    /// What `world` is scored by: success where its first task has one, else the return of that task.
    pub fn of(world: &dyn Cmdp) -> Result<Self, LearnError> {
        let contexts = [Split::Train, Split::Test].map(|split| world.contexts(split).first());
        let Some(&context) = contexts.into_iter().flatten().next() else { return Ok(Self::Success) };
        Ok(match world.tasks(context)?.into_iter().next() {
            Some(Task { name, reward: Reward::Function(_) | Reward::Labelled { .. } }) => Self::Return(name),
            _ => Self::Success,
        })
    }

    /// The score of episodes.
    pub fn mean(&self, rows: &[ScoreRow]) -> f64 {
        let Self::Return(task) = self else { return success(rows) };
        let of_task = || rows.iter().filter(|row| row.task == *task);
        of_task().map(|row| f64::from(row.reward)).sum::<f64>() / of_task().count().max(1) as f64
    }

    /// As keys call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Return(_) => "return",
        }
    }

    /// As tables call it.
    pub fn title(&self) -> String {
        match self {
            Self::Success => "Success".to_owned(),
            Self::Return(task) => format!("Return of the task \"{task}\""),
        }
    }

    /// A score with as many digits as say something.
    pub fn text(&self, score: f64) -> String {
        match self {
            Self::Success => format!("{score:.3}"),
            Self::Return(_) => format!("{score:.1}"),
        }
    }
}

/// The share of episodes that reached their goal.
pub fn success(rows: &[ScoreRow]) -> f64 {
    rows.iter().filter(|row| row.success).count() as f64 / rows.len().max(1) as f64
}

/// The mean return of episodes.
pub(crate) fn mean_return(rows: &[ScoreRow]) -> f64 {
    rows.iter().map(|row| f64::from(row.reward)).sum::<f64>() / rows.len().max(1) as f64
}

/// The reward-free trajectory of one context and round.
pub(crate) fn explore(
    world: &dyn Cmdp,
    context: ContextId,
    config: &EvalConfig,
    seed: u64,
    round: u64,
) -> Result<Trajectory, LearnError> {
    explore_in(&mut *world.instantiate(context)?, world, context, config, seed, round)
}

/// The same in an environment that may not be the context's own.
pub(crate) fn explore_in(
    env: &mut dyn Env,
    world: &dyn Cmdp,
    context: ContextId,
    config: &EvalConfig,
    seed: u64,
    round: u64,
) -> Result<Trajectory, LearnError> {
    let mut actor = config.context_policy.actor(world, context)?;
    let mut rng = stream(seed, "context", &[context.0, round]);
    trajectory_of(&mut *actor, env, world, config, &mut rng)
}

/// A trajectory of `actor` through `env`.
pub(crate) fn trajectory_of(
    actor: &mut dyn Actor,
    env: &mut dyn Env,
    world: &dyn Cmdp,
    config: &EvalConfig,
    rng: &mut Rng,
) -> Result<Trajectory, LearnError> {
    actor.begin(rng);
    let act = |obs: &[f32], rng: &mut _, action: &mut _| actor.act(obs, rng, action);
    let EvalConfig { context_start, context_steps, .. } = *config;
    Ok(Trajectory::explore(env, world.spec(), context_start, context_steps, rng, act)?)
}

/// Steps that a policy that knows the map takes; nothing where none is known.
pub(crate) fn optimal_steps(
    world: &dyn Cmdp,
    context: ContextId,
    task: &Task,
) -> Result<Option<usize>, LearnError> {
    if matches!(task.reward, Reward::Function(_)) {
        return Ok(None); // it is never reached
    }
    let Some(mut oracle) = world.oracle(context)? else { return Ok(None) };
    let episode = EvalEpisode { context, task: task.clone(), rng: stream(0, "oracle", &[context.0]) };
    let outcome = rollout(world, episode, &mut *oracle)?;
    Ok(outcome.success.then_some(outcome.steps))
}

/// The row of an episode that is still to be played.
pub(crate) fn row(
    context: ContextId,
    task: &Task,
    round: u64,
    optimal_steps: Option<usize>,
    split: Split,
    belief: BeliefMode,
    config: &EvalConfig,
) -> ScoreRow {
    ScoreRow {
        split,
        context: context.0,
        task: task.name.clone(),
        round,
        success: false,
        reward: 0.0,
        steps: 0,
        optimal_steps,
        context_steps: config.context_steps,
        context_start: config.context_start,
        context_policy: config.context_policy,
        belief,
        planner: config.planner,
    }
}
