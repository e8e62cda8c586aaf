//! `windvane quickstart`: the whole story on Randomized-Doors, from nothing to a page, in minutes.

use crate::watch::Bars;
use crate::{interrupt, output, table};
use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use windvane::config::Plan;
use windvane::device::{DeviceName, Threads};
use windvane::eval::{BeliefMode, ScoreRow, success};
use windvane::finite::agent::FiniteAgent;
use windvane::finite::stages;
use windvane::finite::survey::Survey;
use windvane::methods;
use windvane::report::page::Page;
use windvane::report::{qmap, views};
use windvane::run::{Run, Site, write_rows};
use windvane::train::checkpoint::write_atomically;
use windvane::train::folder::RunFolder;
use windvane_world::ceilings::{CeilingConfig, CeilingRow, measure};
use windvane_world::picture::Maze;
use windvane_world::{Cmdp, Split};

/// Shows the point in minutes: trains FB, Belief-FB and Rotation-FB on Randomized-Doors and plays unseen layouts.
///
/// Collects data, trains the belief and the three methods, scores them on layouts they learned from and on unseen ones
/// beside the exact ceilings, and writes a page with Q-maps.
#[derive(Args)]
#[command(after_help = "Example:
  windvane quickstart --out runs/quickstart

Stopped or killed, the same command goes on where it was.")]
pub(crate) struct Quickstart {
    /// Folder for data, models, scores and the page
    #[arg(long, value_name = "DIR", default_value = "runs/quickstart")]
    out: PathBuf,
    /// Decides layouts, data and weights
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// One line of the table.
struct Line {
    title: String,
    train: Option<f64>,
    unseen: Option<f64>,
    online: Option<f64>,
}

impl Quickstart {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let device = DeviceName::Cpu.open()?;
        Threads::new(self.threads)?.run(|| self.stages(&device))
    }

    fn stages(&self, device: &windvane::device::Device) -> anyhow::Result<()> {
        let plan = Plan::preset("doors", "quick")?.value().check()?;
        let folder = RunFolder::open(&self.out)?;
        let interrupt = interrupt::flag()?;
        let run_of = |method| {
            let mut run = Run::in_folder(plan.clone(), method, self.seed, folder.path());
            run.agent = folder.file(&format!("{}.safetensors", method.name));
            run
        };
        let shared = run_of(*methods::find("bfb")?);
        let world = shared.world()?;
        let mut site = Site { world: &*world, device, watch: &mut Bars, interrupt };
        let survey = Arc::new(Survey::of(&shared.data(&mut site)?, &shared.plan.boxes)?);
        let belief = stages::belief(&shared, &survey, &mut site)?;
        let belief = Arc::new(belief.context(interrupt::STOPPED)?);
        let mut agents = Vec::new();
        let mut lines = self.ceilings(&plan)?;
        let mut all: Vec<ScoreRow> = Vec::new();
        for name in ["fb", "bfb", "rfb"] {
            let method = *methods::find(name)?;
            let run = run_of(method);
            let belief = method.believes().then_some(&belief);
            let agent = stages::agent(&run, &survey, belief, &mut site)?.context(interrupt::STOPPED)?;
            let mut score = |split, mode| -> anyhow::Result<f64> {
                let rows = run.scores(&*world, &agent, split, mode)?;
                let share = success(&rows);
                all.extend(rows);
                Ok(share)
            };
            lines.push(Line {
                title: method.title.to_owned(),
                train: Some(score(Split::Train, BeliefMode::Frozen)?),
                unseen: Some(score(Split::Test, BeliefMode::Frozen)?),
                online: if method.believes() { Some(score(Split::Test, BeliefMode::Online)?) } else { None },
            });
            agents.push((method.title, agent));
        }
        write_rows(&folder.file("scores.jsonl"), &all)?;
        let page = page(&*world, &plan, &lines, &agents)?;
        let path = folder.file("report.html");
        write_atomically(&path, page.as_bytes())?;
        if self.json {
            let rows = lines.iter().map(|line| {
                json!({"player": line.title, "train": line.train, "test": line.unseen, "test_online": line.online})
            });
            return output::json(&json!({"rows": rows.collect::<Vec<_>>(), "report": path}));
        }
        output::say(&table::render(&HEADER, &cells(&lines)));
        output::say(&format!("\nreport: {}", path.display()));
        Ok(())
    }

