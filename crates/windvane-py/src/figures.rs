//! Figures and score rows.

use crate::errors::{Answer, guarded, wrong};
use crate::json;
use pyo3::prelude::*;
use std::path::PathBuf;
use windvane::device::Threads;
use windvane::report::figure::figure as draw;
use windvane::sweep::row::{self, Found};
use windvane_world::picture::Picture;

/// A finished figure, which a notebook shows.
#[pyclass(frozen, module = "windvane._core")]
pub(crate) struct Figure {
    picture: Picture,
}

impl Figure {
    pub(crate) fn of(picture: Picture) -> Self {
        Self { picture }
    }
}

#[pymethods]
impl Figure {
    /// The figure as SVG text.
    #[getter]
    fn svg(&self) -> &str {
        self.picture.svg()
    }

    fn _repr_svg_(&self) -> &str {
        self.picture.svg()
    }

    /// Writes the new file `path`: SVG or PNG, as its name ends, with `scale` pixels for each unit.
    #[pyo3(signature = (path, scale=2.0))]
    fn save(&self, path: PathBuf, scale: f32) -> PyResult<()> {
        guarded(|| Ok(self.picture.save(&path, scale)?))
    }

    fn __repr__(&self) -> String {
        format!("Figure({} bytes of SVG)", self.picture.svg().len())
    }
}

/// One figure of a run or a sweep, by its name: "qmap", "beliefs", "summary" and so on.
///
/// >>> windvane.figure("qmap", "runs/x").save("qmap.png")
#[pyfunction]
pub(crate) fn figure(py: Python<'_>, name: &str, path: PathBuf) -> PyResult<Figure> {
    guarded(|| {
        let (picture, _) = py.detach(|| Threads::new(1)?.run(|| draw(name, &path)))?;
        Ok(Figure { picture })
    })
}

/// The score rows of a run, of a sweep or of a file, as dictionaries, and what is odd about them.
#[pyfunction]
pub(crate) fn score_rows(py: Python<'_>, path: PathBuf) -> PyResult<(Vec<Bound<'_, PyAny>>, Vec<String>)> {
    guarded(|| {
        let (rows, warnings) = if path.is_file() {
            let (rows, bad) = row::read(&path)?;
            let skipped = |line: &usize| format!("{}: line {line} is no row and is skipped", path.display());
            (rows, bad.iter().map(skipped).collect())
        } else {
            let found = Found::below(&path)?;
            (found.rows.into_iter().map(|(_, row)| row).collect(), found.warnings)
        };
        let out = |row: &row::Row| {
            let value = serde_json::to_value(row).map_err(|error| wrong(error.to_string()))?;
            json::out(py, &value)
        };
        Ok((rows.iter().map(out).collect::<Answer<_>>()?, warnings))
    })
}
