//! Randomized Four-Rooms: a wall row and a wall column, one door between each two adjoining rooms, 4,900 layouts.

use super::family::Family;
use super::layout::{Layout, cell};
use super::paths::distances;
use std::sync::LazyLock;

const SIDE: usize = 9;
const START: usize = cell(SIDE, 1, 1);

/// All 4,900 layouts: start (1, 1), and in each of the other three rooms the goal that takes the most steps to reach.
pub(crate) static FAMILY: LazyLock<Family> = LazyLock::new(|| {
    let mut layouts = Vec::new();
    let mut goals = Vec::new();
    for column in 3..=7 {
        for row in 3..=7 {
            let closed = (1..=SIDE)
                .flat_map(|i| [cell(SIDE, column, i), cell(SIDE, i, row)])
                .fold(Layout::open(SIDE), Layout::wall);
            for upper in 1..row {
                for lower in row + 1..=SIDE {
                    for left in 1..column {
                        for right in column + 1..=SIDE {
                            let layout = closed
                                .door(cell(SIDE, column, upper))
                                .door(cell(SIDE, column, lower))
                                .door(cell(SIDE, left, row))
                                .door(cell(SIDE, right, row));
                            layouts.push(layout);
                            goals.push(farthest_in_rooms(&layout, column, row));
                        }
                    }
                }
            }
        }
    }
    Family { name: "four-rooms", side: SIDE, start: START, layouts, goals }
});

/// The cell farthest from the start (in steps; of equals, the last in reading order) in each room but the start's.
fn farthest_in_rooms(layout: &Layout, column: usize, row: usize) -> [usize; 3] {
    let distance = distances(layout, START);
    let farthest = |right: bool, below: bool| {
        let in_room = |&cell: &usize| {
            let (x, y) = layout.position(cell);
            x != column && y != row && (x > column) == right && (y > row) == below
        };
        layout.free_cells().filter(in_room).max_by_key(|&cell| distance[cell]).unwrap_or(START)
    };
    [farthest(false, true), farthest(true, false), farthest(true, true)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::UNREACHABLE;

    #[test]
    fn one_door_joins_each_two_adjoining_rooms_and_each_other_room_has_its_goal() {
        assert_eq!(FAMILY.layouts.len(), 4_900);
        for (layout, goals) in FAMILY.layouts.iter().zip(&FAMILY.goals) {
            let free = |x, y| layout.is_free(layout.cell(x, y));
            let walled = |line: &dyn Fn(usize) -> bool| (1..=SIDE).filter(|&i| line(i)).count() == 2;
            let column = (3..=7).find(|&x| walled(&|y| free(x, y))).unwrap();
            let row = (3..=7).find(|&y| walled(&|x| free(x, y))).unwrap();
            assert!(!free(column, row));
            let doors = [
                (1..row).filter(|&y| free(column, y)).count(),
                (row + 1..=SIDE).filter(|&y| free(column, y)).count(),
                (1..column).filter(|&x| free(x, row)).count(),
                (column + 1..=SIDE).filter(|&x| free(x, row)).count(),
            ];
            assert_eq!(doors, [1; 4]);
            let distance = distances(layout, START);
            let rooms = goals.map(|goal| {
                let (x, y) = layout.position(goal);
                assert!(distance[goal] != UNREACHABLE && x != column && y != row);
                (x > column, y > row)
            });
            assert_eq!(rooms, [(false, true), (true, false), (true, true)]);
        }
    }
}
