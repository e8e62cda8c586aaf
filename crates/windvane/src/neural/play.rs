//! An agent at the table: many games in lockstep, each action held as long as in training, with the belief frozen after the
//! context or refreshed by what is met.

use super::agent::NeuralAgent;
use super::fb::Places;
use super::lookahead::Worth;
use super::situations::Listener;
use super::surprise;
use super::tokens::TokenSet;
use crate::agent::{Acting, Agent, Players, once_each};
use crate::deploy::Core;
use crate::doctor::Finding;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig};
use crate::latent;
use crate::nn::TensorFile;
use crate::train::Metrics;
use windvane_world::protocol::{Game, Team};
use windvane_world::trajectory::Trajectory;
use windvane_world::{ActionBuf, Actions, Cmdp};

/// A team that plays with one agent.
#[derive(Debug)]
struct NeuralTeam<'a> {
    agent: &'a NeuralAgent,
    online: bool,
    acting: Acting,
    tables: Vec<Table>,
}

/// One game.
#[derive(Debug)]
struct Table {
    /// What was seen.
    tokens: TokenSet,
    /// What is wanted, and what the context adds to that; nothing where rewards are taken as they are.
    wanted: Vec<f32>,
    shift: Vec<f32>,
    /// The task vector that comes of it.
    z: Vec<f32>,
    /// What F is told, and the belief behind it.
    condition: Vec<f32>,
    belief: Vec<f32>,
    /// What landmarks are worth, with lookahead.
    worth: Option<Worth>,
    /// The action being held and the steps it is still to be held.
    held: ActionBuf,
    left: usize,
    /// What happened since the last token: observations, actions.
    seen: Vec<f32>,
    done: Vec<ActionBuf>,
    /// Steps since the belief was last refreshed.
    stale: usize,
}

impl Agent for NeuralAgent {
    fn players<'a>(&'a self, contexts: &[&Trajectory], acting: &Acting) -> Result<Players<'a>, LearnError> {
        let held = self.lens().spec().action.buffer();
        let shifts = once_each(contexts, |context| self.shift(context))?;
        let table = |(context, shift): (&&Trajectory, Vec<f32>)| Table {
            tokens: TokenSet::new(self.lens().tokens_of(context), self.lens().token(), self.most_tokens()),
            wanted: Vec::new(),
            shift,
            z: Vec::new(),
            condition: Vec::new(),
            belief: Vec::new(),
            worth: None,
            held: held.clone(),
            left: 0,
            seen: Vec::new(),
            done: Vec::new(),
            stale: 0,
        };
        let online = acting.belief == BeliefMode::Online && self.listener.belief().is_some();
        let tables = contexts.iter().zip(shifts).map(table).collect();
        Ok(Box::new(NeuralTeam { agent: self, online, acting: *acting, tables }))
    }

    fn looks_ahead(&self) -> bool {
        self.model.predicts()
    }

    fn vitals(&self, _: &dyn Cmdp, _: &EvalConfig, _: u64) -> Result<Metrics, LearnError> {
        Ok(Metrics::new()) // its trainer logs them with every row
    }

    fn surprise(&self, context: &Trajectory) -> Option<f64> {
        surprise::of(self, &self.lens().tokens_of(context)).map(f64::from)
    }

    fn keep(&self, file: &mut TensorFile) -> Result<Core, LearnError> {
        Ok(Core::Neural(Box::new(self.kept(file))))
    }

    fn examine(&self, _: &dyn Cmdp, _: &EvalConfig, seed: u64) -> Result<Vec<Finding>, LearnError> {
        Ok(self.findings(seed))
    }

    fn beliefs(&self, contexts: &[&Trajectory]) -> Vec<f32> {
        let Some(belief) = self.listener.belief() else { return Vec::new() };
        belief.infer(&contexts.iter().map(|context| self.lens().tokens_of(context)).collect::<Vec<_>>())
    }
}

