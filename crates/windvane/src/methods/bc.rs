//! Behaviour cloning, unconditioned: what the data's actions give without any learning of values.

use super::{Method, fb};

pub(super) const METHOD: Method = Method {
    name: "bc",
    title: "Cloning",
    about: "behaviour cloning; takes all dynamics for one (vectors as actions)",
    clones: true,
    ..fb::METHOD
};
