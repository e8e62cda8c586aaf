//! Bellman backups on listed states, on the device: value iteration through given dynamics, then the measure of its policy.

use crate::data::StateTable;
use crate::nn::{ops, repeat_rows, upload, upload_indices};
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor};

/// The graph of a state table, on the device.
#[derive(Clone, Debug)]
pub(crate) struct Backup {
    states: usize,
    actions: usize,
    width: usize,
    /// The state each token enters, `[vocabulary]`.
    successors: Tensor<1, Int>,
    /// 1 where that is another state than the one left, `[1, vocabulary]`.
    moves: Tensor<2>,
    /// `from * states + to` of each token, `[1, vocabulary]`.
    edges: Tensor<2, Int>,
    /// For each state and action a token of that action that enters the state, and 1 where there is one, `[states * actions]`.
    incoming: Tensor<1, Int>,
    has_incoming: Tensor<2>,
    gamma: f32,
    /// See `belief.block_persistence`.
    persistence: f32,
}

/// Dynamics of several contexts, split into what moves and what stays.
#[derive(Clone, Debug)]
pub(crate) struct Dynamics {
    /// Probability of each token that moves, `[groups, vocabulary]`; 0 for others.
    moving: Tensor<2>,
    /// Probability of staying, `[groups, states * actions]`.
    staying: Tensor<2>,
}

impl Dynamics {
    /// Each context's dynamics once for each of its tasks: `[groups * times, ..]`.
    pub(crate) fn repeated(&self, times: usize) -> Self {
        Self { moving: repeat_rows(&self.moving, times), staying: repeat_rows(&self.staying, times) }
    }
}

/// What F is to learn for every group and state.
#[derive(Clone, Debug)]
pub(crate) struct BackedUp {
    /// Value of being in each state, `[groups, states]`.
    pub(crate) value: Tensor<2>,
    /// Value of each action, `[groups, states * actions]`.
    pub(crate) q: Tensor<2>,
    /// Occupancy within the depth of the backup, `[groups, states, states]`, and weight of what each state bootstraps from.
    pub(crate) occupancy: Tensor<3>,
    /// See `occupancy`.
    pub(crate) bootstrap: Tensor<3>,
}

impl Backup {
    pub(crate) fn new(table: &StateTable, gamma: f32, persistence: f32, device: &Device) -> Self {
        let (states, actions, width) = (table.states(), table.actions, table.width());
        let successors = table.successors();
        let moves = |token: usize| {
            f32::from(u8::from(table.is_outcome(token) && successors[token] as usize != table.leaves(token)))
        };
        let moves: Vec<f32> = (0..successors.len()).map(moves).collect();
        let edge = |(token, &to): (usize, &u32)| (table.leaves(token) * states + to as usize) as i64;
        let edges = successors.iter().enumerate().map(edge);
        let (mut incoming, mut has) = (vec![0_i64; states * actions], vec![0.0; states * actions]);
        for (token, &to) in successors.iter().enumerate().filter(|(token, _)| moves[*token] > 0.0) {
            let place = to as usize * actions + token / width % actions;
            (incoming[place], has[place]) = (token as i64, 1.0);
        }
        let vocabulary = successors.len();
        Self {
            successors: upload_indices(successors.iter().map(|&s| i64::from(s)).collect(), device),
            edges: upload_indices(edges.collect(), device).reshape([1, vocabulary]),
            moves: upload(moves, [1, vocabulary], device),
            incoming: upload_indices(incoming, device),
            has_incoming: upload(has, [1, states * actions], device),
            states,
            actions,
            width,
            gamma,
            persistence,
        }
    }

    /// Dynamics `p [groups, vocabulary]` split into what moves and what stays.
    pub(crate) fn split(&self, p: Tensor<2>) -> Dynamics {
        let groups = p.dims()[0];
        let moving = p * self.moves.clone();
        let staying = moving.clone().reshape([groups * self.states * self.actions, self.width]).sum_dim(1);
        let staying = (staying * -1.0 + 1.0).reshape([groups, self.states * self.actions]);
        Dynamics { moving, staying }
    }

    /// For each state and action the probability that the action moves, and that it enters the state from beside it,
    /// `[groups, states, actions]` each.
    pub(crate) fn local(&self, dynamics: &Dynamics) -> [Tensor<3>; 2] {
        let shape = [dynamics.moving.dims()[0], self.states, self.actions];
        let moving = dynamics.staying.clone() * -1.0 + 1.0;
        let entering = dynamics.moving.clone().select(1, self.incoming.clone()) * self.has_incoming.clone();
        [moving.reshape(shape), entering.reshape(shape)]
    }

