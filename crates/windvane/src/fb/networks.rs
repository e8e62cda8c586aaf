//! The backward map, the value head, and the networks of F on observations.

use super::config::{BackwardForm, FbConfig, NetKind, ValueHead};
use crate::data::bad_setting;
use crate::error::Result;
use crate::features::Phi;
use crate::latent::orthogonal;
use crate::nn::{
    ConditionedNet, FilmConfig, FilmNet, Init, Input, Mlp, MlpConfig, PairConfig, PairNet, ParamId, Params,
    Weights, ops, upload,
};
use burn::tensor::Tensor;
use burn::tensor::activation::sigmoid;
use rand_distr::{Distribution as _, StandardNormal};
use windvane_world::rng::stream;

/// Offsets of the two exponents of a log value head: values begin small, the positive part above the negative.
const POSITIVE_OFFSET: f64 = 2.0;
const NEGATIVE_OFFSET: f64 = 5.0;
/// Length scale of a fixed B, where a coordinate's whole range is 2.
const FIXED_LENGTH: f32 = 0.13;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[POSITIVE_OFFSET, NEGATIVE_OFFSET, FIXED_LENGTH as f64];

/// Backward map B(s), of length sqrt(d), never conditioned; or features learned beforehand in its place.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one of them in a model
pub(crate) enum Backward {
    /// A network on encoded states.
    Network(Mlp),
    /// A vector for each listed state.
    Table(ParamId),
    /// Fixed orthogonal vectors of listed states, `[states, d]`.
    Orthogonal(Tensor<2>),
    /// Fixed Fourier features of the first numbers of an encoded state: frequencies `[inputs, d / 2]`.
    Fourier(Tensor<2>),
    /// Fixed Gaussian bumps on a lattice over the first `dims` numbers of an encoded state: their places along an axis `[1, side]`.
    Bumps { dims: usize, places: Tensor<2> },
    /// Given features of all listed states, `[states, d]`.
    GivenTable(Tensor<2>),
    /// Given features of encoded observations.
    Given(Phi),
}

impl Backward {
    /// Adds B's parameters below `b/`, for encodings of `features` numbers whose first `dims` are coordinates.
    pub(crate) fn new(params: &mut Params, [features, dims]: [usize; 2], config: &FbConfig) -> Result<Self> {
        Ok(match config.backward {
            BackwardForm::Network => Self::Network(Mlp::new(
                params,
                "b",
                &MlpConfig::paper(&[features], &config.net.backward, config.dim),
            )?),
            BackwardForm::Table => {
                Self::Table(params.add("b/table", [features, config.dim], Init::Normal { std: 0.1 })?)
            }
            BackwardForm::Orthogonal if features > config.dim => {
                return Err(bad_setting(format!(
                    "\"fb.dim\" is {}; orthogonal vectors of {features} states need at least as many numbers",
                    config.dim
                )));
            }
            BackwardForm::Orthogonal => {
                let vectors = orthogonal(&mut stream(0, "fixed backward", &[]), features, config.dim);
                Self::Orthogonal(upload(vectors, [features, config.dim], params.device()))
            }
            BackwardForm::Fourier => {
                let normal = StandardNormal.sample_iter(stream(0, "fixed backward", &[]));
                let frequencies = normal.map(|x: f32| x / FIXED_LENGTH).take(dims * config.dim / 2).collect();
                Self::Fourier(upload(frequencies, [dims, config.dim / 2], params.device()))
            }
            BackwardForm::Bumps => {
                let side = (config.dim as f64).powf(1.0 / dims as f64).round() as usize;
                if side < 2 || side.pow(dims as u32) != config.dim {
                    return Err(bad_setting(format!(
                        "\"fb.dim\" is {}; expected a whole number to the power of {dims}, the coordinates that bumps lie over",
                        config.dim
                    )));
                }
                let place = |i: usize| 2.0 * i as f32 / (side - 1) as f32 - 1.0;
                let places = upload((0..side).map(place).collect(), [1, side], params.device());
                Self::Bumps { dims, places }
            }
        })
    }

