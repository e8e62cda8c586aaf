//! Exact beliefs about a grid's layout, for the policies that scores are held against.

use super::dynamics::Dynamics;
use super::layout::Layout;
use super::planner::Planner;
use super::posterior::{Posterior, Prior};
use crate::ceilings::{Among, ExactBeliefs};
use crate::env::EnvSpec;
use crate::protocol::Policy;
use crate::trajectory::Trajectory;

/// Uniform priors over all layouts and over those of the training split.
pub(super) struct LayoutBeliefs<'a> {
    spec: &'a EnvSpec,
    all: Prior,
    training: Option<Prior>,
    /// The mean of the training layouts.
    average: Option<Dynamics>,
}

impl<'a> LayoutBeliefs<'a> {
    pub(super) fn new(spec: &'a EnvSpec, all: &[Layout], training: &[Layout]) -> Self {
        let training = (!training.is_empty()).then(|| Prior::new(training));
        let average = training.as_ref().map(|training| training.posterior().dynamics());
        Self { spec, all: Prior::new(all), training, average }
    }

    fn posterior(&self, among: Among) -> Posterior<'_> {
        match (among, &self.training) {
            (Among::Training, Some(training)) => training.posterior(),
            _ => self.all.posterior(),
        }
    }
}

impl ExactBeliefs for LayoutBeliefs<'_> {
    fn planner(
        &self,
        among: Among,
        trajectory: &Trajectory,
        steps: usize,
        online: bool,
    ) -> Box<dyn Policy + '_> {
        let mut belief = self.posterior(among);
        belief.observe_all(self.spec, trajectory.transitions().take(steps));
        if online {
            Box::new(Planner::new(self.spec, belief))
        } else {
            Box::new(Planner::new(self.spec, belief.dynamics()))
        }
    }

    fn average(&self) -> Option<Box<dyn Policy + '_>> {
        Some(Box::new(Planner::new(self.spec, self.average.clone()?)))
    }
}
