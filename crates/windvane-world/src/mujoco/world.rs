//! Ants as worlds: `ant-wind`, `ant-fault` and their variants.

use super::ant::{self, Ant, AntModel, FULL, Integrator, MOTORS, POSTURE};
use super::hidden::{Gears, Hidden};
use super::tasks;
use crate::collect::{BehaviourPolicy, Learner};
use crate::env::{Action, ActionSpace, Cmdp, ContextId, Env, EnvSpec, Split, Start, Step};
use crate::error::WorldError;
use crate::expert::Expert;
use crate::protocol::Policy;
use crate::reward::Task;
use crate::rng::Rng;
use serde_json::json;
use std::f64::consts::TAU;
use std::path::Path;
use std::sync::Arc;

/// Steps in an episode.
const HORIZON: usize = 256;
/// Directions that wind comes in.
const DIRECTIONS: u64 = 20;
/// Viscosity of the air in `ant-wind`, in Pa s.
const VISCOSITY: f64 = 0.05;
/// Sign patterns over the legs.
const PATTERNS: u64 = 16;

/// What differs between the contexts of a world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Family {
    /// Context i: wind of `strength` m/s toward the angle 2 pi i / 20. The first 16 are for training, as in the paper.
    Wind {
        /// Its speed, in m/s; paper: 4. At 6 a wrong belief is costly.
        strength: f64,
        /// Whether contact forces are observed too.
        contacts: bool,
    },
    /// Context i: leg k turns the wrong way round where bit k of i is set. Trains on 0, 1, 3 and 4 such legs.
    FlipTwo,
    /// The same contexts. Trains on up to 2 such legs.
    FlipMany,
    /// Context 16 k, with 15 added when all legs are reversed: commands are k legs off. Trains on 6 of the 8.
    Rotate,
}

impl Family {
    /// The contexts of a split.
    fn contexts(self, split: Split) -> Vec<ContextId> {
        let flips = |of: fn(u32) -> bool| (0..PATTERNS).filter(move |code| of(code.count_ones())).collect();
        let codes: Vec<u64> = match (self, split) {
            (Self::Wind { .. }, Split::Train) => (0..16).collect(),
            (Self::Wind { .. }, Split::Test) => (16..DIRECTIONS).collect(),
            (Self::FlipTwo, Split::Train) => flips(|legs| legs != 2),
            (Self::FlipTwo, Split::Test) => flips(|legs| legs == 2),
            (Self::FlipMany, Split::Train) => flips(|legs| legs <= 2),
            (Self::FlipMany, Split::Test) => flips(|legs| legs > 2),
            (Self::Rotate, Split::Train) => vec![0, 15, 16, 32 + 15, 48, 48 + 15],
            (Self::Rotate, Split::Test) => vec![16 + 15, 32],
        };
        codes.into_iter().map(ContextId).collect()
    }

    /// What a context's number stands for; nothing for a number that stands for none.
    fn hidden(self, ContextId(code): ContextId) -> Option<Hidden> {
        let still = Hidden { wind: [0.0; 2], viscosity: 0.0, gears: Gears::HEALTHY };
        match self {
            Self::Wind { strength, .. } => (code < DIRECTIONS).then(|| {
                let (sin, cos) = (TAU * code as f64 / DIRECTIONS as f64).sin_cos();
                Hidden { wind: [strength * cos, strength * sin], viscosity: VISCOSITY, ..still }
            }),
            Self::FlipTwo | Self::FlipMany | Self::Rotate => (code < 4 * PATTERNS).then(|| {
                let legs = std::array::from_fn(|leg| 1 - 2 * (code >> leg & 1) as i8);
                Hidden { gears: Gears { legs, rotation: (code / PATTERNS) as usize }, ..still }
            }),
        }
    }

    /// Number of observations.
    fn observations(self) -> usize {
        if matches!(self, Self::Wind { contacts: true, .. }) { FULL } else { POSTURE }
    }
}

/// A world of ants.
pub(crate) struct AntWorld {
    spec: Arc<EnvSpec>,
    family: Family,
    model: AntModel,
    train: Vec<ContextId>,
    test: Vec<ContextId>,
    /// Whom data come from, once they are there.
    expert: Option<Expert>,
}

