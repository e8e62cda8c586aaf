//! The page of results: the question, the answer, tables, figures, how to run it again.

use super::page::Page;
use super::results::{Drawing, Results};
use super::tables::{MIXED, Table};
use crate::config::Plan;
use crate::config::layers::Layers;
use crate::error::LearnError;
use crate::stats::table::Line;
use crate::sweep::ablation::{ABLATIONS, MAIN};
use crate::sweep::manifest::{Manifest, REFERENCE, Setting};
use std::path::Path;

impl Results {
    /// The answer in a sentence or two.
    fn answer(&self) -> String {
        let Some(setting) = self.settings().first().copied() else {
            return "Ablations only: the main experiment is not in this folder.".to_owned();
        };
        let lines = self.lines_of(setting);
        let unseen = |line: &Line, column: usize| line.cells[column].as_ref().map(|cell| cell.mean);
        let mut learned: Vec<_> = lines.iter().filter(|line| line.is_learned()).collect();
        learned.sort_by(|a, b| unseen(b, 1).unwrap_or(0.0).total_cmp(&unseen(a, 1).unwrap_or(0.0)));
        let said: Vec<String> = learned
            .iter()
            .filter_map(|line| Some(format!("{} {:.2}", line.title(), unseen(line, 1)?)))
            .collect();
        if said.is_empty() {
            return "F alone was not scored here: every number of a learned method in the table is with the planner.".to_owned();
        }
        let what =
            if self.returns.is_empty() { "Share of goals reached" } else { "Share of the expert's return" };
        let mut sentences = vec![format!(
            "{what} on unseen dynamics of {} by F alone (no planner), the belief frozen after the context: {}.",
            self.env,
            said.join(", ")
        )];
        let ceiling = learned.first().and_then(|line| line.cells[1].as_ref()?.ceiling);
        sentences.extend(
            ceiling
                .filter(|best| self.returns.is_empty() && *best < 0.995) // else it is the one who knows the map
                .map(|best| {
                    format!("A planner on the exact posterior, its belief frozen alike, reaches {best:.2}.")
                }),
        );
        let online = learned.iter().filter_map(|line| Some((line.title(), unseen(line, 3)?)));
        sentences.extend(online.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(title, value)| {
            format!("A belief that goes on learning while it acts reaches {value:.2} ({title}, F alone).")
        }));
        sentences.join(" ")
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
        for Drawing { wide, narrow, caption, .. } in self.figures() {
            page.figure(wide.svg(), Some(narrow.svg()), &caption);
        }
        for (svg, caption) in drawn_before(&self.folder)? {
            page.figure(&svg, None, &caption);
        }
        for results in &self.ablations {
            let table = results.table();
            page.heading(&table.title);
            page.paragraph(&format!("{}.", capitalised(results.about.about)));
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
        if let Some(returns) = self.return_table(setting) {
            page.heading(&returns.title);
            show(page, &returns);
            page.paragraph(
                "The expert, whom data come from, is given the context (or nothing, or another one). It walks ahead, back and to the \
                 sides, and stands: standing is also what it does at speed-1, and walking ahead at heading-45, so that these two are no \
                 ceilings. Returns of different tasks are not on one scale.",
            );
        }
        page.paragraph(
            "F alone: actions are the argmax of F z, with the actor where actions are continuous; with planner: value iteration on the \
             predictor's dynamics chooses them. Seen: contexts of the training data; unseen: held out. Greedy, after a reward-free random \
             trajectory; online: the belief goes on learning while it acts. Below: detour is the length of won episodes over the shortest way.",
        );
        if self.lines_of(setting).iter().any(|line| line.method == "bayes-frozen") {
            page.paragraph(
                "The exact Bayes planner knows which layouts exist (on seen contexts, which ones the data came from) and \
                 nothing else. On grids no frozen belief beats it by more than luck; on Pointmass it plans from cell to cell, on a sample of \
                 all maps, which is a reference and no bound. Oracle-ID has no belief: it is given which seen context it is in.",
            );
        }
        let usual = self.usual_revision(setting);
        if self.lines_of(setting).iter().any(|line| line.is_learned() && line.revisions != usual) {
            let usual = usual.concat();
            page.paragraph(&format!(
                "{MIXED} Not (only) by revision {usual} of the program, as most lines are: see the costs."
            ));
        }
        let rewards = self.reward_tables(setting);
        for table in &rewards {
            page.heading(&table.title);
            show(page, table);
        }
        if !rewards.is_empty() {
            page.paragraph(
                "Tasks that are no goals, belief frozen: (return - random) / (optimum on the true map - random) by exact discounted \
                 returns from every cell (Pointmass: by sums of rewards of episodes from random starts), and the mean over kinds of rewards. Greedy on z: F acts for the task's own vector, as in \
                 the paper; policy improvement: the best of its policies for the goals that the task rewards most.",
            );
        }
        let tables = [self.iqm_table(setting), self.improvement_table(setting), self.cost_table(setting)];
        // One method alone is better than nobody.
        for table in tables.iter().filter(|table| table.header.len() > 1) {
            page.heading(&table.title);
            show(page, table);
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

/// A sentence's beginning.
fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

/// The command of each setting of a manifest.
fn commands_of(manifest: &Manifest) -> Vec<String> {
    let mut methods: Vec<&str> = Vec::new();
    for unit in manifest.units.iter().filter(|unit| unit.method != REFERENCE) {
        if !methods.contains(&unit.method.as_str()) {
            methods.push(&unit.method);
        }
    }
    let first = manifest.units.iter().map(|unit| unit.seed).min().unwrap_or(0);
    let seeds = manifest.units.iter().map(|unit| unit.seed + 1 - first).max().unwrap_or(1);
    let first = if first == 0 { String::new() } else { format!(" --first-seed {first}") };
    let ablation =
        if manifest.sweep == MAIN { String::new() } else { format!(" --ablation {}", manifest.sweep) };
    let start = format!(
        "windvane reproduce {}{ablation} --methods {} --seeds {seeds}{first}",
        manifest.env,
        methods.join(",")
    );
    let presets = manifest.settings.iter().filter(|setting| !setting.name.contains('='));
    let command = |setting: &Setting| {
        let usual = Plan::preset(&manifest.env, &setting.name).map(Layers::value);
        let changed = usual.map_or(true, |usual| usual != setting.plan);
        let note = if changed {
            format!("    # other settings than the preset's: see {}.json", manifest.sweep)
        } else {
            String::new()
        };
        format!("{start} --preset {} --out DIR{note}", setting.name)
    };
    let presets: Vec<String> = presets.map(command).collect();
    if presets.is_empty() { vec![format!("{start} --out DIR")] } else { presets }
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
