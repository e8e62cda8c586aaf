//! The training groups, compared with a context to recognise one of them: a robot that has been here before should notice.

use crate::data::StateTable;
use crate::nn::upload;
use burn::tensor::{Device, Tensor};

/// How much less likely a group becomes with each state in which it contradicts the evidence, as a log.
const CONTRADICTION: f64 = 3.0;
/// Votes that nobody gave, for either side: as much as one group alone is not to be believed.
const PSEUDO_VOTES: f64 = 0.1;
/// Contradictions of a group that is hidden.
const HIDDEN: f64 = 1e4;

/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[CONTRADICTION, PSEUDO_VOTES];

/// What all data of each group says of each state.
#[derive(Clone, Debug)]
pub(super) struct KnownContexts {
    /// `[groups, states]`: 1 where a state can be entered, -1 where it was blocked, 0 where nobody tried.
    pub(super) signs: Tensor<2>,
}

/// What the groups that fit a context say.
#[derive(Clone, Debug)]
pub(super) struct Recognised {
    /// Weighted mean of the groups' signs, `[contexts, states]`.
    pub(super) mean: Tensor<2>,
    /// Log-odds of their votes, `[contexts, states]`.
    pub(super) odds: Tensor<2>,
    /// How well the best group fits, `[contexts, 1]`: 1 if nothing contradicts it, 1/2 if one state does, ...
    pub(super) fit: Tensor<2>,
    /// `[contexts, 1]`: 1 if a single group fits best, 1/2 if two do, ...
    pub(super) alone: Tensor<2>,
}

impl KnownContexts {
    pub(super) fn of(table: &StateTable, device: &Device) -> Self {
        let evidence: Vec<f32> =
            table.groups.iter().flat_map(|group| table.evidence_in(&group.counts)).collect();
        // Entering once proves that it can be done.
        let signs = evidence.chunks_exact(2).map(|seen| if seen[0] > 0.0 { 1.0 } else { -seen[1] });
        Self { signs: upload(signs.collect(), [table.groups.len(), table.states()], device) }
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.signs.dims()[0]
    }

    /// What the groups say of each state given where contexts entered and were blocked (`[contexts, states]`, 0 or 1), the
    /// better fitting ones louder. Groups marked by 1 in `hidden [contexts, groups]` are left out, as if never met.
    pub(super) fn recognise(
        &self,
        entered: Tensor<2>,
        blocked: Tensor<2>,
        hidden: Option<Tensor<2>>,
    ) -> Recognised {
        let seen = entered.clone() - blocked * (entered * -1.0 + 1.0); // [contexts, states]: 1, -1 or 0
        let agreement = seen.clone().matmul(self.signs.clone().transpose()); // [contexts, groups]
        let overlap = seen.abs().matmul(self.signs.clone().abs().transpose());
        let mut contradictions = (overlap - agreement) * 0.5;
        if let Some(hidden) = hidden {
            contradictions = contradictions + hidden * HIDDEN;
        }
        let best = contradictions.clone().min_dim(1); // [contexts, 1]
        let weight = ((contradictions - best.clone()) * -CONTRADICTION).exp(); // [contexts, groups]
        let total = weight.clone().sum_dim(1); // [contexts, 1], at least 1
        let squares = weight.clone().powf_scalar(2.0).sum_dim(1);
        let open = weight.clone().matmul(self.signs.clone().clamp_min(0.0));
        let shut = weight.matmul((self.signs.clone() * -1.0).clamp_min(0.0));
        Recognised {
            mean: (open.clone() - shut.clone()) / total.clone(),
            odds: ((open + PSEUDO_VOTES) / (shut + PSEUDO_VOTES)).log(),
            fit: (best + 1.0).recip(),
            alone: squares / total.powf_scalar(2.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::read;
    use crate::testing::tabled;

    #[test]
    fn a_group_is_recognised_and_its_absence_is_noticed() {
        let device = Device::flex();
        let (_, table) = tabled("doors", 4, 30);
        let known = KnownContexts::of(&table, &device);
        let states = table.states();
        for (number, group) in table.groups.iter().enumerate() {
            let evidence = table.evidence_in(&group.counts);
            let part = |i: usize| {
                upload(evidence.iter().skip(i).step_by(2).copied().collect(), [1, states], &device)
            };
            let recognised = known.recognise(part(0), part(1), None);
            assert_eq!(read(recognised.fit), [1.0], "nothing contradicts its own group");
            assert!(read(recognised.alone)[0] > 0.8, "no other fits as well");
            let (mean, odds) = (read(recognised.mean), read(recognised.odds));
            for (state, seen) in evidence.chunks_exact(2).enumerate() {
                let sign = if seen[0] > 0.0 { 1.0 } else { -seen[1] };
                assert!(sign == 0.0 || mean[state] * sign > 0.8, "{sign} recalled as {}", mean[state]);
                assert!(sign == 0.0 || odds[state] * sign > 1.5, "{sign} recalled with odds {}", odds[state]);
            }
            let hidden = (0..4).map(|i| f32::from(u8::from(i == number))).collect();
            let others = known.recognise(part(0), part(1), Some(upload(hidden, [1, 4], &device)));
            assert!(read(others.fit)[0] < 1.0, "the others contradict it");
        }
        let nothing = || upload(vec![0.0; states], [1, states], &device);
        let recognised = known.recognise(nothing(), nothing(), None);
        assert_eq!(read(recognised.fit), [1.0], "nothing seen fits all");
        assert!((read(recognised.alone)[0] - 0.25).abs() < 1e-6, "four of them");
    }
}
