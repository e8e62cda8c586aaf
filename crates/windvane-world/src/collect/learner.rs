//! How the experts that data are collected from learn.

use crate::error::WorldError;
use std::fmt;
use std::str::FromStr;

/// How an expert learns, and what its policy sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Learner {
    /// PPO on joint targets.
    #[default]
    Ppo,
    /// SAC on torques, as the paper's authors have it.
    Sac,
    /// SAC on the joint targets that PPO has.
    SacTargets,
}

impl Learner {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ppo, Self::Sac, Self::SacTargets];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ppo => "ppo",
            Self::Sac => "sac",
            Self::SacTargets => "sac-targets",
        }
    }

    /// The name of the policy that it teaches, `pure` or not: `expert`, `expert:pure`, `expert:sac`, `expert:sac:pure`, ...
    pub(crate) fn expert(self, pure: bool) -> String {
        let learner = if self == Self::Ppo { String::new() } else { format!(":{self}") };
        format!("expert{learner}{}", if pure { ":pure" } else { "" })
    }

    /// What such a name says behind `expert`.
    pub(super) fn read(parameter: Option<&str>) -> Option<(Self, bool)> {
        let all = Self::ALL.into_iter().flat_map(|learner| [(learner, false), (learner, true)]);
        let mut all = all.map(|(learner, pure)| (learner.expert(pure), (learner, pure)));
        let name = parameter.map_or("expert".to_owned(), |parameter| format!("expert:{parameter}"));
        all.find_map(|(known, meant)| (known == name).then_some(meant))
    }
}

impl fmt::Display for Learner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Learner {
    type Err = WorldError;

    fn from_str(text: &str) -> Result<Self, WorldError> {
        Self::ALL.into_iter().find(|learner| learner.name() == text).ok_or_else(|| WorldError::Unknown {
            kind: "learner",
            name: text.into(),
            known: "ppo, sac, sac-targets".into(),
        })
    }
}
