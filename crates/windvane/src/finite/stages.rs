//! The stages of a run on listed states: survey, belief, agent.

use super::agent::{self, FiniteAgent, Listener};
use super::belief::{BeliefTrainer, FiniteBelief};
use super::context::Contexts;
use super::fb::FbTrainer;
use super::joint::JointTrainer;
use super::model::FbModel;
use super::situations::{Situations, TaskDraw, middle};
use super::survey::Survey;
use crate::agent::Agent;
use crate::config::Plan;
use crate::correction::Corrector;
use crate::error::LearnError;
use crate::latent::VonMisesFisher;
use crate::methods::{Condition, Draw, RewardIn};
use crate::phi::Source as _;
use crate::run::{Run, Site, Stage};
use burn::tensor::Device;
use serde::Serialize;
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
    if run.method.believes() && run.plan.belief.joint {
        let agent = joint(run, &survey, site)?;
        return Ok(agent.map(|agent| Box::new(agent) as Box<dyn Agent>));
    }
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
    let situations = situations(run, survey, belief.map(|b| &**b));
    let draw = task_draw(run, survey)?;
    let model = if let Some(learner) = run.method.features {
        let hidden = [config.nets.backward_width; 3];
        let Some(phi) = run.features(learner, survey.clone(), &hidden, site)? else { return Ok(None) };
        FbModel::over(phi.of(survey.reference().0), survey, config, run.seed, site.device)?
    } else {
        FbModel::new(survey, situations.width, config, run.seed, site.device)?
    };
    let device = site.device;
    let middle = middle(&situations.axes, situations.width);
    let mut trainer = FbTrainer::of(model, survey.clone(), situations, draw, run.seed);
    let stage = agent_stage(run);
    let make = |trainer: &FbTrainer| {
        let listener = match (run.method.condition, belief) {
            (Condition::Belief, Some(belief)) => Listener::Belief(belief.clone()),
            (Condition::ContextId, _) => Listener::ContextId,
            (Condition::Nothing | Condition::Belief, _) => Listener::Deaf,
        };
        let agent = FiniteAgent::new(survey.clone(), listener, trainer.model().clone());
        let agent = if run.method.draw == Draw::Cone { agent.drawn_around(middle.clone()) } else { agent };
        match run.method.reward {
            RewardIn::AsIs => agent,
            RewardIn::Corrected => {
                let corrector = corrector(run, survey, &trainer.model().backward(), device);
                agent.corrected_by(corrector)
            }
        }
    };
    let finished = run.train(&mut trainer, &stage, |trainer| Some(Box::new(make(trainer))), site)?;
    Ok(finished.then(|| make(&trainer)))
}

/// Belief and agent, trained in one loop; `None` if it was interrupted.
fn joint(run: &Run, survey: &Arc<Survey>, site: &mut Site<'_>) -> Result<Option<FiniteAgent>, LearnError> {
    let belief = BeliefTrainer::new(survey.clone(), run.plan.belief, run.seed, site.device)?;
    let model = FbModel::new(survey, survey.states(), run.plan.agent.fb, run.seed, site.device)?;
    // It meets others at every step.
    let nobody = Situations { width: survey.states(), ..Situations::default() };
    let fb = FbTrainer::of(model, survey.clone(), nobody, task_draw(run, survey)?, run.seed);
    let mut trainer = JointTrainer::new(belief, fb, survey.clone(), run.seed);
    let make = |trainer: &JointTrainer| {
        let listener = Listener::Belief(Arc::new(trainer.belief().clone()));
        FiniteAgent::new(survey.clone(), listener, trainer.model().clone())
    };
    let stage = agent_stage(run);
    let finished = run.train(&mut trainer, &stage, |trainer| Some(Box::new(make(trainer))), site)?;
    Ok(finished.then(|| make(&trainer)))
}

/// The training of the agent. How scores are taken does not make it another one.
fn agent_stage(run: &Run) -> Stage<'_, impl Serialize> {
    let Plan { world, data, boxes, belief, agent, .. } = &run.plan;
    Stage {
        title: run.method.title,
        name: run.method.name,
        path: &run.agent,
        steps: agent.fb.steps,
        looks: 5,
        settings: (world, data, boxes, belief, agent),
    }
}

/// What corrects rewards: every transition of the data, and B of where it led.
fn corrector(run: &Run, survey: &Survey, b: &[f32], device: &Device) -> Corrector {
    let dim = b.len() / survey.states();
    let (tokens, shares) = survey.shares();
    let led = tokens.iter().map(|&token| survey.successors()[token as usize] as usize);
    let features = led.flat_map(|state| &b[state * dim..][..dim]).copied().collect();
    let seen = survey.seen(tokens.iter().copied());
    Corrector::new(run.plan.correction, seen, shares, features, run.seed, device)
}

/// What the forward map will be told in training: beliefs of many contexts, computed once; each group's number; or nothing.
fn situations(run: &Run, survey: &Survey, belief: Option<&FiniteBelief>) -> Situations {
    let (states, average) = (survey.states(), survey.average());
    let every = 0..survey.groups().len();
    let belief = match (run.method.condition, belief) {
        (Condition::Belief, Some(belief)) => belief,
        (Condition::ContextId, _) => {
            let known: Vec<Option<usize>> = every.clone().map(Some).collect();
            return Situations { groups: every.collect(), ..agent::identities(survey, &average, &known) };
        }
        (Condition::Nothing | Condition::Belief, _) => {
            return agent::situations(survey, None, &average, &vec![0.0; states * 2]);
        }
    };
    let count = run.plan.agent.beliefs;
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
    Situations { groups, ..agent::situations(survey, Some(belief), &average, &evidence) }
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
