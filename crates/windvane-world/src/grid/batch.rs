//! Thousands of grids in lockstep, by lookup.

use super::family::random_free;
use super::layout::{ACTIONS, Layout};
use crate::batch::{BatchEnv, for_each, reject};
use crate::env::{Actions, EnvSpec, Start};
use crate::error::WorldError;
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Grids of one family, each with its own layout.
pub(crate) struct GridBatch {
    spec: Arc<EnvSpec>,
    layouts: Vec<Layout>,
    start: usize,
    /// Where each move leads, layout after layout: `[layout, cell, action]`.
    next: Vec<u8>,
    /// The observation of each cell.
    seen: Vec<[f32; 2]>,
    walkers: Vec<Walker>,
}

/// One environment: where its layout begins in the table, and where it stands.
#[derive(Clone, Copy)]
struct Walker {
    table: u32,
    cell: u8,
}

impl GridBatch {
    pub(crate) fn new(spec: Arc<EnvSpec>, layouts: Vec<Layout>, start: usize) -> Self {
        let mut next = Vec::new();
        let mut tables = BTreeMap::new();
        let mut table = |layout: &Layout| {
            *tables.entry(layout.free_bits()).or_insert_with(|| {
                let table = next.len() as u32;
                let places = 0..layout.cells() * ACTIONS;
                next.extend(places.map(|place| layout.step(place / ACTIONS, place % ACTIONS) as u8));
                table
            })
        };
        let walkers =
            layouts.iter().map(|layout| Walker { table: table(layout), cell: start as u8 }).collect();
        let observation = |cell| {
            let mut obs = [0.0; 2];
            spec.write_state(cell, &mut obs);
            obs
        };
        let seen = (0..spec.states().unwrap_or(0)).map(observation).collect();
        Self { spec, layouts, start, next, seen, walkers }
    }
}

impl BatchEnv for GridBatch {
    fn len(&self) -> usize {
        self.walkers.len()
    }

    fn reset(&mut self, index: usize, start: Start, rng: &mut Rng, obs: &mut [f32]) {
        let cell = match start {
            Start::Fixed => self.start,
            Start::Random => random_free(&self.layouts[index], rng),
        };
        self.walkers[index].cell = cell as u8;
        obs.copy_from_slice(&self.seen[cell]);
    }

    fn step(&mut self, actions: &Actions, obs: &mut [f32]) -> Result<(), WorldError> {
        let count = self.walkers.len();
        let moves = match actions {
            Actions::Discrete(moves)
                if moves.len() == count && moves.iter().all(|&action| (action as usize) < ACTIONS) =>
            {
                moves
            }
            _ => return Err(reject(&self.spec.action, &self.spec.name, actions, count)),
        };
        let (next, seen) = (&self.next, &self.seen);
        for_each(&mut self.walkers, moves, obs, |walker: &mut Walker, &[action], obs| {
            let place = usize::from(walker.cell) * ACTIONS + action as usize;
            walker.cell = next[walker.table as usize + place];
            *obs = seen[usize::from(walker.cell)];
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::batch::tests::{a_batch_does_what_single_environments_do, bad_actions_move_nothing};
    use crate::env::Actions;

    #[test]
    fn grids_in_lockstep_do_what_single_grids_do() {
        a_batch_does_what_single_environments_do("doors");
        a_batch_does_what_single_environments_do("four-rooms");
    }

    #[test]
    fn a_bad_move_is_refused_before_anything_moves() {
        bad_actions_move_nothing("doors", &Actions::Discrete(vec![1, 1, 4]));
        bad_actions_move_nothing("doors", &Actions::Discrete(vec![1, 1]));
        bad_actions_move_nothing("doors", &Actions::Continuous { size: 1, values: vec![0.0; 3] });
    }
}
