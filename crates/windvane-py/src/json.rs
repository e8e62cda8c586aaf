//! JSON values as Python's.

use crate::errors::Answer;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

/// A JSON value as Python's own types.
pub(crate) fn out<'py>(py: Python<'py>, value: &Value) -> Answer<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py).map_err(PyErr::from)?.to_owned().into_any(),
        Value::String(text) => text.into_pyobject(py).map_err(PyErr::from)?.into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into_pyobject(py).map_err(PyErr::from)?.into_any(),
            (None, Some(whole)) => whole.into_pyobject(py).map_err(PyErr::from)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py).map_err(PyErr::from)?.into_any(),
        },
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(out(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (key, value) in fields {
                dict.set_item(key, out(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