    /// Q of every action when states have values `v` and pay `reward`, `[groups, states]` each -> `[groups, states * actions]`.
    /// A self-transition has the value `(1 - persistence) v + persistence reward`: a reward for ever is its own value in these units.
    pub(crate) fn q(&self, dynamics: &Dynamics, v: Tensor<2>, reward: &Tensor<2>) -> Tensor<2> {
        let groups = v.dims()[0];
        let (pairs, shape) = (self.states * self.actions, [groups, self.states * self.actions]);
        let ahead = v.clone().select(1, self.successors.clone()) * dynamics.moving.clone();
        let ahead = ahead.reshape([groups * pairs, self.width]).sum_dim(1).reshape(shape);
        let stay = v * (1.0 - self.persistence) + reward.clone() * self.persistence;
        let stay = stay.reshape([groups, self.states, 1]).expand([groups, self.states, self.actions]);
        ahead + stay.reshape(shape) * dynamics.staying.clone()
    }

    /// `depth` backups from the values `v [groups, states]`, then the measure of the policy that comes out.
    pub(crate) fn back_up(
        &self,
        dynamics: &Dynamics,
        mut v: Tensor<2>,
        reward: &Tensor<2>,
        depth: usize,
        temperature: f32,
    ) -> BackedUp {
        let groups = v.dims()[0];
        let [states, actions] = [self.states, self.actions];
        let by_state = |q: &Tensor<2>| q.clone().reshape([groups * states, actions]);
        let mut q = self.q(dynamics, v.clone(), reward);
        let mut best = policy(by_state(&q), temperature); // [groups * states, actions]
        for step in 0..depth {
            if step > 0 {
                best = policy(by_state(&q), temperature);
            }
            let expected = (by_state(&q) * best.clone()).sum_dim(1);
            v = reward.clone() * (1.0 - self.gamma) + expected.reshape([groups, states]) * self.gamma;
            q = self.q(dynamics, v.clone(), reward);
        }
        let (occupancy, bootstrap) = self.measure(dynamics, best.reshape([groups, states * actions]), depth);
        BackedUp { value: v, q, occupancy, bootstrap }
    }

    /// The discounted occupancy of a policy `[groups, states * actions]` over its first `2^k >= depth` steps, and the
    /// discounted distribution of the state after them: `M = occupancy + bootstrap M`. Both `[groups, states, states]`.
    pub(crate) fn measure(
        &self,
        dynamics: &Dynamics,
        policy: Tensor<2>,
        depth: usize,
    ) -> (Tensor<3>, Tensor<3>) {
        let groups = policy.dims()[0];
        let [states, actions, width] = [self.states, self.actions, self.width];
        let vocabulary = states * actions * width;
        let per_token = policy.clone().reshape([groups, states * actions, 1]).repeat(&[1, 1, width]);
        let weight = per_token.reshape([groups, vocabulary]) * dynamics.moving.clone() * self.gamma;
        let flat = Tensor::<2>::zeros([groups, states * states], &weight.device());
        let edges = self.edges.clone().expand([groups, vocabulary]);
        let moving = flat.scatter(1, edges, weight, IndexingUpdateOp::Add).reshape([groups, states, states]);
        let stays = (policy * dynamics.staying.clone()).reshape([groups * states, actions]).sum_dim(1);
        let stays = stays.reshape([groups, states, 1]) * self.gamma; // [groups, states, 1]
        let eye = Tensor::<2>::eye(states, &moving.device()).reshape([1, states, states]);
        let mut bootstrap = moving + eye.clone() * stays.clone() * (1.0 - self.persistence);
        let mut occupancy = eye * (stays * self.persistence + (1.0 - self.gamma));
        let mut steps = 1;
        while steps < depth {
            occupancy = ops::group_products(bootstrap.clone(), occupancy.clone(), Some(occupancy));
            bootstrap = ops::group_products(bootstrap.clone(), bootstrap, None);
            steps *= 2;
        }
        (occupancy, bootstrap)
    }

    /// From successor rows of states, `[groups, states, width]`, to those of each action in them, `[groups, states * actions,
    /// width]`: the expectation over outcomes. A move that is blocked for good has the row `stuck [states, width]`.
    pub(crate) fn lift(&self, dynamics: &Dynamics, rows: Tensor<3>, stuck: Tensor<2>) -> Tensor<3> {
        let [groups, states, width] = rows.dims();
        let (actions, vocabulary) = (self.actions, self.states * self.actions * self.width);
        let ahead = rows.clone().select(1, self.successors.clone()); // [groups, vocabulary, width]
        let ahead = ahead * dynamics.moving.clone().reshape([groups, vocabulary, 1]);
        let ahead = ahead.reshape([groups * states * actions, self.width, width]).sum_dim(1);
        let stay = rows * (1.0 - self.persistence) + stuck.reshape([1, states, width]) * self.persistence;
        let stay = stay.reshape([groups, states, 1, width])
            * dynamics.staying.clone().reshape([groups, states, actions, 1]);
        ahead.reshape([groups, states * actions, width]) + stay.reshape([groups, states * actions, width])
    }
}