    /// The reference players under the same protocol.
    fn ceilings(&self, plan: &Plan) -> anyhow::Result<Vec<Line>> {
        let steps = plan.eval.context_steps;
        let rows = measure(&CeilingConfig {
            env: plan.env.clone(),
            train: Some(plan.world.train),
            test: Some(plan.world.test),
            seeds: vec![self.seed],
            context_steps: vec![steps],
            context_start: plan.eval.context_start,
            splits: vec![Split::Train, Split::Test],
        })?;
        let find = |player: &str, split| {
            rows.iter()
                .find(|row: &&CeilingRow| row.player == player && row.split == split)
                .map(|row| row.success)
        };
        let line = |title: &str, frozen: &str, online: &str| Line {
            title: title.to_owned(),
            train: find(frozen, Split::Train),
            unseen: find(frozen, Split::Test),
            online: find(online, Split::Test),
        };
        Ok(vec![
            line("random actions", "random", ""),
            line("exact planner on the average layout", "average-map", ""),
            // Whoever has learned from the seen layouts may know them by heart: so does their ceiling.
            Line {
                train: find("bayes-known", Split::Train),
                ..line("exact Bayes planner (ceiling)", "bayes-frozen", "bayes-online")
            },
        ])
    }
}

const HEADER: [&str; 4] = ["player", "seen layouts", "unseen layouts", "unseen, belief goes on learning"];

fn cells(lines: &[Line]) -> Vec<Vec<String>> {
    let share = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    lines.iter().map(|l| vec![l.title.clone(), share(l.train), share(l.unseen), share(l.online)]).collect()
}

/// The report.
fn page(
    world: &dyn Cmdp,
    plan: &Plan,
    lines: &[Line],
    agents: &[(&'static str, FiniteAgent)],
) -> anyhow::Result<String> {
    let mut page = Page::new(
        "Windvane quickstart: Randomized-Doors",
        "Two walls, one door each, somewhere. One model learns from 24 layouts without rewards or labels, then solves 25 \
         layouts it has never seen: it senses where the doors are from a short random walk, and acts.",
    );
    page.heading("Success within 100 steps");
    page.table(&HEADER, &cells(lines));
    page.paragraph(&format!(
        "Share of goals reached by plain greedy play after a reward-free random walk of {} steps. FB takes all layouts for \
         one and averages them; Belief-FB and Rotation-FB condition on a belief inferred from the walk. No frozen belief can \
         beat the exact Bayes planner by more than luck (on seen layouts, one that knows just these by heart); a belief that goes on learning while it acts has no such limit. \
         Values come from {} Bellman sweeps through the learned predictor, starting from what the forward map says.",
        plan.eval.context_steps, plan.eval.lookahead
    ));
    page.heading("What each method thinks of one unseen layout");
    for (number, &context) in world.contexts(Split::Test).iter().take(2).enumerate() {
        let Some(maze) = Maze::from_description(&world.describe(context)?) else { continue };
        let task = world.tasks(context)?.into_iter().next().context("a task")?;
        let views = views::of_context(world, context, &task, &plan.eval, agents)?;
        let picture = qmap::draw(
            &maze,
            "Value of each cell and greedy moves",
            "for the first goal, after the walk",
            &views,
        );
        page.figure(
            picture.svg(),
            &format!("Unseen layout {}: exact values beside each method's.", number + 1),
        );
    }
    page.heading("Run it again");
    page.code("windvane quickstart");
    Ok(page.html())
}
