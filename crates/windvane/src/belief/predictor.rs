//! g(s, a, h): what an action changes in a state, given the belief.

use super::{BeliefConfig, Decoder};
use crate::error::Result;
use crate::nn::{Act, Input, Linear, Mlp, MlpConfig, Params, RowMlp, Weights, ops};
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
        let [y] = self.forward_each(weights, sa, [h]);
        y
    }

    /// The same rows under several beliefs: what does not depend on h is computed once.
    pub(super) fn forward_each<const N: usize>(
        &self,
        weights: &Weights,
        sa: Tensor<2>,
        beliefs: [Tensor<2>; N],
    ) -> [Tensor<2>; N] {
        match self {
            Self::Gated { act, gain, trunk } => {
                let act = act.forward(weights, Input::One(sa)); // [rows, width]
                let [rows, width] = act.dims();
                let (gated, plain, b) = first_layer(trunk, weights);
                let onto = (N > 1).then(|| ops::linear(act.clone(), plain, &b.zeros_like(), Act::None));
                beliefs.map(|h| {
                    let gain = gain.forward(weights, Input::One(h), Act::None); // [groups, width]
                    let groups = gain.dims()[0];
                    if groups == 1 {
                        // One gain for all rows is as well a gain of the weights.
                        let w = gated.clone() * gain.transpose() + plain.clone(); // [width, hidden]
                        return trunk.above(weights, ops::linear(act.clone(), &w, b, Act::None));
                    }
                    let gain = gain.reshape([groups, 1, width]);
                    let product = act.clone().reshape([groups, rows / groups, width]) * gain;
                    let product = product.reshape([rows, width]);
                    match &onto {
                        Some(onto) => trunk.above(weights, ops::linear_onto(product, gated, b, onto.clone())),
                        None => trunk.forward(weights, Input::Two(product, act.clone())),
                    }
                })
            }
            Self::Linear { net, dim } => {
                let [offset, jacobian] = linear_parts(net, *dim, weights, sa);
                let [rows, output] = offset.dims();
                beliefs.map(|h| {
                    let groups = h.dims()[0];
                    let jacobian = jacobian.clone().reshape([groups, rows / groups * output, *dim]);
                    let by_belief = jacobian.matmul(h.reshape([groups, *dim, 1])).reshape([rows, output]);
                    offset.clone() + by_belief
                })
            }
        }
    }
}

/// Offsets g `[rows, output]` and slopes J `[rows, output * dim]` of a linear decoder.
pub(super) fn linear_parts(net: &Mlp, dim: usize, weights: &Weights, sa: Tensor<2>) -> [Tensor<2>; 2] {
    let out = net.forward(weights, Input::One(sa)); // [rows, output * (1 + dim)]
    let output = out.dims()[1] / (1 + dim);
    [out.clone().narrow(1, 0, output), out.narrow(1, output, output * dim)]
}

/// The first layer of a trunk: its weights for gated and for plain features, and its bias.
fn first_layer<'a>(trunk: &Mlp, weights: &'a Weights) -> (&'a Tensor<2>, &'a Tensor<2>, &'a Tensor<2>) {
    let (layers, _) = trunk.parts();
    match layers[0].0.ids() {
        (&[gated, plain], b) => (&weights[gated], &weights[plain], &weights[b]),
        _ => unreachable!("a trunk has two inputs"),
    }
}

/// A predictor for a few rows of plain numbers at a time, under one belief.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one of them in a session
pub(crate) enum RowPredictor {
    Gated { act: RowMlp, gain: RowMlp, trunk: RowMlp, factors: Vec<f32>, product: Vec<f32> },
    Linear { net: RowMlp, h: Vec<f32>, change: Vec<f32> },
}

