//! A world with its contexts, as environments need it.

use crate::arrays::floats;
use crate::errors::{Answer, guarded, wrong};
use crate::json;
use numpy::{PyArray1, PyArrayMethods as _};
use pyo3::prelude::*;
use std::sync::Arc;
use windvane_world::picture::scene;
use windvane_world::registry::{WORLDS, WorldConfig, make};
use windvane_world::{Cmdp, ContextId, EnvSpec, Reward, Split};

/// A family of environments that differ in their hidden dynamics.
#[pyclass(frozen, module = "windvane._core")]
pub(crate) struct World {
    pub(crate) inner: Arc<dyn Cmdp>,
}

/// The split called `name`.
fn split(name: &str) -> Answer<Split> {
    match name {
        "train" => Ok(Split::Train),
        "test" => Ok(Split::Test),
        other => Err(wrong(format!("unknown split \"{other}\"; known: train, test"))),
    }
}

/// The visible side of an environment, as JSON has it.
pub(crate) fn spec_out<'py>(py: Python<'py>, spec: &EnvSpec) -> Answer<Bound<'py, PyAny>> {
    json::out(py, &serde_json::to_value(spec).map_err(|error| wrong(error.to_string()))?)
}

impl World {
    /// Whether a context's number is one that this world has.
    pub(crate) fn context(&self, context: u64) -> Answer<ContextId> {
        self.inner.instantiate(ContextId(context))?;
        Ok(ContextId(context))
    }

    /// The reward of the task with a number or a name in a context.
    pub(crate) fn reward(&self, context: ContextId, task: &Bound<'_, PyAny>) -> Answer<Reward> {
        let tasks = self.inner.tasks(context)?;
        let found = if let Ok(number) = task.extract::<usize>() {
            tasks.get(number)
        } else {
            let name: String = task.extract().map_err(|_| wrong("task: expected a number or a name"))?;
            tasks.iter().find(|task| task.name == name)
        };
        let names = || tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>().join(", ");
        match found {
            Some(task) => Ok(task.reward.clone()),
            None => Err(wrong(format!("unknown task {task}; known: {}", names()))),
        }
    }
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (name, seed=0, train=None, test=None))]
    fn new(name: &str, seed: u64, train: Option<usize>, test: Option<usize>) -> PyResult<Self> {
        guarded(|| Ok(Self { inner: Arc::from(make(name, &WorldConfig { seed, train, test })?) }))
    }

    /// The visible side: name, observation, action, horizon.
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| spec_out(py, self.inner.spec()))
    }

    /// The contexts of a split.
    fn contexts(&self, split: &str) -> PyResult<Vec<u64>> {
        guarded(|| Ok(self.inner.contexts(self::split(split)?).iter().map(|context| context.0).collect()))
    }

    /// The names of the tasks in a context, each with its goal where it has one.
    fn tasks(&self, context: u64) -> PyResult<Vec<(String, Option<Vec<f32>>)>> {
        guarded(|| {
            let goal = |reward: &Reward| match reward {
                Reward::Goal { goal, .. } => Some(goal.clone()),
                _ => None,
            };
            let tasks = self.inner.tasks(self.context(context)?)?;
            Ok(tasks.into_iter().map(|task| (task.name, goal(&task.reward))).collect())
        })
    }

    /// What makes a context what it is: for people, never for an agent.
    fn describe<'py>(&self, py: Python<'py>, context: u64) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| json::out(py, &self.inner.describe(ContextId(context))?))
    }

    /// A picture of a context with its body at an observation, `[height, width, 3]`.
    #[pyo3(signature = (context, observation, scale=1.0))]
    fn render<'py>(
        &self,
        py: Python<'py>,
        context: u64,
        observation: &Bound<'py, PyAny>,
        scale: f32,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let at = floats("observation", observation)?.values;
            let world = &*self.inner;
            let ([height, width], rgb) =
                py.detach(|| scene(world, ContextId(context), &at).and_then(|picture| picture.rgb(scale)))?;
            Ok(PyArray1::from_vec(py, rgb).reshape([height, width, 3])?.into_any())
        })
    }
}

/// The worlds there are: name and what each is.
#[pyfunction]
pub(crate) fn worlds() -> Vec<(&'static str, &'static str)> {
    WORLDS.iter().map(|entry| (entry.name, entry.about)).collect()
}
