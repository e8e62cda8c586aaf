//! An agent on listed states at the wheel of one thing: the worth of every action everywhere is known before it acts.

use super::agent::FiniteAgent;
use super::surprise;
use crate::agent::Outlook;
use crate::deploy::{Doubt, Steer};
use std::sync::Arc;
use windvane_world::ActionBuf;
use windvane_world::trajectory::Trajectory;

/// What a context told an agent.
#[derive(Clone, Debug)]
pub struct FiniteBriefing {
    agent: Arc<FiniteAgent>,
    evidence: Vec<f32>,
    moves: usize,
    surprise: Option<f64>,
}

impl FiniteBriefing {
    /// Listens to trajectories, none at all included.
    pub fn new(agent: Arc<FiniteAgent>, walks: &[Trajectory]) -> Self {
        let survey = agent.survey();
        let mut evidence = vec![0.0; survey.states() * 2];
        let tokens: Vec<u32> = walks.iter().flat_map(|walk| survey.tokens_of(walk)).collect();
        tokens.iter().for_each(|&token| survey.add_evidence(token as usize, &mut evidence));
        let each: Vec<f64> = walks.iter().filter_map(|walk| surprise::of(&agent, walk)).collect();
        let surprise = (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64);
        Self { agent, evidence, moves: tokens.len(), surprise }
    }

    /// How sure the belief is, and how surprising the context.
    pub fn doubt(&self) -> Doubt {
        let beliefs = self.agent.belief().map(|belief| belief.infer(&self.evidence));
        let spread = beliefs.as_ref().filter(|_| self.moves > 0).map(|beliefs| {
            let rms = |x: &mut dyn Iterator<Item = f32>, count: usize| {
                (x.map(|x| f64::from(x * x)).sum::<f64>() / count.max(1) as f64).sqrt()
            };
            let count = beliefs.mean.len();
            rms(&mut beliefs.log_std.iter().map(|s| s.exp()), count)
                / rms(&mut beliefs.mean.iter().copied(), count)
        });
        let h = beliefs.map(|beliefs| beliefs.mean).unwrap_or_default();
        Doubt::new([self.moves, 0], h, spread, self.surprise.map(|s| s as f32), &self.agent.usual)
    }

    /// Takes the wheel with the task vector `z`.
    pub fn steer(self, z: Vec<f32>, outlook: Outlook) -> FinitePilot {
        let mut pilot = FinitePilot { briefing: self, z, outlook, values: Vec::new() };
        pilot.refresh();
        pilot
    }
}

/// Belief and task made ready to act on single observations.
#[derive(Debug)]
pub struct FinitePilot {
    /// What was seen, before and since.
    briefing: FiniteBriefing,
    z: Vec<f32>,
    outlook: Outlook,
    /// The worth of every action everywhere.
    values: Vec<f32>,
}

impl Steer for FinitePilot {
    fn act(&mut self, obs: &[f32]) -> ActionBuf {
        let q = self.values(obs);
        let agent = &self.briefing.agent;
        agent.survey().view().action(&q, agent.model().config().gamma)
    }

    fn observe(&mut self, obs: &[f32], action: &ActionBuf, next: &[f32]) {
        let FiniteBriefing { agent, evidence, moves, .. } = &mut self.briefing;
        let survey = agent.survey();
        let (before, mut led) = (evidence.clone(), Vec::new());
        survey.view().add_moves(obs, action.as_action(), next, &mut led);
        for token in led.into_iter().filter_map(|led| survey.token_of(led)) {
            survey.add_evidence(token as usize, evidence);
            *moves += 1;
        }
        if before != *evidence {
            self.refresh();
        }
    }

    fn refresh(&mut self) {
        let FiniteBriefing { agent, evidence, .. } = &self.briefing;
        self.values = agent.action_values(&agent.situations(evidence), &self.z, self.outlook);
    }

    fn restart(&mut self) {}

    fn values(&mut self, obs: &[f32]) -> Vec<f32> {
        let survey = self.briefing.agent.survey();
        let actions = survey.actions();
        self.values[survey.nearest(obs) * actions..][..actions].to_vec()
    }

    fn aim(&mut self, z: Vec<f32>) {
        self.z = z;
        self.restart();
        self.refresh();
    }

    fn doubt(&self) -> Doubt {
        self.briefing.doubt()
    }
}
