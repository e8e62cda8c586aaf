//! A run in parts: its belief alone, and what its trainings cost.

use crate::config::Core;
use crate::error::LearnError;
use crate::finite::survey::Survey;
use crate::neural::memory::Memory;
use crate::run::{Run, Site};
use crate::train::checkpoint;
use crate::{finite, neural};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// The belief, trained to its end; false if it was interrupted. Nothing is done for a run that needs none.
    pub fn believe(&self, site: &mut Site<'_>) -> Result<bool, LearnError> {
        if !self.needs_belief() || checkpoint::is_complete(&self.belief)? {
            return Ok(true);
        }
        let data = self.data(site)?;
        match self.plan.core {
            Core::Listed => {
                let survey = Arc::new(Survey::of(&data, &self.plan.boxes)?);
                Ok(finite::stages::belief(self, &survey, site)?.is_some())
            }
            Core::Neural => {
                let memory = Arc::new(Memory::new(data, &self.plan.neural, self.seed)?);
                Ok(neural::stages::belief(self, &memory, site)?.is_some())
            }
        }
    }

    /// What its trainings cost so far: of the belief where it needs one, of the agent, and of what else was trained for it
    /// and named after it.
    pub fn cost(&self) -> Result<Cost, LearnError> {
        let folder = self.agent.parent().unwrap_or(Path::new("."));
        let stem = self.agent.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let own = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with(&format!("{stem}.")) && name.ends_with(".safetensors")
        };
        let entries = match std::fs::read_dir(folder) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(LearnError::io(folder, "looking for checkpoints")(e));
            }
            entries => entries.ok(),
        };
        let own = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).filter(own);
        let mut sum = Cost::default();
        for path in own.chain(self.needs_belief().then(|| self.belief.clone())) {
            if let Some(saved) = checkpoint::read(&path)? {
                sum.gradient_steps += saved.step;
                sum.cpu_seconds += saved.cpu_seconds;
                sum.wall_seconds += saved.wall_seconds;
            }
        }
        Ok(sum)
    }
}
