//! How large the measured steps are: presets, with what a step does not cost made small.

use super::{Size, StepName};
use crate::config::Plan;
use crate::error::LearnError;

/// Enough data to draw from; how much there is costs a step nothing.
const DATA: &[&str] = &["data.test_contexts=1", "data.episodes=8"];
/// F is conditioned on beliefs of an untrained encoder: what it looks like inside costs FB's step nothing.
const CACHED: &[&str] = &["belief.cached=128", "belief.width=16", "belief.blocks=1"];
/// Networks on observations in a size that a processor likes.
const SMALL: &[&str] = &[
    "belief.dim=100",
    "fb.dim=100",
    "fb.contexts=512",
    "fb.net.preprocessor=[256, 256]",
    "fb.net.embedding=128",
    "fb.net.trunk=[256, 256]",
];
/// The belief over transitions, likewise.
const SMALL_BELIEF: &[&str] = &["belief.dim=100", "belief.batch=64", "belief.width=96"];
/// An eighth of the paper's contexts a step: they are alike, and a thousand need more memory than most machines have.
const PAPER_BELIEF: &[&str] = &["belief.batch=128"];

/// The settings of a measured step.
pub(super) fn plan(step: StepName, size: Size) -> Result<Plan, LearnError> {
    use StepName::{Act, BeliefListed, BeliefTransitions, FbActor, FbHeads, FbListed};
    let (env, preset) = match step {
        BeliefListed | FbListed => ("four-rooms", "standard"),
        FbHeads => ("four-rooms", "paper"),
        BeliefTransitions | FbActor | Act => ("pointmass", "paper"),
    };
    let cached = if step == BeliefTransitions || step == BeliefListed { &[] } else { CACHED };
    let sizes: &[&str] = match (step, size) {
        (BeliefListed | FbListed, _) | (FbHeads | FbActor | Act, Size::Paper) => &[],
        (BeliefTransitions, Size::Paper) => PAPER_BELIEF,
        (BeliefTransitions, _) => SMALL_BELIEF,
        (FbHeads | FbActor | Act, _) => SMALL,
    };
    let mut layers = Plan::preset(env, preset)?;
    for setting in DATA.iter().chain(cached).chain(sizes).chain(tiny(step, size)) {
        layers = layers.set(setting)?;
    }
    layers.value().check()
}

#[cfg(not(test))]
fn tiny(_: StepName, _: Size) -> &'static [&'static str] {
    &[]
}

/// What a test can wait for on a device in software.
#[cfg(test)]
fn tiny(step: StepName, size: Size) -> &'static [&'static str] {
    match (step, size) {
        (_, Size::Small | Size::Paper) => &[],
        (StepName::BeliefListed | StepName::FbListed, Size::Tiny) => &[
            "data.train_contexts=3",
            "belief.batch=4",
            "belief.width=8",
            "belief.heads=2",
            "belief.blocks=1",
            "belief.cached=8",
            "fb.contexts=2",
            "fb.tasks=3",
            "fb.target_depth=4",
            "fb.net.width=32",
            "fb.net.blocks=1",
            "fb.net.head_width=32",
        ],
        (_, Size::Tiny) => &[
            "data.train_contexts=3",
            "belief.batch=4",
            "belief.width=8",
            "belief.heads=2",
            "belief.blocks=1",
            "belief.dim=12",
            "belief.queries=4",
            "belief.predictor_width=16",
            "belief.min_context=10",
            "belief.max_context=20",
            "belief.embeddings=0.1",
            "belief.cached=8",
            "fb.dim=12",
            "fb.contexts=8",
            "fb.net.preprocessor=[16]",
            "fb.net.embedding=8",
            "fb.net.trunk=[16]",
            "fb.net.backward=[16]",
        ],
    }
}
