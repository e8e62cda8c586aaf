//! Many environments in lockstep.

use crate::env::{Action, ActionSpace, Actions, Env, EnvSpec, Start, Step};
use crate::error::WorldError;
use crate::rng::Rng;
use rayon::prelude::*;

/// Environments that are stepped together, thousands at a time, without allocating and on all cores.
///
/// Each of them does exactly what [`crate::Env`] does on its own. None of the worlds that come in batches of their own ever
/// terminates an episode; [`OneByOne`] tells of those that do.
pub trait BatchEnv: Send {
    /// Number of environments.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Begins an episode in environment `index` and writes its first observation.
    fn reset(&mut self, index: usize, start: Start, rng: &mut Rng, obs: &mut [f32]);
    /// Takes one step in every environment and writes all observations, one row each. If an action is outside the
    /// action space, nothing moves.
    fn step(&mut self, actions: &Actions, obs: &mut [f32]) -> Result<(), WorldError>;
    /// The same, and writes what each step brought besides its observation.
    fn step_told(
        &mut self,
        actions: &Actions,
        obs: &mut [f32],
        steps: &mut [Step],
    ) -> Result<(), WorldError> {
        steps.fill(Step::default());
        self.step(actions, obs)
    }
}

/// Any environments, stepped one after the other.
pub struct OneByOne {
    envs: Vec<Box<dyn Env>>,
    space: ActionSpace,
    name: String,
}

impl OneByOne {
    /// Environments that look like `spec`.
    pub fn new(spec: &EnvSpec, envs: Vec<Box<dyn Env>>) -> Self {
        Self { envs, space: spec.action.clone(), name: spec.name.clone() }
    }
}

impl BatchEnv for OneByOne {
    fn len(&self) -> usize {
        self.envs.len()
    }

    fn reset(&mut self, index: usize, start: Start, rng: &mut Rng, obs: &mut [f32]) {
        // An environment that cannot begin shows nothing new; its first step says why.
        let _ = self.envs[index].reset(start, rng, obs);
    }

    fn step(&mut self, actions: &Actions, obs: &mut [f32]) -> Result<(), WorldError> {
        self.step_told(actions, obs, &mut vec![Step::default(); self.len()])
    }

    fn step_told(
        &mut self,
        actions: &Actions,
        obs: &mut [f32],
        steps: &mut [Step],
    ) -> Result<(), WorldError> {
        let (count, width) = (self.len(), obs.len() / self.len().max(1));
        if actions.len() != count || (0..count).any(|i| !self.space.contains(actions.get(i))) {
            return Err(reject(&self.space, &self.name, actions, count));
        }
        let each = self.envs.iter_mut().zip(obs.chunks_exact_mut(width)).zip(steps);
        for (i, ((env, obs), step)) in each.enumerate() {
            *step = env.step(actions.get(i), obs)?;
        }
        Ok(())
    }
}

/// Environments to a task for a core: enough that handing it over costs little beside it.
const CHUNK: usize = 8192;

/// Applies `step` to environment after environment, given its state, its action and its row of observations.
///
/// Small batches stay on the calling thread.
pub(crate) fn for_each<S: Send, A: Sync, const ACT: usize>(
    states: &mut [S],
    actions: &[A],
    obs: &mut [f32],
    step: impl Fn(&mut S, &[A; ACT], &mut [f32; 2]) + Sync,
) {
    let all = |states: &mut [S], actions: &[A], obs: &mut [f32]| {
        let (actions, _) = actions.as_chunks::<ACT>();
        let (obs, _) = obs.as_chunks_mut::<2>();
        for ((state, action), obs) in states.iter_mut().zip(actions).zip(obs) {
            step(state, action, obs);
        }
    };
    if states.len() <= CHUNK {
        all(states, actions, obs);
    } else {
        let actions = actions.par_chunks(CHUNK * ACT);
        let obs = obs.par_chunks_mut(CHUNK * 2);
        states.par_chunks_mut(CHUNK).zip(actions).zip(obs).for_each(|((s, a), o)| all(s, a, o));
    }
}

/// The error for a batch of actions among which one does not belong to the space, or whose number is not `count`.
pub(crate) fn reject(space: &ActionSpace, env: &str, actions: &Actions, count: usize) -> WorldError {
    if actions.len() != count {
        let given = actions.len();
        return WorldError::Invalid(format!("{env}: {given} actions for a batch of {count} environments"));
    }
    let misfit = (0..count).map(|index| actions.get(index)).find(|&action| !space.contains(action));
    space.reject(env, misfit.unwrap_or(Action::Discrete(u32::MAX)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::registry::{WorldConfig, make};
    use crate::rng::stream;
    use crate::{ContextId, Split};

    /// Steps a batch too large for one core and its environments one by one.
    pub(crate) fn a_batch_does_what_single_environments_do(name: &str) {
        let world = make(name, &WorldConfig::default()).unwrap();
        let spec = world.spec();
        let contexts: Vec<ContextId> =
            world.contexts(Split::Train).iter().copied().cycle().take(CHUNK + 100).collect();
        let mut batch = world.batch(&contexts).unwrap();
        let mut singles: Vec<_> =
            contexts.iter().map(|&context| world.instantiate(context).unwrap()).collect();
        let dims = spec.obs_dim();
        let mut together = vec![0.0; contexts.len() * dims];
        let mut alone = together.clone();
        for (index, single) in singles.iter_mut().enumerate() {
            let start = if index % 2 == 0 { Start::Fixed } else { Start::Random };
            let row = dims * index..dims * (index + 1);
            let rng = || stream(5, "start", &[index as u64]);
            batch.reset(index, start, &mut rng(), &mut together[row.clone()]);
            single.reset(start, &mut rng(), &mut alone[row]).unwrap();
        }
        assert_eq!(together, alone);
        let mut rng = stream(5, "actions", &[]);
        let mut action = spec.action.buffer();
        for _ in 0..20 {
            let mut actions = spec.action.actions(contexts.len());
            for (single, obs) in singles.iter_mut().zip(alone.chunks_exact_mut(dims)) {
                spec.action.sample(&mut rng, &mut action);
                actions.push(action.as_action());
                single.step(action.as_action(), obs).unwrap();
            }
            batch.step(&actions, &mut together).unwrap();
            assert_eq!(together, alone);
        }
    }

    /// Three environments refuse `actions` and stay where they are.
    pub(crate) fn bad_actions_move_nothing(name: &str, actions: &Actions) {
        let world = make(name, &WorldConfig::default()).unwrap();
        let mut batch = world.batch(&world.contexts(Split::Test)[..3]).unwrap();
        let mut obs = vec![f32::NAN; 3 * world.spec().obs_dim()];
        assert!(batch.step(actions, &mut obs).is_err());
        assert!(obs.iter().all(|value| value.is_nan()), "nothing was written");
    }
}
