//! The point's reference policy: it knows the map and follows the shortest path, cell by cell.

use super::maze::{Maze, SIDE};
use super::middle;
use super::motion::{SPEED, cell_of};
use crate::env::ActionBuf;
use crate::error::WorldError;
use crate::protocol::Policy;
use crate::reward::{Reward, Task};
use crate::rng::Rng;

/// Heads for the middle of the next cell on a shortest path, in the last one for the goal itself.
pub struct Follower {
    maze: Maze,
    goal: [f32; 2],
    /// For each cell, the point to head for.
    heading: [[f32; 2]; SIDE * SIDE],
}

impl Follower {
    /// A follower that knows `maze`.
    pub fn new(maze: Maze) -> Self {
        Self { maze, goal: [0.0; 2], heading: [[0.0; 2]; SIDE * SIDE] }
    }
}

impl Policy for Follower {
    fn begin(&mut self, task: &Task, _obs: &[f32]) -> Result<(), WorldError> {
        let Reward::Goal { goal, .. } = &task.reward else {
            return Err(WorldError::Invalid(format!("task {}: a shortest path needs a goal", task.name)));
        };
        self.goal = [goal[0], goal[1]];
        let last = cell_of(goal[0]) + SIDE * cell_of(goal[1]);
        let distance = self.maze.distances(last);
        self.heading = std::array::from_fn(|cell| {
            let closer = |&next: &usize| {
                let apart = (cell % SIDE).abs_diff(next % SIDE) + (cell / SIDE).abs_diff(next / SIDE);
                apart == 1 && distance[next].is_some() && distance[next] < distance[cell]
            };
            (0..SIDE * SIDE).find(closer).map_or(self.goal, middle)
        });
        Ok(())
    }

    fn act(&mut self, obs: &[f32], _rng: &mut Rng, action: &mut ActionBuf) {
        let target = self.heading[cell_of(obs[0]) + SIDE * cell_of(obs[1])];
        let toward = |axis: usize| ((target[axis] - obs[axis]) / SPEED).clamp(-1.0, 1.0);
        *action = ActionBuf::Continuous(vec![toward(0), toward(1)]);
    }
}
