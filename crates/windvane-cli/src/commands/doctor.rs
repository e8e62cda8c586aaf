//! `windvane doctor`: is a trained run healthy, and if not, which part is to blame?

use crate::{output, table};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use windvane::device::{DeviceName, Threads};
use windvane::diagnostics::{Verdict, examine};
use windvane::trained::{Trained, trained};

/// Diagnoses a trained run, part by part: data, B, F alone, actor, belief, and whether the policy changes with the context.
///
/// Each number has a verdict, and where it is not good, what to do. On grids everything is compared with what is exact. The
/// yardsticks say which part holds the score down: a planner on the decoded belief against the exact Bayes planner (the
/// belief), and F alone against that planner (F).
#[derive(Args)]
#[command(after_help = "Examples:
  windvane doctor runs/bfb
  windvane doctor runs/bfb --json")]
pub(crate) struct Doctor {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (run, findings) = Threads::new(1)?.run(|| -> anyhow::Result<_> {
            let Trained { run, world, agent } = trained(&self.run)?;
            let replay = run.replay(&DeviceName::Cpu.open()?);
            let known = run.recorded.is_none().then_some(&*world);
            let findings = examine(&agent, known, replay.as_deref(), &run.plan.eval, run.seed)?;
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
