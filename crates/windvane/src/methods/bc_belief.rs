//! Behaviour cloning conditioned on a belief.

use super::{Method, bfb};

pub(super) const METHOD: Method = Method {
    name: "bc-belief",
    title: "Cloning with h",
    about: "behaviour cloning conditioned on the belief h (vectors as actions)",
    clones: true,
    ..bfb::METHOD
};
