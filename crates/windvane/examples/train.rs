//! An environment of one's own, from nothing to scores: a ring of rooms whose two doors turn the same or the other way round.

use std::sync::atomic::AtomicBool;
use windvane::eval::{BeliefMode, success};
use windvane::run::{Run, RunContext, Silent};
use windvane::{LearnError, Plan, Planner, methods};
use windvane_world::{
    Action, ActionSpace, Cmdp, ContextId, Dim, Env, EnvSpec, Reward, Rng, Split, Start, Step, Task,
    WorldError,
};

const ROOMS: u32 = 12;

/// Context 0: "left" goes left. Context 1: it goes right. Nobody tells which it is.
struct Ring(EnvSpec, [ContextId; 2]);

struct Room {
    turned: bool,
    at: u32,
}

impl Env for Room {
    fn reset(&mut self, start: Start, rng: &mut Rng, obs: &mut [f32]) -> Result<(), WorldError> {
        self.at = if start == Start::Fixed { 0 } else { rand::RngExt::random_range(rng, 0..ROOMS) };
        obs[0] = self.at as f32;
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, obs: &mut [f32]) -> Result<Step, WorldError> {
        let right = (action == Action::Discrete(1)) != self.turned;
        self.at = (self.at + if right { 1 } else { ROOMS - 1 }) % ROOMS;
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
        Ok(Box::new(Room { turned: context.0 == 1, at: 0 }))
    }

    fn tasks(&self, _: ContextId) -> Result<Vec<Task>, WorldError> {
        let reward = Reward::Goal { goal: vec![4.0], tolerance: 0.0 };
        Ok(vec![Task { name: "room 4".into(), reward }])
    }

    fn describe(&self, context: ContextId) -> Result<serde_json::Value, WorldError> {
        Ok(serde_json::json!({ "turned": context.0 == 1 }))
    }
}

fn main() -> Result<(), LearnError> {
    let room = Dim { name: "room".into(), low: 0.0, high: (ROOMS - 1) as f32, integer: true };
    let action = ActionSpace::Discrete { names: vec!["left".into(), "right".into()] };
    let spec = EnvSpec { name: "ring".into(), observation: vec![room], action, horizon: 5 };
    let world = Ring(spec, [ContextId(0), ContextId(1)]);
    let plan = Plan::preset("doors", "quick")?.set("data.episodes=40")?.set("fb.steps=150")?.set("eval.context_steps=5")?;
    let plan = Plan { env: "ring".into(), ..plan.value().check()? };
    let folder = std::env::temp_dir().join(format!("windvane-train-{}", std::process::id()));
    let run = Run::in_folder(plan, *methods::find("bfb")?, 0, &folder);
    let (device, interrupt) = (windvane::device::DeviceName::Cpu.open()?, AtomicBool::new(false));
    let mut at = RunContext { world: &world, device: &device, progress: &mut Silent, interrupt: &interrupt };
    if let Some(agent) = run.agent(&mut at)? {
        let rows = run.scores(&world, &agent, Split::Train, BeliefMode::Frozen, Planner::None)?;
        println!("room 4 was reached in {:.2} of {} episodes by F alone", success(&rows), rows.len());
    }
    std::fs::remove_dir_all(&folder).ok();
    Ok(())
}
