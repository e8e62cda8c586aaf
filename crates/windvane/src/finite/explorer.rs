//! Exploring on purpose: the way to where the belief is least sure of what an action does.

use super::agent::FiniteAgent;
use super::sweeps;
use rand::RngExt as _;
use windvane_world::collect::Actor;
use windvane_world::{ActionBuf, Rng};

/// Discount of what is to be learned farther away.
const GAMMA: f32 = 0.95;
/// Bellman sweeps for a way there.
const SWEEPS: usize = 40;
/// Below so much doubt (in nats) everywhere there is nothing left to look for.
const SURE: f32 = 0.02;

/// Someone who plans through the decoded belief to the most doubtful outcomes, and updates the belief by each step.
#[derive(Debug)]
pub(super) struct Explorer<'a> {
    agent: &'a FiniteAgent,
    evidence: Vec<f32>,
    /// How often each choice led somewhere, or was refused: what was tried is less of a question, however unsure the belief stays.
    tries: Vec<f32>,
    /// What was seen and done before.
    before: Option<(Vec<f32>, ActionBuf)>,
    /// The worth of each choice everywhere, and the largest doubt.
    values: Vec<f32>,
    doubt: f32,
}

impl<'a> Explorer<'a> {
    /// An explorer who has seen nothing.
    pub(super) fn new(agent: &'a FiniteAgent) -> Self {
        let (evidence, tries) = (vec![0.0; agent.survey().states() * 2], vec![0.0; agent.survey().pairs()]);
        Self { agent, evidence, tries, before: None, values: Vec::new(), doubt: 0.0 }
    }

    /// Takes in where the last action led; false if that told nothing.
    fn notice(&mut self, obs: &[f32]) -> bool {
        let survey = self.agent.survey();
        let Some((before, action)) = &self.before else { return true };
        let mut moves = Vec::new();
        survey.view().add_moves(before, action.as_action(), obs, &mut moves);
        let tokens: Vec<u32> = moves.into_iter().filter_map(|led| survey.token_of(led)).collect();
        for &token in &tokens {
            survey.add_evidence(token as usize, &mut self.evidence);
            self.tries[token as usize / survey.width()] += 1.0;
        }
        !tokens.is_empty()
    }

    /// The worth of each choice everywhere: the doubt about its outcome, and what doubt lies behind.
    fn plan(&mut self) {
        let survey = self.agent.survey();
        let p = self.agent.situations(&self.evidence).dynamics; // [vocabulary]
        let entropy = |p: &[f32]| -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f32>();
        let pairs = p.chunks_exact(survey.width()).zip(&self.tries);
        let doubts: Vec<f32> = pairs.map(|(p, tries)| entropy(p) / (1.0 + tries).powi(2)).collect(); // [pairs]
        let most = |row: &[f32]| row.iter().copied().fold(0.0, f32::max);
        let reward: Vec<f32> = doubts.chunks_exact(survey.actions()).map(most).collect(); // [states]
        let mut v = reward.clone();
        sweeps::optimise(survey, &p, &reward, GAMMA, SWEEPS, &mut v);
        let mut q = vec![0.0; survey.pairs()];
        sweeps::expected(survey, &p, &v, &mut q);
        self.doubt = most(&reward);
        self.values = q.iter().zip(&doubts).map(|(q, doubt)| doubt + GAMMA * q).collect();
    }
}

impl Actor for Explorer<'_> {
    fn begin(&mut self, _: &mut Rng) {
        *self = Self::new(self.agent);
    }

    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        let survey = self.agent.survey();
        if self.notice(obs) || self.values.is_empty() {
            self.plan();
        }
        let (actions, here) = (survey.actions(), survey.nearest(obs));
        let mut worths = self.values[here * actions..][..actions].to_vec();
        if self.doubt <= SURE {
            worths.fill(0.0);
            worths[rng.random_range(0..actions)] = 1.0;
        }
        *action = survey.view().action(&worths, 1.0);
        self.before = Some((obs.to_vec(), action.clone()));
    }
}
