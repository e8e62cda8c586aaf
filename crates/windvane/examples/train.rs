//! An environment of one's own, from nothing to scores: a ring of rooms, one of which is shut, and nobody tells which.
#![allow(clippy::print_stdout)] // an example tells what it does

use std::sync::atomic::AtomicBool;
use windvane::eval::{BeliefMode, success};
use windvane::run::{RunContext, Silent};
use windvane::{LearnError, Plan, Planner, Run, methods};
use windvane_world::{
    Action, ActionSpace, Cmdp, ContextId, Dim, Env, EnvSpec, Reward, Rng, Split, Start, Step, Task,
    WorldError,
};

const ROOMS: u32 = 12;
/// The room that is shut, by context: to the right of the start, or to the left.
const SHUT: [u32; 2] = [1, ROOMS - 1];

struct Ring(EnvSpec, [ContextId; 2]);

#[rustfmt::skip]
struct Room { shut: u32, at: u32 }

impl Env for Room {
    fn reset(&mut self, start: Start, rng: &mut Rng, obs: &mut [f32]) -> Result<(), WorldError> {
        self.at = if start == Start::Fixed { 0 } else { rand::RngExt::random_range(rng, 2..ROOMS - 1) };
        obs.fill(self.at as f32);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, obs: &mut [f32]) -> Result<Step, WorldError> {
        let next = (self.at + if action == Action::Discrete(1) { 1 } else { ROOMS - 1 }) % ROOMS;
        self.at = if next == self.shut { self.at } else { next };
        obs[0] = self.at as f32;
        Ok(Step::default())
    }
}

impl Cmdp for Ring {
    fn spec(&self) -> &EnvSpec {
        &self.0
    }

    fn contexts(&self, _: Split) -> &[ContextId] {
        &self.1
    }

    fn instantiate(&self, context: ContextId) -> Result<Box<dyn Env>, WorldError> {
        Ok(Box::new(Room { shut: SHUT[context.0 as usize], at: 0 }))
    }

    fn tasks(&self, _: ContextId) -> Result<Vec<Task>, WorldError> {
        Ok(vec![Task { name: "room 6".into(), reward: Reward::Goal { goal: vec![6.0], tolerance: 0.0 } }])
    }

    fn describe(&self, context: ContextId) -> Result<serde_json::Value, WorldError> {
        Ok(serde_json::json!({ "shut": SHUT[context.0 as usize] }))
    }
}

fn main() -> Result<(), LearnError> {
    let room = Dim { name: "room".into(), low: 0.0, high: (ROOMS - 1) as f32, integer: true };
    let action = ActionSpace::Discrete { names: vec!["left".into(), "right".into()] };
    let spec = EnvSpec { name: "ring".into(), observation: vec![room], action, horizon: 8 };
    let world = Ring(spec, [ContextId(0), ContextId(1)]);
    let plan = Plan::preset("doors", "quick")?
        .set("data.episodes=40")?
        .set("fb.steps=150")?
        .set("eval.context_steps=12")?;
    let plan = Plan { env: "ring".into(), ..plan.value().check()? };
    let folder = std::env::temp_dir().join(format!("windvane-train-{}", std::process::id()));
    let run = Run::in_folder(plan, *methods::find("bfb")?, 0, &folder);
    let (device, interrupt) = (&windvane::device::DeviceName::Cpu.open()?, &AtomicBool::new(false));
    let mut at = RunContext { world: &world, device, progress: &mut Silent, interrupt };
    let Some(agent) = run.agent(&mut at)? else { return Ok(()) }; // interrupted
    let rows = run.scores(&world, &agent, Split::Train, BeliefMode::Frozen, Planner::None)?;
    println!("room 6 was reached in {:.2} of {} episodes by F alone", success(&rows), rows.len());
    std::fs::remove_dir_all(&folder).ok();
    Ok(())
}
