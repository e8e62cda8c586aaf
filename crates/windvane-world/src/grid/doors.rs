//! Randomized-Doors: two inner walls with one door each, 49 layouts.

use super::family::Family;
use super::layout::{Layout, cell};
use std::sync::LazyLock;

const SIDE: usize = 7;
const WALLS: [usize; 2] = [3, 5];

/// All 49 layouts: start (1, 4), goals (7, 4), (7, 1) and (7, 7).
pub(crate) static FAMILY: LazyLock<Family> = LazyLock::new(|| {
    let closed = WALLS
        .iter()
        .flat_map(|&x| (1..=SIDE).map(move |y| cell(SIDE, x, y)))
        .fold(Layout::open(SIDE), Layout::wall);
    let doors = (1..=SIDE).flat_map(|first| (1..=SIDE).map(move |second| [first, second]));
    let layouts: Vec<Layout> = doors
        .map(|doors| WALLS.iter().zip(doors).fold(closed, |layout, (&x, y)| layout.door(cell(SIDE, x, y))))
        .collect();
    let goals = [(7, 4), (7, 1), (7, 7)].map(|(x, y)| cell(SIDE, x, y));
    Family { name: "doors", side: SIDE, start: cell(SIDE, 1, 4), goals: vec![goals; layouts.len()], layouts }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wall_has_exactly_one_door() {
        assert_eq!(FAMILY.layouts.len(), 49);
        for layout in &FAMILY.layouts {
            let doors = |x| (1..=SIDE).filter(|&y| layout.is_free(layout.cell(x, y))).count();
            let open_columns = [1, 2, 4, 6, 7].map(doors);
            assert_eq!((WALLS.map(doors), open_columns), ([1; 2], [SIDE; 5]));
        }
    }
}
