//! Control of one thing, one observation at a time.

use crate::agent::Agent;
use crate::arrays::{action, action_out, floats};
use crate::belief::{Belief, Task, context};
use crate::errors::{Answer, guarded, wrong};
use numpy::PyArray1;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use windvane::Planner;
use windvane::agent::Adapted;
use windvane::agent::TaskPolicy;
use windvane::agent::task::TaskCode;

/// An agent that knows its context and its task; its belief may go on learning.
///
/// >>> with agent.session((observations, actions), z, online=True) as session:
/// ...     action = session.act([1, 1])
/// ...     session.observe([1, 1], action, [2, 1])
#[pyclass(frozen, module = "windvane._core")]
pub(crate) struct Session {
    owner: Arc<windvane::Agent>,
    inner: Mutex<Option<windvane::Session>>,
}

impl Session {
    pub(crate) fn begin(
        agent: &Agent,
        adapted: &Adapted,
        task: &Bound<'_, PyAny>,
        online: bool,
        planner: &str,
    ) -> Answer<Self> {
        let planner = match planner {
            "none" => Planner::None,
            "sweeps" => Planner::Sweeps,
            other => return Err(wrong(format!("unknown planner \"{other}\"; known: none, sweeps"))),
        };
        let mut session = adapted.session(code(&agent.inner, task)?)?;
        if planner == Planner::Sweeps {
            if !agent.inner.can_plan() {
                return Err(wrong("planner: the agent has no predictor to plan on"));
            }
            session = session.by(planner, TaskPolicy::Greedy);
        }
        let session = if online { session.online() } else { session };
        Ok(Self { owner: agent.inner.clone(), inner: Mutex::new(Some(session)) })
    }

    /// Does something with the session. No Python may run meanwhile: who waits for the lock may hold the interpreter.
    fn with<R>(&self, work: impl FnOnce(&mut windvane::Session) -> Answer<R>) -> PyResult<R> {
        guarded(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            work(inner.as_mut().ok_or_else(|| wrong("the session is closed"))?)
        })
    }
}

/// The task behind an argument: what `agent.task` gave, or a vector.
fn code(agent: &Arc<windvane::Agent>, task: &Bound<'_, PyAny>) -> Answer<TaskCode> {
    if let Ok(task) = task.cast::<Task>() {
        if !Arc::ptr_eq(&task.get().owner, agent) {
            return Err(wrong("z: the task of another agent"));
        }
        return Ok(task.get().code.clone());
    }
    let z = floats("z", task)?.values;
    Ok(TaskCode { z, ..TaskCode::default() })
}

#[pymethods]
impl Session {
    /// The next action. Where the agent holds its actions for some steps, so does this.
    fn act<'py>(&self, py: Python<'py>, obs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let obs = guarded(|| Ok(floats("observation", obs)?.values))?;
        let action = self.with(|session| Ok(session.act(&obs)?))?;
        guarded(|| action_out(py, &action))
    }

    /// Sees where an action led; a session that is online learns from it.
    fn observe(
        &self,
        obs: &Bound<'_, PyAny>,
        action: &Bound<'_, PyAny>,
        next_obs: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (obs, action, next) = guarded(|| {
            let action = self::action(action, &self.owner.spec().action)?;
            Ok((floats("observation", obs)?.values, action, floats("next_obs", next_obs)?.values))
        })?;
        self.with(|session| Ok(session.observe(&obs, &action, &next)?))
    }

    /// Values F z / d of all actions there are at an observation; empty where actions are vectors.
    fn values<'py>(&self, py: Python<'py>, obs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let obs = guarded(|| Ok(floats("observation", obs)?.values))?;
        Ok(PyArray1::from_vec(py, self.with(|session| Ok(session.values(&obs)?))?))
    }

    /// An episode begins: nothing that was held goes on.
    fn restart(&self) -> PyResult<()> {
        self.with(|session| {
            session.restart();
            Ok(())
        })
    }

    /// Takes in another context instead of all that was seen so far.
    #[pyo3(signature = (context=None))]
    fn reset(&self, context: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let trajectories = guarded(|| self::context(self.owner.spec(), context))?;
        self.with(|session| Ok(session.reset(&trajectories)?))
    }

    /// Takes another task; what was learned of the dynamics stays.
    fn retask(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        let code = guarded(|| code(&self.owner, task))?;
        self.with(|session| Ok(session.take(code)?))
    }

    /// What is believed by now.
    #[getter]
    fn belief(&self) -> PyResult<Belief> {
        self.with(|session| {
            let confidence = session.confidence();
            Ok(Belief::new(self.owner.clone(), session.adapted().clone(), confidence))
        })
    }

    /// Ends the session; every later call is an error.
    fn close(&self) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_why))]
    fn __exit__(&self, _why: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }
}
