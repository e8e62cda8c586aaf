//! What is known of a map's dynamics: how likely each move succeeds. Certain for a map, a belief otherwise.

use super::layout::{ACTIONS, Layout, ahead};
use crate::error::WorldError;

/// P(move succeeds | cell, action). A move that fails stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamics {
    side: usize,
    /// `[cells * ACTIONS]`; 0 toward the outer wall.
    success: Vec<f64>,
}

impl Dynamics {
    /// Takes the probabilities `[cells * ACTIONS]` of a square with the given side as they were believed, for
    /// instance by a learned model. Those toward the outer wall are set to 0: every layout has it.
    pub fn new(side: usize, mut success: Vec<f64>) -> Result<Self, WorldError> {
        if success.len() != side * side * ACTIONS {
            return Err(WorldError::Invalid(format!(
                "dynamics of a grid with side {side}: expected {} probabilities, got {}",
                side * side * ACTIONS,
                success.len()
            )));
        }
        for (place, p) in success.iter_mut().enumerate() {
            if !(0.0..=1.0).contains(p) {
                return Err(WorldError::Invalid(format!(
                    "dynamics of a grid: expected a probability at cell {}, move {}, got {p}",
                    place / ACTIONS,
                    place % ACTIONS
                )));
            }
            if ahead(side, place / ACTIONS, place % ACTIONS).is_none() {
                *p = 0.0;
            }
        }
        Ok(Self { side, success })
    }

    /// Probabilities known to be right: within range, 0 toward the outer wall.
    pub(super) fn believed(side: usize, success: Vec<f64>) -> Self {
        Self { side, success }
    }

    /// The dynamics of a known layout.
    pub fn of(layout: &Layout) -> Self {
        let moves = |place| layout.step(place / ACTIONS, place % ACTIONS) != place / ACTIONS;
        let success = (0..layout.cells() * ACTIONS).map(|place| f64::from(u8::from(moves(place)))).collect();
        Self { side: layout.side(), success }
    }

    /// Cells along a side.
    pub fn side(&self) -> usize {
        self.side
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.side * self.side
    }

    /// The probabilities `[cells * ACTIONS]`.
    pub fn success(&self) -> &[f64] {
        &self.success
    }

    /// The cell ahead and how likely the move gets there. At the outer wall, the cell itself and 0.
    pub fn ahead(&self, cell: usize, action: usize) -> (usize, f64) {
        (ahead(self.side, cell, action).unwrap_or(cell), self.success[cell * ACTIONS + action])
    }
}
