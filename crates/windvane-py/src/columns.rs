//! The one place with `unsafe`: columns of a data set as NumPy arrays that look into it.
#![allow(unsafe_code)]

use crate::errors::Answer;
use numpy::ndarray::ArrayView2;
use numpy::{Element, PyArray2, PyArrayMethods as _};
use pyo3::prelude::*;

/// `values` as rows of `width` numbers that cannot be written to; the array holds a reference to `owner`,
/// which owns `values`.
pub(crate) fn view<'py, T: Element>(
    owner: &Bound<'py, PyAny>,
    values: &[T],
    width: usize,
) -> Answer<Bound<'py, PyAny>> {
    let rows = values.len() / width.max(1);
    let view = ArrayView2::from_shape((rows, width), values)
        .map_err(|error| crate::errors::wrong(error.to_string()))?;
    // SAFETY: the callers of this module pass the values of a frozen class whose memory map is never moved or dropped while
    // an object of it lives, and the array holds a reference to that object. Nobody writes: the map is read only, and so is
    // the array from the next line on.
    let array = unsafe { PyArray2::borrow_from_array(&view, owner.clone()) };
    Ok(array.readwrite().make_nonwriteable().as_any().clone())
}

/// The same as a column of single numbers.
pub(crate) fn view_flat<'py, T: Element>(
    owner: &Bound<'py, PyAny>,
    values: &[T],
) -> Answer<Bound<'py, PyAny>> {
    Ok(view(owner, values, 1)?.call_method1("reshape", (values.len(),))?)
}
