//! Multilayer perceptrons: the paper's first layer (LayerNorm and Tanh), then plain layers.

use super::error::NnError;
use super::init::Init;
use super::ops::{self, Act, Items};
use super::params::{ParamId, Params, Weights};
use burn::tensor::{Int, Tensor};

/// The widest layer anyone may ask for.
const MAX_WIDTH: usize = 1 << 16;

/// A linear map of one or two inputs with its bias.
#[derive(Clone, Debug)]
pub struct Linear {
    w: Vec<ParamId>,
    b: ParamId,
}

/// What a network is fed: one part, or two that are never joined.
#[derive(Clone, Debug)]
pub enum Input {
    /// One matrix of rows.
    One(Tensor<2>),
    /// Two matrices with the same number of rows.
    Two(Tensor<2>, Tensor<2>),
    /// Rows, and one row per group of them, as in [`ops::grouped_linear`].
    Grouped {
        /// The items' rows.
        x: Tensor<2>,
        /// Whose rows they are.
        items: Items,
        /// One row per group.
        group: Tensor<2>,
    },
}

/// The shape of an [`Mlp`].
#[derive(Clone, Debug, PartialEq)]
pub struct MlpConfig {
    /// Width of each input part: one, or two for [`Input::Two`] and [`Input::Grouped`].
    pub inputs: Vec<usize>,
    /// Width of each hidden layer.
    pub hidden: Vec<usize>,
    /// Width of the output.
    pub output: usize,
    /// Whether the first hidden layer is LayerNorm and Tanh (paper) instead of `act`.
    pub norm_first: bool,
    /// Activation of the other hidden layers; paper: GELU.
    pub act: Act,
    /// Activation of the output.
    pub last: Act,
}

/// A multilayer perceptron.
#[derive(Clone, Debug)]
pub struct Mlp {
    layers: Vec<(Linear, Act)>,
    /// Gain and shift of the first layer's LayerNorm.
    norm: Option<(ParamId, ParamId)>,
}

impl MlpConfig {
    /// The paper's network: LayerNorm and Tanh first, then GELU, linear output.
    pub fn paper(inputs: &[usize], hidden: &[usize], output: usize) -> Self {
        let (inputs, hidden) = (inputs.to_vec(), hidden.to_vec());
        Self { inputs, hidden, output, norm_first: true, act: Act::Gelu, last: Act::None }
    }

    fn check(&self, name: &str) -> Result<(), NnError> {
        if !(1..=2).contains(&self.inputs.len()) {
            let what = format!("{name}: number of input parts");
            return Err(NnError::Size { what, size: self.inputs.len(), expected: "1 or 2".to_owned() });
        }
        if self.norm_first && self.hidden.is_empty() {
            let what = format!("{name}: number of hidden layers");
            let expected = "at least 1 where the first is LayerNorm and Tanh".to_owned();
            return Err(NnError::Size { what, size: 0, expected });
        }
        let widths = self.inputs.iter().chain(&self.hidden).chain([&self.output]);
        match widths.copied().find(|width| !(1..=MAX_WIDTH).contains(width)) {
            Some(size) => Err(NnError::Size {
                what: format!("{name}: width"),
                size,
                expected: format!("1 to {MAX_WIDTH}"),
            }),
            None => Ok(()),
        }
    }
}

impl Linear {
    /// Adds the parameters `name/w` (or `name/w0` and `name/w1`) and `name/b`.
    pub fn new(params: &mut Params, name: &str, inputs: &[usize], output: usize) -> Result<Self, NnError> {
        let init = Init::Uniform { fan_in: inputs.iter().sum() };
        Self::with_init(params, name, inputs, output, init)
    }

    /// The same with weights begun as asked; the bias begins as in [`Linear::new`], or 0 with [`Init::Constant`] and
    /// [`Init::Orthogonal`].
    pub fn with_init(
        params: &mut Params,
        name: &str,
        inputs: &[usize],
        output: usize,
        init: Init,
    ) -> Result<Self, NnError> {
        let name_of = |i: usize| if inputs.len() == 1 { format!("{name}/w") } else { format!("{name}/w{i}") };
        let w = inputs.iter().enumerate();
        let w = w.map(|(i, &n)| params.add(&name_of(i), [n, output], init)).collect::<Result<_, _>>()?;
        let bias = match init {
            Init::Constant(_) | Init::Orthogonal { .. } => Init::Constant(0.0),
            Init::Uniform { .. } | Init::Normal { .. } => Init::Uniform { fan_in: inputs.iter().sum() },
        };
        Ok(Self { w, b: params.add(&format!("{name}/b"), [1, output], bias)? })
    }

