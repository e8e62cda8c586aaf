//! The stages of a run by networks: belief, agent.

use super::agent::NeuralAgent;
use super::belief::NeuralBelief;
use super::belief_trainer::BeliefTrainer;
use super::config::{BeliefConfig, NeuralPlan};
use super::fb::FbModel;
use super::memory::Memory;
use super::situations::Listener;
use super::trainer::FbTrainer;
use crate::agent::Agent;
use crate::config::Plan;
use crate::error::LearnError;
use crate::latent::VonMisesFisher;
use crate::methods::{Draw, RewardIn};
use crate::run::{Run, Site, Stage};
use std::sync::Arc;
use windvane_world::episodes::Episodes;

/// Belief and agent, trained as far as they are not yet; `None` if it was interrupted.
pub(crate) fn trained(
    run: &Run,
    data: Episodes,
    site: &mut Site<'_>,
) -> Result<Option<Box<dyn Agent>>, LearnError> {
    let memory = Arc::new(Memory::new(data, &run.plan.neural, run.seed)?);
    let belief = if run.needs_belief() {
        let Some(belief) = self::belief(run, &memory, site)? else { return Ok(None) };
        Some(Arc::new(belief))
    } else {
        None
    };
    let agent = self::agent(run, &memory, belief.as_ref(), site)?;
    Ok(agent.map(|agent| Box::new(agent) as Box<dyn Agent>))
}

/// The trained belief; `None` if it was interrupted.
pub fn belief(
    run: &Run,
    memory: &Arc<Memory>,
    site: &mut Site<'_>,
) -> Result<Option<NeuralBelief>, LearnError> {
    let Plan { world, data, neural, .. } = &run.plan;
    let NeuralPlan { repeat, compass, held_out, features, belief: config, .. } = neural;
    let mut trainer = BeliefTrainer::new(memory.clone(), neural, run.seed, site.device)?;
    // What is done with a belief later does not make it another one.
    let config = BeliefConfig { cached: 1, refresh: 1, ..config.clone() };
    let stage = Stage {
        title: "belief",
        name: "neural belief",
        path: &run.belief,
        steps: config.steps,
        looks: 0,
        settings: (world, data, repeat, compass, held_out, features, &config),
    };
    let finished = run.train(&mut trainer, &stage, |_| None, site)?;
    Ok(finished.then(|| trainer.belief().clone().from_source(neural.source)))
}

/// The trained agent; `None` if it was interrupted.
pub fn agent(
    run: &Run,
    memory: &Arc<Memory>,
    belief: Option<&Arc<NeuralBelief>>,
    site: &mut Site<'_>,
) -> Result<Option<NeuralAgent>, LearnError> {
    let Plan { world, data, neural: plan, .. } = &run.plan;
    let (listener, situations) = Listener::train(&run.method, memory, belief, plan, run.seed);
    let cone = cone(run)?;
    let lens = memory.lens().clone();
    let model = if let Some(learner) = run.method.features {
        let features = run.features(learner, memory.clone(), &plan.fb.backward, site)?;
        let Some(phi) = features else { return Ok(None) };
        FbModel::over(phi, lens, belief.cloned(), plan, run.seed, site.device)?
    } else {
        FbModel::new(lens, listener.width(), belief.cloned(), plan, run.seed, site.device)?
    };
    let mut trainer = FbTrainer::new(model, memory.clone(), Arc::new(situations), cone, plan, run.seed);
    let name = format!("neural {}", run.method.name);
    let stage = Stage {
        title: run.method.title,
        name: &name,
        path: &run.agent,
        steps: plan.fb.steps,
        looks: 5,
        settings: (world, data, plan),
    };
    let make = |trainer: &FbTrainer| {
        let agent = NeuralAgent::new(trainer.model().clone(), listener.clone(), memory, plan, run.seed);
        let agent = if run.method.draw == Draw::Cone { agent.drawn_around_beliefs() } else { agent };
        match run.method.reward {
            RewardIn::AsIs => agent,
            RewardIn::Corrected => agent.corrected_by(memory, run.plan.correction, run.seed),
        }
    };
    let finished = run.train(&mut trainer, &stage, |trainer| Some(Box::new(make(trainer))), site)?;
    Ok(finished.then(|| make(&trainer).calibrated(memory, run.seed)))
}

/// Rotation-FB's cones; nothing for the others.
fn cone(run: &Run) -> Result<Option<VonMisesFisher>, LearnError> {
    if run.method.draw == Draw::Sphere {
        return Ok(None);
    }
    let NeuralPlan { fb, belief, kappa, .. } = &run.plan.neural;
    let bad = |problem| LearnError::Config { origin: "plan".into(), problem };
    if fb.dim != belief.dim {
        let (d, h) = (fb.dim, belief.dim);
        return Err(bad(format!("\"neural.belief.dim\" is {h}; Rotation-FB needs \"neural.fb.dim\", {d}")));
    }
    let cone = VonMisesFisher::new(fb.dim, *kappa);
    cone.map(Some).ok_or_else(|| bad(format!("\"neural.kappa\" is {kappa}")))
}
