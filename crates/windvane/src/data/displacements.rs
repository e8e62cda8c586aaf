//! How listed states lie to each other.

use super::StateTable;
use crate::nn::{Displacements, upload_indices};
use burn::tensor::Device;
use std::collections::BTreeMap;

impl StateTable {
    /// The displacement s' - s of every pair of states, by number.
    pub(crate) fn displacements(&self, device: &Device) -> Displacements {
        let (of_pairs, count) = numbered(self);
        Displacements { of_pairs: upload_indices(of_pairs, device), count }
    }
}

/// The number of the displacement s' - s of every pair of states, and how many different ones there are.
fn numbered(table: &StateTable) -> (Vec<i64>, usize) {
    let dims = table.spec().obs_dim();
    let mut places = vec![0.0; table.states() * dims];
    places.chunks_exact_mut(dims).enumerate().for_each(|(s, place)| table.write_state(s, place));
    let mut numbers = BTreeMap::new();
    let mut all = Vec::with_capacity(table.states() * table.states());
    for from in places.chunks_exact(dims) {
        for to in places.chunks_exact(dims) {
            // To a thousandth, so that rounding makes no new ones.
            let step: Vec<i64> =
                from.iter().zip(to).map(|(a, b)| (f64::from(b - a) * 1e3).round() as i64).collect();
            let next = numbers.len() as i64;
            all.push(*numbers.entry(step).or_insert(next));
        }
    }
    (all, numbers.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tabled;

    #[test]
    fn a_square_has_as_many_displacements_as_it_must() {
        let (_, table) = tabled("four-rooms", 2, 60);
        let (all, count) = numbered(&table);
        assert!(count <= 17 * 17 && all.len() == table.states() * table.states(), "{count}");
    }
}
