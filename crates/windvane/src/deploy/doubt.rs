//! How sure a belief is, and whether its context looks like any that was learned from.

use serde::Serialize;

/// The share of usual contexts that may be called unusual.
const FALSE_ALARMS: f64 = 0.01;

/// What an agent thinks of the context it was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Doubt {
    /// Transitions (over held actions) that the belief was formed from.
    pub transitions: usize,
    /// Fewest transitions that a belief was formed from in training.
    pub least: usize,
    /// h.
    pub belief: Vec<f32>,
    /// The spread of h, as a share of how much h differs between contexts; nothing without a belief or a context.
    pub spread: Option<f64>,
    /// How badly half of the context is predicted from the other half; nothing if it is too short.
    pub surprise: Option<f32>,
    /// The share of contexts of the training data, not learned from where some were kept back, that surprise at least as
    /// much; nothing where it was not measured.
    pub usual: Option<f64>,
}

impl Doubt {
    /// Places a surprise among the `usual` ones, least first.
    pub(crate) fn new(
        [transitions, least]: [usize; 2],
        belief: Vec<f32>,
        spread: Option<f64>,
        surprise: Option<f32>,
        usual: &[f32],
    ) -> Self {
        let share = |surprise: f32| {
            // Counted as if the context were one of them, so that a few hundred never say "never".
            let more = usual.len() - usual.partition_point(|&known| known < surprise);
            (more + 1) as f64 / (usual.len() + 1) as f64
        };
        let usual = surprise.filter(|_| !usual.is_empty()).map(share);
        Self { transitions, least, belief, spread, surprise, usual }
    }

    /// A warning, if the context is shorter than any in training, or looks like none that was learned from.
    pub fn warning(&self) -> Option<String> {
        let Self { transitions, least, .. } = self;
        if (1..*least).contains(transitions) {
            return Some(format!(
                "the context has {transitions} transitions; the belief was trained on {least} or more"
            ));
        }
        let (surprise, usual) = (self.surprise?, self.usual?);
        (usual <= FALSE_ALARMS).then(|| {
            format!(
                "this context looks like none of the training data: its transitions are predicted with an error of \
                 {surprise:.3}, and only {:.1}% of known contexts do as badly; expect the agent to act wrongly",
                100.0 * usual
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_surprises_more_than_nearly_all_known_contexts_is_warned_of() {
        let known: Vec<f32> = (0..200).map(|i| i as f32 / 100.0).collect();
        let warned = |surprise| Doubt::new([9, 5], Vec::new(), None, surprise, &known).warning().is_some();
        assert_eq!(
            [None, Some(1.0), Some(1.9), Some(1.99), Some(7.0)].map(warned),
            [false, false, false, true, true]
        );
        assert_eq!(
            Doubt::new([9, 5], Vec::new(), None, Some(9.0), &[]).warning(),
            None,
            "nothing to compare with"
        );
    }
}
