//! `windvane doctor`: is a trained run healthy, and if not, which part is to blame?

use crate::trained::{Trained, trained};
use crate::{bounds, output, table};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use windvane::device::Threads;
use windvane::doctor::Verdict;
use windvane::eval::EvalConfig;

/// Examines a trained run against what is exact: data, B, F, belief, and the policy against its own belief.
///
/// Each number has a verdict, and where it is not good, what to do. The yardsticks at the end say which part holds the
/// score down: a planner on the decoded belief against the exact Bayes planner (the belief), and the agent against
/// that planner (F).
#[derive(Args)]
#[command(after_help = "Examples:
  windvane doctor runs/bfb
  windvane doctor runs/bfb --json")]
pub(crate) struct Doctor {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Bellman sweeps through the predictor before acting; by default the run's
    #[arg(long, value_name = "N", value_parser = bounds::count::<usize>(bounds::SWEEPS))]
    lookahead: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (run, findings) = Threads::new(1)?.run(|| -> anyhow::Result<_> {
            let Trained { run, world, agent } = trained(&self.run)?;
            let lookahead = self.lookahead.unwrap_or(run.plan.eval.lookahead);
            let findings = agent.examine(&*world, &EvalConfig { lookahead, ..run.plan.eval }, run.seed)?;
            Ok((run, findings))
        })?;
        if self.json {
            let about = json!({"env": run.plan.env, "method": run.method, "seed": run.seed});
            return output::json(&json!({"run": about, "findings": findings}));
        }
        let verdict = |verdict: Option<Verdict>| match verdict {
            Some(Verdict::Good) => "good",
            Some(Verdict::Fair) => "fair",
            Some(Verdict::Poor) => "POOR",
            None => "",
        };
        let lines: Vec<Vec<String>> = findings
            .iter()
            .map(|f| {
                vec![
                    f.part.to_owned(),
                    f.what.clone(),
                    format!("{:.3}", f.value),
                    verdict(f.verdict).to_owned(),
                ]
            })
            .collect();
        output::say(&table::render(&["part", "what", "value", "verdict"], &lines));
        let mut advice: Vec<String> =
            findings.iter().filter_map(|f| Some(format!("- {}: {}", f.part, f.advice?))).collect();
        advice.dedup();
        if !advice.is_empty() {
            output::say(&format!("\nWhat to do:\n{}", advice.join("\n")));
        }
        Ok(())
    }
}
