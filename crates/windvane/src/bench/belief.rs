//! The belief encoders' steps.

use super::{Built, SEED, columns, constants, training};
use crate::belief::state_evidence::StateEvidenceObjective;
use crate::belief::trainer::BeliefTrainer;
use crate::belief::transition_set::TransitionSetObjective;
use crate::config::Plan;
use crate::data::{Replay, StateTable};
use crate::error::LearnError;
use crate::nn::TensorFile;
use burn::tensor::Device;
use std::sync::Arc;

/// On what is known of listed states.
pub(super) fn listed(plan: &Plan, table: &Arc<StateTable>, device: &Device) -> Result<Built, LearnError> {
    let mut file = TensorFile::default();
    let new = || StateEvidenceObjective::new(table.clone(), &plan.belief, SEED, device);
    let objective = constants(&mut file, new)?;
    file.insert_word("states", table.states());
    file.insert_word("actions", table.actions);
    file.insert_word("width", table.width());
    Ok(training(BeliefTrainer::new(objective, &plan.belief), file, plan.belief.steps))
}

/// On sets of transitions.
pub(super) fn transitions(plan: &Plan, replay: &Arc<Replay>, device: &Device) -> Result<Built, LearnError> {
    let mut file = TensorFile::default();
    columns(&mut file, replay);
    let objective = TransitionSetObjective::new(replay.clone(), &plan.belief, SEED, device)?;
    Ok(training(BeliefTrainer::new(objective, &plan.belief), file, plan.belief.steps))
}
