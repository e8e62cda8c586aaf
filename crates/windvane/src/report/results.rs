//! The results of a sweep's folder, from its rows alone: tables, figures, one page.

use super::page::Page;
use super::{curves, published, summary};
use crate::error::LearnError;
use crate::stats::table::{self, COLUMNS, Cell, Line};
use crate::stats::{self, Estimate, bootstrap_pair, improvement};
use crate::sweep::Found;
use crate::sweep::ablation::{ABLATIONS, MAIN};
use crate::sweep::manifest::Manifest;
use crate::sweep::unit::{CURVE, CurvePoint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use windvane_world::Split;
use windvane_world::rng::stream;

/// Everything a sweep's folder holds in rows.
#[derive(Clone, Debug)]
pub struct Results {
    folder: PathBuf,
    /// The environment.
    pub env: String,
    /// The main experiment, a line for each setting and player; empty if only ablations were run.
    pub main: Vec<Line>,
    /// The ablations that were run.
    pub ablations: Vec<(&'static str, Vec<Line>)>,
    /// Learning curves of the main experiment.
    pub curve: Vec<CurvePoint>,
    /// What was wrong with the rows.
    pub warnings: Vec<String>,
}

/// A table as text.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// The lines.
    pub rows: Vec<Vec<String>>,
}

/// The probability that one method is better than another on unseen contexts.
#[derive(Clone, Debug, Serialize)]
pub struct Improvement {
    /// The first.
    pub x: String,
    /// The second.
    pub y: String,
    /// The setting of both.
    pub setting: String,
    /// How likely the first is better.
    pub probability: Estimate,
}

/// Stands beside numbers of several revisions.
const MIXED: &str = "\u{2020}";

impl Results {
    /// Reads all rows below `folder`.
    pub fn read(folder: &Path) -> Result<Self, LearnError> {
        let found = Found::below(folder)?;
        let env = found.rows[0].1.env.clone();
        if let Some((_, other)) = found.rows.iter().find(|(_, row)| row.env != env) {
            let problem = format!(
                "holds rows of {env} and of {}; expected one environment, give each a folder of its own",
                other.env
            );
            return Err(LearnError::run(folder, problem));
        }
        let ablations = ABLATIONS.iter().map(|a| (a.name, table::lines(&found.of_sweep(a.name))));
        Ok(Self {
            folder: folder.to_owned(),
            main: table::lines(&found.of_sweep(MAIN)),
            ablations: ablations.filter(|(_, lines)| !lines.is_empty()).collect(),
            curve: curve_points(&folder.join(MAIN)),
            warnings: found.warnings,
            env,
        })
    }

    /// The settings of the main experiment.
    pub fn settings(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for line in &self.main {
            if !names.contains(&line.setting.as_str()) {
                names.push(&line.setting);
            }
        }
        names
    }

    /// The main experiment's lines of one setting.
    pub fn lines_of(&self, setting: &str) -> Vec<&Line> {
        self.main.iter().filter(|line| line.setting == setting).collect()
    }

    /// The scores of one setting, with the paper's values and the exact players.
    pub fn score_table(&self, setting: &str) -> Table {
        let lines = self.lines_of(setting);
        let mut rows = Vec::new();
        for line in lines.iter().filter(|line| line.is_learned()) {
            rows.push(self.score_row(line));
        }
        let find = |player: &str| lines.iter().copied().find(|line| line.method == player);
        if let Some(frozen) = find("bayes-frozen") {
            let known = find("bayes-known").and_then(|line| line.cells[0].as_ref());
            let online = |column: usize| find("bayes-online").and_then(|line| line.cells[column].as_ref());
            let cells = [known, frozen.cells[1].as_ref(), online(2), online(3)].map(score);
            let title = "exact Bayes planner (ceiling)".to_owned();
            rows.push([vec![title], cells.to_vec(), vec!["-".to_owned(); 2]].concat());
        }
        for player in ["shortest-path", "beeline", "average-map", "random"] {
            rows.extend(find(player).map(|line| self.score_row(line)));
        }
        let header =
            ["player", "seen", "unseen", "seen, online", "unseen, online", "paper, seen", "paper, unseen"];
        Table {
            title: format!("Success on {}, {setting}: mean \u{b1} std over seeds", self.env),
            header: header.map(str::to_owned).to_vec(),
            rows,
        }
    }

    fn score_row(&self, line: &Line) -> Vec<String> {
        let mark = if line.is_learned() && line.revisions != self.usual_revision(&line.setting) {
            MIXED
        } else {
            ""
        };
        let mut cells = vec![format!("{}{mark}", line.title())];
        cells.extend(line.cells.iter().map(|cell| score(cell.as_ref())));
        for split in [Split::Train, Split::Test] {
            let paper = published::score(&self.env, &line.method, split);
            cells.push(paper.map_or("-".to_owned(), |[mean, std]| format!("{mean:.2} \u{b1} {std:.2}")));
        }
        cells
    }

    /// The revision that most lines of a setting are made by alone.
    fn usual_revision(&self, setting: &str) -> Vec<String> {
        let lines = self.lines_of(setting);
        let alone = || lines.iter().filter(|line| line.is_learned() && line.revisions.len() == 1);
        let count = |revision: &Vec<String>| alone().filter(|line| line.revisions == *revision).count();
        alone().map(|line| line.revisions.clone()).max_by_key(count).unwrap_or_default()
    }

    /// Interquartile means of one setting, with intervals.
    pub fn iqm_table(&self, setting: &str) -> Table {
        let header = ["method", "seen", "unseen", "seen, online", "unseen, online", "detour, unseen"];
        let row = |line: &&Line| {
            let mut cells = vec![line.title()];
            let words = |cell: &Option<Cell>| cell.as_ref().map_or("-".to_owned(), |c| estimate(&c.iqm));
            cells.extend(line.cells.iter().map(words));
            let detour = line.cells[1].as_ref().and_then(|cell| cell.detour);
            cells.push(detour.map_or("-".to_owned(), |detour| format!("{detour:.2}")));
            cells
        };
        let lines = self.lines_of(setting);
        Table {
            title: format!("Interquartile mean and 95% stratified-bootstrap interval, {setting}"),
            header: header.map(str::to_owned).to_vec(),
            rows: lines.iter().filter(|line| line.is_learned()).map(row).collect(),
        }
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
        Table {
            title: format!("What a run costs, belief included, {setting}"),
            header: header.map(str::to_owned).to_vec(),
            rows: lines.iter().filter(|line| line.is_learned()).map(row).collect(),
        }
    }

    /// How likely each method of a setting is better than each other on unseen contexts, belief frozen.
    pub fn improvements(&self, setting: &str) -> Vec<Improvement> {
        let lines = self.lines_of(setting);
        let learned: Vec<_> = lines.iter().filter(|line| line.is_learned()).collect();
        let mut all = Vec::new();
        for x in &learned {
            for y in learned.iter().filter(|y| y.method != x.method) {
                let (Some(a), Some(b)) = (&x.cells[1], &y.cells[1]) else { continue };
                let mut rng = stream(0, "improvement", &[]);
                all.push(Improvement {
                    x: x.method.clone(),
                    y: y.method.clone(),
                    setting: setting.to_owned(),
                    probability: bootstrap_pair(&a.scores, &b.scores, &mut rng, improvement),
                });
            }
        }
        all
    }

    fn improvement_table(&self, setting: &str) -> Table {
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
        Table {
            title: format!("Probability of being better on unseen contexts, belief frozen, {setting}"),
            header: std::iter::once("method".to_owned()).chain(names).collect(),
            rows: methods.iter().map(|x| row(x)).collect(),
        }
    }

    /// The answer in a sentence or two.
    fn answer(&self) -> String {
        let Some(setting) = self.settings().first().copied() else {
            return "Ablations only: the main experiment is not in this folder.".to_owned();
        };
        let lines = self.lines_of(setting);
        let unseen = |line: &Line, column: usize| line.cells[column].as_ref().map(|cell| cell.mean);
        let mut learned: Vec<_> = lines.iter().filter(|line| line.is_learned()).collect();
        learned.sort_by(|a, b| unseen(b, 1).unwrap_or(0.0).total_cmp(&unseen(a, 1).unwrap_or(0.0)));
        let said =
            learned.iter().filter_map(|line| Some(format!("{} {:.2}", line.title(), unseen(line, 1)?)));
        let mut sentences = vec![format!(
            "Share of goals reached on unseen dynamics of {} with the belief frozen after the context: {}.",
            self.env,
            said.collect::<Vec<_>>().join(", ")
        )];
        let ceiling = learned.first().and_then(|line| line.cells[1].as_ref()?.ceiling);
        sentences.extend(
            ceiling.map(|best| format!("No frozen belief can do better than {best:.2}, but for luck.")),
        );
        let online = learned.iter().filter_map(|line| Some((line.title(), unseen(line, 3)?)));
        sentences.extend(online.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(title, value)| {
            format!("A belief that goes on learning while it acts reaches {value:.2} ({title}).")
        }));
        sentences.join(" ")
    }

    /// All figures that rows can give: name, picture, caption.
    pub fn figures(&self) -> Vec<(String, windvane_world::picture::Picture, String)> {
        let mut all = Vec::new();
        // The first setting's figures have plain names.
        let named = |what: &str, number: usize, setting: &str| {
            if number == 0 { what.to_owned() } else { format!("{what}-{setting}") }
        };
        for (number, setting) in self.settings().into_iter().enumerate() {
            let caption = format!(
                "{setting}: bars are means over seeds, whiskers 95% intervals of a bootstrap over seeds within tasks; \
                 diamonds are the paper's values."
            );
            let picture = summary::draw(&self.env, &self.lines_of(setting));
            all.push((named("summary", number, setting), picture, caption));
        }
        for (name, lines) in &self.ablations {
            let Some(about) = ABLATIONS.iter().find(|a| a.name == *name) else { continue };
            let caption = format!("Ablation: {}.", about.about);
            all.push((format!("ablation-{name}"), curves::ablation(about, &self.env, lines), caption));
        }
        for (number, setting) in self.settings().into_iter().enumerate() {
            let points: Vec<&CurvePoint> = self.curve.iter().filter(|p| p.setting == setting).collect();
            if !points.is_empty() {
                let caption = format!(
                    "{setting}: success while the agents are trained, on the belief that was trained before."
                );
                all.push((named("learning", number, setting), curves::learning(&self.env, &points), caption));
            }
            let caption = format!("{setting}: the further right and up, the better.");
            let picture = curves::profiles(&self.env, &self.lines_of(setting));
            all.push((named("profiles", number, setting), picture, caption));
        }
        all
    }

    /// The page.
    pub fn page(&self) -> Result<String, LearnError> {
        let mut page = Page::new(
            &format!("Zero-shot adaptation to unseen dynamics: {}", self.env),
            "Can one model, trained without rewards or labels on many dynamics, act in dynamics it has never met, after a \
             short reward-free look at them?",
        );
        page.paragraph(&self.answer());
        for setting in self.settings() {
            self.tables(&mut page, setting);
        }
        page.heading("Figures");
        for (_, picture, caption) in self.figures() {
            page.figure(picture.svg(), &caption);
        }
        for (svg, caption) in drawn_before(&self.folder)? {
            page.figure(&svg, &caption);
        }
        for (name, lines) in &self.ablations {
            page.heading(&format!("Ablation: {name}"));
            let table = ablation_table(name, lines);
            page.table(&table.header.iter().map(String::as_str).collect::<Vec<_>>(), &table.rows);
        }
        if !self.warnings.is_empty() {
            page.heading("Warnings");
            self.warnings.iter().for_each(|warning| page.paragraph(warning));
        }
        page.heading("Run it again");
        page.code(&self.commands().join("\n"));
        page.paragraph(
            "Every number above is computed from the rows in scores.jsonl, one of each run, which name their settings by a \
             hash, the program's revision and what the run cost. `windvane report` makes this page from those rows alone.",
        );
        Ok(page.html())
    }

    fn tables(&self, page: &mut Page, setting: &str) {
        let scores = self.score_table(setting);
        page.heading(&scores.title);
        let show = |page: &mut Page, table: &Table| {
            page.table(&table.header.iter().map(String::as_str).collect::<Vec<_>>(), &table.rows);
        };
        show(page, &scores);
        page.paragraph(
            "Seen: contexts of the training data; unseen: held out. Plain greedy play after a reward-free random walk; online: \
             the belief goes on learning while it acts. The exact Bayes planner knows which layouts exist (on seen contexts, \
             which ones the data came from) and nothing else: no frozen belief beats it by more than luck.",
        );
        if self.lines_of(setting).iter().any(|line| line.revisions.len() > 1) {
            page.paragraph(&format!(
                "{MIXED} Rows of several revisions of the program are mixed in this line."
            ));
        }
        for table in [self.iqm_table(setting), self.improvement_table(setting), self.cost_table(setting)] {
            page.heading(&table.title);
            show(page, &table);
        }
    }

    /// The commands that made the rows.
    fn commands(&self) -> Vec<String> {
        let sweeps = [MAIN].into_iter().chain(ABLATIONS.iter().map(|a| a.name));
        let read = |sweep: &str| Manifest::read(&Manifest::path(&self.folder, sweep)).ok();
        let mut commands: Vec<String> =
            sweeps.filter_map(read).flat_map(|manifest| commands_of(&manifest)).collect();
        commands.push("windvane report DIR".to_owned());
        commands
    }
}

