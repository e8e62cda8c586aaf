//! Shortest paths on a layout.

use super::layout::{ACTIONS, Layout};

/// The distance of a cell that cannot be reached.
pub const UNREACHABLE: u16 = u16::MAX;

/// Steps from `from` to every cell (equally: from every cell to `from`, since moves can be undone);
/// [`UNREACHABLE`] for walls.
pub fn distances(layout: &Layout, from: usize) -> Vec<u16> {
    let mut distance = vec![UNREACHABLE; layout.cells()];
    let mut queue = Vec::with_capacity(layout.cells());
    if layout.is_free(from) {
        distance[from] = 0;
        queue.push(from);
    }
    let mut head = 0;
    while let Some(&cell) = queue.get(head) {
        head += 1;
        for next in (0..ACTIONS).map(|action| layout.step(cell, action)) {
            if distance[next] == UNREACHABLE {
                distance[next] = distance[cell] + 1;
                queue.push(next);
            }
        }
    }
    distance
}

/// The moves that shorten the way to the goal whose `distances` are given, one bit each.
pub fn optimal_moves(layout: &Layout, distances: &[u16], cell: usize) -> u8 {
    (0..ACTIONS)
        .filter(|&action| distances[layout.step(cell, action)] < distances[cell])
        .fold(0, |moves, action| moves | 1 << action)
}
