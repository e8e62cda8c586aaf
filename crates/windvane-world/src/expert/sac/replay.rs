//! Steps that were walked, to be learned from again: the newest of them.

use crate::rng::Rng;
use rand::RngExt as _;

/// A ring of rows, the oldest of which make room for new ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replay<const ROW: usize> {
    rows: Vec<[f32; ROW]>,
    capacity: usize,
    /// Where the next row goes once the ring is full.
    next: usize,
}

impl<const ROW: usize> Replay<ROW> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { rows: Vec::new(), capacity, next: 0 }
    }

    pub(super) fn push(&mut self, row: [f32; ROW]) {
        if self.rows.len() < self.capacity {
            self.rows.push(row);
        } else {
            self.rows[self.next] = row;
            self.next = (self.next + 1) % self.capacity;
        }
    }

    /// So many rows by chance, each as likely as any.
    pub(super) fn sample(&self, count: usize, rng: &mut Rng) -> impl Iterator<Item = &[f32; ROW]> {
        (0..count).map(|_| &self.rows[rng.random_range(0..self.rows.len())])
    }

    /// All numbers, in the order in which they lie.
    pub(super) fn numbers(&self) -> &[f32] {
        self.rows.as_flattened()
    }

    /// A ring of such numbers, into which `pushed` rows went.
    pub(super) fn restored(numbers: &[f32], capacity: usize, pushed: usize) -> Self {
        let rows = numbers.as_chunks().0.to_vec();
        Self { rows, capacity, next: if pushed < capacity { 0 } else { pushed % capacity } }
    }
}
