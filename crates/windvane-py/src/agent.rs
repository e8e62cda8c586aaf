//! A trained agent: beliefs, tasks, actions and values.

use crate::arrays::{Floats, action_out, actions, actions_out, floats, observations, rows_out};
use crate::belief::{Asked, Belief, Task, context, inference};
use crate::errors::{Answer, guarded, wrong};
use crate::session::Session;
use crate::world::spec_out;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use windvane::agent::Adapted;
use windvane::agent::batch::Prepared;
use windvane::agent::task::TaskCode;
use windvane_world::ActionBuf;

/// A trained agent.
///
/// >>> agent = windvane.load("runs/x")
/// >>> h = agent.belief((observations, actions))
/// >>> z = agent.task(goal=[7, 7])
/// >>> action = agent.act([1, 1], h, z)
#[pyclass(frozen, module = "windvane._core")]
pub(crate) struct Agent {
    pub(crate) inner: Arc<windvane::Agent>,
    /// What the last call acted on, ready for the next.
    single: Mutex<Option<Single>>,
    batch: Mutex<Option<Batch>>,
}

/// A belief and a task, ready for one observation at a time.
struct Single {
    belief: Arc<Adapted>,
    session: windvane::Session,
}

/// A belief and a task, ready for many observations.
struct Batch {
    belief: Arc<Adapted>,
    z: Vec<f32>,
    prepared: Arc<Prepared>,
}

impl Agent {
    pub(crate) fn new(inner: windvane::Agent) -> Self {
        Self { inner: Arc::new(inner), single: Mutex::default(), batch: Mutex::default() }
    }

    /// The belief behind an argument, if it is this agent's.
    fn adapted(&self, h: &Bound<'_, PyAny>) -> Answer<Arc<Adapted>> {
        let belief = h
            .cast::<Belief>()
            .map_err(|_| wrong(format!("h: {}, expected what agent.belief(context) gave", h.get_type())))?;
        if !Arc::ptr_eq(&belief.get().owner, &self.inner) {
            return Err(wrong("h: the belief of another agent"));
        }
        Ok(belief.get().adapted.clone())
    }

    /// The task vectors behind an argument, one after the other, and whether it was a single one.
    pub(crate) fn task_vectors(&self, z: &Bound<'_, PyAny>) -> Answer<(Vec<f32>, bool)> {
        if let Ok(task) = z.cast::<Task>() {
            if !Arc::ptr_eq(&task.get().owner, &self.inner) {
                return Err(wrong("z: the task of another agent"));
            }
            return Ok((task.get().code.z.clone(), true));
        }
        if z.is_instance_of::<PyList>() || z.is_instance_of::<PyTuple>() {
            let mut all = Vec::new();
            let items: Vec<Bound<'_, PyAny>> = z.extract()?;
            if items.iter().all(PyAnyMethods::is_instance_of::<Task>) {
                for item in &items {
                    all.extend(self.task_vectors(item)?.0);
                }
                return Ok((all, false));
            }
        }
        let (Floats { values, shape }, dim) = (floats("z", z)?, self.inner.dim());
        match shape[..] {
            [one] if one == dim => Ok((values, true)),
            [_, each] if each == dim => Ok((values, false)),
            _ => Err(wrong(format!("z: shape {shape:?}, expected [{dim}] or [rows, {dim}]"))),
        }
    }

    /// One action by the networks for single rows.
    fn act_once(&self, obs: &[f32], h: &Bound<'_, PyAny>, z: &Bound<'_, PyAny>) -> Answer<ActionBuf> {
        let belief = self.adapted(h)?;
        let task = z.cast::<Task>().ok().filter(|task| Arc::ptr_eq(&task.get().owner, &self.inner));
        let other = match &task {
            Some(_) => None, // the usual case, which needs no copy
            None => Some(self.task_vectors(z)?),
        };
        let z = match (&task, &other) {
            (Some(task), _) => &task.get().code.z,
            (None, Some((z, true))) => z,
            _ => return Err(wrong("z: many tasks for one observation")),
        };
        // No Python runs while this is locked: who waits for it may hold the interpreter.
        let mut ready = self.single.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(single) = ready.as_mut()
            && Arc::ptr_eq(&single.belief, &belief)
            && single.session.code().z == *z
        {
            return Ok(single.session.decide(obs)?);
        }
        let code = TaskCode { z: z.clone(), ..TaskCode::default() };
        let single = ready.insert(Single { session: belief.session(code)?, belief });
        Ok(single.session.decide(obs)?)
    }

