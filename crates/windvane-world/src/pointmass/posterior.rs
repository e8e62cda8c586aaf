//! What a trajectory tells of the map, by the geometry alone, and the policy that plans on the maps that it leaves.
//!
//! There are too many maps to list, so the prior over all of them is a sample of the generator's. A map counts less for each cell
//! in which it contradicts what was seen; a planner averages over maps what each says of the four pushes.

use super::maze::{CELLS, Maze, SIDE};
use super::middle;
use super::motion::{ROOM, SPEED, cell_of};
use crate::ceilings::{Among, ExactBeliefs};
use crate::env::{Action, ActionBuf};
use crate::error::WorldError;
use crate::protocol::Policy;
use crate::reward::{Reward, Task};
use crate::rng::{self, Rng};
use crate::trajectory::Trajectory;

/// Maps that stand for the prior.
const SAMPLED: usize = 4000;
/// Factor on a map's weight for each cell in which it contradicts what was seen.
const CONTRADICTION: f32 = 2.5e-3;
/// Weights below this share of the largest are nothing.
const NEGLIGIBLE: f32 = 1e-2;
/// Discount of a cell.
const GAMMA: f32 = 0.9;
/// Backups of a plan: more than the longest way.
const SWEEPS: usize = 60;
/// The four pushes, as changes of column and row.
const PUSHES: [(isize, isize); 4] = [(1, 0), (-1, 0), (0, 1), (0, -1)];

/// Cells that a trajectory showed to be open, and to be walls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    open: u64,
    wall: u64,
}

impl Seen {
    /// Takes note of one step from `at` by `action` to `next`; whether anything of it was new.
    fn observe(&mut self, at: &[f32], action: Action<'_>, next: &[f32]) -> bool {
        let before = *self;
        let Action::Continuous(push) = action else { return false };
        self.open |= 1 << cell_at(at) | 1 << cell_at(next);
        let cell = cell_at(next);
        let centre = middle(cell);
        for axis in 0..2 {
            let side = if next[axis] > centre[axis] { 1 } else { -1 };
            let beside = neighbour(cell, if axis == 0 { (side, 0) } else { (0, side) });
            // A wall holds the point exactly here; whoever is beyond has none beside it.
            let side = side as f32;
            let limit = centre[axis] + side * ROOM;
            let wanted = at[axis] + SPEED * push[axis];
            if next[axis] == limit && side * (wanted - limit) > 0.0 {
                self.wall |= beside.map_or(0, |cell| 1 << cell);
            } else if side * (next[axis] - limit) > 0.0 {
                self.open |= beside.map_or(0, |cell| 1 << cell);
            }
        }
        self.wall &= !self.open;
        *self != before
    }

    /// Cells in which a map contradicts this.
    fn contradictions(self, maze: Maze) -> u32 {
        (self.open & !maze.code() | self.wall & maze.code()).count_ones()
    }
}

/// The cell of a position.
fn cell_at(at: &[f32]) -> usize {
    cell_of(at[0]) + SIDE * cell_of(at[1])
}

/// The cell that a push leads to; nothing beyond the outer wall.
fn neighbour(cell: usize, (dx, dy): (isize, isize)) -> Option<usize> {
    let (x, y) = ((cell % SIDE).checked_add_signed(dx)?, (cell / SIDE).checked_add_signed(dy)?);
    (x < SIDE && y < SIDE).then_some(x + SIDE * y)
}

/// Beliefs over maps: those of the training set, and a sample of all.
pub(super) struct MapBeliefs {
    training: Vec<Maze>,
    all: Vec<Maze>,
}

impl MapBeliefs {
    pub(super) fn new(training: Vec<Maze>) -> Self {
        let mut rng = rng::stream(0, "maps of the prior", &[]);
        Self { training, all: (0..SAMPLED).map(|_| Maze::draw(&mut rng)).collect() }
    }
}

impl ExactBeliefs for MapBeliefs {
    fn planner(
        &self,
        among: Among,
        trajectory: &Trajectory,
        steps: usize,
        online: bool,
    ) -> Box<dyn Policy + '_> {
        let mut seen = Seen::default();
        for (at, action, next) in trajectory.transitions().take(steps) {
            seen.observe(at, action, next);
        }
        // Observations distinguish a few known maps, and each has its plan; of all maps none is the true one.
        let (maps, by_map) = match among {
            Among::All => (&self.all, false),
            Among::Training => (&self.training, !online),
        };
        Box::new(MapPlanner { seen, online, by_map, ..MapPlanner::new(maps) })
    }

    fn average(&self) -> Option<Box<dyn Policy + '_>> {
        (!self.training.is_empty()).then(|| Box::new(MapPlanner::new(&self.training)) as _)
    }
}