impl NeuralTeam<'_> {
    /// Forms the beliefs of the games `which` anew, and looks ahead.
    fn listen(&mut self, which: &[usize]) {
        self.believe(which);
        for &game in which {
            let table = &mut self.tables[game];
            table.z = if self.agent.cones && self.acting.blend > 0.0 {
                latent::toward(&table.wanted, &table.condition, self.acting.blend)
            } else {
                table.wanted.clone()
            };
        }
        if self.acting.outlook.lookahead == 0 {
            return;
        }
        for &game in which {
            let table = &mut self.tables[game];
            let told = [&table.condition[..], &table.z].concat();
            let landmarks = self.agent.landmarks();
            table.worth = landmarks.worth(
                self.agent.model(),
                &told,
                &table.belief,
                &table.z,
                self.acting.outlook.lookahead,
            );
        }
    }

    fn believe(&mut self, which: &[usize]) {
        let Some(belief) = self.agent.listener.belief() else { return };
        let sets: Vec<Vec<f32>> =
            which.iter().map(|&game| self.tables[game].tokens.tokens().to_vec()).collect();
        let means = self.agent.listener.beliefs(&sets);
        for (&game, h) in which.iter().zip(means.chunks_exact(belief.dim())) {
            let table = &mut self.tables[game];
            table.condition = self.agent.listener.conditions(h);
            table.belief = h.to_vec();
            table.stale = 0;
        }
    }

    /// Chooses the next action of the games `which`, whose observations are `obs`.
    fn decide(&mut self, which: &[usize], obs: Vec<f32>) {
        if which.is_empty() {
            return;
        }
        let model = self.agent.model();
        let tables = || which.iter().map(|&game| &self.tables[game]);
        let places = Places {
            features: model.lens.features_of(&obs),
            obs,
            told: tables().flat_map(|t| t.condition.iter().chain(&t.z)).copied().collect(),
            beliefs: tables().flat_map(|t| &t.belief).copied().collect(),
            groups: which.len(),
        };
        let z: Vec<f32> = tables().flat_map(|t| &t.z).copied().collect();
        let (mut choices, vectors) = model.greedy(&places, &z);
        if let (true, Some(after)) = (self.acting.outlook.lookahead > 0, model.afterstates(&places)) {
            for ((choice, table), after) in
                choices.iter_mut().zip(tables()).zip(after.chunks_exact(after.len() / which.len()))
            {
                let Some(worth) = &table.worth else { continue };
                let q = self.agent.landmarks().between(model, worth, after);
                *choice = (1..q.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best });
            }
        }
        let (lens, width) = (self.agent.lens(), vectors.len() / which.len());
        for (i, (&game, &choice)) in which.iter().zip(&choices).enumerate() {
            let table = &mut self.tables[game];
            table.held = lens.moves().action(choice, &vectors[i * width..(i + 1) * width]);
            table.left = lens.repeat();
        }
    }
}

impl Team for NeuralTeam<'_> {
    type Error = LearnError;

    fn begin(&mut self, games: &[Game], _: &[f32]) -> Result<(), LearnError> {
        for (table, game) in self.tables.iter_mut().zip(games) {
            table.wanted = latent::shifted(self.agent.task(&game.task.reward), &table.shift);
            if matches!(self.agent.listener, Listener::ContextId { .. }) {
                (table.condition, table.belief) = self.agent.listener.told(game.context);
            }
        }
        self.listen(&(0..games.len()).collect::<Vec<_>>());
        Ok(())
    }

    fn act(
        &mut self,
        running: &[usize],
        obs: &[f32],
        _: &mut [Game],
        actions: &mut Actions,
    ) -> Result<(), LearnError> {
        let dims = self.agent.lens().change().len();
        let free = running.iter().zip(obs.chunks_exact(dims));
        let free = free.filter(|(game, _)| self.tables[**game].left == 0);
        let (which, places): (Vec<usize>, Vec<&[f32]>) = free.map(|(&game, obs)| (game, obs)).unzip();
        self.decide(&which, places.concat());
        for &game in running {
            let table = &mut self.tables[game];
            table.left -= 1;
            actions.push(table.held.as_action());
        }
        Ok(())
    }

    fn observe(
        &mut self,
        running: &[usize],
        obs: &[f32],
        _: &Actions,
        next: &[f32],
    ) -> Result<(), LearnError> {
        if !self.online {
            return Ok(());
        }
        let lens = self.agent.lens();
        let (dims, repeat) = (lens.change().len(), lens.repeat());
        let mut stale = Vec::new();
        for (row, &game) in running.iter().enumerate() {
            let (obs, next) = (&obs[row * dims..][..dims], &next[row * dims..][..dims]);
            let table = &mut self.tables[game];
            if table.done.is_empty() {
                table.seen.extend_from_slice(obs);
            }
            table.seen.extend_from_slice(next);
            table.done.push(table.held.clone());
            table.stale += 1;
            if table.done.len() == repeat {
                let action = |step: usize| table.done[step].as_action();
                let mut token = Vec::with_capacity(lens.token());
                lens.push_tokens(repeat, &table.seen, action, &mut token);
                table.tokens.push(&token);
                table.seen.clear();
                table.done.clear();
                if table.stale >= self.agent.plan.belief.refresh {
                    stale.push(game);
                }
            }
        }
        if !stale.is_empty() {
            self.listen(&stale);
        }
        Ok(())
    }
}