impl AntWorld {
    /// The world called `name`, with the first `train` and `test` contexts of its splits.
    pub(crate) fn new(name: &str, family: Family, sizes: [usize; 2]) -> Result<Self, WorldError> {
        let first = |split, count: usize| {
            let mut contexts = family.contexts(split);
            if count > contexts.len() {
                return Err(WorldError::Invalid(format!(
                    "{name}: {count} {split} contexts asked for, but only {} exist",
                    contexts.len()
                )));
            }
            contexts.truncate(count);
            Ok(contexts)
        };
        let spec = EnvSpec {
            name: name.to_owned(),
            observation: ant::dims(family.observations()),
            action: ActionSpace::Continuous { low: vec![-1.0; MOTORS], high: vec![1.0; MOTORS] },
            horizon: HORIZON,
        };
        Ok(Self {
            spec: Arc::new(spec),
            family,
            train: first(Split::Train, sizes[0])?,
            test: first(Split::Test, sizes[1])?,
            model: AntModel::load()?,
            expert: None,
        })
    }

    fn hidden(&self, context: ContextId) -> Result<Hidden, WorldError> {
        self.family.hidden(context).ok_or_else(|| {
            WorldError::Invalid(format!("{}: there is no context {}", self.spec.name, context.0))
        })
    }
}

impl Cmdp for AntWorld {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn contexts(&self, split: Split) -> &[ContextId] {
        match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        }
    }

    fn instantiate(&self, context: ContextId) -> Result<Box<dyn Env>, WorldError> {
        let hidden = self.hidden(context)?;
        let ant = Ant::new(&self.model, hidden.air(), Integrator::RungeKutta)?;
        Ok(Box::new(AntEnv { spec: self.spec.clone(), context, gears: hidden.gears, ant, steps: 0 }))
    }

    fn tasks(&self, _: ContextId) -> Result<Vec<Task>, WorldError> {
        Ok(tasks::tasks())
    }

    fn describe(&self, context: ContextId) -> Result<serde_json::Value, WorldError> {
        let mut about = json!(self.hidden(context)?);
        about["kind"] = json!("ant");
        Ok(about)
    }

    fn take_experts(&mut self, data: &Path) -> Result<(), WorldError> {
        self.expert = Expert::beside(data)?;
        Ok(())
    }

    fn oracle(&self, context: ContextId) -> Result<Option<Box<dyn Policy + '_>>, WorldError> {
        let Some(expert) = &self.expert else { return Ok(None) };
        Ok(Some(Box::new(expert.policy(&self.hidden(context)?))))
    }

    fn ignorant(&self) -> Option<(&'static str, Box<dyn Policy + '_>)> {
        let expert = self.expert.as_ref()?;
        Some(("oracle-untold", Box::new(expert.told_nothing())))
    }

    fn behaviour(&self) -> BehaviourPolicy {
        BehaviourPolicy::Expert { learner: Learner::Ppo, pure: false }
    }
}

/// One ant in one context.
struct AntEnv {
    spec: Arc<EnvSpec>,
    context: ContextId,
    gears: Gears,
    ant: Ant,
    /// Steps since the start, for errors.
    steps: usize,
}

impl Env for AntEnv {
    // There is one start for all purposes: standing, with noise.
    fn reset(&mut self, _: Start, rng: &mut Rng, obs: &mut [f32]) -> Result<(), WorldError> {
        self.ant.reset(rng);
        self.ant.observe(obs);
        self.steps = 0;
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, obs: &mut [f32]) -> Result<Step, WorldError> {
        let commands = match action {
            Action::Continuous(values) if self.spec.action.contains(action) => {
                std::array::from_fn(|motor| f64::from(values[motor]))
            }
            _ => return Err(self.spec.action.reject(&self.spec.name, action)),
        };
        self.steps += 1;
        let measured = self.ant.step(self.gears.torques(commands)).map_err(|problem| {
            WorldError::Invalid(format!(
                "{}: context {}, step {}: the simulation diverged: {problem}",
                self.spec.name, self.context.0, self.steps
            ))
        })?;
        self.ant.observe(obs);
        let cost = (measured.control_cost + measured.contact_cost) as f32;
        Ok(Step { terminated: !measured.healthy, cost })
    }
}

#[cfg(test)]
mod tests;
