//! Agents at work, as short loops: what they do when they are asked for this and that in a context they have never met.

use super::inside::{Subject, cannot};
use crate::agent::{Acting, Rollout};
use crate::error::LearnError;
use crate::eval::explore;
use windvane_world::picture::{Anchor, Ink, Margins, Picture, Sheet, TextStyle, gait};
use windvane_world::protocol::{EvalEpisode, Policy, VectorPolicy, play, rollout};
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, ActionBuf, Actions, Cmdp, ContextId, Rng, Split, Task, WorldError};

/// What the agent with a belief is asked for; the others are asked for the first alone.
const ASKED: [&str; 4] = ["forward", "left", "backward", "stand"];
/// Steps that are shown, and the seconds that one takes.
const SHOWN: std::ops::Range<usize> = 60..120;
const STEP: f64 = 0.05;

/// One loop: who, asked for what, the observations of a whole episode, and its return.
struct Loop {
    who: &'static str,
    task: String,
    obs: Vec<Vec<f32>>,
    reward: f32,
}

/// Ants in the first unseen context: the first agent with a belief at several tasks, the others and the expert at the first.
pub fn draw(subjects: &[Subject<'_>]) -> Result<Picture, LearnError> {
    let missing = || cannot("gaits", "needs a run in a world of ants");
    let first = subjects.first().ok_or_else(missing)?;
    let (run, world) = (first.run, first.world);
    let context = *world.contexts(Split::Test).first().ok_or_else(missing)?;
    let about = world.describe(context)?;
    if about["kind"] != "ant" {
        return Err(missing());
    }
    let trajectory = explore(world, context, &run.plan.eval, run.seed, 0)?;
    let tasks = world.tasks(context)?;
    let find = |name: &str| tasks.iter().find(|task| task.name == name);
    let mut loops = Vec::new();
    let believer = subjects.iter().find(|s| s.run.method.believes() && !s.run.method.clones);
    if let Some(Subject { run, agent, .. }) = believer {
        for task in ASKED.iter().filter_map(|name| find(name)) {
            loops.push(of_agent(world, agent, run.method.title, (context, task), &trajectory, run.seed)?);
        }
    }
    let plain = subjects.iter().find(|s| s.run.method.name == "fb");
    if let (Some(Subject { run, agent, .. }), Some(task)) = (plain, find(ASKED[0])) {
        loops.push(of_agent(world, agent, run.method.title, (context, task), &trajectory, run.seed)?);
    }
    if let (Some(expert), Some(task)) = (world.oracle(context)?, find(ASKED[0])) {
        let mut watched = Watched { policy: expert, obs: Vec::new() };
        let reward = rollout(world, episode(context, task, run.seed), &mut watched)?.reward;
        loops.push(Loop { who: "expert", task: task.name.clone(), obs: watched.obs, reward });
    }
    let unseen = format!(
        "{}, seed {}, context {}, which nobody learned from; {:.0} seconds of an episode, over and over",
        run.plan.env,
        run.seed,
        context.0,
        STEP * SHOWN.len() as f64
    );
    let columns = Sheet::columns_for(loops.len());
    let sheet = Sheet::new(loops.len(), columns, (190.0, 170.0), (16.0, 24.0), Margins::default());
    let mut svg = sheet.begin("Asked for this and that", &unseen);
    for (place, Loop { who, task, obs, reward }) in loops.iter().enumerate() {
        sheet.panel_title(&mut svg, place, &format!("{who}, asked for {task}"));
        let from = SHOWN.start.min(obs.len().saturating_sub(SHOWN.len()));
        let frames: Vec<&[f32]> = obs.iter().skip(from).take(SHOWN.len()).map(Vec::as_slice).collect();
        let panel = sheet.panel(place);
        if !gait(&mut svg, panel, &about, &frames, STEP * frames.len() as f64) {
            return Err(missing());
        }
        let fell = if obs.len() < world.spec().horizon { ", fell" } else { "" };
        let note = format!("return {reward:.0}{fell}");
        let below = (panel.x + panel.width / 2.0, panel.y + panel.height + 14.0);
        svg.text(below, &note, &TextStyle::new(10.0, Ink::SOFT, Anchor::Middle));
    }
    Ok(svg.finish())
}

fn episode(context: ContextId, task: &Task, seed: u64) -> EvalEpisode {
    EvalEpisode { context, task: task.clone(), rng: stream(seed, "episode", &[context.0, 0]) }
}

/// An agent's episode after a context, its belief frozen.
fn of_agent(
    world: &dyn Cmdp,
    agent: &crate::agent::Agent,
    who: &'static str,
    (context, task): (ContextId, &Task),
    trajectory: &Trajectory,
    seed: u64,
) -> Result<Loop, LearnError> {
    let policy = agent.rollout(&[trajectory], Acting::F_ALONE)?;
    let mut watched = Watched { policy, obs: Vec::new() };
    let reward = play(world, vec![episode(context, task, seed)], &mut watched)?[0].reward;
    Ok(Loop { who, task: task.name.clone(), obs: watched.obs, reward })
}

/// A policy in one episode, and what it saw.
struct Watched<P> {
    policy: P,
    obs: Vec<Vec<f32>>,
}

impl VectorPolicy for Watched<Rollout<'_>> {
    type Error = LearnError;

    fn begin(&mut self, episodes: &[EvalEpisode], obs: &[f32]) -> Result<(), LearnError> {
        self.policy.begin(episodes, obs)
    }

    fn act(
        &mut self,
        running: &[usize],
        obs: &[f32],
        episodes: &mut [EvalEpisode],
        actions: &mut Actions,
    ) -> Result<(), LearnError> {
        self.obs.push(obs.to_vec());
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

impl Policy for Watched<Box<dyn Policy + '_>> {
    fn begin(&mut self, task: &Task, obs: &[f32]) -> Result<(), WorldError> {
        self.policy.begin(task, obs)
    }

    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        self.obs.push(obs.to_vec());
        self.policy.act(obs, rng, action);
    }

    fn observe(&mut self, obs: &[f32], action: Action<'_>, next: &[f32]) {
        self.policy.observe(obs, action, next);
    }
}
