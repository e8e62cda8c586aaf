//! `windvane ceilings`: what reference policies that are given the information achieve.

use crate::choice::{SplitChoice, StartChoice};
use crate::{bounds, output, table};
use clap::Args;
use serde_json::json;
use windvane_world::ceilings::{CeilingConfig, CeilingRow, measure};

/// Measures what is achievable: the success of reference policies that need no learning.
///
/// random: every action with equal chance. shortest-path: knows the true map. On Pointmass also beeline: pushes straight
/// for the goal and slides along walls. On grids also average-map: plans on the mean of the training layouts;
/// bayes-frozen: plans on the exact posterior over all layouts after one random trajectory; bayes-online: the same, and
/// goes on updating while it acts; bayes-known (training layouts only): as bayes-frozen, knowing just these by heart.
/// All of them act greedily.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane ceilings --env four-rooms
  windvane ceilings --env doors --context-steps 100,500 --context-start random --split test --json")]
pub(crate) struct Ceilings {
    /// The world (`windvane envs` lists them)
    #[arg(long, value_name = "NAME")]
    env: String,
    /// Number of seeds to average over, each with other contexts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = bounds::count::<u64>(bounds::SEEDS))]
    seeds: u64,
    /// Lengths of the random trajectory that forms a belief
    #[arg(long, value_name = "STEPS", value_delimiter = ',', default_values_t = [50, 100, 200, 500],
          value_parser = bounds::count::<usize>(bounds::STEPS))]
    context_steps: Vec<usize>,
    /// Where that trajectory begins
    #[arg(long, value_enum, default_value_t = StartChoice::Fixed)]
    context_start: StartChoice,
    /// Contexts to play in; by default both
    #[arg(long, value_enum)]
    split: Option<SplitChoice>,
    /// Number of training contexts; by default the paper's
    #[arg(long, value_name = "N", value_parser = bounds::count::<usize>(bounds::CONTEXTS))]
    train: Option<usize>,
    /// Number of held-out contexts; by default the paper's
    #[arg(long, value_name = "N", value_parser = bounds::count::<usize>(bounds::CONTEXTS))]
    test: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Ceilings {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let splits = self.split.map_or(vec![SplitChoice::Train, SplitChoice::Test], |split| vec![split]);
        let config = CeilingConfig {
            env: self.env,
            train: self.train,
            test: self.test,
            seeds: (0..self.seeds).collect(),
            context_steps: self.context_steps,
            context_start: self.context_start.into(),
            splits: splits.into_iter().map(Into::into).collect(),
        };
        let rows = measure(&config)?;
        if !rows.iter().any(|row| row.policy.starts_with("bayes")) {
            output::note(&format!(
                "{}: only grids have an exact posterior over maps, so there are no Bayes planners",
                config.env
            ));
        }
        if self.json {
            return output::json(&json!({
                "env": config.env,
                "seeds": config.seeds,
                "context_start": config.context_start,
                "rows": rows,
            }));
        }
        let seeds = if self.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds) };
        output::say(&format!("{}: share of episodes won, {seeds}", config.env));
        output::say(&layout(&rows));
        Ok(())
    }
}

/// One line for each policy and context length, one column for each split.
fn layout(rows: &[CeilingRow]) -> String {
    let mut splits = Vec::new();
    let mut lines: Vec<(&str, usize)> = Vec::new();
    for row in rows {
        if !splits.contains(&row.split) {
            splits.push(row.split);
        }
        if !lines.contains(&(row.policy, row.context_steps)) {
            lines.push((row.policy, row.context_steps));
        }
    }
    let cells = lines.iter().map(|&(policy, steps)| {
        let success = splits.iter().map(|&split| {
            let found =
                rows.iter().find(|row| (row.policy, row.context_steps, row.split) == (policy, steps, split));
            found.map_or("-".to_owned(), |row| format!("{:.2}", row.success))
        });
        [policy.to_owned(), steps.to_string()].into_iter().chain(success).collect()
    });
    let titles: Vec<String> = splits.iter().map(ToString::to_string).collect();
    let header: Vec<&str> =
        ["policy", "context"].into_iter().chain(titles.iter().map(String::as_str)).collect();
    table::render(&header, &cells.collect::<Vec<_>>())
}
