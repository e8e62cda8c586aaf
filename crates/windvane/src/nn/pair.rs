//! The paper's network of two conditioned inputs: (s, a) and (s, z) have their own preprocessors, a trunk joins them.

use super::error::NnError;
use super::mlp::{Input, Mlp, MlpConfig};
use super::params::{Params, Weights};
use burn::tensor::{Int, Tensor};

/// The shape of a [`PairNet`].
#[derive(Clone, Debug, PartialEq)]
pub struct PairConfig {
    /// Widths of the left input's parts; for F: `[s, a]`.
    pub left: Vec<usize>,
    /// Widths of the right input's parts; for F: `[s, [h; z]]`.
    pub right: Vec<usize>,
    /// Hidden widths of both preprocessors; paper: 1024, 1024.
    pub preprocessor: Vec<usize>,
    /// Width each preprocessor embeds into; paper: 512.
    pub embedding: usize,
    /// Hidden widths of the trunk; paper: 1024, 1024.
    pub trunk: Vec<usize>,
    /// Width of the output; for F: d.
    pub output: usize,
}

/// Two preprocessors and a trunk: F(s, a, \[h; z\]), or the actor with s alone on the left.
#[derive(Clone, Debug)]
pub struct PairNet {
    left: Mlp,
    right: Mlp,
    trunk: Mlp,
}

impl PairNet {
    /// Adds the network's parameters below `name/left`, `name/right` and `name/trunk`.
    pub fn new(params: &mut Params, name: &str, config: &PairConfig) -> Result<Self, NnError> {
        let side = |inputs: &[usize]| MlpConfig::paper(inputs, &config.preprocessor, config.embedding);
        Ok(Self {
            left: Mlp::new(params, &format!("{name}/left"), &side(&config.left))?,
            right: Mlp::new(params, &format!("{name}/right"), &side(&config.right))?,
            trunk: Mlp::new(
                params,
                &format!("{name}/trunk"),
                &MlpConfig::paper(&[config.embedding; 2], &config.trunk, config.output),
            )?,
        })
    }

    /// The output, `[rows, output]`.
    pub fn forward(&self, weights: &Weights, left: Input, right: Input) -> Tensor<2> {
        let left = self.left.forward(weights, left);
        let right = self.right.forward(weights, right);
        self.trunk.forward(weights, Input::Two(left, right))
    }

    /// One of `heads` heads per row, as in [`Mlp::select`]; for discrete actions: F(s, a, \[h; z\]) with a head per action.
    pub fn select(
        &self,
        weights: &Weights,
        left: Input,
        right: Input,
        heads: usize,
        choice: Tensor<1, Int>,
    ) -> Tensor<2> {
        let (left, right) = (self.left.forward(weights, left), self.right.forward(weights, right));
        self.trunk.select(weights, Input::Two(left, right), heads, choice)
    }

    /// The three networks: left, right, trunk.
    pub(crate) fn parts(&self) -> [&Mlp; 3] {
        [&self.left, &self.right, &self.trunk]
    }
}
