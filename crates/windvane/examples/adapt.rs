//! A trained agent in a new context: load it, let it see a few transitions, give it a task, act, and go on learning while acting.
//!
//! `cargo run --release --example adapt --workspace -- runs/bfb` with any run of Belief-FB or Rotation-FB.

#![allow(clippy::print_stdout)] // an example tells what it does

use windvane::{Agent, LearnError, Run};
use windvane_world::collect::{Behaviour as _, BehaviourPolicy};
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Prompt, Reward, Split, Start};

fn main() -> Result<(), LearnError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "runs/bfb".to_owned());
    let run = Run::read(folder.as_ref())?;
    let agent = Agent::load(&folder)?;
    let world = run.world()?;

    // A context that training did not meet, and a short random trajectory in it: no reward, no label.
    let context = world.contexts(Split::Test)[0];
    let mut env = world.instantiate(context)?;
    let mut rng = stream(1, "example", &[]);
    let mut policy = BehaviourPolicy::Uniform.actor(&*world, context)?;
    let random = |obs: &[f32], rng: &mut _, action: &mut _| policy.act(obs, rng, action);
    let seen = Trajectory::explore(&mut *env, world.spec(), Start::Fixed, 200, &mut rng, random)?;

    // What the agent makes of it: the belief, and whether it looks like training at all.
    let adapted = agent.adapt(&[seen])?;
    let confidence = adapted.confidence();
    println!("{} transitions seen, ood score {:?}", confidence.transitions, confidence.ood_score);

    // A goal as a task; formulas over the names of the observation work as well: Prompt::formula("x > 6").
    let task = &world.tasks(context)?[0];
    let Reward::Goal { goal, .. } = &task.reward else { return Ok(()) };
    let mut session = adapted.task(&Prompt::goal(goal))?.online();

    let mut obs = vec![0.0; world.spec().obs_dim()];
    env.reset(Start::Fixed, &mut rng, &mut obs)?;
    for step in 0..world.spec().horizon {
        if task.reward.reached(&obs) {
            println!("{}: reached after {step} steps", task.name);
            return Ok(());
        }
        let action = session.act(&obs)?;
        let before = obs.clone();
        env.step(action.as_action(), &mut obs)?;
        session.observe(&before, &action, &obs)?; // the belief goes on learning
    }
    println!("{}: not reached within {} steps", task.name, world.spec().horizon);
    Ok(())
}
