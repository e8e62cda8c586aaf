//! Windvane for Python: what the package `windvane` in `python/` is made of.
//!
//! Plain classes over the library, one file for each; what is only a matter of taste (keywords, progress, registration) is
//! in Python.

mod agent;
mod arrays;
mod belief;
mod columns;
mod dataset;
mod errors;
mod figures;
mod json;
mod session;
mod train;
mod vector;
mod world;

use pyo3::prelude::*;
use std::panic::catch_unwind;
use std::path::PathBuf;

pub(crate) use windvane_cli::GENERATOR;

/// The exit code of a program that panicked.
const PANICKED: u8 = 101;

/// Runs the command `windvane`, which takes the signals of the process, and says with which code to exit.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<String>, program: Option<PathBuf>) -> u8 {
    if let Some(program) = program {
        windvane_cli::started_as(program);
    }
    py.detach(|| catch_unwind(|| windvane_cli::run(arguments)).unwrap_or(PANICKED))
}

/// Panics, so that a test can see what becomes of it.
#[pyfunction]
fn _panic(words: String) -> PyResult<()> {
    errors::guarded(|| panic!("{words}"))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("revision", windvane_cli::REVISION)?;
    module.add_class::<agent::Agent>()?;
    module.add_class::<belief::Belief>()?;
    module.add_class::<belief::Task>()?;
    module.add_class::<dataset::Dataset>()?;
    module.add_class::<figures::Figure>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<vector::Vector>()?;
    module.add_class::<world::World>()?;
    module.add_function(wrap_pyfunction!(figures::figure, module)?)?;
    module.add_function(wrap_pyfunction!(figures::score_rows, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(world::worlds, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(_panic, module)?)?;
    Ok(())
}
