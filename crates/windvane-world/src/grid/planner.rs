//! The policy that plans on what it believes: exact references and learned beliefs act through it alike.

use super::dynamics::Dynamics;
use super::plan::{Failure, Objective, Plan};
use super::posterior::Posterior;
use crate::env::{Action, ActionBuf, EnvSpec};
use crate::error::WorldError;
use crate::protocol::Policy;
use crate::reward::Task;
use crate::rng::Rng;

/// What someone thinks of a grid's dynamics.
pub trait Belief {
    /// The dynamics to plan on.
    fn dynamics(&self) -> Dynamics;
    /// Sees that `action` led from `cell` to `next`; whether the dynamics are thought of differently now.
    fn observe(&mut self, cell: usize, action: usize, next: usize) -> bool;
    /// What it means to someone with this belief that a move fails: for good, if nothing is learned from it.
    fn failure(&self) -> Failure;
}

/// A belief that is settled: a known map, or one that was formed before and is frozen.
impl Belief for Dynamics {
    fn dynamics(&self) -> Dynamics {
        self.clone()
    }

    fn observe(&mut self, _cell: usize, _action: usize, _next: usize) -> bool {
        false
    }

    fn failure(&self) -> Failure {
        Failure::Lasts
    }
}

/// The exact belief, updated while acting.
impl Belief for Posterior<'_> {
    fn dynamics(&self) -> Dynamics {
        self.dynamics()
    }

    fn observe(&mut self, cell: usize, action: usize, next: usize) -> bool {
        self.observe(cell, action, next)
    }

    fn failure(&self) -> Failure {
        Failure::Chance
    }
}

/// Takes the best move of a plan on its belief, and plans anew when the belief changes.
pub struct Planner<'a, B> {
    spec: &'a EnvSpec,
    belief: B,
    objective: Option<Objective>,
    plan: Option<Plan>,
}

impl<'a, B: Belief> Planner<'a, B> {
    /// A planner with this belief, for any task of the world with this spec.
    pub fn new(spec: &'a EnvSpec, belief: B) -> Self {
        Self { spec, belief, objective: None, plan: None }
    }
}

/// The discount of plans; success within the horizon hardly depends on it (0.9 to 0.99 tried).
pub const GAMMA: f64 = 0.99;

impl<B: Belief> Policy for Planner<'_, B> {
    fn begin(&mut self, task: &Task, _obs: &[f32]) -> Result<(), WorldError> {
        self.objective = Some(Objective::of(task, self.spec)?);
        self.plan = None;
        Ok(())
    }

    fn act(&mut self, obs: &[f32], _rng: &mut Rng, action: &mut ActionBuf) {
        let plan = self.plan.get_or_insert_with(|| {
            let objective = self.objective.as_ref().expect("an episode that has begun");
            Plan::solve_where(self.belief.failure(), &self.belief.dynamics(), objective, GAMMA)
        });
        let cell = self.spec.state_of(obs).expect("an observation of the planner's own world");
        *action = ActionBuf::Discrete(plan.best(cell) as u32);
    }

    fn observe(&mut self, obs: &[f32], action: Action<'_>, next: &[f32]) {
        let transition = (self.spec.state_of(obs), action, self.spec.state_of(next));
        if let (Some(cell), Action::Discrete(action), Some(next)) = transition
            && self.belief.observe(cell, action as usize, next)
        {
            self.plan = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Prior, distances};
    use crate::protocol::{EvalEpisode, rollout};
    use crate::registry::{WorldConfig, make};
    use crate::{Split, rng};

    #[test]
    fn with_the_true_map_every_path_is_shortest_and_online_every_goal_is_reached() {
        for name in ["doors", "four-rooms"] {
            let world = make(name, &WorldConfig::default()).unwrap();
            let grid = world.grid().unwrap();
            let prior = Prior::new(grid.layouts());
            for &context in world.contexts(Split::Test) {
                let distance = distances(grid.layout(context).unwrap(), grid.start());
                for (task, &goal) in
                    world.tasks(context).unwrap().into_iter().zip(grid.goals(context).unwrap())
                {
                    let episode = EvalEpisode { context, task, rng: rng::stream(0, "episode", &[]) };
                    let mut oracle = world.oracle(context).unwrap().unwrap();
                    let informed = rollout(world.as_ref(), episode.clone(), oracle.as_mut()).unwrap();
                    assert_eq!(informed.steps, usize::from(distance[goal]));
                    let mut online = Planner::new(world.spec(), prior.posterior());
                    let outcome = rollout(world.as_ref(), episode, &mut online).unwrap();
                    assert!(outcome.success && outcome.steps >= informed.steps);
                }
            }
        }
    }
}
