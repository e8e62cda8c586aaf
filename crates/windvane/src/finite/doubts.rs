//! How tasks and beliefs lie to each other, and whether the agent notices dynamics like none it was trained on.

use super::exam::Examiner;
use super::play::evidence_of;
use super::situations::{directions, middle};
use crate::broken::{Broken, told_apart};
use crate::doctor::{Finding, Limits};
use crate::error::LearnError;
use crate::eval::{EvalConfig, explore};
use crate::latent;
use windvane_world::{Reward, Split};

/// Contexts that angles are measured in.
const CONTEXTS: usize = 50;

impl Examiner<'_> {
    /// Findings about angles and surprise.
    pub(super) fn doubts(&self) -> Result<Vec<Finding>, LearnError> {
        let mut findings = vec![self.angle()?];
        let quick = EvalConfig { rounds: 2, ..self.eval };
        let limits = Limits { good: 0.95, fair: 0.8 };
        let advice = "train the belief longer: it does not notice dynamics that are like none of its data";
        for broken in Broken::ALL {
            if let Some(area) = told_apart(self.world, self.agent, broken, &quick, self.seed)? {
                let what = format!("unseen contexts told from {} (AUROC)", broken.title());
                findings.push(Finding::at_least("belief", what, area, limits, advice));
            }
        }
        Ok(findings)
    }

    /// The mean angle between z of a goal and h, as Rotation-FB's cones see it.
    fn angle(&self) -> Result<Finding, LearnError> {
        let (survey, dim) = (self.agent.survey(), self.agent.model().config().nets.dim);
        let (mut beliefs, mut tasks) = (Vec::new(), Vec::new());
        for &context in self.world.contexts(Split::Train).iter().take(CONTEXTS) {
            let walk = explore(self.world, context, &self.eval, self.seed, 0)?;
            beliefs.extend(self.agent.situations(&evidence_of(self.agent, &walk)).axes);
            let Some(task) = self.world.tasks(context)?.into_iter().next() else { continue };
            tasks.push(match task.reward {
                reward @ Reward::Goal { .. } => self.agent.task(&reward),
                _ => continue,
            });
        }
        let width = dim.max(survey.states());
        let axes = directions(&beliefs, &middle(&beliefs, survey.states()), width);
        let angle = |(h, z): (&[f32], &Vec<f32>)| latent::angle(h, z);
        let angles: Vec<f64> = axes.chunks_exact(width).zip(&tasks).map(angle).collect();
        let mean = angles.iter().sum::<f64>() / angles.len().max(1) as f64;
        Ok(Finding::report("belief", "angle between z of a goal and h, degrees", mean))
    }
}
