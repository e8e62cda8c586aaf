//! Contexts as a belief meets them: sets of tokens from episodes of one group, of every length.

use super::survey::Survey;
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};
use windvane_world::Rng;

/// How contexts are drawn for training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextConfig {
    /// Most episodes of a group that one context joins; 5 episodes of 100 steps cover the 500-step contexts of the tables.
    pub episodes: usize,
    /// Probability that a context is of part of one episode only (the paper's single short trajectory).
    pub single: f64,
    /// Probability that one side of a random hyperplane through the state space is taken from another group, so that
    /// few groups teach place by place instead of by heart. Own idea; see the lab notes.
    pub mix: f64,
    /// How many groups such a mixture may hold.
    pub ways: usize,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self { episodes: 5, single: 0.6, mix: 0.0, ways: 2 }
    }
}

/// Draws contexts and what they should tell.
#[derive(Clone, Debug)]
pub struct Contexts<'a> {
    survey: &'a Survey,
    config: ContextConfig,
    /// Coordinates of each state, centred and scaled to [-1, 1].
    places: Vec<f32>,
}

impl<'a> Contexts<'a> {
    /// A source of contexts from a survey's episodes.
    pub fn new(survey: &'a Survey, config: ContextConfig) -> Self {
        let dim = survey.spec().obs_dim();
        let mut places = vec![0.0; survey.states() * dim];
        for (s, place) in places.chunks_exact_mut(dim).enumerate() {
            survey.write_state(s, place);
            for (x, d) in place.iter_mut().zip(&survey.spec().observation) {
                *x = 2.0 * (*x - d.low) / (d.high - d.low).max(1e-6) - 1.0;
            }
        }
        Self { survey, config, places }
    }

    /// Draws one context: marks its tokens in `bag` and writes the group's dynamics as weights of each outcome into
    /// `truth` (both `[vocabulary]`; pairs that the group never tried weigh nothing). Returns the groups it is made of.
    pub fn draw(&self, rng: &mut Rng, bag: &mut [f32], truth: &mut [f32]) -> Vec<usize> {
        let mut groups = vec![self.one_group(rng, bag, truth)];
        if self.config.mix > 0.0 {
            let (mut other_bag, mut other_truth) = (vec![0.0; bag.len()], vec![0.0; bag.len()]);
            for _ in 1..self.config.ways {
                if rng.random_bool(self.config.mix) {
                    groups.push(self.one_group(rng, &mut other_bag, &mut other_truth));
                    self.cross(rng, [&mut *bag, &mut *truth], [&other_bag, &other_truth]);
                }
            }
        }
        groups
    }

    /// Marks the tokens of a context of `group`.
    pub fn of_group(&self, rng: &mut Rng, group: usize, bag: &mut [f32]) {
        bag.fill(0.0);
        let episodes = &self.survey.groups()[group].episodes;
        let single = self.config.episodes < 2 || rng.random_bool(self.config.single);
        let whole = if single { 0 } else { rng.random_range(1..self.config.episodes) };
        for number in 0..=whole {
            let tokens = self.survey.episode(episodes[rng.random_range(0..episodes.len())]);
            // The first is cut anywhere, a quarter of the time not at all; the others are whole.
            let length = match number {
                0 if !rng.random_bool(0.25) => rng.random_range(0..=tokens.len()),
                _ => tokens.len(),
            };
            tokens[..length].iter().for_each(|&token| bag[token as usize] = 1.0);
        }
    }

    fn one_group(&self, rng: &mut Rng, bag: &mut [f32], truth: &mut [f32]) -> usize {
        let group = rng.random_range(0..self.survey.groups().len());
        self.of_group(rng, group, bag);
        self.survey.write_shares(&self.survey.groups()[group].counts, truth);
        group
    }

    /// Takes everything on one side of a random hyperplane from `other`.
    fn cross(&self, rng: &mut Rng, mine: [&mut [f32]; 2], other: [&[f32]; 2]) {
        let dim = self.survey.spec().obs_dim();
        let normal: Vec<f32> = (0..dim).map(|_| StandardNormal.sample(rng)).collect();
        let length = normal.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
        let offset: f32 = rng.random_range(-1.1..1.1);
        let tokens = self.survey.actions() * self.survey.width();
        let [bag, truth] = mine;
        for (s, place) in self.places.chunks_exact(dim).enumerate() {
            let side: f32 = place.iter().zip(&normal).map(|(x, n)| x * n).sum::<f32>() / length;
            if side > offset {
                let range = s * tokens..(s + 1) * tokens;
                bag[range.clone()].copy_from_slice(&other[0][range.clone()]);
                truth[range.clone()].copy_from_slice(&other[1][range]);
            }
        }
    }
}
