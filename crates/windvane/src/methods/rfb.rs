//! Rotation-FB: Belief-FB whose random tasks are drawn from a cone around the belief.

use super::{Draw, Method, bfb};

pub(super) const METHOD: Method = Method {
    name: "rfb",
    title: "Rotation-FB",
    about: "Belief-FB with task vectors drawn around h",
    draw: Draw::Cone,
    ..bfb::METHOD
};