/// Pushes to where the maps that are left promise most.
struct MapPlanner<'a> {
    maps: &'a [Maze],
    seen: Seen,
    online: bool,
    /// Whether it averages the plans of maps; else it plans on their average.
    by_map: bool,
    goal: [f32; 2],
    /// The value of each push in each cell; nothing before it is planned.
    q: Option<[[f32; 4]; CELLS]>,
}

impl<'a> MapPlanner<'a> {
    /// Who has seen nothing and plans on the average.
    fn new(maps: &'a [Maze]) -> Self {
        Self { maps, seen: Seen::default(), online: false, by_map: false, goal: [0.0; 2], q: None }
    }

    /// Maps with their weights, the heaviest of which is 1.
    fn weighted(&self) -> Vec<(Maze, f32)> {
        let wrong: Vec<u32> = self.maps.iter().map(|maze| self.seen.contradictions(*maze)).collect();
        let least = wrong.iter().copied().min().unwrap_or(0);
        let weight = |wrong: u32| CONTRADICTION.powi((wrong - least) as i32);
        let all = self.maps.iter().copied().zip(wrong.into_iter().map(weight));
        all.filter(|(_, weight)| *weight >= NEGLIGIBLE).collect()
    }

    /// The mean over maps of the value of each push, the map being known from then on.
    fn mean_of_plans(&self, goal: usize) -> [[f32; 4]; CELLS] {
        let (mut q, mut total) = ([[0.0; 4]; CELLS], [1e-6; CELLS]);
        for (maze, weight) in self.weighted() {
            let value = maze.distances(goal).map(|d| d.map_or(0.0, |d| GAMMA.powi(i32::from(d))));
            for cell in maze.open_cells() {
                total[cell] += weight;
                for (push, q) in PUSHES.iter().zip(&mut q[cell]) {
                    let ahead = neighbour(cell, *push).filter(|next| maze.is_open(*next));
                    *q += weight * ahead.map_or(GAMMA * value[cell], |next| value[next]);
                }
            }
        }
        q.iter_mut().zip(total).for_each(|(q, total)| q.iter_mut().for_each(|q| *q /= total));
        q
    }

    /// The value of each push by the chance that each cell is open, a push against a wall being a lost move. (That it is lost for good,
    /// as on grids, has a planner trust small differences between cells that nobody saw: it scores half as much.)
    fn plan_of_mean(&self, goal: usize) -> [[f32; 4]; CELLS] {
        let weighted = self.weighted();
        let total: f32 = weighted.iter().map(|(_, weight)| weight).sum();
        let open: [f32; CELLS] = std::array::from_fn(|cell| {
            let open = weighted.iter().filter(|(maze, _)| maze.is_open(cell));
            match (self.seen.open >> cell & 1, self.seen.wall >> cell & 1) {
                (1, _) => 1.0,
                (_, 1) => 0.0,
                _ => open.map(|(_, weight)| weight).sum::<f32>() / total.max(1e-6),
            }
        });
        let (mut value, mut q) = ([0.0; CELLS], [[0.0; 4]; CELLS]);
        for _ in 0..SWEEPS {
            value[goal] = 1.0;
            for cell in 0..CELLS {
                q[cell] = PUSHES.map(|push| {
                    let ahead = neighbour(cell, push).map_or([0.0; 2], |next| [open[next], value[next]]);
                    GAMMA * (ahead[0] * ahead[1] + (1.0 - ahead[0]) * GAMMA * value[cell])
                });
            }
            value = q.map(|q| q.into_iter().fold(0.0, f32::max));
        }
        q
    }
}

