//! A method of one's own: features of states by a loss of one's own, and everything else from the library.
//!
//! The features here keep the distance between a state and the next one small and those of a batch apart (a contrastive loss).
//! Successor features over them, tasks by least squares and acting come with it.

#![allow(clippy::print_stdout)] // an example tells what it does

use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;
use std::sync::atomic::AtomicBool;
use windvane::eval::{BeliefMode, success};
use windvane::features::{FeatureLearner, FeaturesConfig, PhiNets, Transitions};
use windvane::methods::{METHODS, Method};
use windvane::nn::{Weights, ops};
use windvane::run::{Run, RunContext, Silent};
use windvane::{LearnError, Plan, Planner};
use windvane_world::Split;

#[derive(Debug)]
struct Contrastive;

impl FeatureLearner for Contrastive {
    fn nets(&self) -> usize {
        1
    }

    fn loss(
        &self,
        nets: &PhiNets,
        [weights, _]: [&Weights; 2],
        batch: &Transitions,
        _: &FeaturesConfig,
    ) -> Tensor<1> {
        let [here, next] = [&batch.s, &batch.next].map(|s| ops::sphere(nets.of(weights, 0, s.clone()), 3.0)); // [rows, d]
        let rows = here.dims()[0];
        let logits = ops::products(here, next); // [rows, rows]: row i belongs to column i
        let right = log_softmax(logits, 1) * Tensor::eye(rows, &batch.s.device());
        right.sum() / -(rows as f64)
    }
}

fn main() -> Result<(), LearnError> {
    let method = Method {
        name: "contrastive",
        title: "Contrastive features",
        about: "successor features over contrastive features",
        features: Some(&Contrastive),
        ..METHODS[0]
    };
    let mut plan = Plan::preset("doors", "quick")?;
    for setting in
        ["data.train_contexts=1", "data.test_contexts=1", "fb.steps=200", "fb.tasks=24", "fb.contexts=1"]
    {
        plan = plan.set(setting)?;
    }
    let folder = std::env::temp_dir().join(format!("windvane-own-method-{}", std::process::id()));
    let run = Run::in_folder(plan.value().check()?, method, 0, &folder);
    let (world, device) = (run.world()?, windvane::device::DeviceName::Cpu.open()?);
    let interrupt = AtomicBool::new(false);
    let mut at = RunContext { world: &*world, device: &device, progress: &mut Silent, interrupt: &interrupt };
    if let Some(agent) = run.agent(&mut at)? {
        let rows = run.scores(&*world, &agent, Split::Train, BeliefMode::Frozen, Planner::None)?;
        println!("{} on the layout it learned from, F alone: {:.2}", method.title, success(&rows));
    }
    std::fs::remove_dir_all(&folder).ok();
    Ok(())
}
