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
    /// Whether F is conditioned on a belief.
    pub belief: bool,
    /// Whether random task vectors are drawn from a cone around that belief.
    pub cone: bool,
}

/// Every method.
pub const METHODS: &[Method] = &[
    Method {
        name: "fb",
        title: "FB",
        about: "forward-backward; takes all dynamics for one",
        belief: false,
        cone: false,
    },
    Method {
        name: "bfb",
        title: "Belief-FB",
        about: "F conditioned on the belief h",
        belief: true,
        cone: false,
    },
    Method {
        name: "rfb",
        title: "Rotation-FB",
        about: "Belief-FB with task vectors drawn around h",
        belief: true,
        cone: true,
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
