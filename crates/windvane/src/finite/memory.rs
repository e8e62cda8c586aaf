//! The training groups, kept to recognise one of them: a robot that has been here before should notice.

use super::survey::Survey;

/// How much less likely a group becomes with each state it contradicts the evidence in, as a log.
const CONTRADICTION: f32 = 3.0;
/// Votes that nobody gave, for either side: as much as one group alone is not to be believed.
const DOUBT: f32 = 0.1;

/// What all data of each group says of each state.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    states: usize,
    /// `[groups * states]`: 1 where a state can be entered, -1 where it was refused, 0 where nobody tried.
    signs: Vec<f32>,
}

impl Memory {
    pub(super) fn of(survey: &Survey) -> Self {
        let states = survey.states();
        let mut evidence = vec![0.0; states * 2];
        let mut signs = Vec::with_capacity(survey.groups().len() * states);
        for group in survey.groups() {
            evidence.fill(0.0);
            group.counts.iter().for_each(|&(token, _)| survey.add_evidence(token as usize, &mut evidence));
            signs.extend(evidence.chunks_exact(2).map(sign));
        }
        Self { states, signs }
    }

    /// What the groups that fit `evidence [states * 2]` say of each state, the better fitting ones louder; those
    /// that are `hidden` are left out, as if they had never been met.
    pub(super) fn recall(&self, evidence: &[f32], hidden: &[usize]) -> Recalled {
        let seen: Vec<(usize, f32)> =
            evidence.chunks_exact(2).map(sign).enumerate().filter(|(_, sign)| *sign != 0.0).collect();
        let contradictions = |group: &[f32]| seen.iter().filter(|(s, sign)| group[*s] == -sign).count();
        let known =
            || self.signs.chunks_exact(self.states).enumerate().filter(|(group, _)| !hidden.contains(group));
        let misfits: Vec<usize> = known().map(|(_, group)| contradictions(group)).collect();
        let best = misfits.iter().copied().min().unwrap_or(0);
        let mut votes = vec![[0.0, 0.0]; self.states];
        let (mut total, mut squares) = (0.0, 0.0);
        for ((_, group), misfit) in known().zip(misfits) {
            let weight = (-CONTRADICTION * (misfit - best) as f32).exp();
            total += weight;
            squares += weight * weight;
            for (votes, sign) in votes.iter_mut().zip(group) {
                votes[usize::from(*sign < 0.0)] += weight * sign.abs();
            }
        }
        let total = f32::max(total, 1e-6);
        Recalled {
            mean: votes.iter().map(|[open, shut]| (open - shut) / total).collect(),
            odds: votes.iter().map(|[open, shut]| ((open + DOUBT) / (shut + DOUBT)).ln()).collect(),
            fit: 1.0 / (1 + best) as f32,
            alone: squares / (total * total),
        }
    }
}

/// What memory says of a context.
#[derive(Clone, Debug)]
pub(super) struct Recalled {
    /// The mean of the groups' signs, `[states]`.
    pub(super) mean: Vec<f32>,
    /// The log-odds of their votes, `[states]`.
    pub(super) odds: Vec<f32>,
    /// How well the best one fits: 1 if nothing contradicts it, 1/2 if one state does, ...
    pub(super) fit: f32,
    /// 1 if a single one fits best, 1/2 if two do, ...
    pub(super) alone: f32,
}

/// What a pair of evidence (entered, refused) says: entering once proves that it can be done.
fn sign(evidence: &[f32]) -> f32 {
    if evidence[0] > 0.0 { 1.0 } else { -evidence[1] }
}