    /// The agent ready for a batch.
    fn ready(&self, py: Python<'_>, h: &Bound<'_, PyAny>, z: &Bound<'_, PyAny>) -> Answer<Arc<Prepared>> {
        let (z, single_task) = self.task_vectors(z)?;
        let beliefs: Vec<Arc<Adapted>> = if h.is_instance_of::<PyList>() || h.is_instance_of::<PyTuple>() {
            let items: Vec<Bound<'_, PyAny>> = h.extract()?;
            items.iter().map(|h| self.adapted(h)).collect::<Answer<_>>()?
        } else {
            let belief = self.adapted(h)?;
            let ready = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(batch) = ready.as_ref().filter(|_| single_task)
                && Arc::ptr_eq(&batch.belief, &belief)
                && batch.z == z
            {
                return Ok(batch.prepared.clone());
            }
            vec![belief]
        };
        if beliefs.is_empty() {
            return Err(wrong("h: an empty list, expected beliefs"));
        }
        let dim = self.inner.dim();
        let prepared = py.detach(|| {
            let beliefs: Vec<&Adapted> = beliefs.iter().map(|belief| &**belief).collect();
            self.inner.prepare(&beliefs, &z.chunks_exact(dim).collect::<Vec<_>>())
        })?;
        let prepared = Arc::new(prepared);
        if let ([belief], true) = (&beliefs[..], single_task) {
            let batch = Batch { belief: belief.clone(), z, prepared: prepared.clone() };
            *self.batch.lock().unwrap_or_else(PoisonError::into_inner) = Some(batch);
        }
        Ok(prepared)
    }
}

#[pymethods]
impl Agent {
    /// Reads an agent from its folder, or from the folder of a finished run.
    ///
    /// >>> windvane.Agent.load("runs/x").method
    /// 'bfb'
    #[classmethod]
    fn load(_: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        guarded(|| Ok(Self::new(py.detach(|| windvane::Agent::load(path))?)))
    }

    /// What is believed of the hidden dynamics after a context: a pair (observations, actions) with one observation more than
    /// actions, a list of pairs, a data set or a file; nothing at all is allowed.
    ///
    /// >>> agent.belief((observations, actions))
    /// Belief(... numbers, 60 transitions, ood_score=...)
    #[pyo3(signature = (context=None))]
    fn belief(&self, py: Python<'_>, context: Option<&Bound<'_, PyAny>>) -> PyResult<Belief> {
        guarded(|| {
            let trajectories = self::context(self.inner.spec(), context)?;
            py.detach(|| {
                let adapted = self.inner.adapt(&trajectories)?;
                let confidence = adapted.confidence();
                Ok(Belief::new(self.inner.clone(), adapted, confidence))
            })
        })
    }

    /// The task vector of a goal, of a reward (a formula over the names of the observation, or a function that is given
    /// observations `[rows, dims]`), or of labelled states.
    ///
    /// >>> z = agent.task(goal=[7, 7])
    /// >>> z = agent.task(reward="x > 6")
    /// >>> z = agent.task(reward=lambda states: states[:, 0] > 6)
    /// >>> z = agent.task(states=[[7, 7], [1, 1]], rewards=[1, 0])
    #[pyo3(signature = (goal=None, *, reward=None, states=None, rewards=None, inference="projection"))]
    fn task(
        &self,
        py: Python<'_>,
        goal: Option<&Bound<'_, PyAny>>,
        reward: Option<&Bound<'_, PyAny>>,
        states: Option<&Bound<'_, PyAny>>,
        rewards: Option<&Bound<'_, PyAny>>,
        inference: &str,
    ) -> PyResult<Task> {
        let inference = self::inference(inference)?;
        guarded(|| {
            let labels = match (states, rewards) {
                (Some(states), Some(rewards)) => Some((states, rewards)),
                (None, None) => None,
                _ => return Err(wrong("task: states and rewards go together")),
            };
            let code = Asked { goal, reward, labels, inference }.code(py, &self.inner)?;
            Ok(Task { owner: self.inner.clone(), code })
        })
    }

