//! How the point moves: OGBench's point, whose sphere slides along walls.

use super::maze::{Maze, SIDE};

/// Width of a cell.
pub(crate) const CELL: f32 = 4.0;
/// Radius of the sphere.
pub(crate) const RADIUS: f32 = 0.7;
/// Farthest move in a step, along each axis.
pub(crate) const SPEED: f32 = 0.2;
/// How far from the middle of its cell the point may be, toward a wall.
pub(crate) const ROOM: f32 = CELL / 2.0 - RADIUS;

const RIGHT: u8 = 1;
const BELOW: u8 = 2;
const LEFT: u8 = 4;
const ABOVE: u8 = 8;
/// Diagonal cells that are walls while the two cells beside them are open, so that their corner sticks out:
/// `(bit, x side, y side)`.
const CORNERS: [(u8, f32, f32); 4] = [(16, 1.0, 1.0), (32, -1.0, 1.0), (64, -1.0, -1.0), (128, 1.0, -1.0)];

/// What surrounds each cell of a map, as bits: walls on four sides, corners that stick out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walls([u8; SIDE * SIDE]);

impl Walls {
    /// Looks around each cell of `maze`.
    pub(crate) fn of(maze: Maze) -> Self {
        let side = SIDE as isize;
        let wall = |x: isize, y: isize| {
            let inside = (0..side).contains(&x) && (0..side).contains(&y);
            !(inside && maze.is_open((x + side * y) as usize))
        };
        Self(std::array::from_fn(|cell| {
            let (x, y) = (cell as isize % side, cell as isize / side);
            let sides = [(RIGHT, 1, 0), (BELOW, 0, 1), (LEFT, -1, 0), (ABOVE, 0, -1)];
            let beside = sides.into_iter().filter(|&(_, dx, dy)| wall(x + dx, y + dy));
            let walls = beside.fold(0, |walls, (bit, ..)| walls | bit);
            let corner = |&&(_, dx, dy): &&(u8, f32, f32)| {
                let (dx, dy) = (dx as isize, dy as isize);
                wall(x + dx, y + dy) && !wall(x + dx, y) && !wall(x, y + dy)
            };
            CORNERS.iter().filter(corner).fold(walls, |walls, &(bit, ..)| walls | bit)
        }))
    }

    /// Moves the point at `at` by `action` (each component within -1 to 1) and pushes it out of whatever it
    /// touches, the shortest way, so that it slides.
    ///
    /// A point that is `RADIUS` away from all walls stays so: a step is too short to bring its centre into a wall.
    #[inline]
    pub(crate) fn slide(&self, at: [f32; 2], action: [f32; 2]) -> [f32; 2] {
        let moved = [at[0] + SPEED * action[0], at[1] + SPEED * action[1]];
        let column = cell_of(moved[0]);
        let row = cell_of(moved[1]);
        let walls = self.0[column + SIDE * row];
        let middle = [CELL * column as f32, CELL * row as f32];
        let limit = |bit| if walls & bit == 0 { f32::INFINITY } else { ROOM };
        let mut x = moved[0].clamp(middle[0] - limit(LEFT), middle[0] + limit(RIGHT));
        let mut y = moved[1].clamp(middle[1] - limit(ABOVE), middle[1] + limit(BELOW));
        if walls >= CORNERS[0].0 {
            for (bit, side_x, side_y) in CORNERS {
                let corner = [middle[0] + side_x * CELL / 2.0, middle[1] + side_y * CELL / 2.0];
                let from = [x - corner[0], y - corner[1]];
                let distance2 = from[0] * from[0] + from[1] * from[1];
                if walls & bit != 0 && distance2 < RADIUS * RADIUS {
                    let stretch = RADIUS / distance2.sqrt();
                    x = corner[0] + stretch * from[0];
                    y = corner[1] + stretch * from[1];
                }
            }
        }
        [x, y]
    }

    /// Whether the sphere at `at` is clear of all walls.
    pub(crate) fn is_clear(&self, at: [f32; 2]) -> bool {
        self.slide(at, [0.0; 2]) == at
    }
}

/// The column or row of a coordinate.
pub(crate) fn cell_of(coordinate: f32) -> usize {
    (((coordinate + CELL / 2.0) / CELL) as usize).min(SIDE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;
    use proptest::prelude::*;

    /// Distance from a point to the nearest wall box, computed over all of them.
    fn clearance(maze: Maze, at: [f32; 2]) -> f32 {
        let rows = maze.rows();
        let mut least = f32::INFINITY;
        for (y, row) in rows.iter().enumerate() {
            for (x, _) in row.bytes().enumerate().filter(|&(_, symbol)| symbol == b'#') {
                let gap = |coordinate: f32, cell: usize| {
                    ((coordinate - CELL * (cell as f32 - 1.0)).abs() - CELL / 2.0).max(0.0)
                };
                least = least.min(gap(at[0], x).hypot(gap(at[1], y)));
            }
        }
        least
    }

    #[test]
    fn in_the_open_a_step_adds_a_fifth_of_the_action() {
        let maze = Maze::draw(&mut stream(0, "test", &[]));
        let middle = super::super::middle(maze.start());
        assert_eq!(Walls::of(maze).slide(middle, [0.5, -1.0]), [middle[0] + 0.1, middle[1] - 0.2]);
    }

    #[test]
    fn a_push_into_a_wall_slides_along_it() {
        let maze = Maze::draw(&mut stream(0, "test", &[]));
        let walls = Walls::of(maze);
        // The first open cell has a wall above it.
        let [x, y] = super::super::middle(maze.start());
        let mut at = [x - 1.0, y];
        for _ in 0..10 {
            at = walls.slide(at, [0.5, -1.0]);
        }
        assert_eq!(at[1], y - ROOM);
        assert!((at[0] - x).abs() < 1e-5);
    }

    proptest! {
        #[test]
        fn the_sphere_never_enters_a_wall_nor_jumps(
            seed: u64,
            pushes in prop::collection::vec((-1_i8..=1, -1_i8..=1, 1_usize..40, any::<bool>()), 1..60),
        ) {
            let maze = Maze::draw(&mut stream(seed, "test", &[]));
            let walls = Walls::of(maze);
            let mut at = super::super::middle(maze.start());
            let mut bend = 0.37_f32;
            for (x, y, repeats, straight) in pushes {
                for _ in 0..repeats {
                    // Full pushes in the eight directions, or bent ones that hit corners at all angles.
                    bend = (bend * 3.7 * (1.0 - bend)).clamp(0.0, 1.0);
                    let scale = if straight { 1.0 } else { bend };
                    let next = walls.slide(at, [f32::from(x), f32::from(y) * scale]);
                    prop_assert!(clearance(maze, next) > RADIUS - 1e-4, "{next:?}");
                    // Pushed out the shortest way, it ends no farther from where it wanted to be than it was.
                    prop_assert!((next[0] - at[0]).hypot(next[1] - at[1]) <= 2.0 * SPEED * 1.415);
                    at = next;
                }
            }
        }
    }
}
