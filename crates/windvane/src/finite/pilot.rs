//! An agent on listed states at the wheel of one thing: the worth of every action everywhere is known before it acts.

use super::agent::FiniteAgent;
use super::surprise;
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
    pub fn steer(self, z: Vec<f32>, lookahead: usize) -> FinitePilot {
        let mut pilot = FinitePilot { briefing: self, z, lookahead, values: Vec::new(), held: None };
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
    lookahead: usize,
    /// The worth of every action everywhere.
    values: Vec<f32>,
    held: Option<Held>,
}

/// An action that is being held.
#[derive(Debug)]
struct Held {
    /// Where it began and which choice it is, as the view lists them.
    begun: Option<(usize, usize)>,
    action: ActionBuf,
    left: usize,
}

impl Steer for FinitePilot {
    fn act(&mut self, obs: &[f32]) -> ActionBuf {
        let view = self.briefing.agent.survey().view();
        let here = view.state_of(obs);
        if let Some(held) = self.held.as_mut().filter(|held| held.left > 0 && held.begun.map(|b| b.0) == here)
        {
            held.left -= 1;
            return held.action.clone();
        }
        let q = self.values(obs);
        let view = self.briefing.agent.survey().view();
        let best = (1..q.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best });
        let action = view.action(best);
        let begun = here.map(|state| (state, best));
        self.held = Some(Held { begun, action: action.clone(), left: view.hold() - 1 });
        action
    }

    fn observe(&mut self, _: &[f32], action: &ActionBuf, next: &[f32]) {
        let survey = self.briefing.agent.survey();
        let held = self.held.as_ref().filter(|held| held.action == *action);
        let (Some(Held { begun: Some((from, choice)), left, .. }), Some(here)) =
            (held, survey.view().state_of(next))
        else {
            return;
        };
        if here == *from && *left > 0 {
            return;
        }
        let token = survey.view().led(*from, *choice, here).and_then(|led| survey.token_of(led));
        self.held = None;
        if let Some(token) = token {
            let FiniteBriefing { agent, evidence, moves, .. } = &mut self.briefing;
            let before = evidence.clone();
            agent.survey().add_evidence(token as usize, evidence);
            *moves += 1;
            if before != *evidence {
                self.refresh();
            }
        }
    }

    fn refresh(&mut self) {
        let FiniteBriefing { agent, evidence, .. } = &self.briefing;
        self.values = agent.action_values(&agent.situations(evidence), &self.z, self.lookahead);
    }

    fn restart(&mut self) {
        self.held = None;
    }

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
