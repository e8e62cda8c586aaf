//! An agent at the wheel of one thing: belief and task fixed, an action in microseconds, the belief refreshed now and then.

use super::agent::NeuralAgent;
use super::belief::RowPredictor;
use super::lookahead::Worth;
use super::surprise;
use super::tokens::TokenSet;
use crate::agent::Outlook;
use crate::deploy::{Doubt, Steer};
use crate::nn::RowPair;
use std::sync::Arc;
use windvane_world::ActionBuf;
use windvane_world::trajectory::Trajectory;

/// What a context told an agent.
#[derive(Clone, Debug)]
pub struct NeuralBriefing {
    agent: Arc<NeuralAgent>,
    seen: TokenSet,
    belief: Vec<f32>,
}

impl NeuralBriefing {
    /// Listens to trajectories, none at all included.
    pub fn new(agent: Arc<NeuralAgent>, walks: &[Trajectory]) -> Self {
        let tokens: Vec<f32> = walks.iter().flat_map(|walk| agent.lens().tokens_of(walk)).collect();
        let mut seen = TokenSet::new(Vec::new(), agent.lens().token(), agent.most_tokens());
        tokens.chunks_exact(agent.lens().token()).for_each(|token| seen.push(token));
        let belief = agent.listener.beliefs(&[seen.tokens().to_vec()]);
        Self { agent, seen, belief }
    }

    /// How sure the belief is, and how usual the context.
    pub fn doubt(&self) -> Doubt {
        doubt(&self.agent, &self.seen, &self.belief)
    }

    /// Takes the wheel with the task vector `z`.
    pub fn steer(self, z: Vec<f32>, outlook: Outlook) -> NeuralPilot {
        let model = self.agent.model();
        let weights = model.params.weights();
        let told = vec![0.0; self.agent.listener.width() + z.len()];
        let knows = self.agent.listener.belief().is_some();
        let mut pilot = NeuralPilot {
            forward: model.forward.iter().map(|map| map.row(&weights, &told)).collect(),
            actor: model.actor.as_ref().map(|actor| actor.row(&told)),
            predictor: model.predictor.as_ref().map(|belief| belief.row_predictor(knows)),
            worth: None,
            lookahead: outlook.lookahead,
            z,
            belief: self.belief,
            seen: self.seen,
            trail: Trail::default(),
            agent: self.agent,
        };
        pilot.settle();
        pilot
    }
}

fn doubt(agent: &NeuralAgent, seen: &TokenSet, belief: &[f32]) -> Doubt {
    let believes = agent.listener.belief().is_some();
    let spread = (believes && !seen.is_empty()).then(|| agent.sureness(&[seen.tokens().to_vec()]));
    let least = agent.plan.belief.shortest / agent.plan.repeat;
    let surprise = surprise::of(agent, seen.tokens());
    Doubt::new([seen.len(), least], belief.to_vec(), spread, surprise, &agent.usual)
}

/// Belief and task made ready to act on single observations.
#[derive(Debug)]
pub struct NeuralPilot {
    agent: Arc<NeuralAgent>,
    z: Vec<f32>,
    belief: Vec<f32>,
    seen: TokenSet,
    forward: Vec<RowPair>,
    actor: Option<RowPair>,
    predictor: Option<RowPredictor>,
    lookahead: usize,
    worth: Option<Worth>,
    trail: Trail,
}

/// What happened since the last token, and the action that is being held.
#[derive(Debug, Default)]
struct Trail {
    held: Option<ActionBuf>,
    left: usize,
    obs: Vec<f32>,
    done: Vec<ActionBuf>,
    stale: usize,
}

