//! `windvane context`: how much context is enough.

use crate::choice::SplitChoice;
use crate::{bounds, output, table};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use windvane::device::Threads;
use windvane::diagnostics::context_curve::{Explore, Point, curve, figure};
use windvane::trained::{Trained, trained};

/// How much context is enough: success of a trained run, its belief frozen, against the steps explored before.
///
/// Exploration is at random, as in the paper, or on purpose: where the belief is least sure of what an action does.
#[derive(Args)]
#[command(after_help = "Example:
  windvane context runs/bfb --explore both --out context.svg")]
pub(crate) struct Context {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Contexts seen in training, or held out
    #[arg(long, value_enum, default_value_t = SplitChoice::Test)]
    split: SplitChoice,
    /// Steps of exploration, separated by commas
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_values_t = [0, 25, 50, 100, 200, 500],
          value_parser = bounds::count::<usize>(bounds::STEPS))]
    steps: Vec<usize>,
    /// Who explores
    #[arg(long, value_enum, default_value_t = Who::Random)]
    explore: Who,
    /// Episodes of each context and task; by default the run's
    #[arg(long, value_name = "N", value_parser = bounds::count::<u64>(bounds::ROUNDS))]
    rounds: Option<u64>,
    /// A figure (.svg or .png)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Who {
    Random,
    Belief,
    Both,
}

impl Context {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let explorers: &[Explore] = match self.explore {
            Who::Random => &[Explore::Random],
            Who::Belief => &[Explore::Belief],
            Who::Both => &[Explore::Random, Explore::Belief],
        };
        let (run, points) = Threads::new(1)?.run(|| -> anyhow::Result<_> {
            let Trained { mut run, world, agent } = trained(&self.run)?;
            let eval = &mut run.plan.eval;
            eval.rounds = self.rounds.unwrap_or(eval.rounds).max(1);
            self.steps.iter().try_for_each(|&steps| bounds::context(steps, eval.rounds))?;
            let points =
                curve(&*world, &agent, self.split.into(), explorers, &self.steps, &run.plan.eval, run.seed)?;
            Ok((run, points))
        })?;
        if let Some(out) = &self.out {
            let episodes = points.first().map_or(0, |point| point.episodes);
            let subtitle = format!(
                "{}, {}, seed {}, {} contexts: {episodes} episodes a point; bands: one standard error",
                run.method.title,
                run.plan.env,
                run.seed,
                match self.split {
                    SplitChoice::Train => "training",
                    SplitChoice::Test => "unseen",
                }
            );
            figure(&points, "How much context is enough", &subtitle).save(out, 2.0)?;
        }
        if self.json {
            return output::json(&json!({"run": self.run, "points": points}));
        }
        let line = |Point { explore, steps, success, error, episodes }: &Point| {
            let who = match explore {
                Explore::Random => "random",
                Explore::Belief => "belief",
            };
            vec![
                who.to_owned(),
                steps.to_string(),
                format!("{success:.3}"),
                format!("{error:.3}"),
                episodes.to_string(),
            ]
        };
        let lines: Vec<Vec<String>> = points.iter().map(line).collect();
        output::say(&table::render(&["explorer", "steps", "success", "standard error", "episodes"], &lines));
        Ok(())
    }
}
