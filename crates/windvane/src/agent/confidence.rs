//! How sure a belief is, and whether its context looks like any that was learned from.

use serde::Serialize;

/// The share of contexts like those of training that may be called out of distribution.
const FALSE_ALARMS: f64 = 0.01;

/// What an agent thinks of the context it was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// Transitions (over held actions) that the belief was formed from.
    pub transitions: usize,
    /// Fewest transitions that a belief was formed from in training.
    pub min_transitions: usize,
    /// Mean of h.
    pub belief: Vec<f32>,
    /// Standard deviation of h, as a share of how much h differs between contexts; nothing without a belief or a context.
    pub relative_std: Option<f64>,
    /// How badly half of the context is predicted from the other half; nothing if it is too short.
    pub ood_score: Option<f32>,
    /// The share of contexts of the training data, held out where some were, that score at least as high; nothing where it was
    /// not measured.
    pub p_value: Option<f64>,
}

impl Confidence {
    /// Places an ood score among those of the `calibration`, smallest first.
    pub(crate) fn new(
        [transitions, min_transitions]: [usize; 2],
        belief: Vec<f32>,
        relative_std: Option<f64>,
        ood_score: Option<f32>,
        calibration: &[f32],
    ) -> Self {
        let share = |score: f32| {
            // Counted as if the context were one of them, so that a few hundred never say "never".
            let more = calibration.len() - calibration.partition_point(|&known| known < score);
            (more + 1) as f64 / (calibration.len() + 1) as f64
        };
        let p_value = ood_score.filter(|_| !calibration.is_empty()).map(share);
        Self { transitions, min_transitions, belief, relative_std, ood_score, p_value }
    }

    /// A warning, if the context is shorter than any in training, or looks like none that was learned from.
    pub fn warning(&self) -> Option<String> {
        let Self { transitions, min_transitions, .. } = self;
        if (1..*min_transitions).contains(transitions) {
            return Some(format!(
                "the context has {transitions} transitions; the belief was trained on {min_transitions} or more"
            ));
        }
        let (score, p_value) = (self.ood_score?, self.p_value?);
        (p_value <= FALSE_ALARMS).then(|| {
            format!(
                "this context looks like none of the training data: its transitions are predicted with an error of \
                 {score:.3}, and only {:.1}% of known contexts do as badly; expect the agent to act wrongly",
                100.0 * p_value
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_scores_higher_than_nearly_all_known_contexts_is_warned_of() {
        let known: Vec<f32> = (0..200).map(|i| i as f32 / 100.0).collect();
        let warned = |score| Confidence::new([9, 5], Vec::new(), None, score, &known).warning().is_some();
        assert_eq!(
            [None, Some(1.0), Some(1.9), Some(1.99), Some(7.0)].map(warned),
            [false, false, false, true, true]
        );
        let alone = Confidence::new([9, 5], Vec::new(), None, Some(9.0), &[]);
        assert_eq!(alone.warning(), None, "nothing to compare with");
    }
}
