//! A finite agent at the table: many games in lockstep, with the belief frozen after the context or updated by each step.

use super::agent::FiniteAgent;
use super::exam::Examiner;
use super::explorer::Explorer;
use super::fb::Situations;
use super::surprise;
use crate::agent::{Acting, Agent, Players};
use crate::deploy::Core;
use crate::doctor::Finding;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig};
use crate::nn::TensorFile;
use crate::train::Metrics;
use windvane_world::collect::Actor;
use windvane_world::protocol::{Game, Team};
use windvane_world::trajectory::Trajectory;
use windvane_world::{ActionBuf, Actions, Cmdp, Reward};

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
    under_way: Vec<UnderWay>,
}

/// An action that is being held.
#[derive(Clone, Debug)]
struct UnderWay {
    /// The state it was begun in, as the view lists it, and the choice; nothing if another has to be made.
    begun: Option<(usize, usize)>,
    action: ActionBuf,
    /// Steps it is still to be held.
    left: usize,
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
            under_way: Vec::new(),
        }
    }

    /// The best action at `obs` for a game, held from now on.
    fn choose(&self, game: &Game, number: usize, obs: &[f32]) -> UnderWay {
        let survey = self.agent.survey();
        let state = survey.nearest(obs);
        if let Reward::Goal { goal, .. } = &game.task.reward
            && survey.nearest(goal) == state
            && let Some(action) = survey.view().straight(obs, goal)
        {
            return UnderWay { begun: None, action, left: 1 };
        }
        let q = &self.values[number * survey.pairs() + state * survey.actions()..][..survey.actions()];
        let best = (1..q.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best });
        let begun = survey.view().state_of(obs).map(|state| (state, best));
        UnderWay { begun, action: survey.view().action(best), left: survey.view().hold() }
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
        let online = acting.belief == BeliefMode::Online;
        Ok(Box::new(FiniteTeam::new(self, contexts.iter().copied(), acting.lookahead, online)))
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
}

impl Team for FiniteTeam<'_> {
    type Error = LearnError;

    fn begin(&mut self, games: &[Game], _: &[f32]) -> Result<(), LearnError> {
        self.tasks = games.iter().flat_map(|game| self.agent.task(&game.task.reward)).collect();
        self.values = vec![0.0; games.len() * self.agent.survey().pairs()];
        let nothing = UnderWay { begun: None, action: self.agent.survey().view().action(0), left: 0 };
        self.under_way = vec![nothing; games.len()];
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
            if self.under_way[number].left == 0 {
                self.under_way[number] = self.choose(&games[number], number, obs);
            }
            self.under_way[number].left -= 1;
            actions.push(self.under_way[number].action.as_action());
        }
        Ok(())
    }

    fn observe(&mut self, running: &[usize], _: &[f32], _: &Actions, next: &[f32]) -> Result<(), LearnError> {
        let survey = self.agent.survey();
        let states = survey.states();
        let mut news = Vec::new();
        for (&number, next) in running.iter().zip(next.chunks_exact(survey.spec().obs_dim())) {
            let way = &mut self.under_way[number];
            let Some((begun, action)) = way.begun else { continue };
            let Some(here) = survey.view().state_of(next) else { continue };
            if here == begun && way.left > 0 {
                continue;
            }
            way.left = 0;
            let token = survey.view().led(begun, action, here).and_then(|led| survey.token_of(led));
            let evidence = &mut self.evidence[number * states * 2..(number + 1) * states * 2];
            if let Some(token) = token.filter(|_| self.online) {
                survey.add_evidence(token as usize, evidence);
                news.push(number);
            }
        }
        if !news.is_empty() {
            self.think(&news);
        }
        Ok(())
    }
}
