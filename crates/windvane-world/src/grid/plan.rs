//! Optimal values and moves for any reward, on a known map or on a believed one.

use super::dynamics::Dynamics;
use super::layout::ACTIONS;
use crate::env::EnvSpec;
use crate::error::WorldError;
use crate::reward::{Reward, Task};

/// What is wanted of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Objective {
    /// To reach a cell, where the episode ends with reward 1.
    Reach(usize),
    /// As much as possible of a reward per cell, forever.
    Collect(Vec<f64>),
}

impl Objective {
    /// What a task of a grid world wants.
    pub fn of(task: &Task, spec: &EnvSpec) -> Result<Self, WorldError> {
        let impossible = |why: &str| WorldError::Invalid(format!("{}: task {}: {why}", spec.name, task.name));
        if let Reward::Goal { goal, .. } = &task.reward {
            return spec.state_of(goal).map(Self::Reach).ok_or_else(|| impossible("its goal is no cell"));
        }
        let cells = spec.states().ok_or_else(|| impossible("its states cannot be enumerated"))?;
        let mut obs = vec![0.0; spec.obs_dim()];
        let reward = |cell| {
            spec.write_state(cell, &mut obs);
            f64::from(task.reward.of(&obs))
        };
        Ok(Self::Collect((0..cells).map(reward).collect()))
    }
}

/// What it means that a move fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Bad luck: the next try is a new one.
    Chance,
    /// There is a wall. Who believes in a chance and will not learn better tries the same move for ever.
    Lasts,
}

/// The solution of a grid: optimal values of cells and of moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    values: Vec<f64>,
    moves: Vec<f64>,
}

/// The value of one move as a line over the value of the cell ahead: `offset + slope * V(ahead)`.
struct Line {
    offset: f64,
    slope: f64,
    ahead: usize,
}

impl Plan {
    /// Solves `Q(s,a) = E[r(s') + gamma * max_a' Q(s',a')]` by sweeps in alternating directions, until nothing
    /// changes by more than 1e-10 of the largest value.
    ///
    /// A move's chance to fail is solved for, not iterated: a policy that repeats it gets ahead sooner or later.
    ///
    /// # Panics
    /// If `gamma` is not within 0 to 1 (1 excluded), or the objective is of another grid.
    pub fn solve(dynamics: &Dynamics, objective: &Objective, gamma: f64) -> Self {
        Self::solve_where(Failure::Chance, dynamics, objective, gamma)
    }

    /// The same where a move that fails once may fail for good: then one stays, and gets what there is to get there.
    ///
    /// # Panics
    /// As [`Plan::solve`].
    pub fn solve_where(failure: Failure, dynamics: &Dynamics, objective: &Objective, gamma: f64) -> Self {
        assert!((0.0..1.0).contains(&gamma), "a discount from 0 to below 1, not {gamma}");
        let cells = dynamics.cells();
        let reward = |cell: usize| match objective {
            Objective::Reach(goal) => f64::from(u8::from(cell == *goal)),
            Objective::Collect(rewards) => rewards[cell],
        };
        // Nothing comes after the goal, so its value stays 0.
        let discount = |cell: usize| if *objective == Objective::Reach(cell) { 0.0 } else { gamma };
        let lines: Vec<Line> = (0..cells * ACTIONS)
            .map(|place| {
                let cell = place / ACTIONS;
                let (ahead, p) = dynamics.ahead(cell, place % ACTIONS);
                let (tries, failed) = match failure {
                    Failure::Chance => (1.0 / (1.0 - (1.0 - p) * discount(cell)), reward(cell)),
                    Failure::Lasts => (1.0, reward(cell) / (1.0 - discount(cell))),
                };
                let offset = (p * reward(ahead) + (1.0 - p) * failed) * tries;
                Line { offset, slope: p * discount(ahead) * tries, ahead }
            })
            .collect();
        let mut values = vec![0.0; cells];
        let mut settled = false;
        while !settled {
            let mut change = 0.0_f64;
            let mut largest = 0.0_f64;
            for cell in (0..cells).chain((0..cells).rev()) {
                let lines = &lines[cell * ACTIONS..(cell + 1) * ACTIONS];
                let value = |line: &Line| line.offset + line.slope * values[line.ahead];
                let best = lines.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
                change = change.max((best - values[cell]).abs());
                largest = largest.max(best.abs());
                values[cell] = best;
            }
            settled = change <= 1e-10 * largest;
        }
        let gain = |cell: usize| reward(cell) + discount(cell) * values[cell];
        let moves = (0..cells * ACTIONS)
            .map(|place| {
                let (ahead, p) = dynamics.ahead(place / ACTIONS, place % ACTIONS);
                let failed = match failure {
                    Failure::Chance => gain(place / ACTIONS),
                    Failure::Lasts => reward(place / ACTIONS) / (1.0 - discount(place / ACTIONS)),
                };
                p * gain(ahead) + (1.0 - p) * failed
            })
            .collect();
        Self { values, moves }
    }

