//! The training groups, kept to recognise one of them: a robot that has been here before should notice.

use super::survey::Survey;

/// How much less likely a group becomes with each state it contradicts the evidence in, as a log.
const CONTRADICTION: f32 = 3.0;

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

    /// What the groups that fit `evidence [states * 2]` say of each state, -1 to 1, the better fitting ones louder
    /// (`recalled [states]`); `hidden` is left out, as if it had never been met. Returns how well the best one fits: 1 if nothing contradicts it, 1/2 if one state does, ...
    pub(super) fn recall(&self, evidence: &[f32], hidden: Option<usize>, recalled: &mut [f32]) -> f32 {
        recalled.fill(0.0);
        let seen: Vec<(usize, f32)> =
            evidence.chunks_exact(2).map(sign).enumerate().filter(|(_, sign)| *sign != 0.0).collect();
        let contradictions = |group: &[f32]| seen.iter().filter(|(s, sign)| group[*s] == -sign).count();
        let known =
            || self.signs.chunks_exact(self.states).enumerate().filter(|(group, _)| Some(*group) != hidden);
        let misfits: Vec<usize> = known().map(|(_, group)| contradictions(group)).collect();
        let best = misfits.iter().copied().min().unwrap_or(0);
        let mut total = 0.0;
        for ((_, group), misfit) in known().zip(misfits) {
            let weight = (-CONTRADICTION * (misfit - best) as f32).exp();
            total += weight;
            recalled.iter_mut().zip(group).for_each(|(r, sign)| *r += weight * sign);
        }
        recalled.iter_mut().for_each(|r| *r /= total.max(1e-6));
        1.0 / (1 + best) as f32
    }
}

/// What a pair of evidence (entered, refused) says: entering once proves that it can be done.
fn sign(evidence: &[f32]) -> f32 {
    if evidence[0] > 0.0 { 1.0 } else { -evidence[1] }
}
