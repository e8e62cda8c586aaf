//! The library's errors as Python's, with the same text; a panic becomes an ordinary exception.

use pyo3::PyErr;
use pyo3::exceptions::{PyFileNotFoundError, PyFloatingPointError, PyOSError, PyRuntimeError, PyValueError};
use std::any::Any;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use windvane::LearnError;
use windvane_world::WorldError;

/// What can go wrong on the way from Python and back.
pub(crate) enum Error {
    Learn(LearnError),
    World(WorldError),
    Python(PyErr),
}

/// What nearly every function here returns.
pub(crate) type Answer<T> = Result<T, Error>;

impl From<LearnError> for Error {
    fn from(error: LearnError) -> Self {
        match error {
            LearnError::World(error) => Self::World(error),
            error => Self::Learn(error),
        }
    }
}

impl From<windvane::nn::NnError> for Error {
    fn from(error: windvane::nn::NnError) -> Self {
        Self::Learn(error.into())
    }
}

impl From<WorldError> for Error {
    fn from(error: WorldError) -> Self {
        Self::World(error)
    }
}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Python(error) => error,
            Error::Learn(error) => {
                let text = error.to_string();
                match error {
                    LearnError::Io { source, .. } => system(source.kind(), text),
                    LearnError::Run { path, .. } if !path.exists() => PyFileNotFoundError::new_err(text),
                    LearnError::NonFinite { .. } => PyFloatingPointError::new_err(text),
                    _ => PyValueError::new_err(text),
                }
            }
            Error::World(error) => {
                let text = error.to_string();
                match error {
                    WorldError::Io { source, .. } => system(source.kind(), text),
                    _ => PyValueError::new_err(text),
                }
            }
        }
    }
}

fn system(kind: ErrorKind, text: String) -> PyErr {
    match kind {
        ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

/// An error of somebody's argument.
pub(crate) fn wrong(text: impl Into<String>) -> Error {
    Error::Python(PyValueError::new_err(text.into()))
}

/// Runs `work`; if it panics, that is an error like any other and the interpreter goes on.
pub(crate) fn guarded<R>(work: impl FnOnce() -> Answer<R>) -> Result<R, PyErr> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(answer) => answer.map_err(PyErr::from),
        Err(panic) => Err(panicked(&*panic)),
    }
}

/// The exception of a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words");
    PyRuntimeError::new_err(format!("a mistake in windvane itself, please report it: {words}"))
}