impl NeuralPilot {
    /// The worth of each move at `obs`, `[choices]`; empty where actions are vectors.
    fn worth(&mut self, obs: &[f32]) -> Vec<f32> {
        let lens = self.agent.lens();
        let Some(choices) = lens.moves().choices() else { return Vec::new() };
        let s = lens.features_of(obs);
        let maps = &self.agent.model().forward;
        let mut values = vec![0.0; choices];
        let share = 1.0 / maps.len() as f32;
        let Some(predictor) = &mut self.predictor else {
            for (row, map) in self.forward.iter_mut().zip(maps) {
                let heads = row.forward(&[&s], &s).chunks_exact(map.head());
                values.iter_mut().zip(heads).for_each(|(q, head)| *q += share * map.value(head, &self.z));
            }
            return values;
        };
        for (choice, q) in values.iter_mut().enumerate() {
            let sa = [&s[..], &lens.moves().seen(choice)].concat();
            let change = predictor.predict(&sa);
            let next: Vec<f32> = obs
                .iter()
                .zip(change)
                .zip(lens.change())
                .map(|((x, change), size)| x + change * size)
                .collect();
            if let Some(worth) = &self.worth {
                *q = self.agent.landmarks().between(self.agent.model(), worth, &next)[0];
                continue;
            }
            let next = lens.features_of(&next);
            for (row, map) in self.forward.iter_mut().zip(maps) {
                *q += share * map.value(row.forward(&[&next], &next), &self.z);
            }
        }
        values
    }

    fn choose(&mut self, obs: &[f32]) -> ActionBuf {
        let moves = self.agent.lens().moves().clone();
        if let Some(actor) = &mut self.actor {
            let s = self.agent.lens().features_of(obs);
            let vector: Vec<f32> = actor.forward(&[&s], &s).iter().map(|x| x.tanh()).collect();
            return moves.action(0, &vector);
        }
        let q = self.worth(obs);
        moves.action((1..q.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best }), &[])
    }

    /// Makes belief and task ready to act on.
    fn settle(&mut self) {
        let agent = &self.agent;
        let condition = match agent.listener.belief() {
            Some(_) => agent.listener.conditions(&self.belief),
            None => vec![0.0; agent.listener.width()],
        };
        let told = [&condition[..], &self.z].concat();
        self.forward.iter_mut().chain(&mut self.actor).for_each(|row| row.fix(&told));
        if let (Some(row), Some(belief)) = (&mut self.predictor, &agent.model().predictor)
            && !self.belief.is_empty()
        {
            belief.tell(row, &self.belief);
        }
        if self.lookahead > 0 {
            self.worth = agent.landmarks().worth(agent.model(), &told, &self.belief, &self.z, self.lookahead);
        }
    }
}

impl Steer for NeuralPilot {
    fn act(&mut self, obs: &[f32]) -> ActionBuf {
        if let Some(held) = self.trail.held.clone().filter(|_| self.trail.left > 0) {
            self.trail.left -= 1;
            return held;
        }
        let action = self.choose(obs);
        self.trail.held = Some(action.clone());
        self.trail.left = self.agent.lens().repeat() - 1;
        action
    }

    fn observe(&mut self, obs: &[f32], action: &ActionBuf, next: &[f32]) {
        if self.agent.listener.belief().is_none() {
            return;
        }
        let (lens, trail) = (self.agent.lens(), &mut self.trail);
        if trail.done.is_empty() {
            trail.obs.clear();
            trail.obs.extend_from_slice(obs);
        }
        trail.obs.extend_from_slice(next);
        trail.done.push(action.clone());
        trail.stale += 1;
        if trail.done.len() < lens.repeat() {
            return;
        }
        let mut token = Vec::with_capacity(lens.token());
        lens.push_tokens(lens.repeat(), &trail.obs, |step| trail.done[step].as_action(), &mut token);
        trail.done.clear();
        self.seen.push(&token);
        if self.trail.stale >= self.agent.plan.belief.refresh {
            self.refresh();
        }
    }

    fn refresh(&mut self) {
        self.trail.stale = 0;
        self.belief = self.agent.listener.beliefs(&[self.seen.tokens().to_vec()]);
        self.settle();
    }

    fn restart(&mut self) {
        self.trail = Trail::default();
    }

    fn values(&mut self, obs: &[f32]) -> Vec<f32> {
        self.worth(obs)
    }

    fn aim(&mut self, z: Vec<f32>) {
        self.z = z;
        self.restart();
        self.settle();
    }

    fn doubt(&self) -> Doubt {
        doubt(&self.agent, &self.seen, &self.belief)
    }
}
