//! The task, as arguments say it.

use anyhow::Context as _;
use clap::Args;
use std::path::{Path, PathBuf};
use windvane_world::prompt::{Part, SavedTasks, read_labels};
use windvane_world::{EnvSpec, Prompt};

/// What is wanted.
#[derive(Args)]
pub(super) struct PromptArgs {
    /// A state to be at: numbers separated by commas; "W @ .." gives it a weight
    #[arg(long, value_name = "STATE", allow_hyphen_values = true)]
    goal: Vec<String>,
    /// States with rewards: .csv with the names of the observation and `reward`, or .npz with observations and rewards
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    labels: Vec<String>,
    /// A formula over the names of the observation, for instance "(x > 6) * (y < 3) - 0.1"
    #[arg(long, value_name = "FORMULA", allow_hyphen_values = true)]
    reward: Vec<String>,
    /// A task that was saved
    #[arg(long, value_name = "NAME", conflicts_with_all = ["goal", "labels", "reward"])]
    task: Option<String>,
    /// Keeps the task under a name
    #[arg(long, value_name = "NAME")]
    save_task: Option<String>,
    /// The file with saved tasks; by default tasks.json in the agent's folder
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,
}

impl PromptArgs {
    /// The task.
    pub(super) fn read(&self, agent: &Path, spec: &EnvSpec) -> anyhow::Result<Prompt> {
        if let Some(name) = &self.task {
            return Ok(SavedTasks::open(&self.file(agent))?.get(name)?.clone());
        }
        let mut prompt = Prompt::default();
        for text in &self.goal {
            let (weight, state) = weighted(text)?;
            let state = state.split(',').map(|x| x.trim().parse::<f32>()).collect::<Result<_, _>>();
            let state =
                state.with_context(|| format!("--goal \"{text}\": expected numbers separated by commas"))?;
            prompt = prompt.and(weight, Part::Goal(state));
        }
        for text in &self.labels {
            let (weight, path) = weighted(text)?;
            prompt = prompt.and(weight, Part::Labels(read_labels(Path::new(path), spec)?));
        }
        for text in &self.reward {
            let (weight, formula) = weighted(text)?;
            prompt = prompt.and(weight, Part::Formula(formula.to_owned()));
        }
        anyhow::ensure!(!prompt.parts.is_empty(), "no task; expected --goal, --labels, --reward or --task");
        Ok(prompt)
    }

    /// Keeps the task if that was asked for.
    pub(super) fn save(&self, agent: &Path, prompt: &Prompt) -> anyhow::Result<()> {
        if let Some(name) = &self.save_task {
            SavedTasks::open(&self.file(agent))?.save(name, prompt)?;
        }
        Ok(())
    }

    fn file(&self, agent: &Path) -> PathBuf {
        self.tasks.clone().unwrap_or_else(|| agent.join("tasks.json"))
    }
}

/// The weight before an `@`, 1 without.
fn weighted(text: &str) -> anyhow::Result<(f32, &str)> {
    match text.split_once('@') {
        Some((weight, rest)) => {
            let weight =
                weight.trim().parse().with_context(|| format!("\"{text}\": expected a number before @"))?;
            Ok((weight, rest.trim()))
        }
        None => Ok((1.0, text)),
    }
}
