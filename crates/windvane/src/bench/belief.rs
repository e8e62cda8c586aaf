//! The belief encoder's step: sets of transitions to a belief, the belief to next states.

use super::{ACTION, Batch, Dims, OBS, Step, number};
use crate::nn::{
    Act, Adam, AdamConfig, Input, Items, Linear, Mlp, MlpConfig, NnError, Params, SetConfig, SetTransformer,
    TensorFile,
};
use burn::tensor::{Device, Tensor};

const WINDOWS: usize = 64;
const TOKENS: usize = 100;
const WIDTH: usize = 96;
const KL: f32 = 1e-5;

/// The step. The encoder is the same in both sizes, only h grows.
pub(super) struct Belief {
    params: Params,
    adam: Adam,
    encoder: SetTransformer,
    /// Mean and log-deviation of h.
    head: Linear,
    predictor: Mlp,
    h: usize,
    tokens: Tensor<2>,
    states: Tensor<2>,
    change: Tensor<2>,
    noise: Tensor<2>,
}

impl Belief {
    pub(super) fn new(dims: Dims, device: &Device) -> Result<(Self, TensorFile), NnError> {
        let h = dims.d;
        let mut params = Params::new(device, 1);
        let config =
            SetConfig { input: 2 * OBS + ACTION, width: WIDTH, heads: 4, blocks: 4, hidden: 4 * WIDTH };
        let encoder = SetTransformer::new(&mut params, "encoder", &config)?;
        let head = Linear::new(&mut params, "head", &[WIDTH], 2 * h)?;
        let predictor =
            Mlp::new(&mut params, "predictor", &MlpConfig::paper(&[OBS + ACTION, h], &[256; 3], OBS))?;
        let mut batch = Batch::new(device);
        let tokens = batch.uniform("tokens", [WINDOWS * TOKENS, 2 * OBS + ACTION]);
        let noise = batch.uniform("noise", [WINDOWS, h]);
        let mut file = batch.file;
        params.save(&mut file, "params/");
        let adam = Adam::new(AdamConfig { clip: Some(1.0), ..AdamConfig::default() }, &params);
        // A token is (s, a, s'); the predictor sees (s, a) and is asked for s' - s.
        let rows = WINDOWS * TOKENS;
        let states = tokens.clone().slice([0..rows, 0..OBS + ACTION]);
        let (s, next) = (
            tokens.clone().slice([0..rows, 0..OBS]),
            tokens.clone().slice([0..rows, OBS + ACTION..2 * OBS + ACTION]),
        );
        let change = next - s;
        Ok((Self { params, adam, encoder, head, predictor, h, tokens, states, change, noise }, file))
    }
}

impl Step for Belief {
    fn run(&mut self) -> f32 {
        let weights = self.params.track();
        let pooled = self.encoder.forward(&weights, self.tokens.clone(), WINDOWS, None); // [windows, width]
        let head = self.head.forward(&weights, Input::One(pooled), Act::None); // [windows, 2 h]
        let mean = head.clone().slice([0..WINDOWS, 0..self.h]);
        let log_std = head.slice([0..WINDOWS, self.h..2 * self.h]);
        let std = log_std.clone().exp();
        let h = mean.clone() + std.clone() * self.noise.clone(); // [windows, h]
        let input = Input::Grouped { x: self.states.clone(), items: Items::PerGroup, group: h };
        let predicted = self.predictor.forward(&weights, input); // [windows * tokens, obs]
        let error = (predicted - self.change.clone()).powi_scalar(2).mean();
        let kl =
            (mean.powi_scalar(2) + std.powi_scalar(2) - log_std * 2.0 - 1.0).sum() * (0.5 / WINDOWS as f32);
        let loss = error + kl * KL;
        let value = number(loss.clone());
        let gradients = loss.backward();
        drop(loss);
        self.adam.step(&mut self.params, weights, gradients, 1.0, None);
        value
    }
}
