//! The tables of results, as text.

use super::published;
use super::results::{AblationResults, Results};
use crate::agent::TaskPolicy;
use crate::eval::rewards::reward_scores;
use crate::methods::METHODS;
use crate::planner::Planner;
use crate::stats::table::{self, Cell, Line};
use crate::stats::{Estimate, mean_and_std};
use crate::sweep::row::SweepRewardRow;
use windvane_world::Split;
use windvane_world::grid::RewardKind;

/// A table as text.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// The lines.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without the columns in which no line has a value.
    fn new(title: String, header: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        let filled = |column: &usize| rows.iter().any(|row| row[*column] != "-");
        let filled: Vec<usize> = (0..header.len()).filter(filled).collect();
        let taken = |row: &Vec<String>| filled.iter().map(|&column| row[column].clone()).collect();
        Self { title, header: taken(&header), rows: rows.iter().map(taken).collect() }
    }
}

/// Reference policies, in their order in a table, and those of them that plan.
const REFERENCES: [&str; 8] = [
    "shortest-path",
    "oracle",
    "oracle-untold",
    "oracle-misled",
    "beeline",
    "average-map",
    "still",
    "random",
];
const PLANNERS: [&str; 3] = ["shortest-path", "beeline", "average-map"];

/// Stands beside numbers of several revisions.
pub(super) const MIXED: &str = "\u{2020}";

impl Results {
    /// The scores of one setting, with the paper's values and the exact policies.
    pub fn score_table(&self, setting: &str) -> Table {
        let lines = self.lines_of(setting);
        let several = lines.iter().any(|line| line.seeds > 1);
        let mut rows = Vec::new();
        for line in lines.iter().filter(|line| line.is_learned()) {
            rows.push(self.score_row(line));
        }
        let find = |policy: &str| lines.iter().copied().find(|line| line.method == policy);
        if let Some(frozen) = find("bayes-frozen") {
            let known = find("bayes-known").and_then(|line| line.cells[0].as_ref());
            let online = |column: usize| find("bayes-online").and_then(|line| line.cells[column].as_ref());
            let cells = [known, frozen.cells[1].as_ref(), online(2), online(3)].map(score);
            // Where maps cannot be listed, it plans on a sample of them.
            let bounds = self.env != "pointmass";
            let title =
                if bounds { "exact Bayes planner (ceiling)" } else { "Bayes planner (no bound)" }.to_owned();
            let cells = cells.into_iter().flat_map(|cell| ["-".to_owned(), cell]);
            rows.push([vec![title], cells.collect(), vec!["-".to_owned(); 2]].concat());
        }
        for policy in REFERENCES {
            rows.extend(find(policy).map(|line| self.score_row(line)));
        }
        let mut header = vec!["policy".to_owned()];
        for column in ["seen", "unseen", "seen, online", "unseen, online"] {
            header.extend(
                [Planner::None, Planner::Sweeps].map(|planner| format!("{column}: {}", planner.title())),
            );
        }
        header.extend(["paper, seen", "paper, unseen"].map(str::to_owned));
        Table::new(
            format!(
                "{} on {}, {setting}{}",
                if self.returns.is_empty() { "Success" } else { "Share of the expert's return" },
                self.env,
                if several { ": mean \u{b1} std over seeds" } else { "" }
            ),
            header,
            rows,
        )
    }

    /// Mean returns by task, where tasks have no success; nothing else.
    pub(super) fn return_table(&self, setting: &str) -> Option<Table> {
        let own = || self.returns.iter().filter(|mean| mean.setting == setting);
        let (mut tasks, mut policies): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for mean in own() {
            if !tasks.contains(&mean.task.as_str()) {
                tasks.push(&mean.task);
            }
            if !policies.contains(&mean.method.as_str()) {
                policies.push(&mean.method);
            }
        }
        let row = |policy: &&str| {
            let cell = |task: &&str| {
                let found = own().find(|mean| mean.method == *policy && mean.task == *task);
                let both =
                    found.map(|mean| mean.splits.map(|x| x.map_or("-".to_owned(), |x| format!("{x:.0}"))));
                both.map_or("-".to_owned(), |[seen, unseen]| format!("{seen} / {unseen}"))
            };
            [vec![table::title(policy)], tasks.iter().map(cell).collect()].concat()
        };
        (!policies.is_empty()).then(|| {
            Table::new(
                format!("Mean return by task, belief frozen, seen / unseen contexts, {setting}"),
                std::iter::once("policy").chain(tasks.iter().copied()).map(str::to_owned).collect(),
                policies.iter().map(row).collect(),
            )
        })
    }

