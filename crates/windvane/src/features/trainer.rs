//! Training of features.

use super::{FeatureLearner, FeaturesConfig, Phi, PhiNets, PhiShape, Source, Transitions};
use crate::error::LearnError;
use crate::nn::{AdamConfig, Params, Weights};
use crate::train::Metrics;
use crate::train::trainer::{Objective, Trainer};
use burn::tensor::{Device, Tensor};
use windvane_world::rng::stream;

/// Features from transitions of all groups alike.
#[derive(Debug)]
pub(crate) struct PhiObjective {
    learner: &'static dyn FeatureLearner,
    source: Source,
    config: FeaturesConfig,
    nets: PhiNets,
    params: Params,
    seed: u64,
}

impl PhiObjective {
    /// A trainer from the first step, of networks with `hidden` widths.
    pub(crate) fn trainer(
        learner: &'static dyn FeatureLearner,
        source: Source,
        hidden: &[usize],
        config: FeaturesConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Trainer<Self>, LearnError> {
        let mut params = Params::new(device, seed);
        let (inputs, radius) = (source.inputs(), learner.radius(&config));
        let shape = PhiShape { inputs, dim: config.dim, hidden: hidden.to_vec(), radius };
        let nets = PhiNets::new(&mut params, learner.nets(), shape)?;
        let adam = AdamConfig { rate: config.rate, clip: Some(1.0), ..AdamConfig::default() };
        let objective = Self { learner, source, config, nets, params, seed };
        Ok(Trainer::new(objective, adam, &[], config.steps, config.tau))
    }

    /// The features as they stand.
    pub(crate) fn phi(&self) -> Phi {
        Phi::new(self.nets.clone(), self.params.clone(), &self.source, &self.config)
    }
}

impl Objective for PhiObjective {
    const WEIGHTS: &str = "phi/";
    type Batch = Transitions;

    fn params(&self) -> &Params {
        &self.params
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    fn sample(&self, step: u64, _: &Weights) -> Transitions {
        let mut rng = stream(self.seed, "phi-batch", &[step]);
        let drawn: Vec<[usize; 3]> =
            (0..self.config.batch).map(|_| self.source.draw(&mut rng, &self.config.hilp)).collect();
        let part = |i: usize| self.source.encoded(&drawn.iter().map(|rows| rows[i]).collect::<Vec<_>>());
        Transitions { s: part(0), next: part(1), goal: part(2) }
    }

    fn loss(&self, batch: &Transitions, weights: &Weights, frozen: &Weights) -> (Tensor<1>, Metrics) {
        let loss = self.learner.loss(&self.nets, [weights, frozen], batch, &self.config);
        (loss.clone(), vec![("loss", loss)])
    }
}
