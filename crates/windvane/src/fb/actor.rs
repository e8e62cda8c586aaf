//! The actor for continuous actions: DDPG on F z, with behaviour cloning where it is asked for, or either alone.

use super::config::FbConfig;
use super::networks::conditioned_net;
use crate::error::Result;
use crate::nn::{ConditionedInput, ConditionedNet, Mlp, Params, RowNet, Weights, upload};
use burn::tensor::{Device, Tensor};
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};
use windvane_world::Rng;

/// Added to squared lengths, so that a vector of nothing has a direction.
const SHORTEST: f32 = 1e-12;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[SHORTEST as f64];

/// Who chooses vectors as actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    /// A network, trained to raise F z (paper).
    #[default]
    Ddpg,
    /// Nobody: the best on F z of a few candidates, in the target and when acting. An actor that is amortised over all tasks
    /// and contexts lags behind F; a maximum does not.
    Candidates,
    /// A network that does what the data's actions were at like states, weighted by `exp` of their advantage under F z.
    Weighted,
    /// A network that does what the data's actions were, whatever they led to: behaviour cloning, to compare with.
    Cloning,
}

/// The actor and its training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorConfig {
    /// Who chooses; paper: a network.
    pub kind: ActorKind,
    /// Standard deviation of the noise that smooths the target's action; paper: 0.2.
    pub noise: f32,
    /// Where that noise is cut off; paper: 0.3.
    pub noise_clip: f32,
    /// Learning rate; paper: 1e-4.
    pub rate: f32,
    /// Whether Q is divided by the mean of its size in the batch; paper: no.
    pub normalize_q: bool,
    /// Whether actions stay within the unit ball, `u / |u| tanh |u|`, and not only within the cube: where data pushes in
    /// directions at full speed, the corners of the cube are beyond all data. Paper: no.
    pub unit_ball: bool,
    /// `ddpg`: weight of the squared distance to the data's action (behaviour cloning) beside Q; paper: 0.
    pub bc: f64,
    /// `ddpg`: the same, added where the task is made of the transition's own future (`fb.hindsight`): there the data's action
    /// serves the task, elsewhere it only is one that was seen. Paper: 0.
    #[serde(default)]
    pub bc_hindsight: f64,
    /// Whether actions are linear in the conditioning input c: `tanh(A_0(s, z) + A(s, z) c)`, as a linear decoder's dynamics are, so
    /// that unseen contexts are as easy as seen ones; else a network of (s, \[c; z\]). Paper: no.
    pub linear: bool,
    /// `weighted`: the advantage that makes an action e times as likely, in standard deviations of advantages.
    pub temperature: f64,
}

impl Default for ActorConfig {
    fn default() -> Self {
        Self {
            kind: ActorKind::Ddpg,
            noise: 0.2,
            noise_clip: 0.3,
            rate: 3e-4,
            normalize_q: false,
            unit_ball: false,
            bc: 0.0,
            bc_hindsight: 0.0,
            linear: false,
            temperature: 0.5,
        }
    }
}

impl ActorConfig {
    /// Whether the data's actions are looked at.
    pub(crate) fn clones(&self) -> bool {
        self.bc + self.bc_hindsight > 0.0 || matches!(self.kind, ActorKind::Weighted | ActorKind::Cloning)
    }
}

/// pi(s, \[h; z\]) with its weights.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) params: Params,
    net: ConditionedNet,
    width: usize,
    unit_ball: bool,
    /// Numbers of the conditioning input that actions are linear in; 0 where the network sees them.
    linear: usize,
}

impl Actor {
    /// An untrained actor for encodings of `features` numbers, conditions of `condition` and actions of `action`.
    pub(crate) fn new(
        [features, action, condition]: [usize; 3],
        (fb, config): (&FbConfig, &ActorConfig),
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let mut params = Params::new(device, seed);
        let linear = if config.linear { condition } else { 0 };
        let (seen, output) = (condition - linear, action * (1 + linear));
        let net = conditioned_net(&mut params, "actor", [features, 0, seen], output, fb)?;
        Ok(Self { params, net, width: action, unit_ball: config.unit_ball, linear })
    }

    /// Actions between -1 and 1, `[rows, action]`.
    pub(crate) fn act(&self, weights: &Weights, input: ConditionedInput) -> Tensor<2> {
        let u = self.unbounded(weights, input);
        if !self.unit_ball {
            return u.tanh();
        }
        let length = (u.clone().powf_scalar(2.0).sum_dim(1) + SHORTEST).sqrt(); // [rows, 1]
        u * (length.clone().tanh() / length)
    }