    fn score_row(&self, line: &Line) -> Vec<String> {
        let mark = if line.is_learned() && line.revisions != self.usual_revision(&line.setting) {
            MIXED
        } else {
            ""
        };
        let mut cells = vec![format!("{}{mark}", line.title())];
        for (alone, planned) in line.cells.iter().zip(&line.planned) {
            // Reference policies are no forward maps; those that plan stand with the planner.
            let plans = !line.is_learned() && PLANNERS.contains(&line.method.as_str());
            let both = if plans { [planned, alone] } else { [alone, planned] };
            cells.extend(both.map(|cell| score(cell.as_ref())));
        }
        for split in [Split::Train, Split::Test] {
            let paper = published::score(&self.env, &line.method, split);
            cells.push(paper.map_or("-".to_owned(), |[mean, std]| format!("{mean:.2} \u{b1} {std:.2}")));
        }
        cells
    }

    /// The revision that most lines of a setting are made by alone.
    pub(super) fn usual_revision(&self, setting: &str) -> Vec<String> {
        let lines = self.lines_of(setting);
        let alone = || lines.iter().filter(|line| line.is_learned() && line.revisions.len() == 1);
        let count = |revision: &Vec<String>| alone().filter(|line| line.revisions == *revision).count();
        alone().map(|line| line.revisions.clone()).max_by_key(count).unwrap_or_default()
    }

    /// The scores of one setting on tasks that are no goals: by method, and by kind of reward on unseen contexts; nothing where
    /// there are no such tasks.
    pub fn reward_tables(&self, setting: &str) -> Vec<Table> {
        let rows: Vec<&SweepRewardRow> = self.rewards.iter().filter(|row| row.setting == setting).collect();
        let mut methods: Vec<&str> = rows.iter().map(|row| row.method.as_str()).collect();
        methods.sort_by_key(|name| METHODS.iter().position(|method| method.name == *name));
        methods.dedup();
        if methods.is_empty() {
            return Vec::new();
        }
        let policies = [
            (Planner::None, TaskPolicy::Greedy, "F alone, greedy on z"),
            (Planner::None, TaskPolicy::Gpi, "F alone, policy improvement"),
            (Planner::Sweeps, TaskPolicy::Greedy, "with planner"),
        ];
        let score = |method: &str, split, by, name: &str| {
            let own: Vec<_> = rows.iter().copied().filter(|row| row.method == method).collect();
            reward_score(&own, split, by, name)
        };
        let mut header = vec!["method".to_owned()];
        for (.., title) in policies {
            header.extend(["seen", "unseen"].map(|split| format!("{split}: {title}")));
        }
        let by_method = |method: &&str| {
            let cells = policies.iter().flat_map(|(planner, policy, _)| {
                [Split::Train, Split::Test].map(|split| score(method, split, (*planner, *policy), "mean"))
            });
            [vec![table::title(method)], cells.collect()].concat()
        };
        let by_kind = |kind: &RewardKind| {
            let cells = methods
                .iter()
                .map(|method| score(method, Split::Test, (Planner::None, TaskPolicy::Greedy), kind.title()));
            [vec![kind.title().to_owned()], cells.collect()].concat()
        };
        let names = methods.iter().map(|method| table::title(method));
        vec![
            Table::new(
                format!("Any reward: share of the possible gain over random actions, {setting}"),
                header,
                methods.iter().map(by_method).collect(),
            ),
            Table::new(
                format!("Any reward on unseen contexts, F alone, greedy on z, {setting}"),
                std::iter::once("reward".to_owned()).chain(names).collect(),
                RewardKind::ALL.iter().map(by_kind).collect(),
            ),
        ]
    }

    /// Interquartile means of one setting, with intervals.
    pub fn iqm_table(&self, setting: &str) -> Table {
        let header = [
            "method",
            "seen: F alone",
            "unseen: F alone",
            "seen, online: F alone",
            "unseen, online: F alone",
            "detour, unseen",
        ];
        let row = |line: &&Line| {
            let mut cells = vec![line.title()];
            let words = |cell: &Option<Cell>| cell.as_ref().map_or("-".to_owned(), |c| estimate(&c.iqm));
            cells.extend(line.cells.iter().map(words));
            let detour = line.cells[1].as_ref().and_then(|cell| cell.detour);
            cells.push(detour.map_or("-".to_owned(), |detour| format!("{detour:.2}")));
            cells
        };
        let lines = self.lines_of(setting);
        let interval = if lines.iter().any(|line| line.seeds > 1) {
            " and 95% stratified-bootstrap interval"
        } else {
            ""
        };
        Table::new(
            format!("Interquartile mean{interval}, {setting}"),
            header.map(str::to_owned).to_vec(),
            lines.iter().filter(|line| line.is_learned()).map(row).collect(),
        )
    }

