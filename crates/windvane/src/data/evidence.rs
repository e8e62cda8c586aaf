//! What transitions say of each listed state, and of the dynamics: what was entered, what was blocked, how often each outcome
//! came about; and how states lie to each other.

use super::StateTable;
use crate::nn::{Displacements, upload_indices};
use burn::tensor::Device;
use rand::RngExt as _;
use std::collections::BTreeMap;
use windvane_world::Rng;

impl StateTable {
    /// A random state as a goal that a context is asked for, as marks `[states]`; half the time none.
    pub(crate) fn mark_of_goal(&self, rng: &mut Rng) -> Vec<f32> {
        let mut marks = vec![0.0; self.states()];
        if rng.random_bool(0.5) {
            marks[rng.random_range(0..self.states())] = 1.0;
        }
        marks
    }

    /// The evidence of a set of tokens, `[states * 2]`.
    pub(crate) fn evidence_in(&self, set: &[f32]) -> Vec<f32> {
        let tokens = set.iter().enumerate().filter(|(_, there)| **there > 0.0);
        self.evidence(tokens.map(|(token, _)| token as u32))
    }

    /// What tokens say of each state, `[states * 2]`: 1 if it was entered (or left), and 1 if it was blocked, that is, was the only
    /// state that a move without effect could have led to.
    pub(crate) fn evidence(&self, tokens: impl IntoIterator<Item = u32>) -> Vec<f32> {
        let mut evidence = vec![0.0; self.states() * 2];
        for token in tokens {
            let pair = token as usize / self.width();
            let (from, entered) = (pair / self.actions, self.successors()[token as usize] as usize);
            evidence[from * 2] = 1.0;
            evidence[entered * 2] = 1.0;
            // Of several outcomes that did not come about, nobody knows which was shut.
            let mut others = self.outcomes(pair).iter().filter(|&&s| s as usize != from);
            if let (true, Some(&other), None) = (entered == from, others.next(), others.next()) {
                evidence[other as usize * 2 + 1] = 1.0;
            }
        }
        evidence
    }

    /// Makes dynamics `p [vocabulary]` agree with `evidence [states * 2]` of the same context, as far as what was met once
    /// stays so (`persistence`, 0 to 1): an outcome that enters a blocked state gives so much of its probability to staying, and
    /// one that enters a state which was entered takes so much from it.
    pub(crate) fn trust(&self, p: &mut [f32], evidence: &[f32], persistence: f32) {
        for (pair, p) in p.chunks_exact_mut(self.width()).enumerate() {
            let (outcomes, from) = (self.outcomes(pair), (pair / self.actions) as u32);
            let Some(stay) = outcomes.iter().position(|&to| to == from) else { continue };
            for (place, &to) in outcomes.iter().enumerate().filter(|(place, _)| *place != stay) {
                let [entered, blocked] = [evidence[to as usize * 2], evidence[to as usize * 2 + 1]];
                let (loses, gains) = match (entered > 0.0, blocked > 0.0) {
                    (true, _) => (stay, place),
                    (false, true) => (place, stay),
                    (false, false) => continue,
                };
                let moved = persistence * p[loses];
                p[loses] -= moved;
                p[gains] += moved;
            }
        }
    }

    /// The dynamics that weights of tokens `[vocabulary]` show: the share of each outcome of its pair, zeros for pairs without any.
    pub(crate) fn shares(&self, mut weights: Vec<f32>) -> Vec<f32> {
        for pair in weights.chunks_exact_mut(self.width()) {
            let total: f32 = pair.iter().sum();
            pair.iter_mut().filter(|weight| **weight > 0.0).for_each(|weight| *weight /= total);
        }
        weights
    }

    /// The dynamics that a group's data shows, `[vocabulary]`; the `average` where it tried nothing.
    pub fn dynamics_of(&self, group: usize, average: &[f32]) -> Vec<f32> {
        let mut shares = self.shares(self.groups[group].counts.clone());
        self.fill_untried(&mut shares, average);
        shares
    }

    /// Fills in the `average` where dynamics `shares [vocabulary]` have nothing.
    pub(crate) fn fill_untried(&self, shares: &mut [f32], average: &[f32]) {
        for (own, average) in shares.chunks_exact_mut(self.width()).zip(average.chunks_exact(self.width())) {
            if own.iter().all(|p| *p == 0.0) {
                own.copy_from_slice(average);
            }
        }
    }

    /// The average dynamics of the whole data set, `[vocabulary]`; each group counts alike.
    pub fn average(&self) -> Vec<f32> {
        let mut sums = vec![0.0; self.vocabulary()];
        for group in &self.groups {
            let shares = self.shares(group.counts.clone());
            sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        }
        let mut average = self.shares(sums);
        let untried = |row: &[f32]| row.iter().all(|p| *p == 0.0);
        for (pair, row) in average.chunks_exact_mut(self.width()).enumerate().filter(|(_, row)| untried(row))
        {
            // What was never tried is taken to change nothing, if that is possible.
            let stay = self.outcomes(pair).iter().position(|&to| to as usize == pair / self.actions);
            row[stay.unwrap_or(0)] = 1.0;
        }
        average
    }