/// The command of each setting of a manifest.
fn commands_of(manifest: &Manifest) -> Vec<String> {
    let mut methods: Vec<&str> = Vec::new();
    for unit in manifest.units.iter().filter(|unit| unit.method != crate::sweep::manifest::REFERENCE) {
        if !methods.contains(&unit.method.as_str()) {
            methods.push(&unit.method);
        }
    }
    let seeds = manifest.units.iter().map(|unit| unit.seed + 1).max().unwrap_or(1);
    let ablation =
        if manifest.sweep == MAIN { String::new() } else { format!(" --ablation {}", manifest.sweep) };
    let start = format!(
        "windvane reproduce {}{ablation} --methods {} --seeds {seeds}",
        manifest.env,
        methods.join(",")
    );
    let presets = manifest.settings.iter().filter(|setting| !setting.name.contains('='));
    let presets: Vec<String> =
        presets.map(|setting| format!("{start} --preset {} --out DIR", setting.name)).collect();
    if presets.is_empty() { vec![format!("{start} --out DIR")] } else { presets }
}

/// All points of learning curves below a folder.
fn curve_points(folder: &Path) -> Vec<CurvePoint> {
    let mut files: Vec<PathBuf> = Vec::new();
    let folders = |of: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(of).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    for setting in folders(folder) {
        files.extend(folders(&setting).into_iter().map(|unit| unit.join(CURVE)));
    }
    files.sort();
    let text = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    text.flat_map(|text| text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect::<Vec<_>>())
        .collect()
}

