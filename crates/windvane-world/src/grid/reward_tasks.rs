//! Tasks of grids that are not goals: rewards of any sign over all cells, with exact values of any policy.

use super::layout::{ACTIONS, Layout, ahead};
use super::paths::{UNREACHABLE, distances};
use crate::rng::Rng;
use rand::RngExt as _;
use rand::seq::IndexedRandom as _;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};

/// Kinds of rewards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardKind {
    /// 1 in one cell, .4 in another: does the better one pay for the longer way?
    TwoGoals,
    /// 1 in one cell, -.5 in a square of three by three cells elsewhere.
    AvoidRegion,
    /// 1 in one cell, -.5 in such a square on the shortest way to it, around a door where it passes one; from the other side.
    PenaltyOnTheWay,
    /// 1 in each cell of one room.
    StayInRoom,
    /// A sum of six smooth bumps of either sign.
    Smooth,
    /// Normally distributed in eight cells, 0 elsewhere.
    Sparse,
}

impl RewardKind {
    /// All kinds, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::TwoGoals,
        Self::AvoidRegion,
        Self::PenaltyOnTheWay,
        Self::StayInRoom,
        Self::Smooth,
        Self::Sparse,
    ];

    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::TwoGoals => "two goals",
            Self::AvoidRegion => "avoid a region",
            Self::PenaltyOnTheWay => "penalty on the way",
            Self::StayInRoom => "stay in a room",
            Self::Smooth => "smooth, signed",
            Self::Sparse => "sparse, signed",
        }
    }
}

/// A reward over the cells of one layout.
#[derive(Clone, Debug, PartialEq)]
pub struct RewardTask {
    /// Its kind.
    pub kind: RewardKind,
    /// The reward of being in each cell.
    pub reward: Vec<f64>,
    /// The cells that episodes begin in.
    pub starts: Vec<usize>,
}

/// Who acts, where the exact value of acting is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Acting<'a> {
    /// The best policy there is.
    Best,
    /// Uniformly random actions.
    Random,
    /// This action in each cell.
    By(&'a [usize]),
}

impl RewardTask {
    /// Draws `each` tasks of every kind on a layout. A layout without two rooms, or without a long way, has none of the kinds
    /// that need them.
    pub fn draw(layout: &Layout, rng: &mut Rng, each: usize) -> Vec<Self> {
        let mut tasks = Vec::with_capacity(each * RewardKind::ALL.len());
        for kind in RewardKind::ALL {
            tasks.extend((0..each).filter_map(|_| Self::draw_one(layout, rng, kind)));
        }
        tasks
    }

    fn draw_one(layout: &Layout, rng: &mut Rng, kind: RewardKind) -> Option<Self> {
        let free: Vec<usize> = layout.free_cells().collect();
        let mut reward = vec![0.0; layout.cells()];
        let mut starts = free.clone();
        let square =
            |centre: usize| (0..layout.cells()).filter(move |&cell| rings(layout, cell, centre) <= 1);
        match kind {
            RewardKind::TwoGoals => {
                let [better, other] = two(&free, rng)?;
                (reward[better], reward[other]) = (1.0, 0.4);
            }
            RewardKind::AvoidRegion => {
                let goal = *free.choose(rng)?;
                let apart: Vec<usize> =
                    free.iter().copied().filter(|&cell| rings(layout, cell, goal) >= 2).collect();
                square(*apart.choose(rng)?).for_each(|cell| reward[cell] = -0.5);
                reward[goal] = 1.0;
            }
            RewardKind::PenaltyOnTheWay => {
                let (goal, centre, room) = way(layout, rng, &free)?;
                square(centre).for_each(|cell| reward[cell] = -0.5);
                reward[goal] = 1.0;
                starts = room;
            }
            RewardKind::StayInRoom => {
                let rooms = rooms(layout);
                let room = rooms.choose(rng).filter(|_| rooms.len() > 1)?;
                room.iter().for_each(|&cell| reward[cell] = 1.0);
            }
            RewardKind::Smooth => {
                for _ in 0..6 {
                    let (x, y) = layout.position(rng.random_range(0..layout.cells()));
                    let size: f64 =
                        rng.random_range(0.5..1.0) * if rng.random_bool(0.5) { 1.0 } else { -1.0 };
                    let width: f64 = rng.random_range(1.0..2.0);
                    for (cell, reward) in reward.iter_mut().enumerate() {
                        let (u, v) = layout.position(cell);
                        let distance2 = (u as f64 - x as f64).powi(2) + (v as f64 - y as f64).powi(2);
                        *reward += size * (-distance2 / (2.0 * width * width)).exp();
                    }
                }
            }
            RewardKind::Sparse => {
                for &cell in free.sample(rng, 8.min(free.len())) {
                    reward[cell] = StandardNormal.sample(rng);
                }
            }
        }
        Some(Self { kind, reward, starts })
    }

    /// The discounted return of acting for ever from each cell, the cell's own reward included.
    pub fn values(&self, layout: &Layout, acting: Acting<'_>, gamma: f64) -> Vec<f64> {
        let mut values = self.reward.clone();
        // Until what is left out is below 1e-6 of the largest return.
        let sweeps = (1e-6_f64.ln() / gamma.ln()).ceil() as usize;
        for _ in 0..sweeps {
            let next = |cell: usize, action: usize| values[layout.step(cell, action)];
            let ahead = |cell: usize| match acting {
                Acting::Best => (0..ACTIONS).map(|a| next(cell, a)).fold(f64::MIN, f64::max),
                Acting::Random => (0..ACTIONS).map(|a| next(cell, a)).sum::<f64>() / ACTIONS as f64,
                Acting::By(choice) => next(cell, choice[cell]),
            };
            values = (0..layout.cells()).map(|cell| self.reward[cell] + gamma * ahead(cell)).collect();
        }
        values
    }

