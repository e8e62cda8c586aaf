//! The policy that every score on mazes must be held against: it knows nothing and heads straight for the goal.

use super::motion::SPEED;
use crate::env::ActionBuf;
use crate::error::WorldError;
use crate::protocol::Policy;
use crate::reward::{Reward, Task};
use crate::rng::Rng;

/// Pushes toward the goal at full speed; walls make it slide.
#[derive(Debug, Default)]
pub struct Beeline {
    goal: [f32; 2],
}

impl Policy for Beeline {
    fn begin(&mut self, task: &Task, _obs: &[f32]) -> Result<(), WorldError> {
        let Reward::Goal { goal, .. } = &task.reward else {
            return Err(WorldError::Invalid(format!("task {}: a straight line needs a goal", task.name)));
        };
        self.goal = [goal[0], goal[1]];
        Ok(())
    }

    fn act(&mut self, obs: &[f32], _rng: &mut Rng, action: &mut ActionBuf) {
        let toward = |axis: usize| ((self.goal[axis] - obs[axis]) / SPEED).clamp(-1.0, 1.0);
        *action = ActionBuf::Continuous(vec![toward(0), toward(1)]);
    }
}
