//! The network of F on listed states: a token for each state, with the dynamics around it, joined with a task.

use super::config::NetConfig;
use crate::data::StateTable;
use crate::error::Result;
use crate::nn::{
    Act, Init, Input, Linear, PairKernels, ParamId, Params, SetConfig, SetTransformer, Weights, norm, ops,
};
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

/// Size of a token's local dynamics.
const DYNAMICS: f64 = 3.0;
/// Attention heads of the transformer.
const HEADS: usize = 4;
/// Share of the parts that describe a task beside the states it rewards most.
const OTHER_PARTS: f64 = 0.3;
/// Most states for which there are kernels of rewards: they cost states^2 for each task.
pub(super) const MOST_STATES: usize = 256;
/// Constants that change results.
pub(super) const CONSTANTS: &[f64] = &[DYNAMICS, HEADS as f64, OTHER_PARTS];

/// From the dynamics of a context and a task vector to raw outputs for every state.
///
/// A token holds the probabilities that each action moves, and that it enters the state from beside it, plain and as
/// logarithms; it does not say which state it is. Tokens know each other by the displacement between their states, so that what
/// is learned in one place holds in all, and no layout can be learned by heart. A context is encoded once and paired with many tasks. A task enters through the reward r(s) = B(s) z / d that it
/// stands for: which states it rewards, and what lies around them.
#[derive(Clone, Debug)]
pub(super) struct TokenNet {
    tokens: SetTransformer,
    state: Linear,
    /// Of the task: the states it rewards, most of all and all in proportion; the mean of all states.
    rewarded: Linear,
    proportional: Linear,
    whole: Linear,
    kernels: Option<PairKernels>,
    sharpness: ParamId,
    norm1: (ParamId, ParamId),
    hidden1: Linear,
    norm2: (ParamId, ParamId),
    hidden2: Linear,
    out: Linear,
    states: usize,
    head_width: usize,
}

impl TokenNet {
    /// Adds the network below `f/` for the states of `table`, `output` numbers for each.
    pub(super) fn new(
        params: &mut Params,
        table: &StateTable,
        output: usize,
        config: &NetConfig,
    ) -> Result<Self> {
        let (states, actions) = (table.states(), table.actions);
        let NetConfig { width, head_width, blocks, reward_kernels, .. } = *config;
        let set = SetConfig { input: 4 * actions, width, heads: HEADS, blocks, hidden: 2 * width };
        let tokens = SetTransformer::new(params, "f/tokens", &set)?;
        let tokens = tokens.with_places(params, "f/tokens", table.displacements(params.device()))?;
        let kernels = (reward_kernels > 0 && states <= MOST_STATES).then(|| {
            let displacements = table.displacements(params.device());
            PairKernels::new(params, "f/kernels", displacements, [reward_kernels, width, head_width])
        });
        let kernels = kernels.transpose()?;
        let mut linear = |name: &str, input: usize, output: usize| {
            Linear::new(params, &format!("f/{name}"), &[input], output)
        };
        Ok(Self {
            tokens,
            kernels,
            state: linear("state", width, head_width)?,
            rewarded: linear("rewarded", width, head_width)?,
            proportional: linear("proportional", width, head_width)?,
            whole: linear("whole", width, head_width)?,
            hidden1: linear("hidden1", head_width, head_width)?,
            hidden2: linear("hidden2", head_width, head_width)?,
            out: linear("out", head_width, output)?,
            norm1: norm(params, "f/norm1", head_width)?,
            norm2: norm(params, "f/norm2", head_width)?,
            sharpness: params.add("f/sharpness", [1, 1], Init::Constant(2.5))?,
            states,
            head_width,
        })
    }

    /// The tokens of every state in every context, `[contexts * states, width]`, from the probabilities that each action
    /// moves and enters, `[contexts, states, actions]` each.
    fn encode(&self, weights: &Weights, [moving, entering]: [Tensor<3>; 2]) -> Tensor<2> {
        let [contexts, states, actions] = moving.dims();
        let rows = |x: &Tensor<3>| x.clone().reshape([contexts * states, actions]);
        let log = |x: &Tensor<3>| (rows(x) + 0.01).log() / 4.0;
        let local = vec![rows(&moving), log(&moving), rows(&entering), log(&entering)];
        self.tokens.tokens(weights, Tensor::cat(local, 1) * DYNAMICS, contexts, None) // [contexts * states, width]
    }

    /// Raw outputs, `[contexts * tasks * states, output]`, for tasks that stand for the rewards `r [contexts * tasks, states]`.
    pub(super) fn forward(&self, weights: &Weights, local: [Tensor<3>; 2], r: Tensor<2>) -> Tensor<2> {
        let contexts = local[0].dims()[0];
        let ([groups, _], states, head) = (r.dims(), self.states, self.head_width);
        let tasks = groups / contexts;
        let x = self.encode(weights, local); // [contexts * states, width]
        let width = x.dims()[1];
        let by_context = x.clone().reshape([contexts, states, width]);
        let r = r.reshape([contexts, tasks, states]);
        let sharp = weights[self.sharpness].clone().exp().reshape([1, 1, 1]);
        let seen = self.kernels.as_ref().map(|kernels| kernels.forward(weights, &x, &r));
        let most = softmax(r.clone() * sharp, 2).matmul(by_context.clone()).reshape([groups, width]);
        let all = r.matmul(by_context.clone()).reshape([groups, width]);
        let mean = by_context.mean_dim(1).reshape([contexts, width]);
        let linear = |layer: &Linear, x: Tensor<2>| layer.forward(weights, Input::One(x), Act::None);
        let task = linear(&self.rewarded, most) + linear(&self.proportional, all) * OTHER_PARTS;
        let task =
            task.reshape([contexts, tasks, head]) + linear(&self.whole, mean).reshape([contexts, 1, head]);
        let state = linear(&self.state, x).reshape([contexts, 1, states, head]);
        let h = (state + task.reshape([contexts, tasks, 1, head])).reshape([groups * states, head]);
        let h = match seen {
            Some(seen) => h + seen,
            None => h,
        };
        let norm = |x: Tensor<2>, (gain, shift): (ParamId, ParamId)| {
            ops::layer_norm(x, &weights[gain], &weights[shift], Act::Relu)
        };
        let h = self.hidden1.forward_onto(weights, norm(h.clone(), self.norm1), h);
        let h = norm(h, self.norm2);
        let h = h.clone() + self.hidden2.forward(weights, Input::One(h), Act::Relu);
        self.out.forward(weights, Input::One(h), Act::None)
    }
}
