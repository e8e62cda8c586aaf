//! The methods there are, one file each. Adding one is a file here with what is its own, and a line in [`METHODS`].

mod bc;
mod bc_belief;
mod bfb;
mod contextual_fb;
mod fb;
pub mod hilp;
pub mod lap;
mod oracle_id;
mod rfb;

use crate::config::Plan;
use crate::config::layers::closest;
use crate::data::StateKind;
use crate::error::LearnError;
use crate::fb::actor::{ActorConfig, ActorKind};
use crate::features::FeatureLearner;
use serde::{Deserialize, Serialize};

/// Every method. Random actions are no method but a row of every evaluation.
pub const METHODS: &[Method] = &[
    fb::METHOD,
    hilp::METHOD,
    lap::METHOD,
    contextual_fb::METHOD,
    oracle_id::METHOD,
    bfb::METHOD,
    rfb::METHOD,
    bc::METHOD,
    bc_belief::METHOD,
];

/// A method, by what it plugs into the core.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// As the command line spells it.
    pub name: &'static str,
    /// As tables print it.
    pub title: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What the forward map is conditioned on.
    pub condition: Condition,
    /// Where random task vectors come from.
    pub draw: Draw,
    /// Who learns features of states beforehand, for successor features over them. The FB family has nobody: B is learned
    /// with F.
    pub features: Option<&'static dyn FeatureLearner>,
    /// What a new context does to the reward.
    pub reward: RewardIn,
    /// Whether the actor does what the data's actions were, whatever is asked for; F is left untrained. For vectors as actions.
    pub clones: bool,
}

/// What the forward map is conditioned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing: all dynamics are taken for one.
    Nothing,
    /// The belief h, inferred from a context.
    Belief,
    /// Which of the training contexts it is, as a one-hot vector; zeros for one it does not know.
    ContextId,
}

/// Where random task vectors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Anywhere on the sphere.
    Sphere,
    /// A cone around the belief.
    Cone,
}

/// What a new context does to the reward that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewardIn {
    /// Nothing.
    AsIs,
    /// It is corrected by what classifiers say that are trained on the context: see [`crate::features::correction`].
    Corrected,
}

impl Method {
    /// Whether it is conditioned on a belief.
    pub fn believes(&self) -> bool {
        self.condition == Condition::Belief
    }

    /// The actor's settings, of the kind that the method asks for.
    pub(crate) fn actor(&self, config: ActorConfig) -> ActorConfig {
        ActorConfig { kind: if self.clones { ActorKind::Cloning } else { config.kind }, ..config }
    }

    /// An error where the settings alone show that the method cannot be trained.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), LearnError> {
        let Plan { encoder, belief, fb, .. } = plan;
        if self.draw == Draw::Cone && encoder.states == StateKind::Observations && fb.dim < belief.dim {
            let problem = format!(
                "\"fb.dim\" is {}; {} needs at least \"belief.dim\", {}",
                fb.dim, self.title, belief.dim
            );
            return Err(LearnError::Config { origin: "plan".into(), problem });
        }
        Ok(())
    }

    /// An error for a method that clones in a world `env` where no actor chooses vectors.
    pub(crate) fn check_actor(&self, there: bool, env: &str) -> Result<(), LearnError> {
        if there || !self.clones {
            return Ok(());
        }
        let problem = format!(
            "{} is for actors; expected a world whose actions are vectors, and in {env} they are chosen from a list",
            self.title
        );
        Err(LearnError::Config { origin: "--method".into(), problem })
    }
}

/// Names are unique.
impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Method {}

/// The names of all methods, for messages.
pub fn names() -> String {
    METHODS.iter().map(|method| method.name).collect::<Vec<_>>().join(", ")
}

/// The method called `name`.
pub fn find(name: &str) -> Result<&'static Method, LearnError> {
    let known: Vec<&str> = METHODS.iter().map(|m| m.name).collect();
    METHODS.iter().find(|m| m.name == name).ok_or_else(|| {
        let hint =
            closest(name, &known).map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
        let problem = format!("unknown method \"{name}\"{hint}; known: {}", names());
        LearnError::Config { origin: "--method".into(), problem }
    })
}

/// The name alone, for rows and checkpoints.
impl Serialize for Method {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        find(&name).copied().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_no_two_are_alike() {
        for (i, method) in METHODS.iter().enumerate() {
            assert_eq!(find(method.name).unwrap().title, method.title);
            assert!(METHODS[..i].iter().all(|other| other.name != method.name));
        }
        assert!(find("hlip").unwrap_err().to_string().contains("did you mean \"hilp\"?"));
    }

    #[test]
    fn the_examples_for_contributors_are_the_real_files() {
        let guide = include_str!("../../../../CONTRIBUTING.md");
        assert!(guide.contains(include_str!("rfb.rs")), "rfb.rs has changed");
        let lap = include_str!("lap.rs");
        assert!(guide.contains(&lap[lap.find("impl FeatureLearner").unwrap()..]), "lap.rs has changed");
    }
}
