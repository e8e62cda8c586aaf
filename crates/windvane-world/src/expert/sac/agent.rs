//! The networks of SAC, and a step of learning; for any states and actions.

use super::super::adam::Adam;
use super::super::gauss;
use super::super::mlp::{Activation, Mlp, Pass};
use super::losses::{concat, critic_loss, draw, policy_loss, smaller, temperature_gradient};
use crate::rng::Rng;
use std::ops::Range;

/// Discount of rewards.
const GAMMA: f32 = 0.99;
/// Share of the way that target critics go after the others at a step.
const TAU: f32 = 0.005;
/// Rate of all networks and of the temperature.
const RATE: f32 = 3e-4;
/// First temperature. From 1, where others begin, the rate would need more steps than there are to come down.
const TEMPERATURE: f32 = 0.1;

/// Steps to learn from.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    /// [rows, state].
    pub(super) states: Vec<f32>,
    /// [rows, actions], each -1 to 1.
    pub(super) actions: Vec<f32>,
    /// [rows].
    pub(super) rewards: Vec<f32>,
    /// [rows, state].
    pub(super) next: Vec<f32>,
    /// 0 where a fall ended the walk, else 1, [rows].
    pub(super) alive: Vec<f32>,
}

/// Who learns.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) policy: Mlp,
    critic: Mlp,
    /// Parameters of the policy and the two critics, and the logarithm of the temperature.
    pub(super) parameters: Vec<f32>,
    pub(super) adam: Adam,
    /// Parameters of the target critics.
    pub(super) target_critics: Vec<f32>,
    /// Entropy that the temperature aims at, in nats.
    entropy: f32,
    /// Mean deviation of each action before it is squashed, at the last step.
    pub(super) deviations: Vec<f32>,
}

/// Networks for states and actions of these sizes.
pub(super) const fn networks(state: usize, actions: usize, width: usize) -> [Mlp; 2] {
    [
        Mlp { sizes: [state, width, width, 2 * actions], activation: Activation::Relu },
        Mlp { sizes: [state + actions, width, width, 1], activation: Activation::Relu },
    ]
}

impl Agent {
    pub(super) fn new([policy, critic]: [Mlp; 2], entropy: f32, rng: &mut Rng) -> Self {
        let (first, each) = (policy.parameters(), critic.parameters());
        let mut parameters = vec![libm::logf(TEMPERATURE); first + 2 * each + 1];
        policy.init(&mut parameters[..first], 0.1, rng);
        for which in 0..2 {
            critic.init(&mut parameters[first + which * each..][..each], 1.0, rng);
        }
        let target_critics = parameters[first..first + 2 * each].to_vec();
        let deviations = vec![1.0; policy.sizes[3] / 2];
        Self {
            policy,
            critic,
            adam: Adam::new(parameters.len()),
            parameters,
            target_critics,
            entropy,
            deviations,
        }
    }

    /// Where the two critics are among the parameters.
    fn critics(&self) -> [Range<usize>; 2] {
        let (first, each) = (self.policy.parameters(), self.critic.parameters());
        [0, 1].map(|which| first + which * each..first + (which + 1) * each)
    }

    /// The policy's parameters.
    pub(super) fn gait(&self) -> &[f32] {
        &self.parameters[..self.policy.parameters()]
    }

    pub(super) fn temperature(&self) -> f32 {
        libm::expf(self.parameters[self.parameters.len() - 1])
    }

    /// What the critics are to say: r + gamma (min Q'(s', a') - temperature ln p(a' | s')) while alive, [rows].
    pub(super) fn targets(&self, batch: &Batch, draws: &[f32]) -> Vec<f32> {
        let mut pass = Pass::default();
        self.policy.forward(self.gait(), &batch.next, &mut pass);
        let drawn = draw(pass.output(), draws, self.policy.sizes[3] / 2);
        let input = concat(&batch.next, &drawn.actions, batch.rewards.len());
        let (one, two) = self.target_critics.split_at(self.critic.parameters());
        let values = smaller(self.critic, [one, two], &input, &mut Default::default());
        let temperature = self.temperature();
        (0..batch.rewards.len())
            .map(|row| {
                let after = values[row].0 - temperature * drawn.log_prob[row];
                batch.rewards[row] + GAMMA * batch.alive[row] * after
            })
            .collect()
    }

    /// One step down the gradients of critics, policy and temperature, all of them at the same parameters.
    pub(super) fn learn(&mut self, batch: &Batch, rng: &mut Rng) {
        let rows = batch.rewards.len();
        let mut draws = || (0..batch.actions.len()).map(|_| gauss(rng)).collect::<Vec<f32>>();
        let [after, here] = [draws(), draws()];
        let targets = self.targets(batch, &after);
        let input = concat(&batch.states, &batch.actions, rows);
        let mut gradient = vec![0.0; self.parameters.len()];
        let critics = self.critics();
        for own in critics.clone() {
            critic_loss(self.critic, &self.parameters[own.clone()], &input, &targets, &mut gradient[own]);
        }
        let (_, drawn) = policy_loss(
            [self.policy, self.critic],
            self.gait(),
            critics.map(|own| &self.parameters[own]),
            &batch.states,
            &here,
            self.temperature(),
            &mut gradient[..self.policy.parameters()],
        );
        let last = gradient.len() - 1;
        gradient[last] = temperature_gradient(&drawn.log_prob, self.entropy);
        self.adam.step(&mut self.parameters, &gradient, RATE, f32::INFINITY);
        let fast = &self.parameters[self.policy.parameters()..last];
        self.target_critics.iter_mut().zip(fast).for_each(|(target, fast)| *target += TAU * (fast - *target));
        let actions = self.deviations.len();
        for (action, mean) in self.deviations.iter_mut().enumerate() {
            *mean = drawn.deviations.iter().skip(action).step_by(actions).sum::<f32>() / rows as f32;
        }
    }
}