    /// The largest probability, over states and actions beside it, that each state is entered by dynamics `p [vocabulary]`:
    /// `[states]`.
    pub fn enterable(&self, p: &[f32]) -> Vec<f32> {
        let mut open = vec![0.0_f32; self.states()];
        for (pair, p) in p.chunks_exact(self.width()).enumerate() {
            let outcomes = self.outcomes(pair).iter().zip(p);
            for (&to, p) in outcomes.filter(|(to, _)| **to as usize != pair / self.actions) {
                open[to as usize] = open[to as usize].max(*p);
            }
        }
        open
    }

    /// The displacement s' - s of every pair of states, by number.
    pub(crate) fn displacements(&self, device: &Device) -> Displacements {
        let places = self.places();
        let states = || places.chunks_exact(self.spec().obs_dim());
        let (of_pairs, count) = numbered(states().flat_map(|from| states().map(|to| displacement(from, to))));
        Displacements { of_pairs: upload_indices(of_pairs, device), count }
    }

    /// The kind of each token beside its displacement from each state, by number, `[vocabulary * states]`, and how many different
    /// ones there are: what a transition is to who stands in that state.
    pub(crate) fn kinds_from(&self) -> (Vec<i64>, usize) {
        let (places, dims, states) = (self.places(), self.spec().obs_dim(), self.states());
        let place = |state: usize| &places[state * dims..][..dims];
        let (kinds, _) = self.kinds();
        numbered(kinds.iter().enumerate().flat_map(|(token, &kind)| {
            let left = place(self.leaves(token));
            (0..states).map(move |state| (kind, displacement(place(state), left)))
        }))
    }

    /// The kind of each token by number, and how many there are: which action, and by how much it moves, wherever it is taken.
    pub(crate) fn kinds(&self) -> (Vec<i64>, usize) {
        let (places, dims) = (self.places(), self.spec().obs_dim());
        let place = |state: usize| &places[state * dims..][..dims];
        numbered(self.successors().iter().enumerate().map(|(token, &to)| {
            let pair = token / self.width();
            (pair % self.actions, displacement(place(pair / self.actions), place(to as usize)))
        }))
    }
}

/// To a thousandth, so that rounding makes no new ones.
fn displacement(from: &[f32], to: &[f32]) -> Vec<i64> {
    from.iter().zip(to).map(|(a, b)| (f64::from(b - a) * 1e3).round() as i64).collect()
}

/// The number of each key in the order in which they first come, and how many different ones there are.
fn numbered<K: Ord>(keys: impl Iterator<Item = K>) -> (Vec<i64>, usize) {
    let mut known = BTreeMap::new();
    let number = |key| {
        let next = known.len() as i64;
        *known.entry(key).or_insert(next)
    };
    let numbers = keys.map(number).collect();
    (numbers, known.len())
}

#[cfg(test)]
mod tests {
    use crate::testing::tabled;
    use burn::tensor::Device;

    #[test]
    fn a_square_has_as_many_displacements_as_it_must() {
        let (_, table) = tabled("four-rooms", 2, 60);
        let all = table.displacements(&Device::flex());
        let pairs = table.states() * table.states();
        assert!(all.count <= 17 * 17 && all.of_pairs.dims() == [pairs], "{}", all.count);
    }

    /// Dynamics that are sure of everything, and wrong: what was blocked is open, what was entered is shut.
    #[test]
    fn what_was_met_wins_over_dynamics_that_are_sure_and_no_probability_is_lost() {
        let (_, table) = tabled("four-rooms", 2, 40);
        let (blocked, entered) = (5, 3);
        let mut evidence = vec![0.0; table.states() * 2];
        (evidence[2 * blocked + 1], evidence[2 * entered]) = (1.0, 1.0);
        for persistence in [0.0, 0.5, 1.0] {
            let mut p = vec![0.0; table.vocabulary()];
            let pairs = || (0..table.pairs()).filter(|&pair| table.outcomes(pair).len() == 2);
            let way = |pair: usize| {
                let from = (pair / table.actions) as u32;
                let to = table.outcomes(pair).iter().position(|&to| to != from).unwrap();
                (pair * table.width() + to, table.outcomes(pair)[to] as usize)
            };
            for pair in pairs() {
                let (token, to) = way(pair);
                let wrong = if to == entered { token ^ 1 } else { token };
                p[wrong] = 1.0;
            }
            table.trust(&mut p, &evidence, persistence);
            let mut met = 0;
            for pair in pairs() {
                let (token, to) = way(pair);
                assert_eq!(p[token] + p[token ^ 1], 1.0, "pair {pair} at {persistence}");
                let expected = if to == entered { persistence } else { 1.0 - persistence };
                if to == blocked || to == entered {
                    assert_eq!(p[token], expected, "into {to} at {persistence}");
                    met += 1;
                }
            }
            assert!(met >= 4, "{met} ways");
        }
    }
}