    /// `s [rows, features]` -> `[rows, d]`; of listed states, `s` is not looked at and all rows are given.
    pub(crate) fn forward(&self, weights: &Weights, s: &Tensor<2>, dim: usize) -> Tensor<2> {
        let radius = (dim as f32).sqrt();
        match self {
            Self::Network(net) => ops::sphere(net.forward(weights, Input::One(s.clone())), radius),
            Self::Table(id) => ops::sphere(weights[*id].clone(), radius),
            Self::Orthogonal(table) => table.clone(),
            Self::GivenTable(features) => features.clone(),
            Self::Given(phi) => phi.embed(s.clone()),
            Self::Fourier(frequencies) => {
                let phase = s.clone().narrow(1, 0, frequencies.dims()[0]).matmul(frequencies.clone());
                // cos^2 + sin^2 = 1 makes the length sqrt(d).
                Tensor::cat(vec![phase.clone().cos(), phase.sin()], 1) * std::f32::consts::SQRT_2
            }
            Self::Bumps { dims, places } => {
                let ([rows, _], side) = (s.dims(), places.dims()[1]);
                let along = |axis: usize| {
                    let off = (s.clone().narrow(1, axis, 1) - places.clone()) / FIXED_LENGTH; // [rows, side]
                    (off.powf_scalar(2.0) * -0.5).exp()
                };
                let product = |all: Tensor<2>, axis: usize| {
                    let width = all.dims()[1];
                    let all = all.reshape([rows, width, 1]) * along(axis).reshape([rows, 1, side]);
                    all.reshape([rows, width * side])
                };
                ops::sphere((1..*dims).fold(along(0), product), radius) // [rows, side^dims]
            }
        }
    }

    /// B's network, where it is one.
    pub(crate) fn network(&self) -> Option<&Mlp> {
        match self {
            Self::Network(net) => Some(net),
            _ => None,
        }
    }

    /// Whether it is trained with F; else F is a regression on sums of fixed features.
    pub(crate) fn is_trained(&self) -> bool {
        matches!(self, Self::Network(_) | Self::Table(_))
    }

    /// Whether features were learned beforehand, so that F becomes their successor features.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self, Self::GivenTable(_) | Self::Given(_))
    }
}

/// (1 - gamma) F, `[rows, d]`, and its value F z / d, `[rows, 1]`.
pub(crate) type ForwardValue = (Tensor<2>, Tensor<2>);

impl ValueHead {
    /// Numbers that a head gives for vectors of length `dim`.
    pub(crate) fn width(self, dim: usize) -> usize {
        match self {
            Self::Linear => dim,
            Self::Skip => dim + 1,
            Self::Log => dim + 2,
        }
    }

    /// From raw outputs `[rows, heads * width]` and task vectors `z [groups, d]` with as many rows for each: `[rows * heads, ..]`.
    pub(crate) fn assemble(self, raw: Tensor<2>, z: &Tensor<2>) -> ForwardValue {
        let ([groups, dim], [rows, heads]) = (z.dims(), raw.dims());
        let width = self.width(dim);
        let rows = rows * heads / width;
        let raw = raw.reshape([rows, width]);
        let z = z.clone().reshape([groups, 1, dim]);
        let f = raw.clone().narrow(1, 0, dim).reshape([groups, rows / groups, dim]);
        let along = (f.clone() * z.clone()).sum_dim(2) / dim as f64; // [groups, rows / groups, 1]
        let extra = |i: usize| raw.clone().narrow(1, dim + i, 1).reshape([groups, rows / groups, 1]);
        let (f, value) = match self {
            Self::Linear => (f, along),
            Self::Skip => {
                let alpha = extra(0);
                // z z / d = 1
                (f + z * alpha.clone(), along + alpha)
            }
            Self::Log => {
                // exp(-softplus(x)) = sigmoid(-x)
                let beta = sigmoid((extra(0) + POSITIVE_OFFSET) * -1.0)
                    - sigmoid((extra(1) + NEGATIVE_OFFSET) * -1.0);
                (f + z * (beta.clone() - along), beta)
            }
        };
        (f.reshape([rows, dim]), value.reshape([rows, 1]))
    }

    /// The value F z / d of what a head gave, on the host.
    pub(crate) fn value(self, raw: &[f32], z: &[f32]) -> f32 {
        let along = raw.iter().zip(z).map(|(f, z)| f * z).sum::<f32>() / z.len() as f32;
        let squash = |x: f32| 1.0 / (1.0 + x.exp());
        match self {
            Self::Linear => along,
            Self::Skip => along + raw[z.len()],
            Self::Log => {
                squash(raw[z.len()] + POSITIVE_OFFSET as f32)
                    - squash(raw[z.len() + 1] + NEGATIVE_OFFSET as f32)
            }
        }
    }
}

