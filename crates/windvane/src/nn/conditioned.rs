//! Networks of states (and actions) under a condition of each group of states, in one of two forms: for F with the action as
//! input or with heads, for U, and for the actor.

use super::film::{FilmNet, RowFilm};
use super::mlp::{Input, Mlp};
use super::ops::Items;
use super::pair::PairNet;
use super::params::Weights;
use super::row::{RowMlp, RowPair};
use burn::tensor::{Int, Tensor};

/// A network of (s, a) and (s, \[h; z\]), or of s and \[h; z\].
#[derive(Clone, Debug)]
pub enum ConditionedNet {
    /// The paper's two preprocessors and a trunk.
    Pair(PairNet),
    /// A state network, modulated by \[h; z\].
    Film(FilmNet),
}

/// What such a network is fed.
#[derive(Clone, Debug)]
pub struct ConditionedInput {
    /// Encoded states, `[rows, features]`.
    pub s: Tensor<2>,
    /// Encoded actions, `[rows, width]`; nothing for heads and for U.
    pub a: Option<Tensor<2>>,
    /// Conditioning input and task of each group, `[groups, condition + d]`.
    pub task: Tensor<2>,
    /// B of the states, `[rows, d]`; for FiLM.
    pub b: Option<Tensor<2>>,
}

impl ConditionedNet {
    /// The output, `[rows, output]`.
    ///
    /// # Panics
    /// If FiLM gets no B.
    pub fn forward(&self, weights: &Weights, input: ConditionedInput) -> Tensor<2> {
        match self {
            Self::Pair(net) => {
                let (left, right) = sides(input);
                net.forward(weights, left, right)
            }
            Self::Film(net) => {
                let ConditionedInput { s, a, task, b } = input;
                net.forward(
                    weights,
                    [Some(s), a].into_iter().flatten().collect(),
                    b.expect("B of the states"),
                    task,
                )
            }
        }
    }

    /// One of `heads` heads for each row, `[rows, output / heads]`.
    pub fn select(
        &self,
        weights: &Weights,
        input: ConditionedInput,
        heads: usize,
        index: Tensor<1, Int>,
    ) -> Tensor<2> {
        match self {
            Self::Pair(net) => {
                let (left, right) = sides(input);
                net.select(weights, left, right, heads, index)
            }
            Self::Film(_) => {
                let all = self.forward(weights, input);
                let [rows, output] = all.dims();
                let width = output / heads;
                let index = index.reshape([rows, 1, 1]).expand([rows, 1, width]);
                all.reshape([rows, heads, width]).gather(1, index).reshape([rows, width])
            }
        }
    }
}

fn sides(input: ConditionedInput) -> (Input, Input) {
    let right = Input::Grouped { x: input.s.clone(), items: Items::PerGroup, group: input.task };
    let left = match input.a {
        Some(a) => Input::Two(input.s, a),
        None => Input::One(input.s),
    };
    (left, right)
}

/// A [`ConditionedNet`] with its weights, for a few rows of plain numbers at a time under one condition and task.
#[derive(Debug)]
pub enum RowNet {
    /// See [`ConditionedNet::Pair`].
    Pair(Box<RowPair>),
    /// See [`ConditionedNet::Film`].
    Film(Box<RowFilm>),
}

impl RowNet {
    /// Copies the weights of a network, and of the network of B with weights of its own, under the condition and task `task`, of
    /// which the last `dim` numbers are z; nothing where FiLM's B is no network.
    pub fn new(
        net: &ConditionedNet,
        weights: &Weights,
        b: Option<(&Mlp, &Weights)>,
        task: &[f32],
        dim: usize,
    ) -> Option<Self> {
        Some(match net {
            ConditionedNet::Pair(net) => Self::Pair(Box::new(RowPair::new(net, weights, task))),
            ConditionedNet::Film(net) => {
                let (b, b_weights) = b?;
                Self::Film(Box::new(RowFilm::new(net, weights, RowMlp::new(b, b_weights), task, dim)))
            }
        })
    }

    /// Another condition and task.
    pub fn fix(&mut self, task: &[f32]) {
        match self {
            Self::Pair(net) => net.fix(task),
            Self::Film(net) => net.fix(task),
        }
    }

    /// The outputs at encoded states `[rows, features]` and actions `[rows, width]`; the actions are empty where the network
    /// takes none.
    pub fn forward(&mut self, s: &[f32], a: &[f32]) -> &[f32] {
        match self {
            Self::Pair(net) => net.forward(&[s, a][..=usize::from(!a.is_empty())], s),
            Self::Film(net) => net.forward(s, a),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{FilmConfig, MlpConfig, PairConfig, Params, ops, read, upload};
    use burn::tensor::Device;

    #[test]
    fn a_row_of_either_network_gives_what_the_tensor_path_gives() {
        let device = Device::flex();
        for (film, a) in [false, true].into_iter().flat_map(|film| [(film, &[][..]), (film, &[0.6])]) {
            let mut params = Params::new(&device, 4);
            let b = Mlp::new(&mut params, "b", &MlpConfig::paper(&[3], &[16, 16], 6)).unwrap();
            let net = if film {
                let film =
                    FilmConfig { input: 3 + a.len(), condition: 8, embedding: 6, width: 12, output: 5 };
                ConditionedNet::Film(FilmNet::new(&mut params, "f", &film).unwrap())
            } else {
                let pair = PairConfig {
                    left: if a.is_empty() { vec![3] } else { vec![3, a.len()] },
                    right: vec![3, 8],
                    preprocessor: vec![16],
                    embedding: 8,
                    trunk: vec![16, 16],
                    output: 5,
                };
                ConditionedNet::Pair(PairNet::new(&mut params, "f", &pair).unwrap())
            };
            let weights = params.weights();
            let conditions =
                [[0.3, -0.2, 1.0, 0.5, -2.0, 0.1, 0.9, -0.4], [1.0, 0.0, -1.0, 0.2, 0.3, 2.0, -0.9, 0.4]];
            let mut row = RowNet::new(&net, &weights, Some((&b, &weights)), &conditions[0], 6).unwrap();
            for condition in conditions {
                row.fix(&condition);
                let s = [0.3, -0.7, 0.2];
                let states = upload(s.to_vec(), [1, 3], &device);
                let b = ops::sphere(b.forward(&weights, Input::One(states.clone())), 6_f32.sqrt());
                let task = upload(condition.to_vec(), [1, 8], &device);
                let action = (!a.is_empty()).then(|| upload(a.to_vec(), [1, a.len()], &device));
                let input = ConditionedInput { s: states, a: action, task, b: Some(b) };
                let expected = read(net.forward(&weights, input));
                for (got, expected) in row.forward(&s, a).iter().zip(expected) {
                    assert!((got - expected).abs() < 1e-5, "FiLM {film}: {got} {expected}");
                }
            }
        }
    }
}
