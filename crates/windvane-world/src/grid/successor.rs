//! The exact successor measure of a policy on a grid.

use super::dynamics::Dynamics;
use super::layout::ACTIONS;

/// The successor measure `M(s, a, X) = sum_t gamma^t P(s_{t+1} in X | s, a, policy)`.
#[derive(Clone, Debug, PartialEq)]
pub struct SuccessorMeasure {
    cells: usize,
    /// `[cells * ACTIONS, cells]`
    measure: Vec<f64>,
}

impl SuccessorMeasure {
    /// The measure of `policy`, which gives P(action | cell) as `[cells * ACTIONS]`.
    ///
    /// Solved exactly: `(I - gamma P)^-1` by elimination.
    ///
    /// # Panics
    /// If `gamma` is not within 0 to 1 (1 excluded), or the policy is of another grid.
    pub fn of(dynamics: &Dynamics, policy: &[f64], gamma: f64) -> Self {
        assert!((0.0..1.0).contains(&gamma), "a discount from 0 to below 1, not {gamma}");
        let cells = dynamics.cells();
        assert_eq!(policy.len(), cells * ACTIONS, "a policy for each cell and move");
        let mut system = vec![0.0; cells * cells];
        for (place, &chosen) in policy.iter().enumerate() {
            let cell = place / ACTIONS;
            let (ahead, p) = dynamics.ahead(cell, place % ACTIONS);
            system[cell * cells + ahead] -= gamma * chosen * p;
            system[cell * cells + cell] -= gamma * chosen * (1.0 - p);
        }
        for cell in 0..cells {
            system[cell * cells + cell] += 1.0;
        }
        // Discounted future visits from each cell, the cell itself counted at time 0.
        let visits = inverse(system, cells);
        let row = |cell: usize| &visits[cell * cells..(cell + 1) * cells];
        let measure = (0..cells * ACTIONS)
            .flat_map(|place| {
                let cell = place / ACTIONS;
                let (ahead, p) = dynamics.ahead(cell, place % ACTIONS);
                row(ahead).iter().zip(row(cell)).map(move |(moved, stayed)| p * moved + (1.0 - p) * stayed)
            })
            .collect();
        Self { cells, measure }
    }

    /// All of it, `[cells * ACTIONS, cells]`.
    pub fn measure(&self) -> &[f64] {
        &self.measure
    }

    /// How much each cell is visited after `action` in `cell`; these sum to `1 / (1 - gamma)`.
    pub fn after(&self, cell: usize, action: usize) -> &[f64] {
        let place = cell * ACTIONS + action;
        &self.measure[place * self.cells..(place + 1) * self.cells]
    }
}

/// The policy that takes move `choice(cell)` in each cell, as probabilities `[cells * ACTIONS]`.
pub fn deterministic(cells: usize, choice: impl Fn(usize) -> usize) -> Vec<f64> {
    let mut policy = vec![0.0; cells * ACTIONS];
    for cell in 0..cells {
        policy[cell * ACTIONS + choice(cell)] = 1.0;
    }
    policy
}

/// The inverse of a square matrix whose diagonal dominates its rows, which needs no pivoting.
fn inverse(mut matrix: Vec<f64>, size: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; size * size];
    for i in 0..size {
        inverse[i * size + i] = 1.0;
    }
    for pivot in 0..size {
        let scale = 1.0 / matrix[pivot * size + pivot];
        for rows in [&mut matrix, &mut inverse] {
            rows[pivot * size..(pivot + 1) * size].iter_mut().for_each(|value| *value *= scale);
        }
        for row in (0..size).filter(|&row| row != pivot) {
            let factor = matrix[row * size + pivot];
            if factor != 0.0 {
                subtract_row(&mut matrix, size, pivot, row, factor);
                subtract_row(&mut inverse, size, pivot, row, factor);
            }
        }
    }
    inverse
}

/// Subtracts `factor` times row `from` from row `to`.
fn subtract_row(matrix: &mut [f64], size: usize, from: usize, to: usize, factor: f64) {
    let (head, tail) = matrix.split_at_mut(from.max(to) * size);
    let low = &mut head[from.min(to) * size..(from.min(to) + 1) * size];
    let high = &mut tail[..size];
    let (source, target) = if from < to { (low, high) } else { (high, low) };
    for (target, source) in target.iter_mut().zip(source) {
        *target -= factor * *source;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Layout, Objective, Plan, four_rooms};

    #[test]
    fn rows_sum_to_the_discounted_number_of_steps() {
        let layout = four_rooms::FAMILY.layouts[1234];
        let uniform = vec![0.25; layout.cells() * ACTIONS];
        let measure = SuccessorMeasure::of(&Dynamics::of(&layout), &uniform, 0.98);
        for row in measure.measure().chunks_exact(layout.cells()) {
            assert!((row.iter().sum::<f64>() - 50.0).abs() < 1e-9);
            assert!(row.iter().all(|&visits| visits >= 0.0));
        }
    }

    #[test]
    fn a_walk_along_a_corridor_visits_each_cell_once_and_stays_at_the_end() {
        let layout = Layout::open(3);
        let right = deterministic(9, |_| 0);
        let measure = SuccessorMeasure::of(&Dynamics::of(&layout), &right, 0.5);
        assert_eq!(measure.after(0, 0), [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(measure.after(1, 2), [1.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn the_measure_of_the_best_policy_gives_its_value_for_the_reward() {
        let layout = four_rooms::FAMILY.layouts[77];
        let dynamics = Dynamics::of(&layout);
        let reward: Vec<f64> = (0..81).map(|cell| f64::from(u8::from(cell == 80)) - 0.1).collect();
        let plan = Plan::solve(&dynamics, &Objective::Collect(reward.clone()), 0.95);
        let best = deterministic(81, |cell| plan.best(cell));
        let measure = SuccessorMeasure::of(&dynamics, &best, 0.95);
        for (row, q) in measure.measure().chunks_exact(81).zip(plan.moves()) {
            let value: f64 = row.iter().zip(&reward).map(|(visits, reward)| visits * reward).sum();
            assert!((value - q).abs() < 1e-6);
        }
    }
}