    /// What the runs of one setting cost.
    pub fn cost_table(&self, setting: &str) -> Table {
        let header = ["method", "seeds", "gradient steps", "CPU seconds", "wall seconds", "revision"];
        let row = |line: &&Line| {
            vec![
                line.title(),
                line.seeds.to_string(),
                format!("{:.0}", line.gradient_steps),
                format!("{:.0}", line.cpu_seconds),
                format!("{:.0}", line.wall_seconds),
                line.revisions.join(", "),
            ]
        };
        let lines = self.lines_of(setting);
        Table::new(
            format!("What a run costs, belief included, {setting}"),
            header.map(str::to_owned).to_vec(),
            lines.iter().filter(|line| line.is_learned()).map(row).collect(),
        )
    }

    /// The probabilities of improvement.
    pub(super) fn improvement_table(&self, setting: &str) -> Table {
        let all = self.improvements(setting);
        let mut methods: Vec<&str> = all.iter().map(|pair| pair.x.as_str()).collect();
        methods.dedup();
        let row = |x: &str| {
            let cell = |y: &&str| {
                let pair = all.iter().find(|pair| pair.x == x && pair.y == *y);
                pair.map_or("-".to_owned(), |pair| estimate(&pair.probability))
            };
            [vec![table::title(x)], methods.iter().map(cell).collect()].concat()
        };
        let names = methods.iter().map(|m| format!("than {}", table::title(m)));
        Table::new(
            format!("Probability of being better on unseen contexts, belief frozen, {setting}"),
            std::iter::once("method".to_owned()).chain(names).collect(),
            methods.iter().map(|x| row(x)).collect(),
        )
    }
}

impl AblationResults {
    /// Scores by what is varied: goals, and any reward where it was scored.
    pub(super) fn table(&self) -> Table {
        let mut header = vec![format!("method, {}", self.about.axis)];
        for column in ["seen", "unseen", "seen, online", "unseen, online"] {
            header.extend(
                [Planner::None, Planner::Sweeps].map(|planner| format!("{column}: {}", planner.title())),
            );
        }
        header.extend(["exact, seen", "exact, unseen"].map(str::to_owned));
        if !self.rewards.is_empty() {
            header.extend(["seen", "unseen"].map(|split| format!("any reward, {split}: F alone")));
        }
        header.push("seeds".to_owned());
        let row = |line: &Line| {
            let mut cells = vec![format!("{}, {}", line.title(), self.value(line))];
            let both = line.cells.iter().zip(&line.planned);
            cells.extend(both.flat_map(|(alone, planned)| [score(alone.as_ref()), score(planned.as_ref())]));
            let ceiling = |column: usize| line.cells[column].as_ref().and_then(|cell| cell.ceiling);
            cells.extend([0, 1].map(|i| ceiling(i).map_or("-".to_owned(), |best| format!("{best:.2}"))));
            if !self.rewards.is_empty() {
                let own = |row: &&SweepRewardRow| row.setting == line.setting && row.method == line.method;
                let own: Vec<_> = self.rewards.iter().filter(own).collect();
                let by = (Planner::None, TaskPolicy::Greedy);
                cells.extend([Split::Train, Split::Test].map(|split| reward_score(&own, split, by, "mean")));
            }
            cells.push(line.seeds.to_string());
            cells
        };
        Table::new(
            format!("Ablation: {}", self.about.name),
            header,
            self.lines.iter().filter(|line| line.is_learned()).map(row).collect(),
        )
    }
}

/// The score of one method's rows on tasks that are no goals, by kind of reward or as their "mean": mean and deviation over seeds.
fn reward_score(
    rows: &[&SweepRewardRow],
    split: Split,
    (planner, policy): (Planner, TaskPolicy),
    name: &str,
) -> String {
    let mut seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let of_seed = |seed: &u64| {
        let own = rows.iter().filter(|r| {
            r.seed == *seed && r.row.split == split && (r.row.planner, r.row.task_policy) == (planner, policy)
        });
        let scores = reward_scores(own.map(|r| &r.row));
        scores.iter().find(|(kind, _)| *kind == name && scores.len() > 1).map(|(_, score)| vec![*score])
    };
    let scores: Vec<Vec<f64>> = seeds.iter().filter_map(of_seed).collect();
    let (mean, std) = mean_and_std(&scores);
    // Two digits, and no minus before nothing.
    let mean = (mean * 100.0).round() / 100.0 + 0.0;
    match scores.len() {
        0 => "-".to_owned(),
        1 => format!("{mean:.2}"),
        _ => format!("{mean:.2} \u{b1} {std:.2}"),
    }
}

fn score(cell: Option<&Cell>) -> String {
    match cell {
        None => "-".to_owned(),
        // One seed has no deviation.
        Some(cell) if cell.scores.len() < 2 => format!("{:.2}", cell.mean),
        Some(cell) => format!("{:.2} \u{b1} {:.2}", cell.mean, cell.std),
    }
}

fn estimate(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{:.2} [{low:.2}, {high:.2}]", estimate.value),
        _ => format!("{:.2}", estimate.value),
    }
}
