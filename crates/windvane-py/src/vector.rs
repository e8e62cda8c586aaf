//! Many environments stepped in one call, with their rewards, time limits and autoreset.

use crate::arrays::actions;
use crate::errors::{Answer, guarded, wrong};
use crate::world::World;
use numpy::{PyReadonlyArray1, PyReadwriteArray1, PyReadwriteArray2};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use windvane_world::rng::stream;
use windvane_world::{ActionSpace, Actions, BatchEnv, ContextId, EnvSpec, Reward, Rng, Start, Step};

/// Environments in lockstep, one for each of some contexts.
#[pyclass(frozen, module = "windvane._core")]
pub(crate) struct Vector {
    space: ActionSpace,
    count: usize,
    /// No Python runs while this is locked: who waits for it may hold the interpreter.
    inner: Mutex<Inner>,
}

struct Inner {
    spec: EnvSpec,
    batch: Box<dyn BatchEnv>,
    /// What each environment pays; nothing: it pays nothing.
    rewards: Vec<Option<Reward>>,
    rngs: Vec<Rng>,
    start: Start,
    /// Steps since each began, and the most there may be.
    elapsed: Vec<usize>,
    limit: Option<usize>,
    /// Whether an environment that is over begins anew within the step.
    autoreset: bool,
    steps: Vec<Step>,
}

/// Where a step's results go: arrays of Python's.
struct Places<'a> {
    obs: &'a mut [f32],
    rewards: &'a mut [f64],
    terminated: &'a mut [bool],
    truncated: &'a mut [bool],
    last: &'a mut [f32],
}

impl Inner {
    fn step(&mut self, actions: &Actions, to: Places<'_>) -> Answer<bool> {
        let Places { obs, rewards, terminated, truncated, last } = to;
        self.batch.step_told(actions, obs, &mut self.steps)?;
        let dims = self.spec.obs_dim();
        let mut any = false;
        for (i, step) in self.steps.iter().enumerate() {
            let row = &mut obs[i * dims..(i + 1) * dims];
            let (paid, reached) = match &self.rewards[i] {
                Some(reward) => (reward.of(row), reward.reached(row)),
                None => (0.0, false),
            };
            self.elapsed[i] += 1;
            rewards[i] = f64::from(paid - step.cost);
            terminated[i] = step.terminated || reached;
            truncated[i] = self.limit.is_some_and(|limit| self.elapsed[i] >= limit) && !terminated[i];
            if terminated[i] || truncated[i] {
                any = true;
                if self.autoreset {
                    last[i * dims..(i + 1) * dims].copy_from_slice(row);
                    self.batch.reset(i, self.start, &mut self.rngs[i], row);
                    self.elapsed[i] = 0;
                }
            }
        }
        Ok(any)
    }
}

impl Vector {
    /// The actions of a step; whole numbers, as Gymnasium samples them, the short way.
    fn actions(&self, given: &Bound<'_, PyAny>) -> Answer<Actions> {
        if let ActionSpace::Discrete { names } = &self.space
            && let Ok(array) = given.extract::<PyReadonlyArray1<'_, i64>>()
            && let Ok(moves) = array.as_slice()
        {
            // What is negative or too large is no move either way, and refused as such.
            let index = |&index: &i64| u32::try_from(index).unwrap_or(names.len() as u32);
            return Ok(Actions::Discrete(moves.iter().map(index).collect()));
        }
        let (actions, single) = actions(given, &self.space)?;
        if single && self.count > 1 {
            return Err(wrong(format!("actions: one for {} environments", self.count)));
        }
        Ok(actions)
    }
}

