//! Tasks on maps that are no goals, and the best return there is: backward induction over a lattice of positions.

use super::maze::{CELLS, Maze, SIDE};
use super::motion::{CELL, SPEED, Walls, cell_of};
use super::{HORIZON, middle};
use crate::grid::{Layout, RewardTask};
use crate::reward::{Reward, SampledTask, Task};
use crate::rng::Rng;
use std::sync::Arc;

/// Steps of the point between two positions of the lattice, along each axis.
const STRIDE: usize = 2;
/// Distance between them.
const SPACING: f32 = SPEED * STRIDE as f32;
/// Positions along a side: from the edge of the first cell to that of the last.
const POSITIONS: usize = (SIDE as f32 * CELL / SPACING) as usize + 1;

/// Draws `each` tasks of every kind that a map has: rewards of its cells, whatever the place within.
pub(super) fn draw(maze: Maze, rng: &mut Rng, each: usize) -> Vec<SampledTask> {
    let walls = (0..CELLS).filter(|cell| !maze.is_open(*cell));
    let layout = walls.fold(Layout::open(SIDE), Layout::wall);
    let tasks = RewardTask::draw(&layout, rng, each).into_iter().enumerate();
    let sampled = |(number, RewardTask { kind, reward, .. }): (usize, RewardTask)| {
        let states = reward.iter().enumerate().map(|(cell, r)| (middle(cell).to_vec(), *r as f32)).collect();
        // Every place is nearest to the middle of its own cell.
        let reward_of = Reward::Labelled { states, tolerance: CELL };
        let best = best_returns(maze, &reward);
        SampledTask {
            kind,
            task: Task { name: format!("{}-{number}", kind.title()), reward: reward_of },
            best: Arc::new(move |at: &[f32]| best[place(at[0]) + POSITIONS * place(at[1])]),
        }
    };
    tasks.map(sampled).collect()
}

/// The position of the lattice nearest to a coordinate.
fn place(coordinate: f32) -> usize {
    (((coordinate + CELL / 2.0) / SPACING).round() as usize).min(POSITIONS - 1)
}

/// The largest sum of rewards of an episode from each position of the lattice; from places that the point cannot be at, that of
/// the best place beside it.
///
/// A move goes to one of eight positions around, or stays, wherever the sphere fits. Between the lattice and the point that slides there is
/// at most a step at each corner.
fn best_returns(maze: Maze, reward: &[f64]) -> Vec<f32> {
    let walls = Walls::of(maze);
    let coordinate = |i: usize| i as f32 * SPACING - CELL / 2.0;
    let at = |index: usize| [coordinate(index % POSITIONS), coordinate(index / POSITIONS)];
    let fits = |index: usize| {
        let [x, y] = at(index);
        maze.is_open(cell_of(x) + SIDE * cell_of(y)) && walls.is_clear([x, y])
    };
    let clear: Vec<bool> = (0..POSITIONS * POSITIONS).map(fits).collect();
    let around = |index: usize| {
        let (x, y) = (index % POSITIONS, index / POSITIONS);
        let span = |i: usize| i.saturating_sub(1)..(i + 2).min(POSITIONS);
        span(y).flat_map(move |y| span(x).map(move |x| x + POSITIONS * y))
    };
    let gain: Vec<f32> = (0..clear.len())
        .map(|index| {
            let [x, y] = at(index);
            STRIDE as f32 * reward[cell_of(x) + SIDE * cell_of(y)] as f32
        })
        .collect();
    let best_of = |value: &[f32], index: usize| {
        around(index).filter(|next| clear[*next]).map(|next| value[next]).fold(f32::MIN, f32::max)
    };
    let mut value = vec![0.0; clear.len()];
    for _ in 0..HORIZON / STRIDE {
        let ahead: Vec<f32> = gain.iter().zip(&value).map(|(gain, value)| gain + value).collect();
        for index in (0..clear.len()).filter(|index| clear[*index]) {
            value[index] = best_of(&ahead, index);
        }
    }
    let filled = |index: usize| if clear[index] { value[index] } else { best_of(&value, index) };
    (0..clear.len()).map(filled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Split, Start};
    use crate::grid::RewardKind;
    use crate::protocol::{EvalEpisode, RandomPolicy, rollout};
    use crate::registry::{WorldConfig, make};
    use crate::rng::stream;

    #[test]
    fn nobody_earns_more_than_the_best_return_and_who_knows_the_way_earns_nearly_that() {
        let world = make("pointmass", &WorldConfig::default()).unwrap();
        let (mut earned, mut possible) = (0.0, 0.0);
        for &context in world.contexts(Split::Test) {
            let maze = Maze::from_code(context.0).unwrap();
            // One rewarded cell: a shortest way there, and staying, is best.
            let mut reward = vec![0.0; CELLS];
            reward[maze.goal()] = 1.0;
            let best = best_returns(maze, &reward);
            let mut env = world.instantiate(context).unwrap();
            let (mut at, mut rng) = ([0.0; 2], stream(context.0, "test", &[]));
            env.reset(Start::Fixed, &mut rng, &mut at).unwrap();
            let most = best[place(at[0]) + POSITIONS * place(at[1])];
            let mut oracle = world.oracle(context).unwrap().unwrap();
            oracle.begin(&world.tasks(context).unwrap()[0], &at).unwrap();
            let mut action = world.spec().action.buffer();
            let mut sum = 0.0;
            for _ in 0..HORIZON {
                oracle.act(&at, &mut rng, &mut action);
                env.step(action.as_action(), &mut at).unwrap();
                sum += reward[cell_of(at[0]) + SIDE * cell_of(at[1])] as f32;
            }
            // A step or two for the lattice.
            assert!(sum <= most + 4.0, "{sum} {most}");
            earned += sum;
            possible += most;
        }
        // Who goes from middle to middle takes corners at right angles.
        assert!(earned > 0.85 * possible, "{earned} {possible}");
    }

    #[test]
    fn every_map_has_tasks_of_most_kinds_on_which_chance_earns_less() {
        let world = make("pointmass", &WorldConfig::default()).unwrap();
        let mut kinds = Vec::new();
        for &context in &world.contexts(Split::Test)[..5] {
            let maze = Maze::from_code(context.0).unwrap();
            for SampledTask { kind, task, best } in draw(maze, &mut stream(3, "test", &[context.0]), 1) {
                kinds.push(kind);
                let episode = EvalEpisode { context, task, rng: stream(1, "episode", &[]) };
                let mut policy = RandomPolicy(world.spec().action.clone());
                let by_chance = rollout(world.as_ref(), episode, &mut policy).unwrap().reward;
                assert!(by_chance <= best(&middle(maze.start())) + 4.0, "{kind:?}");
            }
        }
        assert!(RewardKind::ALL.iter().filter(|kind| kinds.contains(kind)).count() >= 4, "{kinds:?}");
    }
}
