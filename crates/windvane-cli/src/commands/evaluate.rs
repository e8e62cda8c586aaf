//! `windvane eval`: the scores of a trained run.

use crate::choice::{SplitChoice, StartChoice};
use crate::trained::{Trained, trained};
use crate::{bounds, output, table};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use windvane::device::Threads;
use windvane::eval::{BeliefMode, ScoreRow, evaluate_timed, random_success, success};
use windvane::{Planner, Run};

/// Lets a trained run play every task in every context of a split, greedily.
#[derive(Args)]
#[command(
    name = "eval",
    after_help = "Examples:
  windvane eval runs/bfb --split test
  windvane eval runs/bfb --split test --belief online --context-steps 500 --json
  windvane eval runs/bfb --split test --planner sweeps"
)]
pub(crate) struct Eval {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Contexts seen in training, or held out
    #[arg(long, value_enum, default_value_t = SplitChoice::Test)]
    split: SplitChoice,
    /// Length of the random trajectory that forms the belief; by default the run's
    #[arg(long, value_name = "N", value_parser = bounds::count::<usize>(bounds::STEPS))]
    context_steps: Option<usize>,
    /// Where that trajectory begins; by default as the run's settings say
    #[arg(long, value_enum)]
    context_start: Option<StartChoice>,
    /// Whether the belief goes on learning while acting
    #[arg(long, value_enum, default_value_t = Mode::Frozen)]
    belief: Mode,
    /// Who chooses actions: F alone (none), or value iteration on the predictor's dynamics (sweeps); by default the run's
    #[arg(long, value_enum)]
    planner: Option<PlannerChoice>,
    /// Bellman sweeps of the planner; by default the run's
    #[arg(long, value_name = "N", requires = "planner", value_parser = bounds::count::<usize>(bounds::SWEEPS))]
    sweeps: Option<usize>,
    /// Games of each context and task; by default the run's
    #[arg(long, value_name = "N", value_parser = bounds::count::<u64>(bounds::ROUNDS))]
    rounds: Option<u64>,
    /// Print every game as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Frozen after the context, as in the paper
    Frozen,
    /// Refreshed by every step
    Online,
}

#[derive(Clone, Copy, ValueEnum)]
enum PlannerChoice {
    /// F alone
    None,
    /// Value iteration on the predictor's dynamics
    Sweeps,
}

impl Eval {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mode = match self.belief {
            Mode::Frozen => BeliefMode::Frozen,
            Mode::Online => BeliefMode::Online,
        };
        let (run, rows, seconds, random) = Threads::new(1)?.run(|| -> anyhow::Result<_> {
            let Trained { mut run, world, mut agent } = trained(&self.run)?;
            let path = self.run.display();
            anyhow::ensure!(
                run.recorded.is_none(),
                "{path}: trained on a data set alone, so there is no world to play in; `windvane export` and `windvane adapt` take it to yours"
            );
            let eval = &mut run.plan.eval;
            eval.context_steps = self.context_steps.unwrap_or(eval.context_steps);
            eval.context_start = self.context_start.map_or(eval.context_start, Into::into);
            eval.planner = match self.planner {
                Some(PlannerChoice::None) => Planner::None,
                Some(PlannerChoice::Sweeps) => Planner::Sweeps,
                None => eval.planner,
            };
            if let Some(sweeps) = self.sweeps {
                agent = agent.with_sweeps(sweeps);
            }
            eval.rounds = self.rounds.unwrap_or(eval.rounds).max(1);
            bounds::context(eval.context_steps, eval.rounds)?;
            let split = self.split.into();
            anyhow::ensure!(!world.contexts(split).is_empty(), "{path}: the run has no {split} contexts to play in");
            let (rows, seconds) = evaluate_timed(&*world, &agent, split, mode, &run.plan.eval, run.seed)?;
            let random = random_success(&*world, split, &run.plan.eval, run.seed)?;
            Ok((run, rows, seconds, random))
        })?;
        if self.json {
            let Run { plan, method, seed, .. } = &run;
            let about = json!({"env": plan.env, "method": method, "seed": seed});
            return output::json(&json!({
                "run": about,
                "success": success(&rows),
                "planner": plan.eval.planner,
                "random": random,
                "seconds_per_context": seconds,
                "rows": rows,
            }));
        }
        let mut tasks: Vec<&str> = rows.iter().map(|row| row.task.as_str()).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let line = |name: &str, rows: Vec<ScoreRow>| {
            let steps: Vec<f64> = rows.iter().filter(|r| r.success).map(|r| r.steps as f64).collect();
            let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
            vec![
                name.to_owned(),
                format!("{:.3}", success(&rows)),
                if steps.is_empty() { "-".to_owned() } else { format!("{:.1}", mean(&steps)) },
                format!("{:.1}", mean(&rows.iter().map(|row| f64::from(row.reward)).collect::<Vec<_>>())),
                rows.len().to_string(),
            ]
        };
        let mut lines: Vec<Vec<String>> = tasks
            .iter()
            .map(|task| line(task, rows.iter().filter(|row| row.task == *task).cloned().collect()))
            .collect();
        let games = rows.len().to_string();
        lines.push(line("all", rows));
        lines.push(vec![
            "random actions".into(),
            format!("{random:.3}"),
            String::new(),
            String::new(),
            games,
        ]);
        output::say(&format!("{}, actions by {}", run.method.title, run.plan.eval.planner.title()));
        output::say(&table::render(&["task", "success", "steps when successful", "return", "games"], &lines));
        output::say(&format!("adapting to a new context: {:.1} ms", seconds * 1e3));
        Ok(())
    }
}
