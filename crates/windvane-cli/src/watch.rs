//! How a run goes, for people: progress of each stage, and a line for each evaluation.

use crate::interrupt;
use crate::progress::{self, Progress};
use windvane::LearnError;
use windvane::train::Scores;
use windvane::train::observe::{At, Observer};

/// Shows progress on stderr.
pub(crate) struct Bars;

impl windvane::run::Progress for Bars {
    fn collecting(&mut self, transitions: usize) -> Box<dyn Fn(usize) + Sync> {
        let progress = progress::start(transitions as u64, "transitions", 0);
        // Transitions are saved as they are collected.
        let at_once = interrupt::at_once();
        Box::new(move |done| {
            let _ = &at_once;
            progress.add(done as u64);
        })
    }

    fn training(&mut self, what: &str) -> Box<dyn Observer> {
        Box::new(Bar { what: what.to_owned(), progress: None })
    }
}

/// The bar of one training.
struct Bar {
    what: String,
    progress: Option<Progress>,
}

impl Observer for Bar {
    fn begin(&mut self, at: &At) -> Result<(), LearnError> {
        self.progress = Some(progress::start(at.steps, &format!("{} steps", self.what), at.step));
        Ok(())
    }

    fn logged(&mut self, at: &At, metrics: &Scores) -> Result<(), LearnError> {
        if let Some(progress) = &self.progress {
            progress.at(at.step, &words(metrics));
        }
        Ok(())
    }

    fn evaluated(&mut self, at: &At, scores: &Scores) -> Result<(), LearnError> {
        if let Some(progress) = self.progress.as_ref().filter(|_| !scores.is_empty()) {
            let line =
                format!("{} step {} ({:.0} CPU-s): {}", self.what, at.step, at.cpu_seconds, words(scores));
            progress.note(&line);
        }
        Ok(())
    }
}

fn words(metrics: &Scores) -> String {
    metrics.iter().map(|(name, value)| format!("{name} {value:.3}")).collect::<Vec<_>>().join("  ")
}
