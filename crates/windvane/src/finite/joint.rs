//! Belief and agent trained in one loop: F is told beliefs of the moment, and its loss shapes h beside the belief's own.

use super::agent;
use super::belief::{BeliefTrainer, FiniteBelief};
use super::context::Contexts;
use super::fb::FbTrainer;
use super::model::FbModel;
use super::survey::Survey;
use crate::error::LearnError;
use crate::nn::TensorFile;
use crate::train::{Learner, Metrics, warm_cosine};
use std::sync::Arc;
use windvane_world::rng::stream;

/// Trains a belief and the agent that listens to it.
#[derive(Debug)]
pub struct JointTrainer {
    belief: BeliefTrainer,
    fb: FbTrainer,
    survey: Arc<Survey>,
    average: Vec<f32>,
    seed: u64,
}

impl JointTrainer {
    /// Joins two trainers from their first steps.
    pub fn new(belief: BeliefTrainer, fb: FbTrainer, survey: Arc<Survey>, seed: u64) -> Self {
        Self { belief, fb, average: survey.average(), survey, seed }
    }

    /// The belief as it stands.
    pub fn belief(&self) -> &FiniteBelief {
        self.belief.belief()
    }

    /// The forward and backward maps as they stand.
    pub fn model(&self) -> &FbModel {
        self.fb.model()
    }

    /// What contexts of this step say, `[groups * states * 2]`, and the groups they come from.
    fn contexts(&self, step: u64) -> (Vec<f32>, Vec<usize>) {
        let mut rng = stream(self.seed, "joint-contexts", &[step]);
        let contexts = Contexts::new(&self.survey, self.belief().config().context);
        let mut bag = vec![0.0; self.survey.vocabulary()];
        let count = self.model().config().groups;
        let mut evidence = vec![0.0; count * self.survey.states() * 2];
        let mut groups = Vec::with_capacity(count);
        for (i, evidence) in evidence.chunks_exact_mut(self.survey.states() * 2).enumerate() {
            let group = (step as usize * count + i) % self.survey.groups().len();
            contexts.of_group(&mut rng, group, &mut bag);
            self.survey.write_evidence(&bag, evidence);
            groups.push(group);
        }
        (evidence, groups)
    }
}

impl Learner for JointTrainer {
    fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
        let (evidence, groups) = self.contexts(step);
        let mut situations = agent::situations(&self.survey, Some(self.belief()), &self.average, &evidence);
        situations.groups = groups;
        self.fb.meet(situations);

        let (belief_weights, fb_weights) = (self.belief.track(), self.fb.track());
        let (h, _) = self.belief().encode(&belief_weights, &evidence, &[]); // [groups, states]
        let (fb_loss, mut metrics) = self.fb.loss(step, &fb_weights, Some(agent::condition(h)));
        let (belief_loss, own) = self.belief.loss(step, &belief_weights);
        metrics.extend(own.into_iter().filter(|(name, _)| *name != "loss"));
        let mut gradients = (fb_loss + belief_loss).backward();
        let scale = warm_cosine(step, self.model().config().steps);
        let sizes = [
            self.fb.update(fb_weights, &mut gradients, scale),
            self.belief.update(belief_weights, &mut gradients, scale),
        ];
        metrics.push(("gradient", sizes[0].hypot(sizes[1])));
        Ok(metrics)
    }

    fn save(&self, file: &mut TensorFile) {
        self.belief.save_as(file, "belief-adam/");
        self.fb.save(file);
    }

    fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
        self.belief.load_as(file, "belief-adam/")?;
        self.fb.load(file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::belief::BeliefConfig;
    use super::super::fb::FbConfig;
    use super::super::situations::{Situations, TaskDraw};
    use super::super::tests::surveyed;
    use super::*;
    use crate::latent::VonMisesFisher;
    use burn::tensor::Device;

    const STEPS: u64 = 6;

    fn trainer(survey: &Arc<Survey>, value: f64) -> JointTrainer {
        let device = Device::flex();
        let config = BeliefConfig { steps: STEPS, batch: 4, width: 8, ..BeliefConfig::default() };
        let belief = BeliefTrainer::new(survey.clone(), config, 5, &device).unwrap();
        let mut config = FbConfig { steps: STEPS, groups: 4, value, ..FbConfig::default() };
        config.nets.dim = survey.states();
        let model = FbModel::new(survey, survey.states(), config, 5, &device).unwrap();
        let nobody = Situations { width: survey.states(), ..Situations::default() };
        let draw = TaskDraw::Cone(VonMisesFisher::new(survey.states(), 20.0).unwrap());
        let fb = FbTrainer::of(model, survey.clone(), nobody, draw, 5);
        JointTrainer::new(belief, fb, survey.clone(), 5)
    }

    fn tensors(trainer: &JointTrainer) -> TensorFile {
        let mut file = TensorFile::default();
        trainer.save(&mut file);
        file
    }

    /// The belief's say about a context that met nothing.
    fn h(trainer: &JointTrainer, survey: &Survey) -> Vec<f32> {
        trainer.belief().infer(&vec![0.0; survey.states() * 2]).mean
    }

    #[test]
    fn the_loss_of_f_shapes_the_belief() {
        let (_, survey) = surveyed("doors", 3, 4);
        let [mut some, mut more] = [1.0, 100.0].map(|value| trainer(&survey, value));
        assert_eq!(h(&some, &survey), h(&more, &survey));
        for step in 0..STEPS {
            let metrics = some.train_step(step).unwrap();
            assert!(metrics.iter().any(|(name, _)| *name == "surprise"), "{metrics:?}");
            more.train_step(step).unwrap();
        }
        assert_ne!(h(&some, &survey), h(&more, &survey), "its weight makes no difference");
    }

    #[test]
    fn a_loop_that_was_stopped_goes_on_bit_for_bit() {
        let (_, survey) = surveyed("doors", 3, 4);
        let mut whole = trainer(&survey, 1.0);
        (0..STEPS).for_each(|step| drop(whole.train_step(step).unwrap()));
        let mut first = trainer(&survey, 1.0);
        (0..3).for_each(|step| drop(first.train_step(step).unwrap()));
        let mut second = trainer(&survey, 1.0);
        second.load(&tensors(&first)).unwrap();
        (3..STEPS).for_each(|step| drop(second.train_step(step).unwrap()));
        assert_eq!(h(&whole, &survey), h(&second, &survey));
        assert_eq!(whole.model().backward(), second.model().backward());
    }
}
