//! A finite agent at the table: many games in lockstep, with the belief frozen after the context or updated by each step.

use super::agent::FiniteAgent;
use super::exam::Examiner;
use super::fb::Situations;
use crate::agent::{Acting, Agent, Players};
use crate::doctor::Finding;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig};
use crate::train::Metrics;
use windvane_world::protocol::{Game, Team};
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, Actions, Cmdp};

/// A team that plays with one agent.
#[derive(Debug)]
pub struct FiniteTeam<'a> {
    agent: &'a FiniteAgent,
    lookahead: usize,
    online: bool,
    /// Of every game: what was seen, `[games * states * 2]`; what is wanted, `[games * d]`; what each action is worth.
    evidence: Vec<f32>,
    tasks: Vec<f32>,
    values: Vec<f32>,
}

impl<'a> FiniteTeam<'a> {
    /// A team for one game per context trajectory, in the order the games will have.
    pub fn new<'t>(
        agent: &'a FiniteAgent,
        contexts: impl IntoIterator<Item = &'t Trajectory>,
        lookahead: usize,
        online: bool,
    ) -> Self {
        let evidence = contexts.into_iter().flat_map(|context| evidence_of(agent, context)).collect();
        Self {
            agent,
            lookahead,
            online: online && agent.listens(),
            evidence,
            tasks: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Refreshes what each action is worth to the games `which`.
    fn think(&mut self, which: &[usize]) {
        let (states, dim) = (self.agent.survey().states(), self.agent.model().config().nets.dim);
        let pick = |from: &[f32], width: usize| -> Vec<f32> {
            which.iter().flat_map(|&game| &from[game * width..(game + 1) * width]).copied().collect()
        };
        let situations: Situations = self.agent.situations(&pick(&self.evidence, states * 2));
        let values = self.agent.action_values(&situations, &pick(&self.tasks, dim), self.lookahead);
        let pairs = self.agent.survey().pairs();
        for (&game, values) in which.iter().zip(values.chunks_exact(pairs)) {
            self.values[game * pairs..(game + 1) * pairs].copy_from_slice(values);
        }
    }
}

/// What a trajectory says of each state.
pub(crate) fn evidence_of(agent: &FiniteAgent, context: &Trajectory) -> Vec<f32> {
    let mut evidence = vec![0.0; agent.survey().states() * 2];
    for (obs, action, next) in context.transitions() {
        note(agent, &mut evidence, obs, action, next);
    }
    evidence
}

/// Adds one transition to a game's evidence; one that no training episode ever saw says nothing.
fn note(agent: &FiniteAgent, evidence: &mut [f32], obs: &[f32], action: Action<'_>, next: &[f32]) {
    if let Some(token) = agent.survey().token_of(obs, action, next) {
        agent.survey().add_evidence(token as usize, evidence);
    }
}

impl Agent for FiniteAgent {
    fn players<'a>(&'a self, contexts: &[&Trajectory], acting: &Acting) -> Result<Players<'a>, LearnError> {
        let online = acting.belief == BeliefMode::Online;
        Ok(Box::new(FiniteTeam::new(self, contexts.iter().copied(), acting.lookahead, online)))
    }

    fn vitals(&self, world: &dyn Cmdp, eval: &EvalConfig, seed: u64) -> Result<Metrics, LearnError> {
        let Some(grid) = world.grid() else { return Ok(Metrics::new()) };
        Examiner { world, grid, agent: self, eval: *eval, seed }.vitals()
    }

    fn examine(&self, world: &dyn Cmdp, eval: &EvalConfig, seed: u64) -> Result<Vec<Finding>, LearnError> {
        let Some(grid) = world.grid() else {
            return Err(LearnError::Config {
                origin: world.spec().name.clone(),
                problem: "exact answers are known on grids only".into(),
            });
        };
        Examiner { world, grid, agent: self, eval: *eval, seed }.findings()
    }
}

impl Team for FiniteTeam<'_> {
    type Error = LearnError;

    fn begin(&mut self, games: &[Game], _: &[f32]) -> Result<(), LearnError> {
        self.tasks = games.iter().flat_map(|game| self.agent.task(&game.task.reward)).collect();
        self.values = vec![0.0; games.len() * self.agent.survey().pairs()];
        self.think(&(0..games.len()).collect::<Vec<_>>());
        Ok(())
    }

    fn act(
        &mut self,
        running: &[usize],
        obs: &[f32],
        _: &mut [Game],
        actions: &mut Actions,
    ) -> Result<(), LearnError> {
        let survey = self.agent.survey();
        for (&game, obs) in running.iter().zip(obs.chunks_exact(survey.spec().obs_dim())) {
            let pair = survey.nearest(obs) * survey.actions();
            let q = &self.values[game * survey.pairs() + pair..][..survey.actions()];
            let best = (1..q.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best });
            actions.push(Action::Discrete(best as u32));
        }
        Ok(())
    }

    fn observe(
        &mut self,
        running: &[usize],
        obs: &[f32],
        actions: &Actions,
        next: &[f32],
    ) -> Result<(), LearnError> {
        if !self.online {
            return Ok(());
        }
        let (dim, states) = (self.agent.survey().spec().obs_dim(), self.agent.survey().states());
        for (row, &game) in running.iter().enumerate() {
            let span = row * dim..(row + 1) * dim;
            let evidence = &mut self.evidence[game * states * 2..(game + 1) * states * 2];
            note(self.agent, evidence, &obs[span.clone()], actions.get(row), &next[span]);
        }
        self.think(running);
        Ok(())
    }
}