    /// The action of F alone at an observation, or one for each of many; h and z may be one for all, or one for each.
    ///
    /// >>> agent.act([1, 1], h, z) in range(4)
    /// True
    /// >>> agent.act([[1, 1], [7, 1]], h, [agent.task(goal=[7, 7]), agent.task(goal=[1, 7])]).shape
    /// (2,)
    fn act<'py>(
        &self,
        py: Python<'py>,
        obs: &Bound<'py, PyAny>,
        h: &Bound<'py, PyAny>,
        z: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (obs, single) = observations(obs, self.inner.spec().obs_dim())?;
            if single {
                return action_out(py, &self.act_once(&obs, h, z)?);
            }
            let prepared = self.ready(py, h, z)?;
            actions_out(py, &py.detach(|| prepared.act(&obs))?)
        })
    }

    /// Values F z / d: of all actions there are, `[rows, n]`; where actions are vectors, of `actions` or else of those that
    /// the agent chooses, `[rows]`.
    ///
    /// >>> agent.q([[1, 1], [7, 1]], h, z).shape
    /// (2, 4)
    #[pyo3(signature = (obs, h, z, actions=None))]
    fn q<'py>(
        &self,
        py: Python<'py>,
        obs: &Bound<'py, PyAny>,
        h: &Bound<'py, PyAny>,
        z: &Bound<'py, PyAny>,
        actions: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (obs, single) = observations(obs, self.inner.spec().obs_dim())?;
            let taken = actions.map(|given| self::actions(given, &self.inner.spec().action)).transpose()?;
            let prepared = self.ready(py, h, z)?;
            let q = py.detach(|| prepared.q(&obs, taken.as_ref().map(|(actions, _)| actions)))?;
            match (prepared.n_actions().filter(|_| taken.is_none()), single) {
                (Some(n), false) => rows_out(py, &q, n),
                (None, true) => Ok(PyArray1::from_vec(py, q).get_item(0)?),
                _ => Ok(PyArray1::from_vec(py, q).into_any()),
            }
        })
    }

    /// Control of one thing, one observation at a time; `online`: the belief goes on learning while it acts.
    ///
    /// >>> with agent.session(h, z, online=True) as session:
    /// ...     action = session.act([1, 1])
    #[pyo3(signature = (context=None, task=None, *, online=false, planner="none"))]
    fn session(
        &self,
        py: Python<'_>,
        context: Option<&Bound<'_, PyAny>>,
        task: Option<&Bound<'_, PyAny>>,
        online: bool,
        planner: &str,
    ) -> PyResult<Session> {
        guarded(|| {
            let task = task.ok_or_else(|| wrong("session: no task; expected what agent.task(..) gave"))?;
            let adapted = if let Some(h) = context.filter(|context| context.is_instance_of::<Belief>()) {
                self.adapted(h)?
            } else {
                let trajectories = self::context(self.inner.spec(), context)?;
                Arc::new(py.detach(|| self.inner.adapt(&trajectories))?)
            };
            Session::begin(self, &adapted, task, online, planner)
        })
    }

    /// B of observations, `[rows, d]`.
    ///
    /// >>> agent.backward([[1, 1], [7, 1]]).shape == (2, agent.dim)
    /// True
    fn backward<'py>(&self, py: Python<'py>, obs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (obs, _) = observations(obs, self.inner.spec().obs_dim())?;
            if let Some(x) = obs.iter().find(|x| !x.is_finite()) {
                return Err(wrong(format!("observation: {x}, expected finite numbers")));
            }
            rows_out(py, &py.detach(|| self.inner.backward(&obs)), self.inner.dim())
        })
    }

    /// The method's name.
    #[getter]
    fn method(&self) -> &'static str {
        self.inner.method().name
    }

    /// The name of the environment.
    #[getter]
    fn env(&self) -> &str {
        &self.inner.spec().name
    }

    /// d, the length of task vectors.
    #[getter]
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    /// The visible side of the environment: name, observation, action, horizon.
    #[getter]
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| spec_out(py, self.inner.spec()))
    }

    fn __repr__(&self) -> String {
        format!("Agent({} on {}, d={})", self.method(), self.env(), self.dim())
    }
}
