//! `windvane eval`: the scores of a trained run.

use crate::choice::{BeliefChoice, PlannerChoice, SplitChoice, StartChoice, TaskPolicyChoice};
use crate::{bounds, output, table};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use windvane::Run;
use windvane::device::Threads;
use windvane::eval::rewards::{evaluate_rewards, has_reward_tasks, reward_scores};
use windvane::eval::{ScoreRow, evaluate_places, evaluate_timed, random_success, success};
use windvane::trained::{Trained, trained};

/// Lets a trained run play every task in every context of a split, greedily.
#[derive(Args)]
#[command(
    name = "eval",
    after_help = "Examples:
  windvane eval runs/bfb --split test
  windvane eval runs/bfb --split test --belief online --context-steps 500 --json
  windvane eval runs/bfb --split test --planner sweeps
  windvane eval runs/bfb --split test --tasks rewards --task-policy gpi"
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
    #[arg(long, value_enum, default_value_t = BeliefChoice::Frozen)]
    belief: BeliefChoice,
    /// Who chooses actions: F alone (none), or value iteration on the predictor's dynamics (sweeps); by default the run's
    #[arg(long, value_enum)]
    planner: Option<PlannerChoice>,
    /// Bellman sweeps of the planner; by default the run's
    #[arg(long, value_name = "N", requires = "planner", value_parser = bounds::count::<usize>(bounds::SWEEPS))]
    sweeps: Option<usize>,
    /// What to play for: goals, every place from anywhere (Pointmass), or rewards of any sign over all cells (grids)
    #[arg(long, value_enum, default_value_t = Tasks::Goals)]
    tasks: Tasks,
    /// How a task becomes actions by F alone: greedy on its own vector z (paper), or the best of the policies for the goals it
    /// rewards most (generalised policy improvement, listed states); by default the run's
    #[arg(long, value_enum)]
    task_policy: Option<TaskPolicyChoice>,
    /// Episodes of each context and task; by default the run's
    #[arg(long, value_name = "N", value_parser = bounds::count::<u64>(bounds::ROUNDS))]
    rounds: Option<u64>,
    /// Print every episode as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Tasks {
    /// To reach a goal; the score is the share of episodes that do
    Goals,
    /// To reach every place of a context, each from --rounds starts anywhere in it
    Places,
    /// Any reward; the score is the share of the possible discounted return beyond random actions', computed exactly
    Rewards,
}

impl Eval {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Threads::new(1)?.run(|| {
            let trained = self.prepared()?;
            match self.tasks {
                Tasks::Goals | Tasks::Places => self.goals(&trained),
                Tasks::Rewards => self.rewards(&trained),
            }
        })
    }

    /// The run with the settings that were asked for.
    fn prepared(&self) -> anyhow::Result<Trained> {
        let mut trained = trained(&self.run)?;
        let path = self.run.display();
        anyhow::ensure!(
            trained.run.recorded.is_none(),
            "{path}: trained on a data set alone, so there is no world to play in; `windvane export` and `windvane adapt` take it to yours"
        );
        let eval = &mut trained.run.plan.eval;
        eval.context_steps = self.context_steps.unwrap_or(eval.context_steps);
        eval.context_start = self.context_start.map_or(eval.context_start, Into::into);
        eval.planner = self.planner.map_or(eval.planner, Into::into);
        eval.task_policy = self.task_policy.map_or(eval.task_policy, Into::into);
        eval.rounds = self.rounds.unwrap_or(eval.rounds).max(1);
        bounds::context(eval.context_steps, eval.rounds)?;
        if let Some(sweeps) = self.sweeps {
            trained.agent = trained.agent.with_sweeps(sweeps);
        }
        let split = self.split.into();
        anyhow::ensure!(
            !trained.world.contexts(split).is_empty(),
            "{path}: the run has no {split} contexts to play in"
        );
        Ok(trained)
    }

    fn goals(&self, Trained { run, world, agent }: &Trained) -> anyhow::Result<()> {
        let (eval, split) = (&run.plan.eval, self.split.into());
        if self.tasks == Tasks::Places {
            return self
                .places(run, &evaluate_places(&**world, agent, split, self.belief.into(), eval, run.seed)?);
        }
        let (rows, seconds) = evaluate_timed(&**world, agent, split, self.belief.into(), eval, run.seed)?;
        let random = random_success(&**world, split, eval, run.seed)?;
        if self.json {
            return output::json(&json!({
                "run": about(run),
                "success": success(&rows),
                "planner": eval.planner,
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
        let episodes = rows.len().to_string();
        lines.push(line("all", rows));
        lines.push(vec![
            "random actions".into(),
            format!("{random:.3}"),
            String::new(),
            String::new(),
            episodes,
        ]);
        output::say(&policy(run));
        output::say(&table::render(
            &["task", "success", "steps when successful", "return", "episodes"],
            &lines,
        ));
        output::say(&format!("adapting to a new context: {:.1} ms", seconds * 1e3));
        Ok(())
    }

    fn places(&self, run: &Run, rows: &[ScoreRow]) -> anyhow::Result<()> {
        if self.json {
            let planner = run.plan.eval.planner;
            return output::json(
                &json!({"run": about(run), "success": success(rows), "planner": planner, "rows": rows}),
            );
        }
        output::say(&policy(run));
        let line = vec![
            "every place, from anywhere".into(),
            format!("{:.3}", success(rows)),
            rows.len().to_string(),
        ];
        output::say(&table::render(&["task", "success", "episodes"], &[line]));
        Ok(())
    }

    fn rewards(&self, Trained { run, world, agent }: &Trained) -> anyhow::Result<()> {
        let path = self.run.display();
        anyhow::ensure!(
            has_reward_tasks(&**world, agent)?,
            "{path}: --tasks rewards needs a maze: the listed states of a grid, or Pointmass"
        );
        anyhow::ensure!(
            self.belief == BeliefChoice::Frozen,
            "--tasks rewards scores a frozen belief; leave --belief online out"
        );
        let eval = &run.plan.eval;
        let rows = evaluate_rewards(&**world, agent, self.split.into(), eval, run.seed)?;
        let scores = reward_scores(rows.iter());
        if self.json {
            let kinds: serde_json::Map<_, _> =
                scores.iter().map(|(kind, score)| ((*kind).to_owned(), json!(score))).collect();
            return output::json(&json!({
                "run": about(run),
                "scores": kinds,
                "planner": eval.planner,
                "task_policy": eval.task_policy,
                "rows": rows,
            }));
        }
        let lines: Vec<_> =
            scores.iter().map(|(kind, score)| vec![(*kind).to_owned(), format!("{score:.3}")]).collect();
        output::say(&format!("{}, {}", policy(run), eval.task_policy.title()));
        output::say(&table::render(&["reward", "share of the possible gain"], &lines));
        Ok(())
    }
}

fn about(run: &Run) -> serde_json::Value {
    json!({"env": run.plan.env, "method": run.method, "seed": run.seed})
}

fn policy(run: &Run) -> String {
    format!("{}, {}", run.method.title, run.plan.eval.planner.title())
}
