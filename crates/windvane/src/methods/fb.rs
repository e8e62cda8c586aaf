//! Forward-backward representations (Touati & Ollivier 2021): one forward map for all dynamics.

use super::{Condition, Draw, Method, RewardIn};

pub(super) const METHOD: Method = Method {
    name: "fb",
    title: "FB",
    about: "forward-backward; takes all dynamics for one",
    condition: Condition::Nothing,
    draw: Draw::Sphere,
    features: None,
    reward: RewardIn::AsIs,
    clones: false,
};
