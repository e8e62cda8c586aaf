//! How the task vectors of a world's own rewards lie to each other, and what B can say of these rewards.

use super::{Finding, Limits};
use crate::agent::Agent;
use crate::agent::task::Inference;
use crate::error::LearnError;
use crate::latent;
use windvane_world::{Cmdp, Reward, Split};

/// Findings about rewards that are functions, in worlds that have several: the share of each one's variation that B expresses, and
/// the angle between its z and that of the first.
pub(super) fn findings(agent: &Agent, world: &dyn Cmdp) -> Result<Vec<Finding>, LearnError> {
    let context = [Split::Train, Split::Test].iter().find_map(|split| world.contexts(*split).first());
    let Some(&context) = context else { return Ok(Vec::new()) };
    let tasks = world.tasks(context)?;
    if tasks.len() < 2 || !tasks.iter().all(|task| matches!(task.reward, Reward::Function(_))) {
        return Ok(Vec::new());
    }
    let advice =
        "raise fb.dim, or train longer on states where this reward differs: B cannot tell what it pays for";
    let first = agent.task(&tasks[0].reward);
    let mut findings = Vec::new();
    for task in &tasks {
        let states = agent.visited.states.chunks_exact(agent.spec().obs_dim());
        let rewards: Vec<f32> = states.map(|obs| task.reward.of(obs)).collect();
        let code = agent.visited.task_of(&rewards, Inference::LeastSquares)?;
        let what = format!("share of the reward \"{}\" that B expresses (R squared)", task.name);
        let limits = Limits { good: 0.7, fair: 0.4 };
        findings.extend(code.fit.map(|fit| Finding::at_least("tasks", what, fit, limits, advice)));
        let degrees = latent::angle(&first, &agent.task(&task.reward));
        let what = format!("angle between z of \"{}\" and of \"{}\", degrees", task.name, tasks[0].name);
        findings.push(Finding::report("tasks", what, degrees));
    }
    Ok(findings)
}
