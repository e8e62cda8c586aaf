//! Acting on one observation.

use super::{ACTION, Batch, Dims, OBS, Step};
use crate::nn::{NnError, PairConfig, PairNet, Params, RowPair, TensorFile, ops, read};
use burn::tensor::Device;

/// The actor, its belief and task fixed for the episode.
pub(super) struct Act {
    actor: RowPair,
    s: Vec<f32>,
}

impl Act {
    pub(super) fn new(dims: Dims, device: &Device) -> Result<(Self, TensorFile), NnError> {
        let mut params = Params::new(device, 2);
        let config = PairConfig {
            left: vec![OBS],
            right: vec![OBS, dims.d],
            preprocessor: vec![dims.hidden; 2],
            embedding: dims.hidden / 2,
            trunk: vec![dims.hidden; 2],
            output: ACTION,
        };
        let actor = PairNet::new(&mut params, "actor", &config)?;
        let mut batch = Batch::new(device);
        let s = read(batch.uniform("s", [1, OBS]));
        let z = read(ops::sphere(batch.uniform("z", [1, dims.d]), (dims.d as f32).sqrt()));
        let mut file = batch.file;
        params.save(&mut file, "params/");
        Ok((Self { actor: RowPair::new(&actor, &params.weights(), &z), s }, file))
    }
}

impl Step for Act {
    fn run(&mut self) -> f32 {
        let action = self.actor.forward(&[&self.s], &self.s).iter().map(|x| x.tanh());
        action.sum()
    }
}
