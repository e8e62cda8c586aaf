//! What transitions say of each listed state: that it was entered, or that it was blocked.

use super::StateTable;

impl StateTable {
    /// Writes what a set of tokens (`bag [vocabulary]`, marked by 1) says of each state, `[states * 2]`: 1 if it was entered
    /// (or left), and 1 if it was refused, that is, was the only state that a move without effect could have led to.
    pub fn write_evidence(&self, bag: &[f32], evidence: &mut [f32]) {
        evidence.fill(0.0);
        for token in (0..bag.len()).filter(|&token| bag[token] > 0.0) {
            self.add_evidence(token, evidence);
        }
    }

    /// Adds what one more token says.
    pub fn add_evidence(&self, token: usize, evidence: &mut [f32]) {
        let pair = token / self.width();
        let from = pair / self.actions();
        let outcomes = &self.successors()[pair * self.width()..][..self.outcomes(pair)];
        let entered = self.successors()[token] as usize;
        evidence[from * 2] = 1.0;
        evidence[entered * 2] = 1.0;
        // Of several ways not taken, nobody knows which was shut.
        let mut others = outcomes.iter().filter(|&&s| s as usize != from);
        if let (true, Some(&other), None) = (entered == from, others.next(), others.next()) {
            evidence[other as usize * 2 + 1] = 1.0;
        }
    }

    /// Makes dynamics `p [vocabulary]` agree with `evidence [states * 2]` of the same context, as far as what was met once
    /// stays so (`persistence`, 0 to 1): a state that was entered can be entered, one that was blocked cannot.
    pub(crate) fn trust(&self, p: &mut [f32], evidence: &[f32], persistence: f32) {
        if persistence == 0.0 {
            return;
        }
        for (pair, p) in p.chunks_exact_mut(self.width()).enumerate() {
            for way in 0..self.outcomes(pair) {
                let to = self.successors()[pair * self.width() + way] as usize;
                let met = match evidence[to * 2..][..2] {
                    _ if to == pair / self.actions() => continue,
                    [entered, _] if entered > 0.0 => 1.0,
                    [_, blocked] if blocked > 0.0 => 0.0,
                    _ => continue,
                };
                let sure = p[way] + persistence * (met - p[way]);
                let rest = (1.0 - sure) / (1.0 - p[way]).max(1e-6);
                p.iter_mut().for_each(|p| *p *= rest);
                p[way] = sure;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::tabled;

    #[test]
    fn dynamics_agree_with_what_was_met_and_stay_distributions() {
        let (_, table) = tabled("four-rooms", 2, 40);
        let mut evidence = vec![0.0; table.states() * 2];
        (evidence[6], evidence[2 * 5 + 1]) = (1.0, 1.0); // state 3 was entered, state 5 blocked
        let average = table.average();
        let sum = |p: &[f32], pair: usize| p[pair * table.width()..][..table.width()].iter().sum::<f32>();
        for persistence in [0.0, 0.5, 1.0] {
            let mut p = average.clone();
            table.trust(&mut p, &evidence, persistence);
            for (token, (now, before)) in p.iter().zip(&average).enumerate() {
                let pair = token / table.width();
                assert!((sum(&p, pair) - sum(&average, pair)).abs() < 1e-4, "pair {pair}");
                let real = token % table.width() < table.outcomes(pair);
                let to = table.successors()[token] as usize;
                if real && to != pair / table.actions() {
                    let met = match to {
                        3 => 1.0,
                        5 => 0.0,
                        _ => continue,
                    };
                    assert!((now - (before + persistence * (met - before))).abs() < 1e-5, "token {token}");
                }
            }
        }
    }
}