impl RowPredictor {
    /// Copies the weights; the belief, of `dim` numbers, is zero.
    pub(super) fn new(net: &PredictorNet, weights: &Weights, dim: usize) -> Self {
        let mut row = match net {
            PredictorNet::Gated { act, gain, trunk } => Self::Gated {
                act: RowMlp::new(act, weights),
                gain: RowMlp::of_layers(&[(gain.clone(), Act::None)], weights),
                trunk: RowMlp::new(trunk, weights),
                factors: Vec::new(),
                product: Vec::new(),
            },
            PredictorNet::Linear { net, .. } => {
                Self::Linear { net: RowMlp::new(net, weights), h: Vec::new(), change: Vec::new() }
            }
        };
        row.condition(&vec![0.0; dim]);
        row
    }

    /// Takes the belief `h [dim]`.
    pub(crate) fn condition(&mut self, belief: &[f32]) {
        match self {
            Self::Gated { gain, factors, .. } => *factors = gain.forward(&[belief]).to_vec(),
            Self::Linear { h, .. } => *h = belief.to_vec(),
        }
    }

    /// What actions change, in units of the change scale: `sa [rows, features + action]` -> `[rows, dims]`.
    pub(crate) fn predict(&mut self, sa: &[f32]) -> &[f32] {
        match self {
            Self::Gated { act, trunk, factors, product, .. } => {
                let act = act.forward(&[sa]);
                product.clear();
                for act in act.chunks_exact(factors.len()) {
                    product.extend(act.iter().zip(&*factors).map(|(act, factor)| act * factor));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{read, upload};
    use burn::tensor::Device;

    const ROWS: usize = 6;

    /// Outputs under two beliefs, and the gradient of every parameter.
    fn learned(
        groups: usize,
        predict: impl Fn(&PredictorNet, &Weights, Tensor<2>, [Tensor<2>; 2]) -> [Tensor<2>; 2],
    ) -> Vec<Vec<f32>> {
        let device = Device::flex();
        let mut params = Params::new(&device, 5);
        let config = BeliefConfig { dim: 3, predictor_width: 16, ..BeliefConfig::default() };
        let net = PredictorNet::new(&mut params, "g", 4, &config, 2).unwrap();
        let numbers = |count: usize, shift: f32| (0..count).map(|i| (i as f32 * 0.7 + shift).sin()).collect();
        let sa = upload(numbers(ROWS * 4, 0.0), [ROWS, 4], &device);
        let beliefs = [1.0, 2.0].map(|shift| upload(numbers(groups * 3, shift), [groups, 3], &device));
        let weights = params.track();
        let [one, two] = predict(&net, &weights, sa, beliefs);
        let mut all = vec![read(one.clone().without_autodiff()), read(two.clone().without_autodiff())];
        let gradients = (one.powf_scalar(2.0).sum() + two.powf_scalar(3.0).sum()).backward();
        all.extend(params.iter().map(|(_, id)| read(weights[id].grad(&gradients).unwrap())));
        all
    }

    /// As the network is defined: features times gain beside features, for every belief anew.
    fn defined(net: &PredictorNet, weights: &Weights, sa: Tensor<2>, h: [Tensor<2>; 2]) -> [Tensor<2>; 2] {
        let PredictorNet::Gated { act, gain, trunk } = net else { panic!("the default is gated") };
        h.map(|h| {
            let act = act.forward(weights, Input::One(sa.clone()));
            let gain = gain.forward(weights, Input::One(h), Act::None);
            let [groups, width] = gain.dims();
            let product =
                act.clone().reshape([groups, ROWS / groups, width]) * gain.reshape([groups, 1, width]);
            trunk.forward(weights, Input::Two(product.reshape([ROWS, width]), act))
        })
    }

    #[test]
    fn sharing_between_beliefs_changes_neither_outputs_nor_gradients() {
        for groups in [1, 3] {
            let shared = learned(groups, PredictorNet::forward_each);
            let alone = learned(groups, |net, weights, sa, h| h.map(|h| net.forward(weights, sa.clone(), h)));
            let expected = learned(groups, defined);
            for got in [shared, alone] {
                for (got, expected) in got.iter().zip(&expected) {
                    let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4 * (1.0 + b.abs());
                    assert!(got.len() == expected.len() && got.iter().zip(expected).all(close));
                    assert!(expected.iter().any(|x| *x != 0.0));
                }
            }
        }
    }
}
