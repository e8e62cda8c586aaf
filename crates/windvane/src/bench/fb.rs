//! The forward-backward steps, conditioned on the belief of an untrained encoder: its numbers cost what any would.

use super::{Built, SEED, columns, constants, training};
use crate::belief::{StateEvidence, TransitionSet};
use crate::config::Plan;
use crate::data::{Replay, StateTable};
use crate::error::LearnError;
use crate::fb::conditioning;
use crate::fb::listed::ListedObjective;
use crate::fb::observation_objective::ObservationObjective;
use crate::fb::tasks::TaskDistribution;
use crate::fb::trainer::trainer;
use crate::fb::{ListedModel, ObservationModel};
use crate::methods::{self, Method};
use crate::nn::TensorFile;
use burn::tensor::Device;
use std::sync::Arc;

/// The method whose step is measured.
fn method() -> Result<&'static Method, LearnError> {
    methods::find("bfb")
}

/// On listed states.
pub(super) fn listed(plan: &Plan, table: &Arc<StateTable>, device: &Device) -> Result<Built, LearnError> {
    let Plan { belief: config, fb, .. } = plan;
    let mut file = TensorFile::default();
    let belief = StateEvidence::new(table.clone(), config, SEED, device)?;
    let (_, contexts) = conditioning::listed(method()?, table, Some(&belief), (config, fb), SEED);
    let distribution = TaskDistribution::new(method()?.draw, fb, table.states())?;
    let objective = constants(&mut file, || -> Result<_, LearnError> {
        let model = ListedModel::new(table.clone(), None, fb, config.block_persistence, SEED, device)?;
        Ok(ListedObjective::new(model, contexts, distribution, SEED))
    })?;
    file.insert_word("states", table.states());
    file.insert_word("actions", table.actions);
    file.insert_word("width", table.width());
    Ok(training(trainer(objective, fb), file, fb.steps))
}

/// The untrained model on observations, its conditioning inputs in the file.
pub(super) fn model(
    plan: &Plan,
    replay: &Arc<Replay>,
    device: &Device,
    file: &mut TensorFile,
) -> Result<(ObservationModel, conditioning::TrainingContexts), LearnError> {
    let Plan { belief: config, fb, actor, .. } = plan;
    let belief = TransitionSet::new(replay.codec.clone(), replay.groups(), config, SEED, device)?;
    let (conditioner, contexts) =
        conditioning::observations(method()?, replay, Some(&belief), (config, fb), SEED);
    let width = conditioner.width();
    file.insert_values("data/input".to_owned(), contexts.inputs.clone(), [contexts.groups.len(), width]);
    let codec = replay.codec.clone();
    let model = ObservationModel::new(codec, width, Some(Arc::new(belief)), None, (fb, actor), SEED, device)?;
    Ok((model, contexts))
}

/// On observations: with heads where actions are discrete, with an actor where they are not.
pub(super) fn observations(plan: &Plan, replay: &Arc<Replay>, device: &Device) -> Result<Built, LearnError> {
    let mut file = TensorFile::default();
    columns(&mut file, replay);
    let (model, contexts) = model(plan, replay, device, &mut file)?;
    let distribution = TaskDistribution::new(method()?.draw, &plan.fb, plan.belief.dim)?;
    let objective = ObservationObjective::new(model, replay.clone(), contexts, distribution, SEED);
    Ok(training(trainer(objective, &plan.fb), file, plan.fb.steps))
}
