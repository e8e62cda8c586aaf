//! Random maps for the point: 8x8 cells, of which the inner 6x6 vary.

use crate::rng::Rng;
use rand::Rng as _;

/// Cells along a side, the outer wall not counted.
pub(crate) const SIDE: usize = 6;

/// All of them.
pub(super) const CELLS: usize = SIDE * SIDE;
const ALL: u64 = (1 << CELLS) - 1;
const FIRST_COLUMN: u64 = 0x4104_1041;
const LAST_COLUMN: u64 = FIRST_COLUMN << (SIDE - 1);

/// A map: the open cells of the 6x6 interior, one bit each; cell `(column, row)` is bit `column + 6 * row`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Maze {
    open: u64,
}

impl Maze {
    /// The map with this code; nothing if it is not open, connected or short enough.
    pub fn from_code(code: u64) -> Option<Self> {
        let maze = Self { open: code };
        (code <= ALL && maze.is_accepted()).then_some(maze)
    }

    /// The code: the open cells as bits.
    pub fn code(self) -> u64 {
        self.open
    }

    /// Draws a map: random fill, two smoothing passes, again until it is open, connected and short enough.
    pub fn draw(rng: &mut Rng) -> Self {
        loop {
            let filled = Self { open: rng.next_u64() & ALL };
            let maze = filled.smoothed().smoothed();
            if maze.is_accepted() {
                return maze;
            }
        }
    }

    /// Whether the cell of the interior is open.
    pub fn is_open(self, cell: usize) -> bool {
        self.open >> cell & 1 == 1
    }

    /// The open cells in order.
    pub fn open_cells(self) -> impl Iterator<Item = usize> {
        (0..CELLS).filter(move |&cell| self.is_open(cell))
    }

    /// Number of open cells.
    pub fn count(self) -> usize {
        self.open.count_ones() as usize
    }

    /// Where an episode begins: the first open cell.
    pub fn start(self) -> usize {
        self.open.trailing_zeros() as usize
    }

    /// Where it should end: the open cell farthest from the start by Manhattan distance; of equals, the last.
    pub fn goal(self) -> usize {
        let from = self.start();
        let apart = |cell: &usize| (cell % SIDE).abs_diff(from % SIDE) + (cell / SIDE).abs_diff(from / SIDE);
        self.open_cells().max_by_key(apart).unwrap_or(from)
    }

    /// Steps from cell to cell (of four neighbours) that lead to `to`; nothing for walls and cells apart.
    pub fn distances(self, to: usize) -> [Option<u8>; CELLS] {
        let mut distance = [None; CELLS];
        let mut reached = 1 << to & self.open;
        let mut rim = reached;
        let mut steps = 0;
        while rim != 0 {
            for cell in bits(rim) {
                distance[cell] = Some(steps);
            }
            steps += 1;
            rim = spread(rim) & self.open & !reached;
            reached |= rim;
        }
        distance
    }

    /// The map as text, outer wall included: `#` wall, `.` open.
    pub fn rows(self) -> Vec<String> {
        let border = "#".repeat(SIDE + 2);
        let row = |y: usize| {
            let inner: String =
                (0..SIDE).map(|x| if self.is_open(x + SIDE * y) { '.' } else { '#' }).collect();
            format!("#{inner}#")
        };
        std::iter::once(border.clone()).chain((0..SIDE).map(row)).chain(std::iter::once(border)).collect()
    }

    /// One smoothing pass: an open cell with more than 6 open neighbours (of eight) becomes wall.
    fn smoothed(self) -> Self {
        let crowded = |cell: usize| (spread_eight(1 << cell) & !(1 << cell) & self.open).count_ones() > 6;
        let walls = bits(self.open).filter(|&cell| crowded(cell)).fold(0, |walls, cell| walls | 1 << cell);
        Self { open: self.open & !walls }
    }

    /// 53-88% of the interior open, all of it connected, no two cells 13 steps or more apart.
    fn is_accepted(self) -> bool {
        const LONGEST: u8 = 12;
        let share = self.count() as f64 / CELLS as f64;
        (0.53..=0.88).contains(&share)
            && bits(self.open).all(|cell| {
                let distance = self.distances(cell);
                bits(self.open).all(|other| distance[other].is_some_and(|steps| steps <= LONGEST))
            })
    }
}

/// The places of the set bits.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(place)
    })
}

/// The cells of `set` and their left and right neighbours.
fn widened(set: u64) -> u64 {
    set | (set & !LAST_COLUMN) << 1 | (set & !FIRST_COLUMN) >> 1
}

/// The cells of `set` and their four neighbours.
fn spread(set: u64) -> u64 {
    (widened(set) | set << SIDE | set >> SIDE) & ALL
}

/// The cells of `set` and their eight neighbours.
fn spread_eight(set: u64) -> u64 {
    let wide = widened(set);
    (wide | wide << SIDE | wide >> SIDE) & ALL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    /// The slow, obvious way: Floyd and Warshall's.
    fn longest_shortest_path(maze: Maze) -> usize {
        let cells: Vec<usize> = maze.open_cells().collect();
        let apart = |a: usize, b: usize| (a % SIDE).abs_diff(b % SIDE) + (a / SIDE).abs_diff(b / SIDE);
        let mut steps = [[99; CELLS]; CELLS];
        for &a in &cells {
            for &b in &cells {
                if apart(a, b) <= 1 {
                    steps[a][b] = apart(a, b);
                }
            }
        }
        for &via in &cells {
            for &a in &cells {
                for &b in &cells {
                    steps[a][b] = steps[a][b].min(steps[a][via] + steps[via][b]);
                }
            }
        }
        cells.iter().flat_map(|&a| cells.iter().map(move |&b| steps[a][b])).max().unwrap()
    }

    #[test]
    fn every_map_is_connected_short_and_as_open_as_it_should_be() {
        let mut rng = stream(0, "test", &[]);
        for _ in 0..300 {
            let maze = Maze::draw(&mut rng);
            assert!((20..=31).contains(&maze.count()), "53-88% of 36");
            assert!(longest_shortest_path(maze) < 13, "connected, and no path of 13 or more");
            assert_eq!(Maze::from_code(maze.code()), Some(maze));
            assert!(maze.is_open(maze.start()) && maze.is_open(maze.goal()) && maze.start() != maze.goal());
            assert!((0..maze.start()).all(|cell| !maze.is_open(cell)));
        }
    }

    #[test]
    fn codes_that_are_no_maps_are_refused() {
        let open = Maze::draw(&mut stream(1, "test", &[])).code();
        let two_rooms = ALL & !(0b111_111 << (2 * SIDE));
        for code in [0, 1, u64::MAX, ALL, open | 1 << CELLS, two_rooms] {
            assert_eq!(Maze::from_code(code), None, "{code:#x}");
        }
    }

    #[test]
    fn smoothing_fills_the_middle_of_open_space() {
        let smooth = Maze { open: ALL }.smoothed();
        let rows =
            ["########", "#......#", "#.####.#", "#.####.#", "#.####.#", "#.####.#", "#......#", "########"];
        assert_eq!(smooth.rows(), rows);
    }

    #[test]
    fn the_goal_is_the_farthest_cell_by_manhattan_distance() {
        let ring = Maze { open: ALL }.smoothed();
        assert_eq!((ring.start(), ring.goal()), (0, CELLS - 1));
        assert_eq!(ring.distances(0)[CELLS - 1], Some(10));
        assert_eq!(ring.distances(0)[SIDE + 1], None, "a wall");
    }
}