/// The policy over actions with values `q [rows, actions]`: greedy, the first of equals, or Boltzmann at a temperature relative
/// to the spread of the values.
pub(crate) fn policy(q: Tensor<2>, temperature: f32) -> Tensor<2> {
    if temperature > 0.0 {
        let (high, low) = (q.clone().max_dim(1), q.clone().min_dim(1));
        let scale = (high.clone() - low).clamp_min(1e-12) * temperature;
        return burn::tensor::activation::softmax((q - high) / scale, 1);
    }
    let [rows, actions] = q.dims();
    let best = q.argmax(1); // [rows, 1]
    let marks = Tensor::<2>::ones([rows, 1], &best.device());
    Tensor::zeros([rows, actions], &best.device()).scatter(1, best, marks, IndexingUpdateOp::Add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::read;
    use crate::testing::{cells, tabled, truth};
    use windvane_world::Split;
    use windvane_world::grid::{
        ACTIONS, Dynamics as Exact, Objective, Plan, SuccessorMeasure, deterministic,
    };

    #[test]
    fn deep_backups_on_the_true_dynamics_are_the_optimal_policy_and_its_exact_measure() {
        const GAMMA: f32 = 0.9;
        let device = Device::flex();
        let (world, table) = tabled("four-rooms", 1, 60);
        let (p, cells) = (truth(&*world, &table), cells(&*world, &table));
        let (states, goal) = (table.states(), table.states() / 3);
        let backup = Backup::new(&table, GAMMA, 0.0, &device);
        let dynamics = backup.split(upload(p, [1, table.vocabulary()], &device));
        let reward = (0..states).map(|s| f32::from(u8::from(s == goal))).collect();
        let reward: Tensor<2> = upload(reward, [1, states], &device);
        let done = backup.back_up(&dynamics, Tensor::zeros([1, states], &device), &reward, 128, 0.0);
        let layout = world.grid().unwrap().layout(world.contexts(Split::Train)[0]).unwrap();
        let paid = (0..layout.cells()).map(|cell| f64::from(u8::from(cell == cells[goal]))).collect();
        let best = Plan::solve(&Exact::of(layout), &Objective::Collect(paid), f64::from(GAMMA));
        let q = read(done.q);
        for (s, &cell) in cells.iter().enumerate().filter(|(_, cell)| layout.is_free(**cell)) {
            for a in 0..ACTIONS {
                let exact = best.moves()[cell * ACTIONS + a] * f64::from(1.0 - GAMMA);
                assert!((f64::from(q[s * ACTIONS + a]) - exact).abs() < 1e-3, "action {a} in {cell}");
            }
        }
        let choice = |cell: usize| {
            let s = cells.iter().position(|c| *c == cell).unwrap_or(0);
            (1..ACTIONS).fold(0, |best, a| if q[s * ACTIONS + a] > q[s * ACTIONS + best] { a } else { best })
        };
        let exact = SuccessorMeasure::of(
            &Exact::of(layout),
            &deterministic(layout.cells(), choice),
            f64::from(GAMMA),
        );
        let measure = read(done.occupancy);
        for (s, &cell) in cells.iter().enumerate().filter(|(_, cell)| layout.is_free(**cell)) {
            let after = exact.after(cell, choice(cell));
            for (t, &to) in cells.iter().enumerate().filter(|(_, cell)| layout.is_free(**cell)) {
                let m = (f64::from(u8::from(s == t)) + f64::from(GAMMA) * after[to]) * f64::from(1.0 - GAMMA);
                let got = f64::from(measure[s * states + t]);
                assert!((got - m).abs() < 1e-3, "from {cell} to {to}: {got}, exact {m}");
            }
        }
    }

    #[test]
    fn what_is_blocked_for_good_is_worth_its_own_reward_for_ever() {
        let device = Device::flex();
        let (_, table) = tabled("doors", 1, 20);
        let states = table.states();
        let backup = Backup::new(&table, 0.9, 1.0, &device);
        let dynamics = backup.split(Tensor::zeros([1, table.vocabulary()], &device)); // nothing moves
        let reward: Tensor<2> = upload((0..states).map(|s| s as f32 / 100.0).collect(), [1, states], &device);
        let v = Tensor::ones([1, states], &device) * 7.0;
        let q = read(backup.q(&dynamics, v, &reward));
        assert!(
            q.chunks_exact(ACTIONS)
                .enumerate()
                .all(|(s, q)| q.iter().all(|q| (q - s as f32 / 100.0).abs() < 1e-6))
        );
        let policy = Tensor::ones([1, states * ACTIONS], &device) / ACTIONS as f64;
        let (occupancy, bootstrap) = backup.measure(&dynamics, policy, 8);
        let (occupancy, bootstrap) = (read(occupancy), read(bootstrap));
        assert!(
            (0..states).all(|s| (occupancy[s * states + s] - 1.0).abs() < 1e-5)
                && bootstrap.iter().all(|x| *x == 0.0)
        );
    }
}