/// Adds a network called `name`, for encodings of `features` numbers, actions of `action` (0 for none) and conditions of
/// `condition`: F with the action as input or with heads, U, or the actor.
pub(crate) fn conditioned_net(
    params: &mut Params,
    name: &str,
    [features, action, condition]: [usize; 3],
    output: usize,
    config: &FbConfig,
) -> Result<ConditionedNet> {
    let (net, condition) = (&config.net, condition + config.dim);
    Ok(match net.kind {
        NetKind::Pair => {
            let pair = PairConfig {
                left: if action == 0 { vec![features] } else { vec![features, action] },
                right: vec![features, condition],
                preprocessor: net.preprocessor.clone(),
                embedding: net.embedding,
                trunk: net.trunk.clone(),
                output,
            };
            ConditionedNet::Pair(PairNet::new(params, name, &pair)?)
        }
        NetKind::Film => {
            let (input, embedding, width) = (features + action, config.dim, net.width);
            let film = FilmConfig { input, condition, embedding, width, output };
            ConditionedNet::Film(FilmNet::new(params, name, &film)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::read;
    use burn::tensor::Device;

    #[test]
    fn bumps_are_alike_near_by_and_never_opposed() {
        let device = Device::flex();
        let config = FbConfig { dim: 100, backward: BackwardForm::Bumps, ..FbConfig::default() };
        let mut params = Params::new(&device, 1);
        let b = Backward::new(&mut params, [3, 2], &config).unwrap();
        let s = upload(vec![0.1, -0.3, 9.0, 0.2, -0.3, 9.0, -0.9, 0.8, 9.0], [3, 3], &device);
        let b = read(b.forward(&params.weights(), &s, 100));
        let alike = |i: usize, j: usize| {
            b[i * 100..][..100].iter().zip(&b[j * 100..]).map(|(x, y)| x * y).sum::<f32>() / 100.0
        };
        assert!((alike(0, 0) - 1.0).abs() < 1e-5);
        // The product of two bumps of width l at distance x is exp(-(x / 2 l)^2).
        assert!((alike(0, 1) - (-(0.1_f32 / (2.0 * FIXED_LENGTH)).powi(2)).exp()).abs() < 0.05);
        assert!((0.0..1e-3).contains(&alike(0, 2)), "{}", alike(0, 2));
        let odd = FbConfig { dim: 99, ..config };
        assert!(Backward::new(&mut params, [3, 2], &odd).is_err());
    }

    #[test]
    fn more_states_than_numbers_have_no_orthogonal_vectors() {
        let device = Device::flex();
        let config = FbConfig { dim: 8, backward: BackwardForm::Orthogonal, ..FbConfig::default() };
        assert!(Backward::new(&mut Params::new(&device, 0), [8, 0], &config).is_ok());
        assert!(Backward::new(&mut Params::new(&device, 0), [9, 0], &config).is_err());
    }

    #[test]
    fn a_log_head_has_its_value_along_z_and_leaves_the_rest_alone() {
        let device = Device::flex();
        let z: Tensor<2> = ops::sphere(upload(vec![1.0, 2.0, -1.0, 0.5], [1, 4], &device), 2.0);
        let raw: Vec<f32> = vec![0.3, -0.2, 0.9, 0.1, -1.0, 0.4];
        let (f, value) = ValueHead::Log.assemble(upload(raw.clone(), [1, 6], &device), &z);
        let (f, value, z) = (read(f), read(value), read(z));
        let along = |x: &[f32]| x.iter().zip(&z).map(|(x, z)| x * z).sum::<f32>() / 4.0;
        assert!((along(&f) - value[0]).abs() < 1e-6);
        assert!((value[0] - ValueHead::Log.value(&raw, &z)).abs() < 1e-6);
        let before: Vec<f32> = raw[..4].iter().zip(&z).map(|(x, z)| x - along(&raw[..4]) * z).collect();
        let after: Vec<f32> = f.iter().zip(&z).map(|(x, z)| x - along(&f) * z).collect();
        assert!(before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}
