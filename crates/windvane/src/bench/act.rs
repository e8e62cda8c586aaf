//! Acting on one observation.

use super::{Built, Step, fb};
use crate::config::Plan;
use crate::data::{Codec, Replay, bad_setting};
use crate::error::LearnError;
use crate::fb::actor::RowActor;
use crate::nn::{Params, TensorFile};
use burn::tensor::Device;
use std::sync::Arc;

/// The actor, its belief and task fixed for the episode.
struct Act {
    actor: RowActor,
    params: Params,
    codec: Arc<Codec>,
    obs: Vec<f32>,
}

/// The actor of FB's step with an actor, untrained.
pub(super) fn act(plan: &Plan, replay: &Arc<Replay>, device: &Device) -> Result<Built, LearnError> {
    let mut file = TensorFile::default();
    let (model, contexts) = fb::model(plan, replay, device, &mut file)?;
    let codec = replay.codec.clone();
    let obs = replay.host_state(0).to_vec();
    // Some task: B of the state that it is in.
    let (input, z) = (&contexts.inputs[..plan.belief.dim], model.backward(&obs));
    let task = [input, &z].concat();
    let weights = model.params.weights();
    let b = model.backward.network().map(|net| (net, &weights));
    let row = model.actor.as_ref().and_then(|actor| actor.row(b, &task, z.len()));
    let row = row.zip(model.actor.as_ref().map(|actor| actor.params.clone()));
    let Some((actor, params)) = row else { return Err(bad_setting("acting is measured with an actor")) };
    let s = codec.encode(&obs);
    let widths = [[1, s.len()], [1, task.len()]];
    file.insert_values("data/s".to_owned(), s, widths[0]);
    file.insert_values("data/task".to_owned(), task, widths[1]);
    Ok(Built { step: Box::new(Act { actor, params, codec, obs }), file, steps: 1 })
}

impl Step for Act {
    fn run(&mut self) -> Result<f32, LearnError> {
        let s = self.codec.encode(&self.obs);
        Ok(self.actor.act(&s).iter().sum())
    }

    fn save(&self, file: &mut TensorFile) {
        self.params.save(file, "actor/");
    }
}
