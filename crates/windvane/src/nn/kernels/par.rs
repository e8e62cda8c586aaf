//! Work in blocks of rows, on as many threads as the current pool has. What a block computes does not depend on the thread,
//! and whatever is summed over blocks is folded in their order by the caller: results do not depend on the number of threads.

use rayon::prelude::*;

/// Rows of a block.
pub(crate) const BLOCK: usize = 64;
/// Elements below which a second thread costs more than it brings.
const PARALLEL: usize = 1 << 15;

/// Whether a second thread pays for work on this many elements.
pub(crate) fn worth_it(elements: usize) -> bool {
    elements >= PARALLEL && rayon::current_num_threads() > 1
}

/// Calls `work(i, chunk i)` for every chunk of `size` elements.
pub(crate) fn chunks(data: &mut [f32], size: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    let size = size.max(1);
    if worth_it(data.len()) {
        data.par_chunks_mut(size).enumerate().for_each(|(i, chunk)| work(i, chunk));
    } else {
        data.chunks_mut(size).enumerate().for_each(|(i, chunk)| work(i, chunk));
    }
}

/// Calls `work(i, chunk i of a, chunk i of b)` for every chunk, where chunks of `a` have `sizes[0]` elements and chunks of
/// `b` have `sizes[1]`.
pub(crate) fn chunks2<B: Send>(
    a: &mut [f32],
    b: &mut [B],
    sizes: [usize; 2],
    work: impl Fn(usize, &mut [f32], &mut [B]) + Sync,
) {
    let sizes = sizes.map(|size| size.max(1));
    if worth_it(a.len()) {
        let pairs = a.par_chunks_mut(sizes[0]).zip(b.par_chunks_mut(sizes[1]));
        pairs.enumerate().for_each(|(i, (a, b))| work(i, a, b));
    } else {
        let pairs = a.chunks_mut(sizes[0]).zip(b.chunks_mut(sizes[1]));
        pairs.enumerate().for_each(|(i, (a, b))| work(i, a, b));
    }
}
