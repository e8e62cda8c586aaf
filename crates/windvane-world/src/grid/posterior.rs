//! The exact posterior over layouts: which of all that exist agree with what was seen.

use super::dynamics::Dynamics;
use super::layout::{ACTIONS, Layout, ahead};
use crate::env::{Action, EnvSpec};

/// A uniform prior over layouts, stored cell by cell: which layouts leave it free.
pub struct Prior {
    side: usize,
    layouts: usize,
    /// For each cell, the set of layouts in which it is free.
    free: Vec<Set>,
}

/// A set of layouts, one bit each.
type Set = Vec<u64>;

impl Prior {
    /// The uniform prior over these layouts.
    ///
    /// # Panics
    /// If there are none, or their sides differ.
    pub fn new(layouts: &[Layout]) -> Self {
        let side = layouts.first().expect("at least one layout").side();
        assert!(layouts.iter().all(|layout| layout.side() == side), "layouts of one side");
        let column = |cell: usize| {
            let word = |layouts: &[Layout]| {
                layouts.iter().rev().fold(0, |word, layout| word << 1 | u64::from(layout.is_free(cell)))
            };
            layouts.chunks(64).map(word).collect()
        };
        Self { side, layouts: layouts.len(), free: (0..side * side).map(column).collect() }
    }

    /// The belief before anything was seen.
    pub fn posterior(&self) -> Posterior<'_> {
        let mut possible = vec![u64::MAX; self.layouts.div_ceil(64)];
        let beyond = possible.len() * 64 - self.layouts;
        if let Some(last) = possible.last_mut() {
            *last >>= beyond;
        }
        Posterior { prior: self, possible }
    }
}

/// The layouts that agree with everything seen so far, all equally likely.
///
/// Moves are deterministic, so this is Bayes' rule: a layout either explains a transition or is ruled out by it.
#[derive(Clone)]
pub struct Posterior<'a> {
    prior: &'a Prior,
    possible: Set,
}

impl Posterior<'_> {
    /// Takes note that `action` led from `cell` to `next`; whether that ruled out any layout.
    pub fn observe(&mut self, cell: usize, action: usize, next: usize) -> bool {
        let here = self.restrict(cell, true);
        let there = match ahead(self.prior.side, cell, action) {
            Some(ahead) => self.restrict(ahead, next == ahead),
            None => false,
        };
        here || there
    }

    /// Takes note of transitions as they were observed; those of other worlds are passed over.
    pub fn observe_all<'o>(
        &mut self,
        spec: &EnvSpec,
        transitions: impl Iterator<Item = (&'o [f32], Action<'o>, &'o [f32])>,
    ) {
        for (obs, action, next) in transitions {
            if let (Some(cell), Action::Discrete(action), Some(next)) =
                (spec.state_of(obs), action, spec.state_of(next))
            {
                self.observe(cell, action as usize, next);
            }
        }
    }

    /// Keeps the layouts in which `cell` is free, or is wall; whether that ruled out any.
    fn restrict(&mut self, cell: usize, free: bool) -> bool {
        let mut changed = false;
        for (word, &column) in self.possible.iter_mut().zip(&self.prior.free[cell]) {
            let remaining = *word & if free { column } else { !column };
            changed |= remaining != *word;
            *word = remaining;
        }
        changed
    }

    /// Number of layouts left.
    pub fn count(&self) -> usize {
        self.possible.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the layout with this code is still possible.
    pub fn contains(&self, code: usize) -> bool {
        self.possible.get(code / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
    }

    /// P(cell is wall), for every cell.
    pub fn walls(&self) -> Vec<f64> {
        let count = self.count().max(1) as f64;
        self.prior.free.iter().map(|column| 1.0 - self.common(column, column) / count).collect()
    }

    /// The mean of the possible dynamics: P(move succeeds | cell, action), given that the agent is in the cell.
    pub fn dynamics(&self) -> Dynamics {
        let side = self.prior.side;
        let success = |place: usize| {
            let cell = place / ACTIONS;
            let Some(next) = ahead(side, cell, place % ACTIONS) else { return 0.0 };
            let (from, to) = (&self.prior.free[cell], &self.prior.free[next]);
            let here = self.common(from, from);
            // Nobody can stand in a cell that is a wall for sure.
            if here == 0.0 { 0.0 } else { self.common(from, to) / here }
        };
        let success = (0..side * side * ACTIONS).map(success).collect();
        Dynamics::believed(side, success)
    }

    /// Number of possible layouts in both sets.
    fn common(&self, a: &[u64], b: &[u64]) -> f64 {
        let words = self.possible.iter().zip(a.iter().zip(b));
        f64::from(words.map(|(possible, (a, b))| (possible & a & b).count_ones()).sum::<u32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{doors, four_rooms};
    use proptest::prelude::*;

    #[test]
    fn before_anything_was_seen_every_layout_is_possible() {
        for (family, count) in [(&doors::FAMILY, 49), (&four_rooms::FAMILY, 4_900)] {
            let prior = Prior::new(&family.layouts);
            let posterior = prior.posterior();
            assert_eq!(posterior.count(), count);
            assert!((0..count).all(|code| posterior.contains(code)) && !posterior.contains(count));
        }
    }

    #[test]
    fn a_bump_into_a_door_frame_leaves_the_other_doors_equally_likely() {
        let family = &*doors::FAMILY;
        let prior = Prior::new(&family.layouts);
        let mut posterior = prior.posterior();
        let cell = |x, y| family.layouts[0].cell(x, y);
        assert!(posterior.observe(cell(2, 4), 0, cell(2, 4)), "the wall ahead rules out 7 layouts");
        assert!(!posterior.observe(cell(2, 4), 0, cell(2, 4)), "seeing it again rules out none");
        assert_eq!(posterior.count(), 42);
        let walls = posterior.walls();
        assert_eq!((walls[cell(3, 4)], walls[cell(2, 4)]), (1.0, 0.0));
        assert!((walls[cell(3, 1)] - 5.0 / 6.0).abs() < 1e-12);
        let dynamics = posterior.dynamics();
        assert_eq!(dynamics.ahead(cell(2, 4), 0), (cell(3, 4), 0.0));
        assert!((dynamics.ahead(cell(2, 1), 0).1 - 1.0 / 6.0).abs() < 1e-12);
        assert_eq!(dynamics.ahead(cell(3, 1), 0), (cell(4, 1), 1.0), "behind a door it is open");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_posterior_is_exactly_the_layouts_that_explain_the_walk(
            code in 0_usize..4_900,
            actions in prop::collection::vec(0_usize..4, 0..200),
        ) {
            let family = &*four_rooms::FAMILY;
            let prior = Prior::new(&family.layouts);
            let mut posterior = prior.posterior();
            let truth = family.layouts[code];
            let mut cell = family.start;
            let mut trajectory = Vec::new();
            for action in actions {
                let next = truth.step(cell, action);
                posterior.observe(cell, action, next);
                trajectory.push((cell, action, next));
                cell = next;
            }
            prop_assert!(posterior.contains(code));
            for (other, layout) in family.layouts.iter().enumerate().step_by(7) {
                let explains = trajectory.iter().all(|&(cell, action, next)| {
                    layout.is_free(cell) && layout.step(cell, action) == next
                });
                prop_assert_eq!(posterior.contains(other), explains);
            }
        }
    }
}
