//! The methods there are. Adding one is a row here and, where it needs a new part, a file beside the others.

use crate::config::layers::closest;
use crate::error::LearnError;
use serde::{Deserialize, Serialize};

/// A method, by what it plugs into the forward-backward core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// As the command line spells it.
    pub name: &'static str,
    /// As tables print it.
    pub title: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What F is told of the dynamics.
    pub condition: Condition,
    /// Where random task vectors come from.
    pub draw: Draw,
}

/// What the forward map is told of the hidden dynamics.
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

impl Method {
    /// Whether it listens to a belief.
    pub fn believes(&self) -> bool {
        self.condition == Condition::Belief
    }
}

/// Every method.
pub const METHODS: &[Method] = &[
    Method {
        name: "fb",
        title: "FB",
        about: "forward-backward; takes all dynamics for one",
        condition: Condition::Nothing,
        draw: Draw::Sphere,
    },
    Method {
        name: "bfb",
        title: "Belief-FB",
        about: "F conditioned on the belief h",
        condition: Condition::Belief,
        draw: Draw::Sphere,
    },
    Method {
        name: "rfb",
        title: "Rotation-FB",
        about: "Belief-FB with task vectors drawn around h",
        condition: Condition::Belief,
        draw: Draw::Cone,
    },
    Method {
        name: "oracle-id",
        title: "Oracle-ID",
        about: "F is told which training context it is in; an unseen one is told as zeros",
        condition: Condition::ContextId,
        draw: Draw::Sphere,
    },
];

/// The method called `name`.
pub fn find(name: &str) -> Result<&'static Method, LearnError> {
    let known: Vec<&str> = METHODS.iter().map(|m| m.name).collect();
    METHODS.iter().find(|m| m.name == name).ok_or_else(|| {
        let hint =
            closest(name, &known).map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
        let problem = format!("unknown method \"{name}\"{hint}; known: {}", known.join(", "));
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