impl Policy for MapPlanner<'_> {
    fn begin(&mut self, task: &Task, obs: &[f32]) -> Result<(), WorldError> {
        let Reward::Goal { goal, .. } = &task.reward else {
            return Err(WorldError::Invalid(format!("task {}: a plan of ways needs a goal", task.name)));
        };
        self.goal = [goal[0], goal[1]];
        // A goal can be reached, and where one stands is no wall.
        self.seen.open |= 1 << cell_at(goal) | 1 << cell_at(obs);
        self.q = None;
        Ok(())
    }

    fn act(&mut self, obs: &[f32], _rng: &mut Rng, action: &mut ActionBuf) {
        let (cell, goal) = (cell_at(obs), cell_at(&self.goal));
        if self.q.is_none() {
            self.q = Some(if self.by_map { self.mean_of_plans(goal) } else { self.plan_of_mean(goal) });
        }
        let q = self.q.map_or([0.0; 4], |q| q[cell]);
        let to = |target: [f32; 2], axis: usize| ((target[axis] - obs[axis]) / SPEED).clamp(-1.0, 1.0);
        if cell == goal {
            *action = ActionBuf::Continuous(vec![to(self.goal, 0), to(self.goal, 1)]);
            return;
        }
        // The better push of each axis, and its direction.
        let best = [0, 2].map(|i| if q[i] >= q[i + 1] { (q[i], 1.0) } else { (q[i + 1], -1.0) });
        let main = usize::from(best[1].0 > best[0].0);
        let mut push = [0.0; 2];
        push[main] = best[main].1;
        // Along the other axis as well, where that leads on by itself; else to the middle, where doors are.
        let leads_on = best[1 - main].0 > GAMMA * best[main].0;
        push[1 - main] = if leads_on { best[1 - main].1 } else { to(middle(cell), 1 - main) };
        *action = ActionBuf::Continuous(push.to_vec());
    }

    fn observe(&mut self, obs: &[f32], action: Action<'_>, next: &[f32]) {
        if self.online && self.seen.observe(obs, action, next) {
            self.q = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Split, Start};
    use crate::protocol::{EvalEpisode, rollout};
    use crate::registry::{WorldConfig, make};

    #[test]
    fn what_was_seen_of_a_map_is_true_of_it_and_leaves_it_among_the_known() {
        let world = make("pointmass", &WorldConfig::default()).unwrap();
        let training: Vec<Maze> =
            world.contexts(Split::Train).iter().map(|c| Maze::from_code(c.0).unwrap()).collect();
        for (number, &context) in world.contexts(Split::Train).iter().enumerate() {
            let mut env = world.instantiate(context).unwrap();
            let mut rng = rng::stream(number as u64, "test", &[]);
            // Held pushes, so that walls are met.
            let (mut held, mut step) = (world.spec().action.buffer(), 0);
            let trajectory =
                Trajectory::explore(env.as_mut(), world.spec(), Start::Random, 500, &mut rng, |_, rng, a| {
                    if step % 12 == 0 {
                        world.spec().action.sample(rng, &mut held);
                    }
                    step += 1;
                    *a = held.clone();
                });
            let mut seen = Seen::default();
            for (at, action, next) in trajectory.unwrap().transitions() {
                seen.observe(at, action, next);
            }
            assert!(seen.open.count_ones() > 1 && seen.wall.count_ones() > 0, "{seen:?}");
            assert_eq!(seen.contradictions(training[number]), 0, "{seen:?} {:?}", training[number].rows());
        }
    }

    #[test]
    fn with_one_map_left_every_goal_is_reached_and_online_nearly_every_one() {
        let world = make("pointmass", &WorldConfig::default()).unwrap();
        let nothing = |context| {
            let mut env = world.instantiate(context).unwrap();
            let mut rng = rng::stream(0, "test", &[]);
            Trajectory::explore(env.as_mut(), world.spec(), Start::Fixed, 0, &mut rng, |_, _, _| ()).unwrap()
        };
        let mut online = 0;
        for &context in world.contexts(Split::Test) {
            let beliefs = MapBeliefs::new(vec![Maze::from_code(context.0).unwrap()]);
            let reaches = |among, updates| {
                let task = world.tasks(context).unwrap().remove(0);
                let episode = EvalEpisode { context, task, rng: rng::stream(1, "episode", &[]) };
                let mut planner = beliefs.planner(among, &nothing(context), 0, updates);
                rollout(world.as_ref(), episode, planner.as_mut()).unwrap().success
            };
            assert!(reaches(Among::Training, false));
            online += usize::from(reaches(Among::All, true));
        }
        assert!(online >= 17, "{online} of 20");
    }
}
