//! Tensors repeated, joined in groups, and averaged.

use burn::tensor::Tensor;

/// Every row `times` times in succession: `[rows, width]` -> `[rows * times, width]`.
pub(crate) fn repeat_rows(x: &Tensor<2>, times: usize) -> Tensor<2> {
    let [rows, width] = x.dims();
    x.clone().reshape([rows, 1, width]).repeat(&[1, times, 1]).reshape([rows * times, width])
}

/// Rows of several tensors `[groups * n, width]` as one, `[groups * sum of n, width]`: those of a group stay together.
pub(crate) fn join_groups(all: &[Tensor<2>], groups: usize) -> Tensor<2> {
    if let [one] = all {
        return one.clone();
    }
    let grouped = |x: &Tensor<2>| {
        let [rows, width] = x.dims();
        x.clone().reshape([groups, rows / groups, width])
    };
    let all = Tensor::cat(all.iter().map(grouped).collect(), 1);
    let [_, rows, width] = all.dims();
    all.reshape([groups * rows, width])
}

/// The mean of tensors of one shape.
///
/// # Panics
/// If there is none.
pub(crate) fn mean_of<const D: usize>(all: impl IntoIterator<Item = Tensor<D>>) -> Tensor<D> {
    let (mut all, mut count) = (all.into_iter(), 1.0);
    let first = all.next().expect("tensors to average");
    let sum = all.fold(first, |sum, one| {
        count += 1.0;
        sum + one
    });
    sum / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{read, upload};
    use burn::tensor::Device;

    #[test]
    fn rows_of_a_group_stay_together() {
        let device = Device::flex();
        let first: Tensor<2> = upload(vec![1.0, 2.0, 3.0, 4.0], [4, 1], &device); // groups 1 2 | 3 4
        let second = upload(vec![5.0, 6.0], [2, 1], &device); // 5 | 6
        assert_eq!(read(join_groups(&[first, second], 2)), [1.0, 2.0, 5.0, 3.0, 4.0, 6.0]);
    }
}