    /// What a policy gains over random actions, and what could be gained, summed over all starts: a score is the ratio of sums
    /// of these over tasks.
    pub fn gain(&self, layout: &Layout, choice: &[usize], gamma: f64) -> [f64; 2] {
        let [own, best, random] = [Acting::By(choice), Acting::Best, Acting::Random]
            .map(|acting| self.values(layout, acting, gamma));
        let sum = |values: &[f64]| self.starts.iter().map(|&s| values[s] - random[s]).sum::<f64>();
        [sum(&own), sum(&best)]
    }
}

/// Two different items.
fn two(of: &[usize], rng: &mut Rng) -> Option<[usize; 2]> {
    let mut two = of.sample(rng, 2).copied();
    Some([two.next()?, two.next()?])
}

/// Distance in rings around a cell (Chebyshev).
fn rings(layout: &Layout, a: usize, b: usize) -> usize {
    let ((ax, ay), (bx, by)) = (layout.position(a), layout.position(b));
    ax.abs_diff(bx).max(ay.abs_diff(by))
}

/// Whether a free cell is a door: a way between two walls that stand face to face.
fn is_door(layout: &Layout, cell: usize) -> bool {
    let open = |action: usize| ahead(layout.side(), cell, action).is_some_and(|next| layout.is_free(next));
    let [right, down, left, up] = [0, 1, 2, 3].map(open);
    (right && left && !up && !down) || (up && down && !right && !left)
}

/// The rooms of a layout: free cells that doors part from others.
fn rooms(layout: &Layout) -> Vec<Vec<usize>> {
    let mut seen = vec![false; layout.cells()];
    let inside = |cell: usize| layout.is_free(cell) && !is_door(layout, cell);
    let mut rooms = Vec::new();
    for first in 0..layout.cells() {
        if seen[first] || !inside(first) {
            continue;
        }
        seen[first] = true;
        let mut room = vec![first];
        let mut at = 0;
        while at < room.len() {
            for action in 0..ACTIONS {
                let next = layout.step(room[at], action);
                if !seen[next] && inside(next) {
                    seen[next] = true;
                    room.push(next);
                }
            }
            at += 1;
        }
        rooms.push(room);
    }
    rooms
}

/// A goal, the centre of a region on the shortest way to it from another room, and the cells of that room outside the region.
fn way(layout: &Layout, rng: &mut Rng, free: &[usize]) -> Option<(usize, usize, Vec<usize>)> {
    const TRIES: usize = 200;
    let rooms = rooms(layout);
    let room_of = |cell: usize| rooms.iter().position(|room| room.contains(&cell));
    for _ in 0..TRIES {
        let [start, goal] = two(free, rng)?;
        let (Some(from), Some(to)) = (room_of(start), room_of(goal)) else { continue };
        if from == to {
            continue;
        }
        let far = distances(layout, goal);
        if far[start] == UNREACHABLE {
            continue;
        }
        let mut path = vec![start];
        while let Some(&last) = path.last().filter(|&&last| last != goal) {
            let closer = (0..ACTIONS).map(|a| layout.step(last, a)).find(|&next| far[next] < far[last])?;
            path.push(closer);
        }
        let doors: Vec<usize> = path.iter().copied().filter(|&cell| is_door(layout, cell)).collect();
        let centre = *doors.choose(rng)?;
        if rings(layout, start, centre) > 1 && rings(layout, goal, centre) > 1 {
            let room = rooms[from].iter().copied().filter(|&cell| rings(layout, cell, centre) > 1);
            return Some((goal, centre, room.collect()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Split;
    use crate::registry::{WorldConfig, make};
    use crate::rng::stream;

    #[test]
    fn every_kind_has_tasks_on_four_rooms_that_acting_well_gains_on() {
        let world = make("four-rooms", &WorldConfig { seed: 5, ..WorldConfig::default() }).unwrap();
        let grid = world.grid().unwrap();
        for &context in world.contexts(Split::Test) {
            let layout = grid.layout(context).unwrap();
            let tasks = RewardTask::draw(layout, &mut stream(9, "rewards", &[context.0]), 2);
            for kind in RewardKind::ALL {
                assert_eq!(tasks.iter().filter(|task| task.kind == kind).count(), 2, "{kind:?}");
            }
            for task in &tasks {
                let best = task.values(layout, Acting::Best, 0.9);
                let greedy: Vec<usize> = (0..layout.cells())
                    .map(|cell| {
                        let value = |a: usize| best[layout.step(cell, a)];
                        (1..ACTIONS).fold(0, |b, a| if value(a) > value(b) { a } else { b })
                    })
                    .collect();
                let [gained, possible] = task.gain(layout, &greedy, 0.9);
                assert!(possible > 0.0 && (gained / possible - 1.0).abs() < 1e-3, "{:?}", task.kind);
                let stay = vec![0; layout.cells()];
                assert!(task.gain(layout, &stay, 0.9)[0] < possible * 0.9, "{:?}", task.kind);
            }
        }
    }

    #[test]
    fn four_rooms_are_four() {
        let world = make("four-rooms", &WorldConfig::default()).unwrap();
        let grid = world.grid().unwrap();
        let layout = grid.layout(world.contexts(Split::Train)[0]).unwrap();
        let rooms = rooms(layout);
        assert_eq!(rooms.len(), 4, "{rooms:?}");
        assert_eq!(rooms.iter().map(Vec::len).sum::<usize>() + 4, layout.free_cells().count());
    }
}