    /// `act(input w + b)` -> `[rows, output]`.
    ///
    /// # Panics
    /// If the input has another number of parts than the layer was built for.
    pub fn forward(&self, weights: &Weights, input: Input, act: Act) -> Tensor<2> {
        let b = &weights[self.b];
        match (input, self.w.as_slice()) {
            (Input::One(x), [w]) => ops::linear(x, &weights[*w], b, act),
            (Input::Two(x1, x2), [w1, w2]) => ops::cat_linear(x1, &weights[*w1], x2, &weights[*w2], b, act),
            (Input::Grouped { x, items, group }, [w1, w2]) => {
                ops::grouped_linear(x, &weights[*w1], group, &weights[*w2], b, items, act)
            }
            (_, w) => panic!("a linear layer of {} input parts was fed another number of parts", w.len()),
        }
    }

    /// `onto + x w + b` -> `[rows, output]`, for a layer of one input part.
    pub fn forward_onto(&self, weights: &Weights, x: Tensor<2>, onto: Tensor<2>) -> Tensor<2> {
        ops::linear_onto(x, &weights[self.w[0]], &weights[self.b], onto)
    }

    /// The weight of each input part, and the bias.
    pub fn ids(&self) -> (&[ParamId], ParamId) {
        (&self.w, self.b)
    }
}

impl Mlp {
    /// Adds the network's parameters below `name`: `name/0/w`, `name/0/b`, `name/norm/gain`, `name/1/w`, ...
    pub fn new(params: &mut Params, name: &str, config: &MlpConfig) -> Result<Self, NnError> {
        config.check(name)?;
        let widths: Vec<usize> = config.hidden.iter().chain([&config.output]).copied().collect();
        let mut layers = Vec::with_capacity(widths.len());
        for (i, &width) in widths.iter().enumerate() {
            let inputs = if i == 0 { config.inputs.clone() } else { vec![widths[i - 1]] };
            let act = if i + 1 == widths.len() { config.last } else { config.act };
            layers.push((Linear::new(params, &format!("{name}/{i}"), &inputs, width)?, act));
        }
        let norm = match config.hidden.first() {
            Some(&width) if config.norm_first => Some(norm(params, &format!("{name}/norm"), width)?),
            _ => None,
        };
        Ok(Self { layers, norm })
    }

    /// The network's output, `[rows, output]`.
    pub fn forward(&self, weights: &Weights, input: Input) -> Tensor<2> {
        match self.run(weights, input, self.layers.len()) {
            Input::One(x) => x,
            Input::Two(..) | Input::Grouped { .. } => unreachable!("a network has at least one layer"),
        }
    }

    /// The output from what a caller made of the first layer, before LayerNorm and Tanh: `sums [rows, width]`.
    ///
    /// # Panics
    /// If the first layer has no LayerNorm.
    pub(crate) fn above(&self, weights: &Weights, sums: Tensor<2>) -> Tensor<2> {
        let Some((gain, shift)) = self.norm else {
            panic!("a first layer without LayerNorm is not cut in two")
        };
        let first = ops::layer_norm(sums, &weights[gain], &weights[shift], Act::Tanh);
        self.layers[1..].iter().fold(first, |x, (layer, act)| layer.forward(weights, Input::One(x), *act))
    }

    /// The output read as `heads` heads side by side, of which each row wants one: only that one is computed. Shapes:
    /// `choice [rows]` -> `[rows, output / heads]`.
    ///
    /// # Panics
    /// If the network has no hidden layer, or an activation on its output.
    pub fn select(&self, weights: &Weights, input: Input, heads: usize, choice: Tensor<1, Int>) -> Tensor<2> {
        let (last, hidden) = (self.layers.len() - 1, &self.layers[self.layers.len() - 1]);
        match (self.run(weights, input, last), hidden) {
            (Input::One(x), (layer, Act::None)) => {
                ops::select_heads(x, &weights[layer.w[0]], &weights[layer.b], heads, choice)
            }
            _ => panic!("heads are chosen from a linear output above a hidden layer"),
        }
    }

