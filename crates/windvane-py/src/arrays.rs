//! Arrays from Python, of any type and layout, as plain numbers, and plain numbers as arrays.

use crate::errors::{Answer, wrong};
use numpy::{
    PyArray1, PyArray2, PyArrayDyn, PyArrayMethods as _, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods as _,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windvane_world::{ActionBuf, ActionSpace, Actions};

/// Numbers with their shape.
pub(crate) struct Floats {
    pub(crate) values: Vec<f32>,
    pub(crate) shape: Vec<usize>,
}

/// Real numbers of any type and layout; `what` is what an error calls them.
pub(crate) fn floats(what: &str, given: &Bound<'_, PyAny>) -> Answer<Floats> {
    if let Ok(array) = given.extract::<PyReadonlyArray1<'_, f32>>()
        && let Ok(values) = array.as_slice()
    {
        return Ok(Floats { values: values.to_vec(), shape: vec![values.len()] });
    }
    if let Ok(array) = given.extract::<PyReadonlyArray2<'_, f32>>()
        && let Ok(values) = array.as_slice()
    {
        return Ok(Floats { values: values.to_vec(), shape: array.shape().to_vec() });
    }
    let array = converted(what, given, "fiub", "float32")?;
    let array =
        array.extract::<Bound<'_, PyArrayDyn<f32>>>().map_err(|_| wrong(format!("{what}: no array")))?;
    let shape = array.shape().to_vec();
    let values = array.to_vec().map_err(|_| wrong(format!("{what}: is not contiguous")))?;
    Ok(Floats { values, shape })
}

/// Whole numbers of any type and layout.
pub(crate) fn integers(what: &str, given: &Bound<'_, PyAny>) -> Answer<(Vec<i64>, Vec<usize>)> {
    if let Ok(array) = given.extract::<PyReadonlyArray1<'_, i64>>()
        && let Ok(values) = array.as_slice()
    {
        return Ok((values.to_vec(), vec![values.len()]));
    }
    let array = converted(what, given, "iub", "int64")?;
    let array =
        array.extract::<Bound<'_, PyArrayDyn<i64>>>().map_err(|_| wrong(format!("{what}: no array")))?;
    let shape = array.shape().to_vec();
    let values = array.to_vec().map_err(|_| wrong(format!("{what}: is not contiguous")))?;
    Ok((values, shape))
}

/// An array of one type in C order, made by NumPy out of one whose kind is among `kinds`.
fn converted<'py>(what: &str, given: &Bound<'py, PyAny>, kinds: &str, to: &str) -> Answer<Bound<'py, PyAny>> {
    let numpy = given.py().import("numpy")?;
    let array = numpy
        .call_method1("asarray", (given,))
        .map_err(|error| wrong(format!("{what}: not an array: {error}")))?;
    let dtype = array.getattr("dtype")?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    if !kinds.contains(&kind) {
        let expected = if kinds.contains('f') { "numbers" } else { "whole numbers" };
        return Err(wrong(format!("{what}: dtype {dtype}, expected {expected}")));
    }
    let arguments = PyDict::new(given.py());
    arguments.set_item("order", "C")?;
    arguments.set_item("copy", false)?;
    Ok(array.call_method("astype", (to,), Some(&arguments))?)
}

/// Rows of observations of `width` numbers each, and whether it was a single one.
pub(crate) fn observations(given: &Bound<'_, PyAny>, width: usize) -> Answer<(Vec<f32>, bool)> {
    let Floats { values, shape } = floats("observation", given)?;
    match shape[..] {
        [one] if one == width => Ok((values, true)),
        [_, each] if each == width => Ok((values, false)),
        _ => Err(wrong(format!("observation: shape {shape:?}, expected [{width}] or [rows, {width}]"))),
    }
}

/// Actions of a space, one after the other, and whether it was a single one.
pub(crate) fn actions(given: &Bound<'_, PyAny>, space: &ActionSpace) -> Answer<(Actions, bool)> {
    match space {
        ActionSpace::Discrete { names } => {
            let (values, shape) = integers("actions", given)?;
            if shape.len() > 1 {
                return Err(wrong(format!("actions: shape {shape:?}, expected one number each")));
            }
            let expected = || format!("expected a move from 0 to {}", names.len() - 1);
            let moves = values.iter().map(|&value| {
                u32::try_from(value).map_err(|_| wrong(format!("actions: {value}; {}", expected())))
            });
            Ok((Actions::Discrete(moves.collect::<Answer<_>>()?), shape.is_empty()))
        }
        ActionSpace::Continuous { low, .. } => {
            let Floats { values, shape } = floats("actions", given)?;
            let size = low.len();
            match shape[..] {
                [one] if one == size => Ok((Actions::Continuous { size, values }, true)),
                [_, each] if each == size => Ok((Actions::Continuous { size, values }, false)),
                _ => Err(wrong(format!("actions: shape {shape:?}, expected [{size}] or [rows, {size}]"))),
            }
        }
    }
}

/// A single action.
pub(crate) fn action(given: &Bound<'_, PyAny>, space: &ActionSpace) -> Answer<ActionBuf> {
    if let (ActionSpace::Discrete { .. }, Ok(index)) = (space, given.extract::<u32>()) {
        return Ok(ActionBuf::Discrete(index));
    }
    match actions(given, space)? {
        (Actions::Discrete(moves), true) => Ok(ActionBuf::Discrete(moves[0])),
        (Actions::Continuous { values, .. }, true) => Ok(ActionBuf::Continuous(values)),
        (actions, false) => Err(wrong(format!("actions: {} of them, expected a single one", actions.len()))),
    }
}

/// Actions as Gymnasium has them: whole numbers, or rows of numbers.
pub(crate) fn actions_out<'py>(py: Python<'py>, actions: &Actions) -> Answer<Bound<'py, PyAny>> {
    match actions {
        Actions::Discrete(moves) => {
            Ok(PyArray1::from_iter(py, moves.iter().map(|&index| i64::from(index))).into_any())
        }
        Actions::Continuous { size, values } => rows_out(py, values, *size),
    }
}

/// An action as Gymnasium has it.
pub(crate) fn action_out<'py>(py: Python<'py>, action: &ActionBuf) -> Answer<Bound<'py, PyAny>> {
    match action {
        ActionBuf::Discrete(index) => Ok(index.into_pyobject(py).map_err(PyErr::from)?.into_any()),
        ActionBuf::Continuous(values) => Ok(PyArray1::from_slice(py, values).into_any()),
    }
}

/// Numbers as rows.
pub(crate) fn rows_out<'py>(py: Python<'py>, values: &[f32], width: usize) -> Answer<Bound<'py, PyAny>> {
    let flat = PyArray1::from_slice(py, values);
    let rows: Bound<'py, PyArray2<f32>> = flat.reshape([values.len() / width.max(1), width])?;
    Ok(rows.into_any())
}