    /// The value of each cell: what the best policy gets from there on.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The value of each move, `[cells * ACTIONS]`: `Q(s,a)`.
    pub fn moves(&self) -> &[f64] {
        &self.moves
    }

    /// The best move from `cell`; of equals, the first.
    pub fn best(&self, cell: usize) -> usize {
        let q = &self.moves[cell * ACTIONS..(cell + 1) * ACTIONS];
        (1..ACTIONS).fold(0, |best, action| if q[action] > q[best] { action } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Layout, distances, four_rooms, optimal_moves};

    #[test]
    fn the_value_of_reaching_a_goal_is_discounted_by_its_distance() {
        let family = &*four_rooms::FAMILY;
        for layout in family.layouts.iter().step_by(490) {
            let goal = layout.cell(9, 9);
            let distance = distances(layout, goal);
            let plan = Plan::solve(&Dynamics::of(layout), &Objective::Reach(goal), 0.9);
            for cell in layout.free_cells().filter(|&cell| cell != goal) {
                let expected = 0.9_f64.powi(i32::from(distance[cell]) - 1);
                assert!((plan.values()[cell] - expected).abs() < 1e-9);
                assert!(optimal_moves(layout, &distance, cell) >> plan.best(cell) & 1 == 1);
            }
        }
    }

    /// Two doors: the near one is open in half of all worlds, the far one always.
    #[test]
    fn who_will_not_learn_takes_the_sure_way() {
        // Two rows, with a wall between all columns but the first (perhaps) and the last.
        let layout = Layout::open(7);
        let mut success = Dynamics::of(&layout).success().to_vec();
        let down = (0..ACTIONS).find(|&a| layout.step(layout.cell(3, 2), a) == layout.cell(3, 3)).unwrap();
        for x in 1..6 {
            let p = [0.0, 0.0, 0.5, 0.0, 0.0, 1.0][x];
            success[layout.cell(x, 2) * ACTIONS + down] = p;
        }
        let dynamics = Dynamics::new(7, success).unwrap();
        let (start, goal) = (layout.cell(2, 2), Objective::Reach(layout.cell(2, 3)));
        assert_eq!(Plan::solve(&dynamics, &goal, 0.95).best(start), down, "a step, or two on average");
        let lasting = Plan::solve_where(Failure::Lasts, &dynamics, &goal, 0.95);
        assert_ne!(lasting.best(start), down, "half a chance against seven steps");
        assert!((lasting.values()[start] - 0.95_f64.powi(6)).abs() < 1e-9);
        assert!((lasting.moves()[start * ACTIONS + down] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn values_of_any_reward_solve_the_optimality_equation() {
        let layout = Layout::open(5).wall(7).wall(12);
        let mut success = Dynamics::of(&layout).success().to_vec();
        success.iter_mut().enumerate().for_each(|(i, p)| *p *= 1.0 - (i % 7) as f64 / 10.0);
        let dynamics = Dynamics::new(5, success).unwrap();
        let reward: Vec<f64> = (0..25).map(|cell| f64::from(cell * 7 % 11) - 5.0).collect();
        let plan = Plan::solve(&dynamics, &Objective::Collect(reward.clone()), 0.95);
        for cell in 0..25 {
            let q = |action| {
                let (ahead, p) = dynamics.ahead(cell, action);
                let gain = |s: usize| reward[s] + 0.95 * plan.values()[s];
                p * gain(ahead) + (1.0 - p) * gain(cell)
            };
            let best = (0..4).map(q).fold(f64::NEG_INFINITY, f64::max);
            assert!((best - plan.values()[cell]).abs() < 1e-6, "cell {cell}");
            assert!((q(plan.best(cell)) - best).abs() < 1e-12);
        }
    }
}
