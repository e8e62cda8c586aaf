//! A finite agent at the table: many games in lockstep, with the belief frozen after the context or updated by each step.

use super::agent::FiniteAgent;
use super::exam::Examiner;
use super::explorer::Explorer;
use super::nets::Forward;
use super::situations::Situations;
use super::surprise;
use crate::agent::{Acting, Agent, Players, once_each};
use crate::deploy::Core;
use crate::doctor::Finding;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig};
use crate::latent;
use crate::nn::TensorFile;
use crate::train::Metrics;
use windvane_world::collect::Actor;
use windvane_world::protocol::{Game, Team};
use windvane_world::trajectory::Trajectory;
use windvane_world::{ActionBuf, Actions, Cmdp, ContextId, Reward};

/// A team that plays with one agent.
#[derive(Debug)]
pub struct FiniteTeam<'a> {
    agent: &'a FiniteAgent,
    acting: Acting,
    online: bool,
    /// Of every game: what was seen, `[games * states * 2]`; what is wanted, `[games * d]`; what each action is worth.
    evidence: Vec<f32>,
    tasks: Vec<f32>,
    values: Vec<f32>,
    /// Where each is played, and what that adds to its task; nothing where rewards are taken as they are.
    places: Vec<ContextId>,
    shifts: Vec<Vec<f32>>,
}

impl<'a> FiniteTeam<'a> {
    /// A team for one game per context trajectory, in the order the games will have.
    pub fn new(
        agent: &'a FiniteAgent,
        contexts: &[&Trajectory],
        acting: &Acting,
    ) -> Result<Self, LearnError> {
        Ok(Self {
            agent,
            acting: *acting,
            online: acting.belief == BeliefMode::Online && agent.listens(),
            evidence: contexts.iter().flat_map(|context| evidence_of(agent, context)).collect(),
            tasks: Vec::new(),
            values: Vec::new(),
            places: Vec::new(),
            shifts: once_each(contexts, |context| agent.shift(context))?,
        })
    }

    /// The best action at `obs` for a game.
    fn choose(&self, game: &Game, number: usize, obs: &[f32]) -> ActionBuf {
        let survey = self.agent.survey();
        let state = survey.nearest(obs);
        if let Reward::Goal { goal, .. } = &game.task.reward
            && survey.nearest(goal) == state
            && let Some(action) = survey.view().straight(obs, goal)
        {
            return action;
        }
        let q = &self.values[number * survey.pairs() + state * survey.actions()..][..survey.actions()];
        // A push that is less than a step worse than the best one leads on as well.
        survey.view().action(q, self.agent.model().config().gamma)
    }

    /// Refreshes what each action is worth to the games `which`.
    fn think(&mut self, which: &[usize]) {
        let (states, dim) = (self.agent.survey().states(), self.agent.model().config().nets.dim);
        let pick = |from: &[f32], width: usize| -> Vec<f32> {
            which.iter().flat_map(|&game| &from[game * width..(game + 1) * width]).copied().collect()
        };
        let places: Vec<ContextId> = which.iter().map(|&game| self.places[game]).collect();
        let situations: Situations = self.agent.situations_in(&places, &pick(&self.evidence, states * 2));
        let tasks = self.agent.blended(&situations, &pick(&self.tasks, dim), self.acting.blend);
        let values = self.agent.action_values(&situations, &tasks, self.acting.outlook);
        let pairs = self.agent.survey().pairs();
        for (&game, values) in which.iter().zip(values.chunks_exact(pairs)) {
            self.values[game * pairs..(game + 1) * pairs].copy_from_slice(values);
        }
    }
}

/// What a trajectory says of each state.
pub(crate) fn evidence_of(agent: &FiniteAgent, context: &Trajectory) -> Vec<f32> {
    let survey = agent.survey();
    let mut evidence = vec![0.0; survey.states() * 2];
    survey
        .tokens_of(context)
        .into_iter()
        .for_each(|token| survey.add_evidence(token as usize, &mut evidence));
    evidence
}

impl Agent for FiniteAgent {
    fn players<'a>(&'a self, contexts: &[&Trajectory], acting: &Acting) -> Result<Players<'a>, LearnError> {
        Ok(Box::new(FiniteTeam::new(self, contexts, acting)?))
    }

    fn looks_ahead(&self) -> bool {
        self.model().config().nets.forward == Forward::Predictor
    }

    fn vitals(&self, world: &dyn Cmdp, eval: &EvalConfig, seed: u64) -> Result<Metrics, LearnError> {
        let Some(grid) = world.grid() else { return Ok(Metrics::new()) };
        Examiner { world, grid, agent: self, eval: *eval, seed }.vitals()
    }

    fn explorer(&self) -> Option<Box<dyn Actor + '_>> {
        self.listens().then(|| Box::new(Explorer::new(self)) as Box<dyn Actor + '_>)
    }

    fn surprise(&self, context: &Trajectory) -> Option<f64> {
        surprise::of(self, context)
    }

    fn keep(&self, file: &mut TensorFile) -> Result<Core, LearnError> {
        if !self.is_plain() {
            return Err(LearnError::Config {
                origin: "export".into(),
                problem:
                    "on listed states only FB, Belief-FB and Rotation-FB can be kept apart from their data"
                        .into(),
            });
        }
        Ok(Core::Listed(Box::new(self.kept(file))))
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

    fn beliefs(&self, contexts: &[&Trajectory]) -> Vec<f32> {
        let evidence: Vec<f32> = contexts.iter().flat_map(|context| evidence_of(self, context)).collect();
        self.situations(&evidence).axes
    }

    fn listed(&self) -> Option<&FiniteAgent> {
        Some(self)
    }
}

impl Team for FiniteTeam<'_> {
    type Error = LearnError;

    fn begin(&mut self, games: &[Game], _: &[f32]) -> Result<(), LearnError> {
        let tasks = games.iter().map(|game| self.agent.task(&game.task.reward));
        self.tasks = tasks.zip(&self.shifts).flat_map(|(task, shift)| latent::shifted(task, shift)).collect();
        self.places = games.iter().map(|game| game.context).collect();
        self.values = vec![0.0; games.len() * self.agent.survey().pairs()];
        self.think(&(0..games.len()).collect::<Vec<_>>());
        Ok(())
    }

    fn act(
        &mut self,
        running: &[usize],
        obs: &[f32],
        games: &mut [Game],
        actions: &mut Actions,
    ) -> Result<(), LearnError> {
        let dim = self.agent.survey().spec().obs_dim();
        for (&number, obs) in running.iter().zip(obs.chunks_exact(dim)) {
            actions.push(self.choose(&games[number], number, obs).as_action());
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
        let survey = self.agent.survey();
        let (states, dim) = (survey.states(), survey.spec().obs_dim());
        let (mut news, mut moves) = (Vec::new(), Vec::new());
        let steps = obs.chunks_exact(dim).zip(next.chunks_exact(dim)).enumerate();
        for (&number, (row, (obs, next))) in running.iter().zip(steps) {
            let evidence = &mut self.evidence[number * states * 2..(number + 1) * states * 2];
            let before = evidence.to_vec();
            moves.clear();
            survey.view().add_moves(obs, actions.get(row), next, &mut moves);
            for token in moves.iter().filter_map(|&led| survey.token_of(led)) {
                survey.add_evidence(token as usize, evidence);
            }
            if *evidence != before {
                news.push(number);
            }
        }
        if !news.is_empty() {
            self.think(&news);
        }
        Ok(())
    }
}
