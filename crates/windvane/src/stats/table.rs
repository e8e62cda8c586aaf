//! Score rows as one line for each policy: what tables print and bars show.

use super::{Estimate, Scores, bootstrap, iqm, mean_and_std};
use crate::eval::BeliefMode;
use crate::methods::METHODS;
use crate::planner::Planner;
use crate::sweep::Row;
use serde::Serialize;
use windvane_world::Split;
use windvane_world::rng::stream;

/// The four columns of a score table.
pub const COLUMNS: [(BeliefMode, Split); 4] = [
    (BeliefMode::Frozen, Split::Train),
    (BeliefMode::Frozen, Split::Test),
    (BeliefMode::Online, Split::Train),
    (BeliefMode::Online, Split::Test),
];

/// What one policy scored in one column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Mean over seeds.
    pub mean: f64,
    /// Standard deviation between seeds.
    pub std: f64,
    /// The mean with its interval.
    pub interval: Estimate,
    /// Interquartile mean with its interval.
    pub iqm: Estimate,
    /// What the exact policy with the same information reaches in the same episodes.
    pub ceiling: Option<f64>,
    /// Mean steps of an episode over those of a policy that knows the map, where all episodes of a row were won.
    pub detour: Option<f64>,
    /// The scores behind it.
    pub scores: Scores,
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The method or reference policy.
    pub method: String,
    /// Its setting.
    pub setting: String,
    /// Length of the context; 0 for policies that need none.
    pub context_steps: usize,
    /// Seeds.
    pub seeds: usize,
    /// F alone, in the columns of [`COLUMNS`]; of reference policies, what they reached.
    pub cells: [Option<Cell>; 4],
    /// The same with the planner.
    pub planned: [Option<Cell>; 4],
    /// Mean gradient steps of a run.
    pub gradient_steps: f64,
    /// Mean CPU time of a run.
    pub cpu_seconds: f64,
    /// Mean wall time of a run.
    pub wall_seconds: f64,
    /// Revisions of the program that made the rows.
    pub revisions: Vec<String>,
}

impl Line {
    /// The name for people.
    pub fn title(&self) -> String {
        title(&self.method)
    }

    /// Whether it is a method that was trained.
    pub fn is_learned(&self) -> bool {
        METHODS.iter().any(|m| m.name == self.method)
    }

    /// The number after the `=` of its setting.
    pub fn value(&self) -> Option<f64> {
        self.setting.split_once('=').and_then(|(_, value)| value.parse().ok())
    }
}

/// The name of a method or reference policy for people.
pub fn title(method: &str) -> String {
    let named = match method {
        "random" => "random actions",
        "beeline" => "straight for the goal",
        "average-map" => "exact planner on the average map",
        "bayes-frozen" => "exact Bayes planner, frozen",
        "bayes-online" => "exact Bayes planner, online",
        "bayes-known" => "exact Bayes planner that knows the training maps",
        "shortest-path" => "shortest path on the true map",
        "oracle" => "expert that is given the context",
        "oracle-untold" => "expert without the context",
        "oracle-misled" => "expert that is given another context",
        "still" => "no action at all",
        other => METHODS.iter().find(|m| m.name == other).map_or(other, |m| m.title),
    };
    named.to_owned()
}

/// A line for each setting, policy and length of context, in the order of `methods.rs`, reference policies last.
pub fn lines(rows: &[&Row]) -> Vec<Line> {
    let mut keys: Vec<(&str, &str, usize)> = Vec::new();
    for row in rows {
        let key = (row.setting.as_str(), row.method.as_str(), row.context_steps);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let place = |method: &str| METHODS.iter().position(|m| m.name == method).unwrap_or(METHODS.len());
    keys.sort_by_key(|(_, method, _)| place(method));
    keys.into_iter()
        .map(|(setting, method, steps)| {
            let own = rows.iter().copied();
            let own = own.filter(|r| r.setting == setting && r.method == method && r.context_steps == steps);
            line(&own.collect::<Vec<_>>())
        })
        .collect()
}

fn line(rows: &[&Row]) -> Line {
    let mut seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let mut revisions: Vec<String> = rows.iter().map(|row| row.revision.clone()).collect();
    revisions.sort_unstable();
    revisions.dedup();
    let [cells, planned] = [Planner::None, Planner::Sweeps].map(|planner| {
        COLUMNS.map(|(belief, split)| {
            let own = |row: &&&Row| (row.planner, row.belief, row.split) == (planner, belief, split);
            cell(&rows.iter().filter(own).copied().collect::<Vec<_>>(), &seeds)
        })
    });
    // Each run counts once, however many rows it has.
    let of_runs = |value: fn(&Row) -> f64| {
        let run = |seed: &u64| rows.iter().find(|row| row.seed == *seed).map(|row| value(row));
        super::mean(&seeds.iter().filter_map(run).collect::<Vec<_>>())
    };
    Line {
        method: rows[0].method.clone(),
        setting: rows[0].setting.clone(),
        context_steps: rows[0].context_steps,
        seeds: seeds.len(),
        cells,
        planned,
        gradient_steps: of_runs(|row| row.gradient_steps as f64),
        cpu_seconds: of_runs(|row| row.cpu_seconds),
        wall_seconds: of_runs(|row| row.wall_seconds),
        revisions,
    }
}

/// The scores of rows: for each seed, the mean at each task over contexts; where shares of a return are known, of the world's own
/// task alone, which is the first.
pub fn scores(rows: &[&Row], seeds: &[u64]) -> Scores {
    let shared = rows.iter().any(|row| row.share.is_some());
    let own = |row: &&&Row| !shared || (row.share.is_some() && row.task == rows[0].task);
    let rows: Vec<&Row> = rows.iter().filter(own).copied().collect();
    let mut tasks: Vec<&str> = rows.iter().map(|row| row.task.as_str()).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let score = |seed: u64, task: &str| {
        let own = rows.iter().filter(|row| row.seed == seed && row.task == task);
        super::mean(&own.map(|row| row.score()).collect::<Vec<_>>())
    };
    let has = |seed: &&u64| rows.iter().any(|row| row.seed == **seed);
    seeds.iter().filter(has).map(|&seed| tasks.iter().map(|task| score(seed, task)).collect()).collect()
}

fn cell(rows: &[&Row], seeds: &[u64]) -> Option<Cell> {
    if rows.is_empty() {
        return None;
    }
    let scores = scores(rows, seeds);
    let (mean, std) = mean_and_std(&scores);
    let ceilings: Vec<f64> = rows.iter().filter_map(|row| row.ceiling).collect();
    let won = rows.iter().filter(|row| row.success == 1.0);
    let detours: Vec<f64> =
        won.filter_map(|row| Some(row.steps / row.optimal_steps.filter(|&o| o > 0)? as f64)).collect();
    Some(Cell {
        mean,
        std,
        interval: bootstrap(&scores, &mut stream(0, "bootstrap mean", &[]), |s| mean_and_std(s).0),
        iqm: bootstrap(&scores, &mut stream(0, "bootstrap", &[]), iqm),
        ceiling: (ceilings.len() == rows.len()).then(|| super::mean(&ceilings)),
        detour: (!detours.is_empty()).then(|| super::mean(&detours)),
        scores,
    })
}