/// Figures that look into agents, drawn while those were there: SVG and caption.
fn drawn_before(folder: &Path) -> Result<Vec<(String, String)>, LearnError> {
    let mut all = Vec::new();
    for (name, caption) in super::INSIDE {
        let path = folder.join("figures").join(format!("{name}.svg"));
        if path.exists() {
            let svg = std::fs::read_to_string(&path).map_err(LearnError::io(&path, "reading a figure"))?;
            all.push((svg, (*caption).to_owned()));
        }
    }
    Ok(all)
}

fn ablation_table(name: &str, lines: &[Line]) -> Table {
    let header =
        ["method", "value", "seen", "unseen", "seen, online", "unseen, online", "ceiling, unseen", "seeds"];
    let row = |line: &Line| {
        let value = line.setting.split_once('=').map_or(line.setting.as_str(), |(_, value)| value);
        let value = if name == "context" { line.context_steps.to_string() } else { value.to_owned() };
        let ceiling = line.cells[1].as_ref().and_then(|cell| cell.ceiling);
        let mut cells = vec![line.title(), value];
        cells.extend(line.cells.iter().map(|cell| score(cell.as_ref())));
        cells.push(ceiling.map_or("-".to_owned(), |ceiling| format!("{ceiling:.2}")));
        cells.push(line.seeds.to_string());
        cells
    };
    Table {
        title: format!("Ablation: {name}"),
        header: header.map(str::to_owned).to_vec(),
        rows: lines.iter().filter(|line| line.is_learned()).map(row).collect(),
    }
}

