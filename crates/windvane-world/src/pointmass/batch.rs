//! Thousands of points in lockstep.

use super::begin;
use super::maze::Maze;
use super::motion::Walls;
use crate::batch::{BatchEnv, for_each, reject};
use crate::env::{Actions, EnvSpec, Start};
use crate::error::WorldError;
use crate::rng::Rng;
use std::sync::Arc;

/// Points, each in a map of its own.
pub(crate) struct PointBatch {
    spec: Arc<EnvSpec>,
    mazes: Vec<Maze>,
    points: Vec<(Walls, [f32; 2])>,
}

impl PointBatch {
    pub(crate) fn new(spec: Arc<EnvSpec>, mazes: Vec<Maze>) -> Self {
        let points = mazes.iter().map(|&maze| (Walls::of(maze), super::middle(maze.start()))).collect();
        Self { spec, mazes, points }
    }
}

impl BatchEnv for PointBatch {
    fn len(&self) -> usize {
        self.points.len()
    }

    fn reset(&mut self, index: usize, start: Start, rng: &mut Rng, obs: &mut [f32]) {
        let (walls, at) = &mut self.points[index];
        *at = begin(self.mazes[index], walls, start, rng);
        obs.copy_from_slice(at);
    }

    fn step(&mut self, actions: &Actions, obs: &mut [f32]) -> Result<(), WorldError> {
        let count = self.points.len();
        let pushes = match actions {
            Actions::Continuous { size: 2, values }
                if values.len() == 2 * count && values.iter().all(|push| (-1.0..=1.0).contains(push)) =>
            {
                values
            }
            _ => return Err(reject(&self.spec.action, &self.spec.name, actions, count)),
        };
        for_each(&mut self.points, pushes, obs, |(walls, at), &push, obs| {
            *at = walls.slide(*at, push);
            *obs = *at;
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::batch::tests::{a_batch_does_what_single_environments_do, bad_actions_move_nothing};
    use crate::env::Actions;

    #[test]
    fn points_in_lockstep_do_what_single_points_do() {
        a_batch_does_what_single_environments_do("pointmass");
    }

    #[test]
    fn a_bad_push_is_refused_before_anything_moves() {
        let pushes = |last| Actions::Continuous { size: 2, values: vec![0.5, 0.5, 0.5, 0.5, 0.5, last] };
        bad_actions_move_nothing("pointmass", &pushes(1.01));
        bad_actions_move_nothing("pointmass", &pushes(f32::NAN));
        bad_actions_move_nothing("pointmass", &Actions::Discrete(vec![0; 3]));
    }
}
