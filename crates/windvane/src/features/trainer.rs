//! Training of features.

use super::{FeatureLearner, FeaturesConfig, Phi, PhiNets, Source, Transitions};
use crate::error::LearnError;
use crate::nn::{Adam, AdamConfig, Follow, Params, TensorFile};
use crate::train::{Learner, Metrics, warm_cosine};
use burn::tensor::Device;
use windvane_world::rng::stream;

/// Trains features from transitions of all groups alike.
#[derive(Debug)]
pub struct PhiTrainer {
    learner: &'static dyn FeatureLearner,
    source: Source,
    config: FeaturesConfig,
    hidden: Vec<usize>,
    nets: PhiNets,
    params: Params,
    target: Params,
    adam: Adam,
    seed: u64,
}

impl PhiTrainer {
    /// A trainer from the first step, of networks with `hidden` widths.
    pub fn new(
        learner: &'static dyn FeatureLearner,
        source: Source,
        hidden: &[usize],
        config: FeaturesConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let mut params = Params::new(device, seed);
        let nets = PhiNets::new(&mut params, learner, source.inputs(), hidden, &config)?;
        let adam = AdamConfig { rate: config.rate, clip: Some(1.0), ..AdamConfig::default() };
        let adam = Adam::new(adam, &params);
        Ok(Self {
            learner,
            source,
            config,
            hidden: hidden.to_vec(),
            nets,
            target: params.clone(),
            params,
            adam,
            seed,
        })
    }

    /// The features as they stand.
    pub fn phi(&self) -> Phi {
        Phi::new(self.nets.clone(), self.params.clone(), &self.source, &self.hidden, &self.config)
    }
}

impl Learner for PhiTrainer {
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
        let mut rng = stream(self.seed, "phi-batch", &[step]);
        let drawn: Vec<[usize; 3]> =
            (0..self.config.batch).map(|_| self.source.draw(&mut rng, &self.config.hilp)).collect();
        let part = |i: usize| self.source.encoded(&drawn.iter().map(|rows| rows[i]).collect::<Vec<_>>());
        let [s, next, goal] = [part(0), part(1), part(2)];
        let (weights, frozen) = (self.params.track(), self.target.weights());
        let batch = Transitions { s, next, goal };
        let loss = self.learner.loss(&self.nets, [&weights, &frozen], &batch, &self.config);
        drop(frozen);
        let mut metrics: Metrics = vec![("loss", loss.clone().without_autodiff())];
        let gradients = loss.backward();
        drop(loss);
        let scale = warm_cosine(step, self.config.steps);
        let follow = Follow { target: &mut self.target, tau: self.config.tau };
        let norm = self.adam.step(&mut self.params, weights, gradients, scale, Some(follow));
        metrics.push(("gradient", norm));
        Ok(metrics)
    }

    fn save(&self, file: &mut TensorFile) {
        self.params.save(file, "phi/");
        self.target.save(file, "target/");
        self.adam.save(file, "adam/");
    }

    fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        self.params.load(file, "phi/")?;
        self.target.load(file, "target/")?;
        Ok(self.adam.load(file, "adam/")?)
    }
}