    /// The same before its bound.
    fn unbounded(&self, weights: &Weights, input: ConditionedInput) -> Tensor<2> {
        if self.linear == 0 {
            return self.net.forward(weights, input);
        }
        let ([rows, _], [groups, wide]) = (input.s.dims(), input.task.dims());
        let condition = input.task.clone().narrow(1, 0, self.linear).reshape([groups, self.linear, 1]);
        let task = input.task.narrow(1, self.linear, wide - self.linear);
        let out = self.net.forward(weights, ConditionedInput { task, ..input }); // [rows, action * (1 + linear)]
        let slopes = out.clone().narrow(1, self.width, self.width * self.linear);
        let slopes = slopes.reshape([groups, rows / groups * self.width, self.linear]);
        out.narrow(1, 0, self.width) + slopes.matmul(condition).reshape([rows, self.width])
    }

    /// The same actor for single rows, where its network has such a form ([`RowNet::new`]).
    pub(crate) fn row(&self, b: Option<(&Mlp, &Weights)>, task: &[f32], dim: usize) -> Option<RowActor> {
        let (own, seen) = task.split_at(self.linear);
        let net = RowNet::new(&self.net, &self.params.weights(), b, seen, dim)?;
        Some(RowActor { net, condition: own.to_vec(), unit_ball: self.unit_ball, action: Vec::new() })
    }

    /// Noise that smooths the target's action, cut off, `[rows, action]`.
    pub(crate) fn noise(&self, config: &ActorConfig, rng: &mut Rng, rows: usize) -> Tensor<2> {
        let normal = StandardNormal.sample_iter(rng).take(rows * self.width);
        let clip = config.noise_clip;
        let noise = normal.map(|x: f32| (x * config.noise).clamp(-clip, clip)).collect();
        upload(noise, [rows, self.width], self.params.device())
    }
}

/// The actor with its weights, for one state at a time under one condition and task.
#[derive(Debug)]
pub(crate) struct RowActor {
    net: RowNet,
    /// The part of the conditioning input that actions are linear in; empty where the network sees it all.
    condition: Vec<f32>,
    unit_ball: bool,
    action: Vec<f32>,
}

impl RowActor {
    /// Another condition and task.
    pub(crate) fn fix(&mut self, condition: &[f32]) {
        let (own, seen) = condition.split_at(self.condition.len());
        self.condition.copy_from_slice(own);
        self.net.fix(seen);
    }

    /// The action at an encoded state.
    pub(crate) fn act(&mut self, s: &[f32]) -> &[f32] {
        let out = self.net.forward(s, &[]);
        let linear = self.condition.len();
        let (offset, slopes) = out.split_at(out.len() / (1 + linear));
        self.action.clear();
        self.action.extend(offset.iter().enumerate().map(|(i, offset)| {
            let slopes = &slopes[i * linear..][..linear];
            offset + slopes.iter().zip(&self.condition).map(|(slope, c)| slope * c).sum::<f32>()
        }));
        bound(&mut self.action, self.unit_ball);
        &self.action
    }
}

/// Bounds one row as [`Actor::act`] does.
fn bound(u: &mut [f32], unit_ball: bool) {
    if !unit_ball {
        return u.iter_mut().for_each(|x| *x = x.tanh());
    }
    let length = (u.iter().map(|x| x * x).sum::<f32>() + SHORTEST).sqrt();
    u.iter_mut().for_each(|x| *x *= length.tanh() / length);
}

/// The loss of DDPG, with behaviour cloning where `off [rows, action]`, the squared distance to the data's actions, is given: Q is
/// `[rows, 1]`; `own [rows, 1]` has 1 where the task is made of the transition's own future.
pub(crate) fn ddpg_loss(
    config: &ActorConfig,
    q: Tensor<2>,
    off: Option<Tensor<2>>,
    own: &Tensor<2>,
) -> Tensor<1> {
    let size = if config.normalize_q {
        q.clone().detach().abs().mean().clamp_min(1e-3)
    } else {
        q.ones_like().mean()
    };
    let loss = q.mean().neg() / size;
    let Some(off) = off else { return loss };
    let loss = loss + off.clone().mean() * config.bc;
    if config.bc_hindsight > 0.0 {
        loss + (off.mean_dim(1) * own.clone()).mean() * config.bc_hindsight
    } else {
        loss
    }
}

