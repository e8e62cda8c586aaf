//! The only place where numbers cross between host and device; everything that crosses is counted.
//!
//! A training step that reads nothing never waits for its device, so a test can ask [`transfers`] before and after one.
//! The processor's own kernels look at tensors where they lie: that is no transfer.
#![allow(clippy::disallowed_methods)] // here and nowhere else

use burn::tensor::{Device, Int, Tensor, TensorData};
use std::cell::{Cell, RefCell};

/// What crossed between host and device on this thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Tensors read back to the host.
    pub reads: u64,
    /// Tensors made of host numbers.
    pub uploads: u64,
    /// Numbers in all those uploads.
    pub uploaded: u64,
}

thread_local! {
    static TRANSFERS: Cell<Transfers> = const { Cell::new(Transfers { reads: 0, uploads: 0, uploaded: 0 }) };
    static RECORD: RefCell<Option<Vec<Upload>>> = const { RefCell::new(None) };
}

/// One upload, as [`recorded`] keeps it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Upload {
    /// Rows, and numbers in each.
    pub(crate) shape: [usize; 2],
    /// The numbers; whole ones are exact up to 2^24.
    pub(crate) values: Vec<f32>,
}

/// Does `work` and returns what it uploaded on this thread, in order, first values of parameters left out: all that a step
/// in another stack has to be given to do the same.
pub(crate) fn recorded<R>(work: impl FnOnce() -> R) -> (R, Vec<Upload>) {
    let before = RECORD.replace(Some(Vec::new()));
    let result = work();
    (result, RECORD.replace(before).unwrap_or_default())
}

fn record(shape: &[usize], values: impl FnOnce() -> Vec<f32>) {
    RECORD.with_borrow_mut(|record| {
        if let Some(record) = record {
            let values = values();
            let width = shape.last().copied().unwrap_or(1).max(1);
            record.push(Upload { shape: [values.len() / width, width], values });
        }
    });
}

/// What crossed on this thread since it began.
pub fn transfers() -> Transfers {
    TRANSFERS.get()
}

fn count_read() {
    let so_far = TRANSFERS.get();
    TRANSFERS.set(Transfers { reads: so_far.reads + 1, ..so_far });
}

fn count_upload(numbers: usize) {
    let Transfers { reads, uploads, uploaded } = TRANSFERS.get();
    TRANSFERS.set(Transfers { reads, uploads: uploads + 1, uploaded: uploaded + numbers as u64 });
}

/// A tensor of host numbers in row order.
///
/// # Panics
/// If the number of values is not that of the shape.
pub fn upload<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    record(&shape, || values.clone());
    upload_parameter(values, shape, device)
}

/// The same, for the first values of a parameter.
pub(super) fn upload_parameter<const D: usize>(
    values: Vec<f32>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D> {
    count_upload(values.len());
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Whole numbers, for instance the rows of a batch.
pub fn upload_indices(values: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    count_upload(values.len());
    record(&[1], || values.iter().map(|&x| x as f32).collect());
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), device)
}

/// A tensor's elements in row order, copied to the host.
pub fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    count_read();
    tensor.into_data().iter::<f32>().collect()
}

/// The number in a tensor of one, copied to the host.
///
/// # Panics
/// If the tensor holds more or less than one number.
pub fn read_scalar(tensor: &Tensor<1>) -> f64 {
    count_read();
    f64::from(tensor.clone().into_scalar::<f32>())
}

#[cfg(test)]
mod tests {
    use super::{Transfers, Upload, read, read_scalar, recorded, transfers, upload, upload_indices};
    use burn::tensor::{Device, Tensor};

    #[test]
    fn every_crossing_is_counted_and_work_on_the_device_is_not() {
        let (device, before) = (Device::flex(), transfers());
        let x = upload(vec![1.0, 2.0, 3.0, 4.0], [2, 2], &device);
        let rows = upload_indices(vec![1, 0, 1], &device);
        let picked: Tensor<2> = x.select(0, rows) * 2.0; // [3, 2]
        let crossed = |now: Transfers| {
            [now.reads - before.reads, now.uploads - before.uploads, now.uploaded - before.uploaded]
        };
        assert_eq!(crossed(transfers()), [0, 2, 7]);
        assert_eq!(read_scalar(&picked.clone().sum()), 34.0);
        assert_eq!(read(picked), [6.0, 8.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(crossed(transfers()), [2, 2, 7]);
    }
    #[test]
    fn what_is_recorded_is_what_was_uploaded_and_nothing_is_kept_otherwise() {
        let device = Device::flex();
        let make = || {
            upload::<2>(vec![1.0, 2.0], [1, 2], &device);
            upload_indices(vec![7, 9, 11], &device);
        };
        make();
        let ((), uploads) = recorded(make);
        let whole = Upload { shape: [3, 1], values: vec![7.0, 9.0, 11.0] };
        assert_eq!(uploads, [Upload { shape: [1, 2], values: vec![1.0, 2.0] }, whole]);
        assert_eq!(recorded(|| ()).1, []);
    }
}