#[pymethods]
impl Vector {
    #[new]
    #[pyo3(signature = (world, contexts, task, start, limit, autoreset))]
    fn new(
        world: &World,
        contexts: Vec<u64>,
        task: Option<Bound<'_, PyAny>>,
        start: &str,
        limit: Option<usize>,
        autoreset: bool,
    ) -> PyResult<Self> {
        guarded(|| {
            let start = match start {
                "fixed" => Start::Fixed,
                "random" => Start::Random,
                other => return Err(wrong(format!("unknown start \"{other}\"; known: fixed, random"))),
            };
            let spec = world.inner.spec().clone();
            let contexts = contexts.into_iter().map(|c| world.context(c)).collect::<Answer<Vec<_>>>()?;
            let reward = |&context: &ContextId| task.as_ref().map(|t| world.reward(context, t)).transpose();
            let inner = Inner {
                batch: world.inner.batch(&contexts)?,
                rewards: contexts.iter().map(reward).collect::<Answer<_>>()?,
                rngs: (0..contexts.len() as u64).map(|i| stream(0, "gymnasium", &[i])).collect(),
                elapsed: vec![0; contexts.len()],
                steps: vec![Step::default(); contexts.len()],
                start,
                limit,
                autoreset,
                spec,
            };
            let space = inner.spec.action.clone();
            Ok(Self { space, count: contexts.len(), inner: Mutex::new(inner) })
        })
    }

    /// Seeds the randomness of environment `index`.
    fn seed(&self, index: usize, seed: u64) -> PyResult<()> {
        guarded(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let count = inner.rngs.len();
            let rng = inner.rngs.get_mut(index);
            *rng.ok_or_else(|| wrong(format!("environment {index} of {count}")))? =
                stream(seed, "gymnasium", &[]);
            Ok(())
        })
    }

    /// Begins an episode in the environments that `which` says and writes their observations.
    fn reset(&self, which: Vec<usize>, mut obs: PyReadwriteArray2<'_, f32>) -> PyResult<()> {
        guarded(|| {
            let mut guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let inner = &mut *guard;
            let (dims, obs) = (inner.spec.obs_dim(), slice2(&mut obs)?);
            for i in which {
                let row = obs.get_mut(i * dims..(i + 1) * dims);
                let row = row.filter(|_| i < inner.rngs.len());
                let row = row.ok_or_else(|| wrong(format!("environment {i} of {}", inner.rngs.len())))?;
                inner.batch.reset(i, inner.start, &mut inner.rngs[i], row);
                inner.elapsed[i] = 0;
            }
            Ok(())
        })
    }

    /// Takes a step in every environment and writes what came of it; whether any is over.
    fn step(
        &self,
        actions: &Bound<'_, PyAny>,
        mut obs: PyReadwriteArray2<'_, f32>,
        mut rewards: PyReadwriteArray1<'_, f64>,
        mut terminated: PyReadwriteArray1<'_, bool>,
        mut truncated: PyReadwriteArray1<'_, bool>,
        mut last: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<bool> {
        guarded(|| {
            let actions = self.actions(actions)?;
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let unfit = |_| wrong("results: expected contiguous arrays");
            let to = Places {
                obs: slice2(&mut obs)?,
                rewards: rewards.as_slice_mut().map_err(unfit)?,
                terminated: terminated.as_slice_mut().map_err(unfit)?,
                truncated: truncated.as_slice_mut().map_err(unfit)?,
                last: slice2(&mut last)?,
            };
            let (count, dims) = (inner.rngs.len(), inner.spec.obs_dim());
            let sizes =
                [to.obs.len(), to.last.len(), to.rewards.len(), to.terminated.len(), to.truncated.len()];
            if sizes != [count * dims, count * dims, count, count, count] {
                return Err(wrong(format!(
                    "results: sizes {sizes:?} for {count} environments of {dims} numbers"
                )));
            }
            inner.step(&actions, to)
        })
    }
}

fn slice2<'a>(array: &'a mut PyReadwriteArray2<'_, f32>) -> Answer<&'a mut [f32]> {
    array.as_slice_mut().map_err(|_| wrong("results: expected contiguous arrays"))
}
