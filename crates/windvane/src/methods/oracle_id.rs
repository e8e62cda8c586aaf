//! Oracle-ID: conditioned on the context's id, which is zeros for a context it has not seen.

use super::{Condition, Method, fb};

pub(super) const METHOD: Method = Method {
    name: "oracle-id",
    title: "Oracle-ID",
    about: "F is conditioned on the id of its training context; zeros for an unseen one",
    condition: Condition::ContextId,
    ..fb::METHOD
};
