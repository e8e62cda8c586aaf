//! What was seen in one go.

use crate::env::{Action, ActionBuf, Actions, Env, EnvSpec, Start};
use crate::error::WorldError;
use crate::rng::Rng;

/// A trajectory: a state, then an action and the state it led to, again and again. No rewards.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    obs_dim: usize,
    observations: Vec<f32>,
    actions: Actions,
}

impl Trajectory {
    /// What was seen elsewhere, checked against `spec`: as many numbers as it says, finite ones, actions that it has.
    pub fn new(spec: &EnvSpec, observations: Vec<f32>, actions: Actions) -> Result<Self, WorldError> {
        let obs_dim = spec.obs_dim();
        let expected = (actions.len() + 1) * obs_dim;
        let invalid =
            |problem: String| Err(WorldError::Invalid(format!("trajectory of {}: {problem}", spec.name)));
        if observations.len() != expected {
            return invalid(format!(
                "{} numbers in the observations of {} transitions, expected {expected}: {obs_dim} for each, and one more observation at the end",
                observations.len(),
                actions.len()
            ));
        }
        if let Some(problem) = spec.not_finite(&observations) {
            return invalid(problem);
        }
        if let Some(step) = (0..actions.len()).find(|&step| !spec.action.contains(actions.get(step))) {
            return Err(spec.action.reject(&spec.name, actions.get(step)));
        }
        Ok(Self { obs_dim, observations, actions })
    }

    /// Acts in `env` for `steps` steps without a break, whatever its horizon.
    ///
    /// `policy` sees the observation and writes the action; [`crate::ActionSpace::sample`] is the uniform one.
    pub fn explore(
        env: &mut dyn Env,
        spec: &EnvSpec,
        start: Start,
        steps: usize,
        rng: &mut Rng,
        mut policy: impl FnMut(&[f32], &mut Rng, &mut ActionBuf),
    ) -> Result<Self, WorldError> {
        let obs_dim = spec.obs_dim();
        let mut observations = vec![0.0; (steps + 1) * obs_dim];
        let mut actions = spec.action.actions(steps);
        let mut action = spec.action.buffer();
        env.reset(start, rng, &mut observations[..obs_dim])?;
        for step in 0..steps {
            let (seen, next) = observations.split_at_mut((step + 1) * obs_dim);
            policy(&seen[step * obs_dim..], rng, &mut action);
            let outcome = env.step(action.as_action(), &mut next[..obs_dim])?;
            actions.push(action.as_action());
            if outcome.terminated {
                observations.truncate((step + 2) * obs_dim);
                break;
            }
        }
        Ok(Self { obs_dim, observations, actions })
    }

    /// Numbers in an observation.
    pub fn obs_dim(&self) -> usize {
        self.obs_dim
    }

    /// Number of transitions.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether there are no transitions.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// All observations in a row, one more than transitions.
    pub fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// All actions.
    pub fn actions(&self) -> &Actions {
        &self.actions
    }

    /// The transitions: observation, action, next observation.
    pub fn transitions(&self) -> impl Iterator<Item = (&[f32], Action<'_>, &[f32])> {
        let obs = |index: usize| &self.observations[index * self.obs_dim..(index + 1) * self.obs_dim];
        (0..self.len()).map(move |step| (obs(step), self.actions.get(step), obs(step + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{WorldConfig, make};
    use crate::{Split, rng};

    #[test]
    fn a_context_is_one_unbroken_walk_even_beyond_the_horizon() {
        let world = make("four-rooms", &WorldConfig::default()).unwrap();
        let context = world.contexts(Split::Test)[3];
        let layout = world.grid().unwrap().layout(context).unwrap();
        let spec = world.spec();
        let mut env = world.instantiate(context).unwrap();
        let mut rng = rng::stream(3, "trajectory", &[]);
        let uniform = |_: &[f32], rng: &mut Rng, action: &mut ActionBuf| spec.action.sample(rng, action);
        let trajectory =
            Trajectory::explore(env.as_mut(), spec, Start::Fixed, 500, &mut rng, uniform).unwrap();
        assert_eq!((trajectory.len(), trajectory.observations().len()), (500, 501 * 2));
        assert_eq!(trajectory.observations()[..2], [1.0, 1.0]);
        for (obs, action, next) in trajectory.transitions() {
            let Action::Discrete(action) = action else { panic!("a discrete world") };
            let cell = spec.state_of(obs).unwrap();
            assert_eq!(spec.state_of(next), Some(layout.step(cell, action as usize)));
        }
    }
}
