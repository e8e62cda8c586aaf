//! How a run goes, for people: a bar for each stage, and a line for each evaluation.

use crate::{output, progress};
use indicatif::ProgressBar;
use windvane::LearnError;
use windvane::run::Progress;
use windvane::train::Scores;
use windvane::train::observe::{At, Observer};

/// Draws bars on stderr.
pub(crate) struct Bars;

impl Progress for Bars {
    fn collecting(&mut self, transitions: usize) -> Box<dyn Fn(usize) + Sync> {
        let bar = progress::bar(transitions as u64, "transitions");
        Box::new(move |done| bar.inc(done as u64))
    }

    fn training(&mut self, what: &str) -> Box<dyn Observer> {
        Box::new(Bar { what: what.to_owned(), bar: ProgressBar::hidden() })
    }
}

/// The bar of one training.
struct Bar {
    what: String,
    bar: ProgressBar,
}

impl Observer for Bar {
    fn begin(&mut self, at: &At) -> Result<(), LearnError> {
        self.bar = progress::bar(at.steps, &format!("{} steps  {{msg}}", self.what));
        self.bar.set_position(at.step);
        self.bar.reset_eta();
        Ok(())
    }

    fn logged(&mut self, at: &At, metrics: &Scores) -> Result<(), LearnError> {
        self.bar.set_position(at.step);
        self.bar.set_message(words(metrics));
        Ok(())
    }

    fn evaluated(&mut self, at: &At, scores: &Scores) -> Result<(), LearnError> {
        if !scores.is_empty() {
            let line =
                format!("{} step {} ({:.0} CPU-s): {}", self.what, at.step, at.cpu_seconds, words(scores));
            self.bar.suspend(|| output::note(&line));
        }
        Ok(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn words(metrics: &Scores) -> String {
    metrics.iter().map(|(name, value)| format!("{name} {value:.3}")).collect::<Vec<_>>().join("  ")
}
