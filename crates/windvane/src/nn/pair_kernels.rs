//! Where reward lies as seen from each token of a context: learned kernels over pairs of tokens, applied to the rewards of tasks.

use super::error::NnError;
use super::init::Init;
use super::mlp::{Input, Linear};
use super::ops::{self, Act, asinh};
use super::params::{ParamId, Params, Weights};
use super::transformer::Displacements;
use burn::tensor::Tensor;

/// Numbers in a query and a key of a kernel.
const KEY: usize = 16;
/// Rewards below this count as 0 where they are compared on a log scale.
const LEAST_REWARD: f64 = 1e-6;
/// The scale below which averaged rewards are scaled linearly, above it by their logarithm.
const AVERAGE_SCALE: f64 = 0.01;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[KEY as f64, LEAST_REWARD, AVERAGE_SCALE];

/// Kernels l(s, s') = q(s) k(s') / sqrt(16) + bias(s' - s) over the tokens of a context.
///
/// Three of four kernels average a task's reward, `y(s) = sum over s' of softmax(l)(s, s') r(s')`; the others look for the best
/// reward at hand, `m(s) = max over s' of -softplus(l + 2) + log r(s')`, as a value would: reward, discounted by the way.
#[derive(Clone, Debug)]
pub(crate) struct PairKernels {
    query: Linear,
    key: Linear,
    /// A bias of each kernel for each displacement between states, `[displacements, kernels]`.
    bias: ParamId,
    displacements: Displacements,
    out: Linear,
    averages: usize,
    maxima: usize,
}

impl PairKernels {
    /// Adds `kernels` kernels below `name` for tokens of `width` numbers at places with such displacements.
    pub(crate) fn new(
        params: &mut Params,
        name: &str,
        displacements: Displacements,
        [kernels, width, output]: [usize; 3],
    ) -> Result<Self, NnError> {
        let maxima = kernels / 4;
        let mut linear = |part: &str, input: usize, output: usize| {
            Linear::new(params, &format!("{name}/{part}"), &[input], output)
        };
        Ok(Self {
            query: linear("query", width, kernels * KEY)?,
            key: linear("key", width, kernels * KEY)?,
            out: linear("out", 2 * kernels, output)?,
            bias: params.add(&format!("{name}/bias"), [displacements.count, kernels], Init::Constant(0.0))?,
            displacements,
            averages: kernels - maxima,
            maxima,
        })
    }

    /// What each state sees of each task, `[contexts * tasks * states, output]`, from tokens `x [contexts * states, width]` and
    /// rewards `r [contexts, tasks, states]`.
    pub(crate) fn forward(&self, weights: &Weights, x: &Tensor<2>, r: &Tensor<3>) -> Tensor<2> {
        let [contexts, tasks, states] = r.dims();
        let r = r.clone().detach().reshape([contexts * tasks, states]);
        let log_r = (r.clone().clamp_min(0.0) + LEAST_REWARD).log();
        let keys = [&self.query, &self.key].map(|net| net.forward(weights, Input::One(x.clone()), Act::None));
        let bias = weights[self.bias].clone();
        let of_pairs = &self.displacements.of_pairs;
        let seen = ops::pair_kernels(keys, bias, of_pairs, [r, log_r], contexts, self.maxima); // [rows, kernels]
        let y = seen.clone().narrow(1, 0, self.averages); // [rows, averages]
        let log = asinh(y.clone() / AVERAGE_SCALE);
        let mut parts = vec![y * 10.0, log];
        if self.maxima > 0 {
            let m = seen.narrow(1, self.averages, self.maxima); // [rows, maxima]
            parts.extend([m.clone() / 3.0 + 1.5, m.exp() * 5.0]);
        }
        self.out.forward(weights, Input::One(Tensor::cat(parts, 1)), Act::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{read, upload};
    use crate::testing::tabled;
    use burn::tensor::Device;

    #[test]
    fn kernels_see_the_reward_ahead_and_nothing_where_there_is_none() {
        let device = Device::flex();
        let (_, table) = tabled("doors", 1, 20);
        let states = table.states();
        let mut params = Params::new(&device, 3);
        let kernels = PairKernels::new(&mut params, "k", table.displacements(&device), [8, 16, 5]).unwrap();
        let (weights, x) = (params.weights(), Tensor::<2>::ones([2 * states, 16], &device));
        let none = read(kernels.forward(&weights, &x, &Tensor::zeros([2, 3, states], &device)));
        assert_eq!(none.len(), 2 * 3 * states * 5);
        assert!(none.chunks_exact(5).all(|row| row == &none[..5]), "equal tokens without reward are alike");
        let mut r = vec![0.0; 2 * 3 * states];
        r[states + 4] = 1.0; // the second task of the first context
        let one = kernels.forward(&weights, &x, &upload(r, [2, 3, states], &device));
        let changed: Vec<bool> = read(one)
            .chunks_exact(states * 5)
            .zip(none.chunks_exact(states * 5))
            .map(|(a, b)| a != b)
            .collect();
        assert_eq!(changed, [false, true, false, false, false, false]);
    }
}
