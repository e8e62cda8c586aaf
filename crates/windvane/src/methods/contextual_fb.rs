//! Contextual-FB (after Jeen & Cullen 2024, as the paper rebuilds it): plain FB, and a reward that is corrected in each new
//! context by classifiers trained there ([`crate::correction`]).

use super::{Method, RewardIn, fb};

pub(super) const METHOD: Method = Method {
    name: "contextual-fb",
    title: "Contextual-FB",
    about: "FB with a reward that classifiers, trained in each new context, correct",
    reward: RewardIn::Corrected,
    ..fb::METHOD
};