    /// The first `count` layers.
    fn run(&self, weights: &Weights, input: Input, count: usize) -> Input {
        let mut input = input;
        for (i, (layer, act)) in self.layers[..count].iter().enumerate() {
            let out = match self.norm {
                Some((gain, shift)) if i == 0 => {
                    let x = layer.forward(weights, input, Act::None);
                    ops::layer_norm(x, &weights[gain], &weights[shift], Act::Tanh)
                }
                _ => layer.forward(weights, input, *act),
            };
            input = Input::One(out);
        }
        input
    }

    /// The layers in order, each with its activation, and gain and shift of the first layer's LayerNorm.
    #[allow(clippy::type_complexity)] // two small pairs that are taken apart at once
    pub(crate) fn parts(&self) -> (&[(Linear, Act)], Option<(ParamId, ParamId)>) {
        (&self.layers, self.norm)
    }
}

/// Gain and shift of a layer normalisation.
pub(crate) fn norm(params: &mut Params, name: &str, width: usize) -> Result<(ParamId, ParamId), NnError> {
    let gain = params.add(&format!("{name}/gain"), [1, width], Init::Constant(1.0))?;
    let shift = params.add(&format!("{name}/shift"), [1, width], Init::Constant(0.0))?;
    Ok((gain, shift))
}

impl From<Tensor<2>> for Input {
    fn from(x: Tensor<2>) -> Self {
        Self::One(x)
    }
}

impl From<(Tensor<2>, Tensor<2>)> for Input {
    fn from((x1, x2): (Tensor<2>, Tensor<2>)) -> Self {
        Self::Two(x1, x2)
    }
}

#[cfg(test)]
mod tests {
    use super::{Input, Items, Mlp, MlpConfig};
    use crate::nn::{Params, read, upload};
    use burn::tensor::Device;

    #[test]
    fn two_parts_and_groups_compute_what_one_joined_input_would() {
        let device = Device::flex();
        let mut params = Params::new(&device, 3);
        let net = Mlp::new(&mut params, "n", &MlpConfig::paper(&[2, 1], &[8, 8], 4)).unwrap();
        let weights = params.weights();
        let x = upload(vec![0.1, 0.2, 0.3, 0.4], [2, 2], &device);
        let z = upload(vec![1.0, -2.0, 0.5], [3, 1], &device);
        let shared = Input::Grouped { x: x.clone(), items: Items::Shared, group: z.clone() };
        let rows = x.clone().repeat(&[3, 1]);
        let own = Input::Grouped { x: rows.clone(), items: Items::PerGroup, group: z.clone() };
        let z_rows = z.reshape([3, 1, 1]).repeat(&[1, 2, 1]).reshape([6, 1]);
        let plain = read(net.forward(&weights, Input::Two(rows, z_rows)));
        for grouped in [shared, own] {
            let grouped = read(net.forward(&weights, grouped));
            assert!(plain.iter().zip(&grouped).all(|(a, b)| (a - b).abs() < 1e-6));
        }
    }

    #[test]
    fn zero_and_absurd_sizes_are_errors_that_name_the_network() {
        let mut params = Params::new(&Device::flex(), 3);
        for (inputs, hidden, output) in [(vec![0], vec![4], 2), (vec![3], vec![0], 2), (vec![3], vec![4], 0)]
        {
            let error =
                Mlp::new(&mut params, "f/trunk", &MlpConfig::paper(&inputs, &hidden, output)).unwrap_err();
            assert_eq!(error.to_string(), "f/trunk: width: 0 is not a usable size, expected 1 to 65536");
        }
        assert!(Mlp::new(&mut params, "n", &MlpConfig::paper(&[3], &[usize::MAX], 2)).is_err());
        assert!(Mlp::new(&mut params, "n", &MlpConfig::paper(&[], &[4], 2)).is_err());
        assert!(Mlp::new(&mut params, "n", &MlpConfig::paper(&[3], &[], 2)).is_err());
    }
}