/// The loss of advantage-weighted cloning: squared distances `off [rows, action]` to the data's actions, weighted by `exp` of
/// `advantage [rows, 1]` in its own standard deviations.
pub(crate) fn weighted_loss(config: &ActorConfig, advantage: Tensor<2>, off: Tensor<2>) -> Tensor<1> {
    let spread = advantage.clone().powf_scalar(2.0).mean().sqrt() * config.temperature + 1e-6;
    let weight = (advantage / spread.reshape([1, 1])).clamp(-8.0, 4.0).exp();
    let weight = weight.clone() / weight.mean().reshape([1, 1]);
    (off.mean_dim(1) * weight).mean()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fb::config::{BackwardForm, NetKind};
    use crate::nn::read;

    #[test]
    fn cloning_of_the_own_future_counts_only_where_the_task_is_made_of_it() {
        let device = Device::flex();
        let column = |values: [f32; 2]| upload(values.to_vec(), [2, 1], &device);
        let loss = |bc, bc_hindsight, own| {
            let config = ActorConfig { bc, bc_hindsight, ..ActorConfig::default() };
            let (off, q) = (column([0.25, 1.0]), column([0.0, 0.0]));
            read(ddpg_loss(&config, q, Some(off), &column(own)))[0]
        };
        assert!((loss(2.0, 0.0, [1.0, 0.0]) - 2.0 * (0.25 + 1.0) / 2.0).abs() < 1e-6);
        assert!((loss(0.0, 2.0, [1.0, 0.0]) - 0.25).abs() < 1e-6);
        assert!((loss(0.0, 2.0, [0.0, 1.0]) - 1.0).abs() < 1e-6);
        assert!(ActorConfig { bc_hindsight: 1.0, ..ActorConfig::default() }.clones());
    }

    #[test]
    fn in_the_unit_ball_no_action_is_longer_than_one_and_a_row_is_bounded_alike() {
        let device = Device::flex();
        let mut fb = FbConfig { dim: 4, ..FbConfig::default() };
        fb.net.kind = NetKind::Pair;
        for unit_ball in [false, true] {
            let config = ActorConfig { unit_ball, ..ActorConfig::default() };
            let actor = Actor::new([2, 2, 0], (&fb, &config), 3, &device).unwrap();
            let input = |far: f32| ConditionedInput {
                s: upload(vec![0.3 * far, -0.2, -far, far], [2, 2], &device),
                a: None,
                task: upload([1.0, -1.0, 1.0, far].repeat(2), [2, 4], &device),
                b: None,
            };
            for far in [1.0, 1e4] {
                let weights = actor.params.weights();
                let raw = read(actor.net.forward(&weights, input(far)));
                let bounded = read(actor.act(&weights, input(far)));
                for (raw, a) in raw.chunks_exact(2).zip(bounded.chunks_exact(2)) {
                    let mut row = raw.to_vec();
                    bound(&mut row, unit_ball);
                    assert!(a.iter().zip(&row).all(|(a, row)| (a - row).abs() < 1e-5), "{a:?} {row:?}");
                    assert!(!unit_ball || a[0].hypot(a[1]) <= 1.0 + 1e-5, "{a:?}");
                }
            }
        }
    }

    #[test]
    fn an_actor_that_is_linear_in_its_condition_is_so_on_rows_and_tensors_alike() {
        let device = Device::flex();
        let fb = FbConfig { dim: 4, backward: BackwardForm::Network, ..FbConfig::default() };
        let actor =
            Actor::new([3, 2, 2], (&fb, &ActorConfig { linear: true, ..ActorConfig::default() }), 5, &device);
        let actor = actor.unwrap();
        let weights = actor.params.weights();
        let (s, z) = ([0.3, -0.7, 0.2], [1.0, 0.5, -2.0, 0.1]);
        let mut row = actor.row(None, &[0.0; 6], 4).unwrap();
        let mut before_tanh = |c: [f32; 2]| {
            let condition = [&c[..], &z].concat();
            row.fix(&condition);
            let got = row.act(&s).to_vec();
            let states = upload(s.to_vec(), [1, 3], &device);
            let input =
                ConditionedInput { s: states, a: None, task: upload(condition, [1, 6], &device), b: None };
            for (got, expected) in got.iter().zip(read(actor.act(&weights, input))) {
                assert!((got - expected).abs() < 1e-5, "{got} {expected}");
            }
            got.iter().map(|x| x.atanh()).collect::<Vec<f32>>()
        };
        let [zero, left, right, both] =
            [[0.0, 0.0], [1.0, 0.0], [0.0, -2.0], [1.0, -2.0]].map(&mut before_tanh);
        for i in 0..2 {
            assert!((left[i] + right[i] - zero[i] - both[i]).abs() < 1e-5);
            assert!((left[i] - zero[i]).abs() > 1e-4, "the condition counts");
        }
    }
}
