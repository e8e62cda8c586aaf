//! The trainings of a run, and what identifies each: its settings, what it was made from, and the constants in the code.

use crate::belief::{known_contexts, regression, state_evidence, transition_set};
use crate::config::Plan;
use crate::data::{StateKind, encoder, replay};
use crate::error::LearnError;
use crate::fb::{actor, loss, networks, tasks, tokens_constants};
use crate::methods::Method;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

/// Raised when code changes the result of a training in a way that no setting and no constant below shows.
const REVISION: u32 = 2;

/// A training of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The belief encoder and its predictor.
    Belief,
    /// Features learned beforehand.
    Features,
    /// F, B and the actor.
    Agent,
}

impl Stage {
    /// As progress bars call it.
    pub(crate) fn title(self, method: &Method) -> &'static str {
        match self {
            Self::Belief => "belief",
            Self::Features => "features",
            Self::Agent => method.title,
        }
    }

    /// Gradient steps.
    pub(crate) fn steps(self, plan: &Plan) -> u64 {
        match self {
            Self::Belief => plan.belief.steps,
            Self::Features => plan.features.steps,
            Self::Agent => plan.fb.steps,
        }
    }

    /// Evaluations on the way.
    pub(crate) fn evaluations(self) -> u64 {
        match self {
            Self::Belief | Self::Features => 0,
            Self::Agent => 5,
        }
    }

    /// Whose result it is: another environment, seed, setting, constant or input gives another name. `inputs` are hashes of
    /// the files it is made from.
    pub(crate) fn identity(
        self,
        plan: &Plan,
        method: &Method,
        seed: u64,
        inputs: &[u64],
    ) -> Result<String, LearnError> {
        let what = match self {
            Self::Belief => "belief".to_owned(),
            Self::Features => format!("features of {}", method.name),
            Self::Agent => method.name.to_owned(),
        };
        let settings = hash(&(self.settings(plan)?, inputs, self.constants(), REVISION))?;
        Ok(format!("{what} on {}, seed {seed}, settings {settings:016x}", plan.env))
    }

    /// The settings that decide its result. How scores are taken decides nothing.
    fn settings(self, plan: &Plan) -> Result<serde_json::Value, LearnError> {
        let Plan { data, encoder, belief, fb, actor, features, correction, stop_at, .. } = plan;
        let value = match self {
            Self::Belief => {
                // What is done with a belief later does not make it another one.
                let belief = crate::belief::BeliefConfig {
                    cached: 1,
                    refresh: 1,
                    probe: 0,
                    block_persistence: 0.0,
                    ..belief.clone()
                };
                serde_json::to_value((data, encoder, belief))
            }
            Self::Features => serde_json::to_value((data, encoder, features, &fb.net.backward)),
            Self::Agent => {
                serde_json::to_value((data, encoder, belief, fb, actor, (features, correction), stop_at))
            }
        };
        value.map_err(|e| LearnError::Config { origin: "plan".into(), problem: e.to_string() })
    }

    /// The constants in the code that change its result: its own, and for the agent those of the belief that it acts on.
    fn constants(self) -> Vec<f64> {
        let belief: [&[f64]; 6] = [
            encoder::CONSTANTS,
            known_contexts::CONSTANTS,
            regression::CONSTANTS,
            state_evidence::CONSTANTS,
            transition_set::CONSTANTS,
            replay::CONSTANTS,
        ];
        let fb: [&[f64]; 4] = [loss::CONSTANTS, networks::CONSTANTS, tasks::CONSTANTS, actor::CONSTANTS];
        match self {
            Self::Belief => belief.concat(),
            Self::Features => [encoder::CONSTANTS, replay::CONSTANTS, networks::CONSTANTS].concat(),
            Self::Agent => [belief.concat(), fb.concat(), tokens_constants()].concat(),
        }
    }
}

/// The data that decides a belief: what sweeps share goes by this name.
pub(crate) fn shared_names(plan: &Plan, seed: u64) -> Result<[String; 2], LearnError> {
    let data = hash(&(&plan.env, &plan.data))?;
    let belief = hash(&(&plan.env, Stage::Belief.settings(plan)?, Stage::Belief.constants(), REVISION))?;
    Ok([data, belief].map(|hash| format!("{seed}-{hash:016x}")))
}

/// Whether states are listed.
pub(crate) fn is_listed(plan: &Plan) -> bool {
    plan.encoder.states == StateKind::Listed
}

/// A hash of what serde writes.
pub(crate) fn hash(value: &impl Serialize) -> Result<u64, LearnError> {
    let text = serde_json::to_string(value)
        .map_err(|e| LearnError::Config { origin: "plan".into(), problem: e.to_string() })?;
    Ok(xxh3_64(text.as_bytes()))
}
