//! A sparse graph of states with the chances of its edges, and value iteration on it, in plain numbers.

use crate::data::StateTable;

/// Nodes, and for each action of a node a few successors with their probabilities.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: usize,
    pub(crate) actions: usize,
    /// Most successors of a node and an action.
    width: usize,
    /// `[nodes * actions * width]`.
    successors: Vec<u32>,
    /// Their probabilities. What is missing to 1 leads nowhere and has the lowest value there is.
    p: Vec<f32>,
    /// Probability that a move that was blocked once is blocked for good.
    block_persistence: f32,
}

impl Graph {
    /// A graph of so many actions a node.
    pub(crate) fn new(actions: usize, width: usize, successors: Vec<u32>, p: Vec<f32>) -> Self {
        let nodes = successors.len() / (actions * width).max(1);
        Self { nodes, actions, width, successors, p, block_persistence: 0.0 }
    }

    /// The graph of listed states under the dynamics `p [vocabulary]`.
    pub(crate) fn listed(table: &StateTable, p: &[f32], block_persistence: f32) -> Self {
        let graph = Self::new(table.actions, table.width(), table.successors().to_vec(), p.to_vec());
        Self { block_persistence, ..graph }
    }

    /// `q(s, a) = sum_k p_k v(successor_k)`, where a self-transition has the value
    /// `(1 - block_persistence) v(s) + block_persistence stay(s)`; `v` and `stay [nodes]` -> `q [nodes * actions]`.
    pub(crate) fn backup(&self, v: &[f32], stay: &[f32], q: &mut [f32]) {
        let lowest = v.iter().copied().fold(f32::INFINITY, f32::min);
        let rows = self.p.chunks_exact(self.width).zip(self.successors.chunks_exact(self.width));
        for (pair, (q, (p, next))) in q.iter_mut().zip(rows).enumerate() {
            let own = pair / self.actions;
            let mut rest = 1.0;
            *q = 0.0;
            for (p, &s) in p.iter().zip(next) {
                let s = s as usize;
                let blocked = if s == own { self.block_persistence } else { 0.0 };
                *q += p * (v[s] + blocked * (stay[own] - v[s]));
                rest -= p;
            }
            if rest > 1e-4 {
                *q += rest * lowest;
            }
        }
    }

    /// Value iteration from 0: `v(s) = (1 - gamma) reward(s) + gamma max_a q(s, a)`, in units in which a reward for ever is its
    /// own value. Returns v and q.
    pub(crate) fn optimise(&self, reward: &[f32], gamma: f32, sweeps: usize) -> (Vec<f32>, Vec<f32>) {
        let (mut v, mut q) = (vec![0.0; self.nodes], vec![0.0; self.nodes * self.actions]);
        for _ in 0..sweeps {
            self.backup(&v, reward, &mut q);
            for ((v, r), q) in v.iter_mut().zip(reward).zip(q.chunks_exact(self.actions)) {
                *v = (1.0 - gamma) * r + gamma * best(q);
            }
        }
        self.backup(&v, reward, &mut q);
        (v, q)
    }
}

/// The largest of some values.
pub(crate) fn best(q: &[f32]) -> f32 {
    q.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// The number of the first largest of some values.
pub(crate) fn argmax(q: &[f32]) -> usize {
    (1..q.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cells, tabled, truth};
    use windvane_world::Split;
    use windvane_world::grid::{ACTIONS, Dynamics, Objective, Plan, distances};

    #[test]
    fn sweeps_on_the_true_dynamics_are_value_iteration() {
        let (world, table) = tabled("four-rooms", 1, 60);
        let context = world.contexts(Split::Train)[0];
        let (p, cells) = (truth(&*world, &table), cells(&*world, &table));
        let layout = world.grid().unwrap().layout(context).unwrap();
        for task in world.tasks(context).unwrap() {
            let mut obs = vec![0.0; 2];
            let reward: Vec<f32> = (0..table.states())
                .map(|state| {
                    table.write_state(state, &mut obs);
                    task.reward.of(&obs)
                })
                .collect();
            let goal = cells[reward.iter().position(|r| *r > 0.0).unwrap()];
            let far = distances(layout, goal);
            let exact =
                Plan::solve(&Dynamics::of(layout), &Objective::of(&task, world.spec()).unwrap(), 0.95);
            let (_, q) = Graph::listed(&table, &p, 0.0).optimise(&reward, 0.95, 300);
            for (state, &cell) in cells.iter().enumerate() {
                if !layout.is_free(cell) || far[cell] == 0 || far[cell] == u16::MAX {
                    continue;
                }
                let ours = argmax(&q[state * ACTIONS..][..ACTIONS]);
                assert!(far[layout.step(cell, ours)] < far[cell], "{cell} to {goal}");
                let value = exact.moves()[cell * ACTIONS + ours];
                let top = exact.moves()[cell * ACTIONS..][..ACTIONS].iter().copied().fold(0.0, f64::max);
                assert!((value - top).abs() < 1e-9, "not the planner's best in {cell}");
            }
        }
    }
}
