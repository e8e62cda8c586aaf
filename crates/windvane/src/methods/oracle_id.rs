//! Oracle-ID: told the answer in training, and nothing about what it has not seen.

use super::{Condition, Method, fb};

pub(super) const METHOD: Method = Method {
    name: "oracle-id",
    title: "Oracle-ID",
    about: "F is told which training context it is in; an unseen one is told as zeros",
    condition: Condition::ContextId,
    ..fb::METHOD
};
