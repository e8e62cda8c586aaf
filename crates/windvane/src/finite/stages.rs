//! The stages of a run on listed states: survey, belief, agent.

use super::agent::{self, FiniteAgent};
use super::belief::{BeliefTrainer, FiniteBelief};
use super::context::Contexts;
use super::fb::{FbTrainer, Situations, TaskDraw};
use super::survey::Survey;
use crate::agent::Agent;
use crate::config::Plan;
use crate::error::LearnError;
use crate::latent::VonMisesFisher;
use crate::methods::{Condition, Draw};
use crate::run::{Run, Site, Stage};
use std::sync::Arc;
use windvane_world::episodes::Episodes;
use windvane_world::rng::stream;

/// Belief and agent, trained as far as they are not yet; `None` if it was interrupted.
pub(crate) fn trained(
    run: &Run,
    data: &Episodes,
    site: &mut Site<'_>,
) -> Result<Option<Box<dyn Agent>>, LearnError> {
    let survey = Arc::new(Survey::of(data, &run.plan.boxes)?);
    let belief = if run.method.believes() {
        let Some(belief) = self::belief(run, &survey, site)? else { return Ok(None) };
        Some(Arc::new(belief))
    } else {
        None
    };
    let agent = self::agent(run, &survey, belief.as_ref(), site)?;
    Ok(agent.map(|agent| Box::new(agent) as Box<dyn Agent>))
}

/// The trained belief; `None` if it was interrupted.
pub fn belief(
    run: &Run,
    survey: &Arc<Survey>,
    site: &mut Site<'_>,
) -> Result<Option<FiniteBelief>, LearnError> {
    let Plan { world, data, boxes, belief: config, .. } = &run.plan;
    let mut trainer = BeliefTrainer::new(survey.clone(), *config, run.seed, site.device)?;
    let stage = Stage {
        title: "belief",
        name: "belief",
        path: &run.belief,
        steps: config.steps,
        looks: 0,
        settings: (world, data, boxes, config),
    };
    let finished = run.train(&mut trainer, &stage, |_| None, site)?;
    Ok(finished.then(|| trainer.belief().clone()))
}

/// The trained agent; `None` if it was interrupted.
pub fn agent(
    run: &Run,
    survey: &Arc<Survey>,
    belief: Option<&Arc<FiniteBelief>>,
    site: &mut Site<'_>,
) -> Result<Option<FiniteAgent>, LearnError> {
    let config = run.plan.agent.fb;
    let situations = Arc::new(situations(run, survey, belief.map(|b| &**b))?);
    let draw = task_draw(run, survey)?;
    let mut trainer = FbTrainer::new(survey.clone(), situations, draw, config, run.seed, site.device)?;
    // How scores are taken does not make it another agent.
    let Plan { world, data, boxes, belief: beliefs, agent, .. } = &run.plan;
    let stage = Stage {
        title: run.method.title,
        name: run.method.name,
        path: &run.agent,
        steps: config.steps,
        looks: 5,
        settings: (world, data, boxes, beliefs, agent),
    };
    let make =
        |trainer: &FbTrainer| FiniteAgent::new(survey.clone(), belief.cloned(), trainer.model().clone());
    let finished = run.train(&mut trainer, &stage, |trainer| Some(Box::new(make(trainer))), site)?;
    Ok(finished.then(|| make(&trainer)))
}

/// What the forward map will be told in training: beliefs of many contexts, computed once; or nothing, once.
fn situations(run: &Run, survey: &Survey, belief: Option<&FiniteBelief>) -> Result<Situations, LearnError> {
    if run.method.condition == Condition::ContextId {
        let problem = format!("{} works with core = \"neural\" only", run.method.title);
        return Err(LearnError::Config { origin: "--method".into(), problem });
    }
    let states = survey.states();
    let count = if belief.is_some() { run.plan.agent.beliefs } else { survey.groups().len() };
    let contexts = Contexts::new(survey, run.plan.belief.context);
    let mut evidence = vec![0.0; count * states * 2];
    let mut bag = vec![0.0; survey.vocabulary()];
    let mut groups = Vec::with_capacity(count);
    for (i, evidence) in evidence.chunks_exact_mut(states * 2).enumerate() {
        let group = i % survey.groups().len();
        let mut rng = stream(run.seed, "beliefs", &[i as u64]);
        contexts.of_group(&mut rng, group, &mut bag);
        survey.write_evidence(&bag, evidence);
        groups.push(group);
    }
    let mut situations = agent::situations(survey, belief, &survey.average(), &evidence);
    situations.groups = groups;
    if run.method.draw == Draw::Cone {
        situations.axes = centred(&situations.axes, states, run.plan.agent.fb.nets.dim);
    }
    Ok(situations)
}

fn task_draw(run: &Run, survey: &Survey) -> Result<TaskDraw, LearnError> {
    if run.method.draw == Draw::Sphere {
        return Ok(TaskDraw::Sphere);
    }
    let dim = run.plan.agent.fb.nets.dim;
    let bad = |problem| LearnError::Config { origin: "plan".into(), problem };
    if dim < survey.states() {
        let states = survey.states();
        let problem =
            format!("\"agent.nets.dim\" is {dim}; Rotation-FB needs at least the belief's {states} numbers");
        return Err(bad(problem));
    }
    let cone = VonMisesFisher::new(dim, run.plan.agent.kappa);
    cone.map(TaskDraw::Cone).ok_or_else(|| bad(format!("\"agent.kappa\" is {}", run.plan.agent.kappa)))
}

/// Beliefs as directions: what they have in common points nowhere, so it is taken out; the rest is filled up with zeros.
pub(super) fn centred(axes: &[f32], width: usize, dim: usize) -> Vec<f32> {
    let count = (axes.len() / width).max(1) as f32;
    let mut mean = vec![0.0; width];
    for axis in axes.chunks_exact(width) {
        mean.iter_mut().zip(axis).for_each(|(m, x)| *m += x / count);
    }
    let mut out = Vec::with_capacity(axes.len() / width * dim);
    for axis in axes.chunks_exact(width) {
        out.extend(axis.iter().zip(&mean).map(|(x, m)| x - m));
        out.resize(out.len() + dim - width, 0.0);
    }
    out
}
