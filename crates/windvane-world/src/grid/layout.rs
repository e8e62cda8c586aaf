//! One layout of a grid: which cells are free, and where a move leads.

/// The moves, in the order of `MiniGrid`'s directions. The y axis points down.
pub const MOVES: [&str; 4] = ["right", "down", "left", "up"];

/// Number of moves.
pub const ACTIONS: usize = MOVES.len();

/// A layout: a square of `side * side` cells within an outer wall, each of them free or wall.
///
/// The cell at `(x, y)`, both counted from 1 because the outer wall stands at 0, has the index
/// `(x - 1) + side * (y - 1)`; this is the state index of [`crate::EnvSpec::state_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    side: u8,
    free: u128,
}

impl Layout {
    /// A square without inner walls.
    ///
    /// # Panics
    /// If its cells do not fit into 128 bits (side 12 and more).
    pub fn open(side: usize) -> Self {
        assert!((1..=11).contains(&side), "a side from 1 to 11, not {side}");
        Self { side: side as u8, free: (1 << (side * side)) - 1 }
    }

    /// Turns a cell into wall.
    #[must_use]
    pub fn wall(self, cell: usize) -> Self {
        Self { free: self.free & !(1 << cell), ..self }
    }

    /// Turns a cell into free space.
    #[must_use]
    pub fn door(self, cell: usize) -> Self {
        Self { free: self.free | 1 << cell, ..self }
    }

    /// Cells along a side, the outer wall not counted.
    pub fn side(&self) -> usize {
        usize::from(self.side)
    }

    /// Number of cells, walls included.
    pub fn cells(&self) -> usize {
        self.side() * self.side()
    }

    /// The cell at `(x, y)`, both from 1.
    pub fn cell(&self, x: usize, y: usize) -> usize {
        cell(self.side(), x, y)
    }

    /// Where a cell is: `(x, y)`, both from 1.
    pub fn position(&self, cell: usize) -> (usize, usize) {
        (cell % self.side() + 1, cell / self.side() + 1)
    }

    /// Whether a cell is free.
    pub fn is_free(&self, cell: usize) -> bool {
        self.free >> cell & 1 == 1
    }

    /// The free cells, one bit each.
    pub fn free_bits(&self) -> u128 {
        self.free
    }

    /// The free cells in order.
    pub fn free_cells(&self) -> impl Iterator<Item = usize> + use<> {
        let layout = *self;
        (0..layout.cells()).filter(move |&cell| layout.is_free(cell))
    }

    /// Where move `action` leads from `cell`; into a wall, it stays.
    pub fn step(&self, cell: usize, action: usize) -> usize {
        ahead(self.side(), cell, action).filter(|&next| self.is_free(next)).unwrap_or(cell)
    }

    /// The layout as text, outer wall included: `#` wall, `.` free.
    pub fn rows(&self) -> Vec<String> {
        let side = self.side();
        let symbol = |x: usize, y: usize| {
            let inside = (1..=side).contains(&x) && (1..=side).contains(&y);
            if inside && self.is_free(self.cell(x, y)) { '.' } else { '#' }
        };
        (0..side + 2).map(|y| (0..side + 2).map(|x| symbol(x, y)).collect()).collect()
    }
}

/// The cell at `(x, y)`, both from 1, of a square with the given side.
pub(crate) const fn cell(side: usize, x: usize, y: usize) -> usize {
    (x - 1) + side * (y - 1)
}

/// The cell in front of `cell` in direction `action`, walls or not; nothing at the outer wall.
pub fn ahead(side: usize, cell: usize, action: usize) -> Option<usize> {
    let (x, y) = (cell % side, cell / side);
    match action {
        0 if x + 1 < side => Some(cell + 1),
        1 if y + 1 < side => Some(cell + side),
        2 if x > 0 => Some(cell - 1),
        3 if y > 0 => Some(cell - side),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_into_a_wall_stays_and_any_other_moves_one_cell() {
        let layout = Layout::open(3).wall(cell(3, 2, 1));
        let at = |x, y| layout.cell(x, y);
        assert_eq!(layout.step(at(1, 1), 0), at(1, 1), "wall");
        assert_eq!(layout.step(at(1, 1), 3), at(1, 1), "outer wall");
        assert_eq!(layout.step(at(1, 1), 1), at(1, 2));
        assert_eq!(
            (0..4).map(|a| layout.step(at(2, 2), a)).collect::<Vec<_>>(),
            [at(3, 2), at(2, 3), at(1, 2), at(2, 2)]
        );
        assert_eq!(layout.rows(), ["#####", "#.#.#", "#...#", "#...#", "#####"]);
        assert_eq!(layout.position(at(3, 2)), (3, 2));
    }
}
