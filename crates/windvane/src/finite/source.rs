//! A survey as others draw from it: transitions for features, and what classifiers see of them.

use super::survey::Survey;
use crate::correction::{Seen, weighted};
use crate::methods::hilp::HilpConfig;
use crate::phi::Source;
use rand::RngExt as _;
use windvane_world::Rng;

/// Draws before an episode without any moves is taken for the whole group.
const TRIES: usize = 64;

/// States are one-hot, as B sees them.
impl Source for Survey {
    fn inputs(&self) -> usize {
        self.states()
    }

    fn draw(&self, rng: &mut Rng, config: &HilpConfig, rows: &mut [Vec<f32>; 3]) {
        let group = &self.groups()[rng.random_range(0..self.groups().len())];
        let episodes =
            (0..TRIES).map(|_| self.episode(group.episodes[rng.random_range(0..group.episodes.len())]));
        let Some(tokens) = episodes.into_iter().find(|tokens| !tokens.is_empty()) else { return };
        let at = rng.random_range(0..tokens.len());
        let leads_to = |at: usize| self.successors()[tokens[at] as usize] as usize;
        let goal = if rng.random_bool(config.random_goals) {
            weighted(self.rho(), rng.random())
        } else {
            leads_to((at + config.ahead(rng)).min(tokens.len() - 1))
        };
        for (rows, state) in rows.iter_mut().zip([self.left(tokens[at]), leads_to(at), goal]) {
            let start = rows.len();
            rows.resize(start + self.states(), 0.0);
            rows[start + state] = 1.0;
        }
    }

    fn reference(&self) -> (Vec<f32>, Vec<f32>) {
        let states = self.states();
        let one_hot = (0..states * states).map(|i| f32::from(u8::from(i / states == i % states)));
        (one_hot.collect(), self.rho().to_vec())
    }
}

impl Survey {
    /// The state that a token leaves.
    fn left(&self, token: u32) -> usize {
        token as usize / self.width() / self.actions()
    }

    /// What classifiers see of tokens: the coordinates of both states as one of many each, and the action.
    pub(super) fn seen(&self, tokens: impl Iterator<Item = u32>) -> Seen {
        let dims = &self.spec().observation;
        let coordinates: usize = dims.iter().filter_map(windvane_world::Dim::values).sum();
        let mut seen =
            Seen { width: coordinates + self.actions(), next_width: coordinates, ..Seen::default() };
        let mut place = vec![0.0; dims.len()];
        let mut push = |state: usize, out: &mut Vec<f32>| {
            self.write_state(state, &mut place);
            for (dim, x) in dims.iter().zip(&place) {
                let at = out.len() + (x - dim.low) as usize;
                out.resize(out.len() + dim.values().unwrap_or(0), 0.0);
                out[at] = 1.0;
            }
        };
        for token in tokens {
            push(self.left(token), &mut seen.sa);
            let action = token as usize / self.width() % self.actions();
            seen.sa.extend((0..self.actions()).map(|a| f32::from(u8::from(a == action))));
            push(self.successors()[token as usize] as usize, &mut seen.next);
        }
        seen
    }

    /// Every token of the data with its share, each group counting alike.
    pub(super) fn shares(&self) -> (Vec<u32>, Vec<f32>) {
        let mut shares = vec![0.0; self.vocabulary()];
        for group in self.groups() {
            let total: u32 = group.counts.iter().map(|(_, n)| n).sum();
            let share = 1.0 / total.max(1) as f32 / self.groups().len() as f32;
            group.counts.iter().for_each(|&(token, n)| shares[token as usize] += n as f32 * share);
        }
        let seen = shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0);
        seen.map(|(token, share)| (token as u32, share)).unzip()
    }
}
