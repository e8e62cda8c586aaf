//! The forward and backward maps.

use super::config::FbConfig;
use crate::error::LearnError;
use crate::nn::{Input, Items, Mlp, MlpConfig, PairConfig, PairNet, Params, RowPair, Weights, ops};
use burn::tensor::{Int, Tensor};

/// Backward map B(s), of length sqrt(d); never told anything but the state.
#[derive(Clone, Debug)]
pub(super) struct Backward {
    net: Mlp,
    radius: f32,
}

impl Backward {
    pub(super) fn new(params: &mut Params, features: usize, config: &FbConfig) -> Result<Self, LearnError> {
        let net = Mlp::new(params, "b", &MlpConfig::paper(&[features], &config.backward, config.dim))?;
        Ok(Self { net, radius: (config.dim as f32).sqrt() })
    }

    /// `s [rows, features]` -> `[rows, d]`.
    pub(super) fn forward(&self, weights: &Weights, s: Tensor<2>) -> Tensor<2> {
        ops::sphere(self.net.forward(weights, Input::One(s)), self.radius)
    }
}

/// Forward map F(s, a, \[h; z\]), or U(s, \[h; z\]): a pair network with one head or one per action.
///
/// With the z-skip each head gives d numbers f and one alpha, and F is `(f + alpha z) / (1 - gamma)`: for a goal, F mostly
/// passes z on, the more the nearer it is.
#[derive(Clone, Debug)]
pub(super) struct ForwardMap {
    net: PairNet,
    heads: usize,
    dim: usize,
    skip: bool,
    scale: f32,
}

/// What a forward map is fed: states (and actions) row by row, and one condition with its task for each group of rows.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// `[rows, features]`.
    pub(super) s: Tensor<2>,
    /// `[rows, move]` for vectors, nothing for heads.
    pub(super) a: Option<Tensor<2>>,
    /// `[groups, condition + d]`.
    pub(super) told: Tensor<2>,
}

impl Query {
    fn sides(self) -> (Input, Input) {
        let right = Input::Grouped { x: self.s.clone(), items: Items::PerGroup, group: self.told };
        let left = match self.a {
            Some(a) => Input::Two(self.s, a),
            None => Input::One(self.s),
        };
        (left, right)
    }
}

impl ForwardMap {
    /// Adds a network called `name` for `features` of a state, actions of width `action` (0 for heads), and conditions of
    /// width `condition`.
    pub(super) fn new(
        params: &mut Params,
        name: &str,
        [features, action, heads, condition]: [usize; 4],
        config: &FbConfig,
    ) -> Result<Self, LearnError> {
        let head = config.dim + usize::from(config.z_skip);
        let left = if action == 0 { vec![features] } else { vec![features, action] };
        let pair = PairConfig {
            left,
            right: vec![features, condition + config.dim],
            preprocessor: config.preprocessor.clone(),
            embedding: config.embedding,
            trunk: config.trunk.clone(),
            output: heads * head,
        };
        let net = PairNet::new(params, name, &pair)?;
        Ok(Self { net, heads, dim: config.dim, skip: config.z_skip, scale: 1.0 / (1.0 - config.gamma) })
    }

    /// The same map for single rows, told nothing yet.
    pub(super) fn row(&self, weights: &Weights, told: &[f32]) -> RowPair {
        RowPair::new(&self.net, weights, told)
    }

    /// Numbers that a head gives.
    pub(super) fn head(&self) -> usize {
        self.dim + usize::from(self.skip)
    }

    /// What all heads give, `[rows, heads * head]`.
    pub(super) fn heads(&self, weights: &Weights, query: Query) -> Tensor<2> {
        let (left, right) = query.sides();
        self.net.forward(weights, left, right)
    }

    /// F of each row's choice (of the only head without one), `[rows, d]`; `z [rows, d]`.
    pub(super) fn chosen(
        &self,
        weights: &Weights,
        query: Query,
        choice: Option<Tensor<1, Int>>,
        z: Tensor<2>,
    ) -> Tensor<2> {
        let (left, right) = query.sides();
        let out = match choice {
            Some(choice) => self.net.select(weights, left, right, self.heads, choice),
            None => self.net.forward(weights, left, right),
        };
        let rows = out.dims()[0];
        let f = if self.skip {
            let alpha = out.clone().slice([0..rows, self.dim..self.dim + 1]); // [rows, 1]
            out.slice([0..rows, 0..self.dim]) + z * alpha
        } else {
            out
        };
        f * self.scale
    }

    /// Writes F from what a head gave.
    pub(super) fn assemble(&self, head: &[f32], z: &[f32], f: &mut [f32]) {
        let alpha = if self.skip { head[self.dim] } else { 0.0 };
        f.iter_mut().zip(head).zip(z).for_each(|((f, x), z)| *f = (x + alpha * z) * self.scale);
    }

    /// The value F z of what a head gave.
    pub(super) fn value(&self, head: &[f32], z: &[f32]) -> f32 {
        let alpha = if self.skip { head[self.dim] } else { 0.0 };
        head.iter().zip(z).map(|(x, z)| (x + alpha * z) * z).sum::<f32>() * self.scale
    }
}
