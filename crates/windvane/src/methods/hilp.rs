//! HILP (Park, Kreiman & Levine 2024): features whose distances are numbers of steps, and successor features over them.
//!
//! V(s, g) = -|phi(s) - phi(g)| is learned as the value of reaching g at -1 a step, from where episodes went. Two networks
//! are trained side by side against the more pessimistic of their targets; the first gives the features.

use super::{Method, fb};
use crate::features::{FeatureLearner, FeaturesConfig, PhiNets, Transitions};
use crate::nn::Weights;
use burn::tensor::Tensor;
use rand_distr::{Distribution as _, Geometric};
use serde::{Deserialize, Serialize};
use windvane_world::Rng;

pub(super) const METHOD: Method = Method {
    name: "hilp",
    title: "HILP",
    about: "successor features over features whose distances are numbers of steps",
    features: Some(&Hilp),
    ..fb::METHOD
};

/// Settings of HILP's features; the authors' values of the zero-shot version where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HilpConfig {
    /// Discount of the steps to a goal.
    pub discount: f32,
    /// Above 1/2, better than usual ways count more. The authors' 0.5 is the value of the policy that collected the data:
    /// right for data of an explorer with aims, but a random trajectory takes hundreds of steps to the next room.
    pub expectile: f32,
    /// Share of goals drawn from all states; the others lie ahead in the same episode.
    pub random_goals: f64,
    /// Those lie ahead by a geometric number of steps with this discount.
    pub future: f64,
}

impl Default for HilpConfig {
    fn default() -> Self {
        Self { discount: 0.98, expectile: 0.9, random_goals: 0.375, future: 0.99 }
    }
}

impl HilpConfig {
    /// How many transitions further ahead a goal lies than the state that follows.
    pub(crate) fn ahead(&self, rng: &mut Rng) -> usize {
        Geometric::new(1.0 - self.future).map_or(0, |moves| moves.sample(rng) as usize)
    }
}

/// The learner of HILP's features.
#[derive(Debug)]
pub struct Hilp;

impl FeatureLearner for Hilp {
    fn nets(&self) -> usize {
        2
    }

    fn loss(
        &self,
        nets: &PhiNets,
        [weights, frozen]: [&Weights; 2],
        batch: &Transitions,
        config: &FeaturesConfig,
    ) -> Tensor<1> {
        let HilpConfig { discount, expectile, .. } = config.hilp;
        let value = |net: usize, weights: &Weights, from: &Tensor<2>| {
            let gap = nets.of(weights, net, from.clone()) - nets.of(weights, net, batch.goal.clone()); // [rows, d]
            (gap.powf_scalar(2.0).sum_dim(1) + 1e-6).sqrt().neg() // [rows, 1]
        };
        let ahead = [0, 1].map(|net| value(net, frozen, &batch.next));
        let here = (value(0, frozen, &batch.s) + value(1, frozen, &batch.s)) / 2.0;
        let least = ahead[0].clone().min_pair(ahead[1].clone());
        // At the goal itself V is 0 by its form, whatever the target says.
        let gain = least * f64::from(discount) - 1.0 - here; // [rows, 1]
        let weight = gain.greater_elem(0.0).float() * (2.0 * expectile - 1.0) + (1.0 - expectile);
        let [first, second] = [0, 1].map(|net| {
            let miss = ahead[net].clone() * f64::from(discount) - 1.0 - value(net, weights, &batch.s);
            (miss.powf_scalar(2.0) * weight.clone()).mean()
        });
        first + second
    }
}
