//! g(s, a, h): what an action changes in a state, given the belief.

use super::{BeliefConfig, Decoder};
use crate::error::Result;
use crate::nn::{Act, Input, Linear, Mlp, MlpConfig, Params, RowMlp, Weights, read};
use burn::tensor::Tensor;

/// g with h in one of two places.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there are a few of them in a model
pub(super) enum PredictorNet {
    /// Features of (s, a), times what h says about them, then a perceptron.
    Gated { act: Mlp, gain: Linear, trunk: Mlp },
    /// `g(s, a) + J(s, a) h`: both from one network.
    Linear { net: Mlp, dim: usize },
}

impl PredictorNet {
    /// Adds a network called `name` from `input` numbers to `output`.
    pub(super) fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        config: &BeliefConfig,
        output: usize,
    ) -> Result<Self> {
        let (width, dim) = (config.predictor_width, config.dim);
        let mlp = |inputs: &[usize], output| MlpConfig::paper(inputs, &[width], output);
        Ok(match config.decoder {
            Decoder::Gated => Self::Gated {
                act: Mlp::new(params, &format!("{name}/act"), &mlp(&[input], width))?,
                gain: Linear::new(params, &format!("{name}/told"), &[dim], width)?,
                trunk: Mlp::new(params, &format!("{name}/trunk"), &mlp(&[width, width], output))?,
            },
            Decoder::Linear => {
                let shape = MlpConfig::paper(&[input], &[width, width], output * (1 + dim));
                Self::Linear { net: Mlp::new(params, &format!("{name}/linear"), &shape)?, dim }
            }
        })
    }

    /// `sa [rows, input]`, `h [groups, dim]`, as many rows for each group -> `[rows, output]`.
    pub(super) fn forward(&self, weights: &Weights, sa: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Gated { act, gain, trunk } => {
                let act = act.forward(weights, Input::One(sa)); // [rows, width]
                let gain = gain.forward(weights, Input::One(h), Act::None); // [groups, width]
                let ([rows, width], [groups, _]) = (act.dims(), gain.dims());
                let gain = gain.reshape([groups, 1, width]);
                let product = act.clone().reshape([groups, rows / groups, width]) * gain;
                trunk.forward(weights, Input::Two(product.reshape([rows, width]), act))
            }
            Self::Linear { net, dim } => {
                let out = net.forward(weights, Input::One(sa)); // [rows, output * (1 + dim)]
                let ([rows, wide], [groups, _]) = (out.dims(), h.dims());
                let output = wide / (1 + dim);
                let jacobian = out.clone().narrow(1, output, output * dim);
                let jacobian = jacobian.reshape([groups, rows / groups * output, *dim]);
                let by_belief = jacobian.matmul(h.reshape([groups, *dim, 1])).reshape([rows, output]);
                out.narrow(1, 0, output) + by_belief
            }
        }
    }

    /// Offsets g `[rows * output]` and slopes J `[rows * output * dim]` of a linear decoder; nothing for another.
    pub(super) fn linear_parts(&self, weights: &Weights, sa: Tensor<2>) -> Option<(Vec<f32>, Vec<f32>)> {
        let Self::Linear { net, dim } = self else { return None };
        let out = net.forward(weights, Input::One(sa)); // [rows, output * (1 + dim)]
        let output = out.dims()[1] / (1 + dim);
        Some((read(out.clone().narrow(1, 0, output)), read(out.narrow(1, output, output * dim))))
    }

    /// The same for a few rows of plain numbers, under a belief of zeros.
    pub(super) fn row(&self, weights: &Weights, no_belief: Tensor<2>) -> RowPredictor {
        match self {
            Self::Gated { act, gain, trunk } => RowPredictor::Gated {
                act: RowMlp::new(act, weights),
                trunk: RowMlp::new(trunk, weights),
                gain: read(gain.forward(weights, Input::One(no_belief), Act::None)),
                product: Vec::new(),
            },
            Self::Linear { net, dim } => RowPredictor::Linear {
                net: RowMlp::new(net, weights),
                h: vec![0.0; *dim],
                change: Vec::new(),
            },
        }
    }

    /// Gives a predictor for a few rows the belief `h [1, dim]`.
    pub(super) fn condition(&self, weights: &Weights, row: &mut RowPredictor, h: Tensor<2>) {
        match (self, row) {
            (Self::Gated { gain, .. }, RowPredictor::Gated { gain: own, .. }) => {
                *own = read(gain.forward(weights, Input::One(h), Act::None));
            }
            (Self::Linear { .. }, RowPredictor::Linear { h: own, .. }) => *own = read(h),
            _ => {}
        }
    }
}

/// A predictor for a few rows of plain numbers at a time, under one belief.
#[derive(Debug)]
pub(crate) enum RowPredictor {
    Gated { act: RowMlp, trunk: RowMlp, gain: Vec<f32>, product: Vec<f32> },
    Linear { net: RowMlp, h: Vec<f32>, change: Vec<f32> },
}

impl RowPredictor {
    /// What actions change, in units of the change scale: `sa [rows, features + action]` -> `[rows, dims]`.
    pub(crate) fn predict(&mut self, sa: &[f32]) -> &[f32] {
        match self {
            Self::Gated { act, trunk, gain, product } => {
                let act = act.forward(&[sa]);
                product.clear();
                for act in act.chunks_exact(gain.len()) {
                    product.extend(act.iter().zip(&*gain).map(|(act, gain)| act * gain));
                }
                trunk.forward(&[product, act])
            }
            Self::Linear { net, h, change } => {
                let width = net.width(); // dims * (1 + dim)
                change.clear();
                for row in net.forward(&[sa]).chunks_exact(width) {
                    let (offset, slopes) = row.split_at(width / (1 + h.len()));
                    let slopes = slopes.chunks_exact(h.len());
                    change.extend(offset.iter().zip(slopes).map(|(offset, slopes)| {
                        offset + slopes.iter().zip(&*h).map(|(slope, h)| slope * h).sum::<f32>()
                    }));
                }
                change
            }
        }
    }
}