fn score(cell: Option<&Cell>) -> String {
    cell.map_or("-".to_owned(), |cell| format!("{:.2} \u{b1} {:.2}", cell.mean, cell.std))
}

fn estimate(estimate: &Estimate) -> String {
    format!("{:.2} [{:.2}, {:.2}]", estimate.value, estimate.low, estimate.high)
}

/// All statistics of one setting of the main experiment, for machines.
#[derive(Debug, Serialize)]
pub struct Statistics<'a> {
    /// The setting.
    pub setting: &'a str,
    /// Names of the columns of each line: belief and split.
    pub columns: Vec<String>,
    /// The lines.
    pub lines: Vec<&'a Line>,
    /// Probabilities of improvement.
    pub improvements: Vec<Improvement>,
    /// Thresholds of the performance profiles.
    pub thresholds: Vec<f64>,
    /// Performance profiles on unseen contexts, belief frozen: the method and its shares.
    pub profiles: Vec<(&'a str, Vec<f64>)>,
}

impl Results {
    /// All statistics of the main experiment.
    pub fn statistics(&self) -> Vec<Statistics<'_>> {
        let column = |(belief, split): &(crate::eval::BeliefMode, Split)| {
            format!("{belief:?} {split:?}").to_lowercase()
        };
        let thresholds: Vec<f64> = (0..20).map(|i| (f64::from(i) + 0.5) / 20.0).collect();
        let of = |setting| {
            let lines = self.lines_of(setting);
            let learned = self.main.iter().filter(|line| line.setting == setting && line.is_learned());
            let scores = learned.filter_map(|line| Some((line.method.as_str(), line.cells[1].as_ref()?)));
            let profiles = scores.map(|(name, cell)| (name, stats::profile(&cell.scores, &thresholds)));
            Statistics {
                setting,
                columns: COLUMNS.iter().map(column).collect(),
                profiles: profiles.collect(),
                thresholds: thresholds.clone(),
                improvements: self.improvements(setting),
                lines,
            }
        };
        self.settings().into_iter().map(of).collect()
    }
}
