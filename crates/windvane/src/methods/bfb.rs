//! Belief-FB: the forward map is conditioned on a belief.

use super::{Condition, Method, fb};

pub(super) const METHOD: Method = Method {
    name: "bfb",
    title: "Belief-FB",
    about: "F conditioned on the belief h",
    condition: Condition::Belief,
    ..fb::METHOD
};
