//! The networks of FB on listed states: the backward map B, and the forward map in its two forms.

use crate::error::LearnError;
use crate::nn::{Act, Init, Input, Linear, Mlp, MlpConfig, ParamId, Params, Weights, ops};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// The form of the forward map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Forward {
    /// The paper's: a network F(s, [h; z]) with one head per action.
    Paper,
    /// F(s, a, [h; z]) = E over s' ~ g(s, a, h) of U(s', [h; z]), through the belief's own predictor g.
    Predictor,
}

/// Sizes of the networks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetConfig {
    /// Latent dimension d; paper: 100 for grids. At least the number of states, or rank alone limits F B.
    pub dim: usize,
    /// Width of the layers that work on states; paper: 1024, here a quarter: see the lab notes.
    pub width: usize,
    /// Width of the layers that work on the condition and the task.
    pub context_width: usize,
    /// Residual blocks of the state layers.
    pub blocks: usize,
    /// Width of B's hidden layers; paper: 256, 256, 256.
    pub backward_width: usize,
    /// The form of the forward map.
    pub forward: Forward,
}

impl Default for NetConfig {
    fn default() -> Self {
        let forward = Forward::Predictor;
        Self { dim: 128, width: 256, context_width: 512, blocks: 2, backward_width: 256, forward }
    }
}

/// Backward map B(s), never conditioned, on the sphere of radius sqrt(d).
#[derive(Clone, Debug)]
pub struct Backward {
    net: Mlp,
    states: usize,
    radius: f32,
}

impl Backward {
    /// Adds B's parameters below `b/`.
    pub fn new(params: &mut Params, states: usize, config: &NetConfig) -> Result<Self, LearnError> {
        let width = config.backward_width;
        let net = Mlp::new(params, "b", &MlpConfig::paper(&[states], &[width; 3], config.dim))?;
        Ok(Self { net, states, radius: (config.dim as f32).sqrt() })
    }

    /// B of every state, `[states, d]`.
    pub fn forward(&self, weights: &Weights, one_hot: &Tensor<2>) -> Tensor<2> {
        debug_assert_eq!(one_hot.dims()[0], self.states);
        ops::sphere(self.net.forward(weights, Input::One(one_hot.clone())), self.radius)
    }
}

/// A map from a state, a condition and a task to one or more vectors of dimension d: U(s, [c; z]) with one, the heads of
/// F(s, ., [c; z]) with one per action.
///
/// The condition and the task are digested once per group; they scale and shift what each state brings. Each vector is
/// what the layers say plus a share of z itself: toward a goal, F mostly passes z through, scaled by nearness.
#[derive(Clone, Debug)]
pub struct StateMap {
    digest: Mlp,
    film: Linear,
    place: ParamId,
    shift: ParamId,
    blocks: Vec<(Linear, ParamId, ParamId)>,
    out: Linear,
    gate: Linear,
    states: usize,
    heads: usize,
    dim: usize,
    width: usize,
    scale: f64,
}

impl StateMap {
    /// Adds the map's parameters below `name`. `condition` is the width of c, `scale` the size of what comes out.
    pub fn new(
        params: &mut Params,
        name: &str,
        [states, heads, condition]: [usize; 3],
        config: &NetConfig,
        scale: f64,
    ) -> Result<Self, LearnError> {
        let NetConfig { dim, width, context_width, .. } = *config;
        let digest = MlpConfig {
            inputs: vec![condition, dim],
            hidden: vec![context_width],
            output: context_width,
            norm_first: false,
            act: Act::Gelu,
            last: Act::Gelu,
        };
        let blocks = (0..config.blocks).map(|i| -> Result<_, LearnError> {
            let name = format!("{name}/block{i}");
            let gain = params.add(&format!("{name}/gain"), [1, width], Init::Constant(1.0))?;
            let shift = params.add(&format!("{name}/shift"), [1, width], Init::Constant(0.0))?;
            Ok((Linear::new(params, &name, &[width], width)?, gain, shift))
        });
        let blocks = blocks.collect::<Result<_, _>>()?;
        Ok(Self {
            digest: Mlp::new(params, &format!("{name}/digest"), &digest)?,
            film: Linear::new(params, &format!("{name}/film"), &[context_width], 2 * width)?,
            place: params.add(&format!("{name}/place"), [states, width], Init::Normal { std: 1.0 })?,
            shift: params.add(&format!("{name}/shift"), [states, width], Init::Constant(0.0))?,
            blocks,
            out: Linear::new(params, &format!("{name}/out"), &[width], heads * dim)?,
            gate: Linear::with_init(params, &format!("{name}/gate"), &[width], heads, Init::Constant(0.0))?,
            states,
            heads,
            dim,
            width,
            scale,
        })
    }

    /// The vectors of every state for every group: `condition [groups, c]`, `z [groups, d]` ->
    /// `[groups * states * heads, d]`.
    pub fn forward(&self, weights: &Weights, condition: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
        let Self { states, heads, dim, width, .. } = *self;
        let groups = z.dims()[0];
        let context = self.digest.forward(weights, Input::Two(condition, z.clone())); // [groups, context]
        let film = self.film.forward(weights, Input::One(context), Act::None); // [groups, 2 * width]
        let gain = film.clone().narrow(1, 0, width).reshape([groups, 1, width]) + 1.0;
        let bias = film.narrow(1, width, width).reshape([groups, 1, width]);
        let place = weights[self.place].clone().reshape([1, states, width]);
        let shift = weights[self.shift].clone().reshape([1, states, width]);
        let mut x = (place * gain + bias + shift).reshape([groups * states, width]);
        x = burn::tensor::activation::gelu(x);
        for (linear, gain, shift) in &self.blocks {
            let normed = ops::layer_norm(x.clone(), &weights[*gain], &weights[*shift], Act::None);
            x = x + linear.forward(weights, Input::One(normed), Act::Gelu);
        }
        let gate = self.gate.forward(weights, Input::One(x.clone()), Act::None); // [groups * states, heads]
        // Begins near e^-3: z passes through a little from the start, and what is learned is its logarithm.
        let gate = (gate.clamp_max(6.0) - 3.0).exp().reshape([groups, states * heads, 1]);
        let passed = (gate * z.reshape([groups, 1, dim])).reshape([groups * states * heads, dim]);
        let own = self.out.forward(weights, Input::One(x), Act::None).reshape([groups * states * heads, dim]);
        (own + passed) * self.scale
    }
}
