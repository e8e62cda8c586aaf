//! Training of the belief: from a context, predict transitions of other episodes of its group.

use super::belief::{NeuralBelief, joined};
use super::config::{BeliefConfig, NeuralPlan};
use super::memory::{Memory, Rows, Sets};
use crate::error::LearnError;
use crate::nn::{Adam, AdamConfig, TensorFile};
use crate::train::{Learner, Metrics, scalar, warm_cosine};
use burn::tensor::activation::softplus;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use std::sync::Arc;
use windvane_world::rng::stream;

/// Weight of telling states of one group from those of another beside predicting changes.
const THERE: f64 = 0.1;

/// Trains a [`NeuralBelief`].
#[derive(Debug)]
pub struct BeliefTrainer {
    belief: NeuralBelief,
    adam: Adam,
    memory: Arc<Memory>,
    config: BeliefConfig,
    seed: u64,
}

impl BeliefTrainer {
    /// A trainer from the first step.
    pub fn new(
        memory: Arc<Memory>,
        plan: &NeuralPlan,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let config = plan.belief.clone();
        let belief = NeuralBelief::new(memory.lens(), memory.groups(), &config, seed, device)?;
        let adam = AdamConfig { rate: config.rate, clip: Some(1.0), ..AdamConfig::default() };
        let adam = Adam::new(adam, &belief.params);
        Ok(Self { belief, adam, memory, config, seed })
    }

    /// The belief as it stands.
    pub fn belief(&self) -> &NeuralBelief {
        &self.belief
    }
}

impl Learner for BeliefTrainer {
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
        let BeliefConfig { dim, batch, queries, shortest, longest, .. } = self.config;
        let mut rng = stream(self.seed, "belief-batch", &[step]);
        let mut contexts = Vec::with_capacity(batch);
        let mut rows = Rows::default();
        let mut groups = Vec::with_capacity(batch);
        for _ in 0..batch {
            let group = self.memory.group(&mut rng);
            groups.push(group as i64);
            let steps = rng.random_range(shortest..=longest);
            contexts.push(self.memory.context(&mut rng, group, steps));
            (0..queries).for_each(|_| self.memory.draw(&mut rng, group, &mut rows));
        }
        let s = self.belief.constant(rows.s.clone(), [batch * queries, self.belief.features]);
        let noise: Vec<f32> = StandardNormal.sample_iter(&mut rng).take(batch * dim).collect();
        let dims = self.memory.lens().change().len();
        let sa = joined(
            &rows.s,
            self.memory.lens().features().width(),
            &rows.a,
            self.memory.lens().moves().width(),
        );
        let count = rows.delta.len() / dims;
        let sa = self.belief.constant(
            sa,
            [count, self.memory.lens().features().width() + self.memory.lens().moves().width()],
        );
        let truth = self.belief.constant(rows.delta, [count, dims]);
        let noise = self.belief.constant(noise, [batch, dim]);

        let weights = self.belief.params.track();
        let (mean, log_std) = self
            .belief
            .encode(&weights, &Sets::join(&contexts, self.memory.lens().token(), self.belief.features));
        let h = mean.clone() + log_std.clone().exp() * noise; // [batch, dim]
        let told = self.belief.predictor.forward(&weights, sa.clone(), h.clone());
        let blind = self.belief.blind.forward(&weights, sa.clone(), self.belief.nothing());
        let groups =
            Tensor::<1, Int>::from_data(TensorData::new(groups, [batch]), self.belief.params.device());
        let code = weights[self.belief.codes].clone().select(0, groups); // [batch, dim]
        let known = self.belief.predictor.forward(&weights, sa.clone(), code.clone());
        let known_miss = (known - truth.clone()).powf_scalar(2.0).mean();
        let apart = (mean.clone() - code.clone().detach()).powf_scalar(2.0).mean();
        // States of a group against those of another one in the batch.
        let turned = |h: Tensor<2>| {
            let [first, rest] = [0..1, 1..batch].map(|part| h.clone().slice([part, 0..dim]));
            Tensor::cat(vec![rest, first], 0)
        };
        let beliefs = [h.clone(), code.clone()].map(|h| {
            let own = self.belief.there.forward(&weights, s.clone(), h.clone());
            let other = self.belief.there.forward(&weights, s.clone(), turned(h));
            (softplus(own.neg(), 1.0) + softplus(other, 1.0)).mean()
        });
        let [there, known_there] = beliefs;
        let miss = (told - truth.clone()).powf_scalar(2.0).mean();
        let blind_miss = (blind - truth).powf_scalar(2.0).mean();
        let variance = (log_std.clone() * 2.0).exp();
        let kl = (mean.powf_scalar(2.0) + variance - log_std * 2.0 - 1.0).sum() / (2.0 * batch as f64);
        let mut loss =
            miss.clone() + blind_miss.clone() + kl.clone() * self.config.kl + there.clone() * THERE;
        if self.config.codes > 0.0 {
            loss = loss + known_miss.clone() + known_there * THERE + apart.clone() * self.config.codes;
        }
        let measured = [
            ("loss", &loss),
            ("miss", &miss),
            ("known miss", &known_miss),
            ("blind miss", &blind_miss),
            ("apart", &apart),
            ("there", &there),
            ("kl", &kl),
        ];
        let mut metrics: Metrics = measured.map(|(name, tensor)| (name, scalar(tensor))).to_vec();
        let gradients = loss.backward();
        drop((loss, miss, known_miss, blind_miss, apart, there, kl));
        let scale = warm_cosine(step, self.config.steps);
        let norm = self.adam.step(&mut self.belief.params, weights, gradients, scale, None);
        metrics.push(("gradient", f64::from(norm)));
        Ok(metrics)
    }

    fn save(&self, file: &mut TensorFile) {
        self.belief.params.save(file, "belief/");
        self.adam.save(file, "adam/");
    }

    fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        self.belief.params.load(file, "belief/")?;
        Ok(self.adam.load(file, "adam/")?)
    }
}
