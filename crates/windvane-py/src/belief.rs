//! What an agent makes of a context, and of a task.

use crate::arrays::{actions, floats};
use crate::dataset::Dataset;
use crate::errors::{Answer, guarded, wrong};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;
use windvane::Agent;
use windvane::agent::task::{Inference, TaskCode};
use windvane::agent::{Adapted, Confidence};
use windvane_world::episodes::read_trajectories;
use windvane_world::trajectory::Trajectory;
use windvane_world::{EnvSpec, Prompt};

/// A belief h about the hidden dynamics: a Gaussian, and whether the context looks like any that was learned from.
#[pyclass(frozen, module = "windvane._core")]
pub(crate) struct Belief {
    pub(crate) owner: Arc<Agent>,
    pub(crate) adapted: Arc<Adapted>,
    std: Vec<f32>,
    confidence: Confidence,
}

impl Belief {
    pub(crate) fn new(owner: Arc<Agent>, adapted: Adapted, confidence: Confidence) -> Self {
        let std = adapted.posterior().std;
        Self { owner, adapted: Arc::new(adapted), std, confidence }
    }
}

#[pymethods]
impl Belief {
    /// Mean of h; empty for a method without a belief.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.confidence.belief)
    }

    /// Standard deviation of h; empty for a method without a belief.
    #[getter]
    fn std<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.std)
    }

    /// How badly half of the context is predicted from the other half; None if it is too short.
    #[getter]
    fn ood_score(&self) -> Option<f32> {
        self.confidence.ood_score
    }

    /// The share of known contexts that score at least as high; None where it was not measured.
    #[getter]
    fn p_value(&self) -> Option<f64> {
        self.confidence.p_value
    }

    /// Standard deviation of h, as a share of how much h differs between contexts.
    #[getter]
    fn relative_std(&self) -> Option<f64> {
        self.confidence.relative_std
    }

    /// Transitions that the belief was formed from.
    #[getter]
    fn transitions(&self) -> usize {
        self.confidence.transitions
    }

    /// What there is to be warned of, if anything.
    #[getter]
    fn warning(&self) -> Option<String> {
        self.confidence.warning()
    }

    fn __repr__(&self) -> String {
        let score = self.confidence.ood_score.map_or("None".to_owned(), |score| format!("{score:.4}"));
        let (dim, seen) = (self.confidence.belief.len(), self.confidence.transitions);
        format!("Belief({dim} numbers, {seen} transitions, ood_score={score})")
    }
}

/// A task vector z and how it came about.
#[pyclass(frozen, module = "windvane._core")]
pub(crate) struct Task {
    pub(crate) owner: Arc<Agent>,
    pub(crate) code: TaskCode,
}

#[pymethods]
impl Task {
    /// The task vector, of length sqrt(d).
    #[getter]
    fn z<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.code.z)
    }

    /// The share of a reward's variation over the visited states that B can express; None for goals and labels.
    #[getter]
    fn fit(&self) -> Option<f64> {
        self.code.fit
    }

    /// What is likely a mistake in the task.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.code.warnings.clone()
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = copy; // it is a copy always
        let z = self.z(py).into_any();
        match dtype {
            Some(dtype) => z.call_method1("astype", (dtype,)),
            None => Ok(z),
        }
    }

    fn __repr__(&self) -> String {
        let fit = self.code.fit.map_or("None".to_owned(), |fit| format!("{fit:.3}"));
        format!("Task({} numbers, fit={fit})", self.code.z.len())
    }
}

/// A context in any of its forms: nothing, a data set, a pair of observations and actions, a list of pairs, or a file.
pub(crate) fn context(spec: &EnvSpec, given: Option<&Bound<'_, PyAny>>) -> Answer<Vec<Trajectory>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(Vec::new()) };
    if let Ok(data) = given.cast::<Dataset>() {
        return data.get().trajectories();
    }
    if let Ok(list) = given.cast::<PyList>() {
        return list.iter().map(|pair| trajectory(spec, &pair)).collect();
    }
    if given.is_instance_of::<PyTuple>() {
        return Ok(vec![trajectory(spec, given)?]);
    }
    let path: PathBuf = given.extract().map_err(|_| {
        let kind = given.get_type();
        wrong(format!(
            "context: {kind}, expected a pair (observations, actions), a list of pairs, a data set or a file"
        ))
    })?;
    Ok(read_trajectories(&path, spec)?)
}

/// A trajectory out of a pair of arrays: one observation more than actions.
fn trajectory(spec: &EnvSpec, pair: &Bound<'_, PyAny>) -> Answer<Trajectory> {
    let (observations, taken): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        pair.extract().map_err(|_| wrong("context: expected pairs (observations, actions)"))?;
    let seen = floats("observations", &observations)?;
    match seen.shape[..] {
        [_, width] if width == spec.obs_dim() => {}
        _ => {
            let (shape, width) = (&seen.shape, spec.obs_dim());
            return Err(wrong(format!("observations: shape {shape:?}, expected [steps + 1, {width}]")));
        }
    }
    let (taken, _) = actions(&taken, &spec.action)?;
    Ok(Trajectory::new(spec, seen.values, taken)?)
}

/// How a task is asked for, one of the first three.
pub(crate) struct Asked<'a, 'py> {
    pub(crate) goal: Option<&'a Bound<'py, PyAny>>,
    pub(crate) reward: Option<&'a Bound<'py, PyAny>>,
    pub(crate) labels: Option<(&'a Bound<'py, PyAny>, &'a Bound<'py, PyAny>)>,
    pub(crate) inference: Inference,
}

impl Asked<'_, '_> {
    /// The task vector.
    pub(crate) fn code(&self, py: Python<'_>, agent: &Agent) -> Answer<TaskCode> {
        let width = agent.spec().obs_dim();
        let prompt = match (self.goal, self.reward, self.labels) {
            (Some(goal), None, None) => Prompt::goal(&floats("goal", goal)?.values),
            (None, Some(reward), None) if reward.is_callable() => {
                let visited = crate::arrays::rows_out(py, agent.visited(), width)?;
                let rewards = floats("reward", &reward.call1((visited,))?)?;
                return Ok(agent.infer_labelled(&rewards.values, self.inference)?);
            }
            (None, Some(formula), None) => {
                let problem = "reward: expected a formula such as \"x > 6\", or a function of observations";
                Prompt::formula(&formula.extract::<String>().map_err(|_| wrong(problem))?)
            }
            (None, None, Some((states, rewards))) => {
                let (states, rewards) = (floats("states", states)?, floats("rewards", rewards)?);
                let rows = rewards.values.len();
                if states.shape != [rows, width] {
                    let shape = &states.shape;
                    return Err(wrong(format!("states: shape {shape:?}, expected [{rows}, {width}]")));
                }
                let rows = states.values.chunks_exact(width).map(<[f32]>::to_vec);
                Prompt::default()
                    .and(1.0, windvane_world::prompt::Part::Labels(rows.zip(rewards.values).collect()))
            }
            _ => return Err(wrong("task: expected one of goal, reward, or states with rewards")),
        };
        let inference = self.inference;
        Ok(py.detach(|| agent.infer(&prompt, inference))?)
    }
}

/// The way from a reward to a task vector called `name`.
pub(crate) fn inference(name: &str) -> PyResult<Inference> {
    guarded(|| match name {
        "projection" => Ok(Inference::Projection),
        "least-squares" => Ok(Inference::LeastSquares),
        other => Err(wrong(format!("unknown inference \"{other}\"; known: projection, least-squares"))),
    })
}
