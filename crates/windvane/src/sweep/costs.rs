//! What the trainings of a run cost.

use crate::error::LearnError;
use crate::run::Run;
use crate::train::checkpoint;

/// What trainings cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Gradient steps.
    pub gradient_steps: u64,
    /// CPU time.
    pub cpu_seconds: f64,
    /// Wall time.
    pub wall_seconds: f64,
}

impl Run {
    /// What its trainings cost so far: of the belief where it needs one, of features, of F.
    pub fn cost(&self) -> Result<Cost, LearnError> {
        let own = ["agent.safetensors", "features.safetensors"].map(|name| self.folder.join(name));
        let mut sum = Cost::default();
        for path in own.into_iter().chain(self.needs_belief().then(|| self.belief.clone())) {
            if let Some(saved) = checkpoint::read(&path)? {
                sum.gradient_steps += saved.step;
                sum.cpu_seconds += saved.times.cpu_seconds;
                sum.wall_seconds += saved.times.wall_seconds;
            }
        }
        Ok(sum)
    }
}
