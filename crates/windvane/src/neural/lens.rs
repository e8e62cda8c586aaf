//! How observations and actions of one world look to networks: all that an agent needs to know of its data once it is
//! trained.

use super::config::NeuralPlan;
use super::features::{Features, moments};
use super::moves::Moves;
use crate::error::LearnError;
use serde::{Deserialize, Serialize};
use windvane_world::episodes::Episodes;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, EnvSpec};

/// How much louder than places actions and changes speak in a token: there are fewer of them.
pub(super) const LOUD: f32 = 4.0;
/// Transitions that the scale of changes is measured on.
const SAMPLE: usize = 4096;

/// From observations, actions and transitions to what networks see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lens {
    spec: EnvSpec,
    features: Features,
    moves: Moves,
    repeat: usize,
    /// The usual size of a change of each coordinate over a held action.
    change: Vec<f32>,
}

impl Lens {
    /// Looks at `data` as `plan` says.
    pub fn new(data: &Episodes, plan: &NeuralPlan, seed: u64) -> Result<Self, LearnError> {
        let moves = Moves::new(&data.spec().action, plan)?;
        let mut rng = stream(seed, "memory", &[]);
        let (mut sample, mut changes) = (Vec::new(), Vec::new());
        let dims = data.spec().obs_dim();
        for _ in 0..SAMPLE {
            let Some(window) = data.sample_window(&mut rng, plan.repeat) else { break };
            let obs = data.observations(window.episode);
            let (from, to) = (window.start * dims, (window.start + plan.repeat) * dims);
            sample.extend_from_slice(&obs[from..from + dims]);
            changes.extend(obs[to..to + dims].iter().zip(&obs[from..]).map(|(to, from)| to - from));
        }
        let change = (0..dims)
            .map(|dim| moments(changes.iter().skip(dim).step_by(dims).copied()).1.max(1e-6))
            .collect();
        let features = Features::new(data.spec(), &plan.features, &sample, seed);
        Ok(Self { spec: data.spec().clone(), features, moves, repeat: plan.repeat, change })
    }

    /// Whether its parts fit each other and `plan`, after it was read from a file.
    pub(super) fn check(&self, plan: &NeuralPlan) -> Result<(), String> {
        let dims = self.spec.obs_dim();
        let moves = Moves::new(&self.spec.action, plan).map_err(|error| error.to_string())?;
        let sizes =
            self.change.len() == dims && self.change.iter().all(|size| size.is_finite() && *size > 0.0);
        if !sizes || !self.features.fits(dims) || moves != self.moves || self.repeat != plan.repeat {
            return Err("core.neural.lens does not fit its environment and plan".into());
        }
        Ok(())
    }

    /// The visible side of the world.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// What networks see of observations.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// What networks see of actions.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Steps that an action is held.
    pub fn repeat(&self) -> usize {
        self.repeat
    }

    /// The usual size of a change of each coordinate over a held action.
    pub fn change(&self) -> &[f32] {
        &self.change
    }

    /// Numbers in a token.
    pub fn token(&self) -> usize {
        self.features.width() + self.moves.width() + self.change.len()
    }

    /// Features of rows of observations.
    pub fn features_of(&self, obs: &[f32]) -> Vec<f32> {
        let mut features = Vec::new();
        obs.chunks_exact(self.change.len()).for_each(|obs| self.features.push(obs, &mut features));
        features
    }

    /// The tokens of a trajectory.
    pub fn tokens_of(&self, walk: &Trajectory) -> Vec<f32> {
        let mut tokens = Vec::new();
        self.push_tokens(walk.len(), walk.observations(), |step| walk.actions().get(step), &mut tokens);
        tokens
    }

    /// Adds a token for every `repeat` steps: the state, the mean action, the change.
    pub fn push_tokens<'a>(
        &self,
        steps: usize,
        obs: &[f32],
        action: impl Fn(usize) -> Action<'a>,
        tokens: &mut Vec<f32>,
    ) {
        let dims = self.change.len();
        for start in (0..(steps + 1).saturating_sub(self.repeat)).step_by(self.repeat) {
            let state = &obs[start * dims..][..dims];
            self.features.push(state, tokens);
            let place = tokens.len();
            self.moves.push((start..start + self.repeat).map(&action), tokens);
            self.push_change(state, &obs[(start + self.repeat) * dims..], tokens);
            tokens[place..].iter_mut().for_each(|x| *x *= LOUD);
        }
    }

    /// Adds a change in usual sizes.
    pub(super) fn push_change(&self, from: &[f32], to: &[f32], out: &mut Vec<f32>) {
        out.extend(from.iter().zip(to).zip(&self.change).map(|((from, to), size)| (to - from) / size));
    }
}
