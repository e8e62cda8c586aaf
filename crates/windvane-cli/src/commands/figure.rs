//! `windvane figure`: one figure of results, data or agents.

use crate::output;
use crate::trained::{Trained, trained};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use windvane::device::{Device, DeviceName, Threads};
use windvane::report::INSIDE;
use windvane::report::bounds::Bounds;
use windvane::report::inside::{self, Subject};
use windvane::report::results::Results;
use windvane::sweep::ablation::{ABLATIONS, MAIN};
use windvane::sweep::row::SCORES;
use windvane::sweep::{Manifest, Sweep};
use windvane::theory;
use windvane::train::checkpoint::write_atomically;
use windvane_world::episodes::Episodes;
use windvane_world::picture::{self, Picture};

/// The file that says which runs the figures of a sweep were drawn from.
const DRAWN: &str = "drawn-from.txt";
/// Contexts of each split in which regrets are computed.
const REGRETS: usize = 5;

/// Draws one figure: of a sweep's rows, of its data, or of what its agents think.
///
/// From rows: summary, learning, profiles, ablation-context, ablation-layouts, ablation-kappa, ablation-forward. From data and
/// agents: layouts, occupancy, qmap, directions, beliefs, cones, theory.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane figure summary results/four-rooms --out summary.svg
  windvane figure qmap results/four-rooms --out qmap.png
  windvane figure beliefs runs/bfb --out beliefs.svg
  windvane figure theory results/doors --out theory.png --json")]
pub(crate) struct Figure {
    /// Which
    #[arg(value_name = "NAME")]
    name: String,
    /// A sweep's folder, or for figures of agents a run's
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// File to make, .svg or .png; it must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Pixels of a PNG for each unit of the SVG
    #[arg(long, value_name = "SCALE", default_value_t = 2.0)]
    scale: f32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Figure {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let from_rows = ["summary", "learning", "profiles"].map(str::to_owned);
        let ablations = ABLATIONS.iter().map(|a| format!("ablation-{}", a.name));
        let from_rows: Vec<String> = from_rows.into_iter().chain(ablations).collect();
        let inside: Vec<&str> = INSIDE.iter().map(|(name, _)| *name).collect();
        let (picture, numbers) = if from_rows.contains(&self.name) {
            let figures = Results::read(&self.path)?.figures();
            let names: Vec<String> = figures.iter().map(|figure| figure.name.clone()).collect();
            let found = figures.into_iter().find(|figure| figure.name == self.name);
            let missing = || {
                let there = names.join(", ");
                anyhow::anyhow!("{}: no rows for {}; there are {there}", self.path.display(), self.name)
            };
            (found.ok_or_else(missing)?.wide, Value::Null)
        } else if inside.contains(&self.name.as_str()) {
            Threads::new(1)?.run(|| Inside::open(&self.path)?.draw(&self.name))?
        } else {
            let known = from_rows.iter().map(String::as_str).chain(inside).collect::<Vec<_>>().join(", ");
            anyhow::bail!("unknown figure \"{}\"; known: {known}", self.name);
        };
        picture.save(&self.out, self.scale)?;
        if self.json {
            return output::json(&json!({"path": self.out, "numbers": numbers}));
        }
        output::say(&self.out.display().to_string());
        Ok(())
    }
}

/// Draws every figure that looks into data and agents into the folder of a sweep; what cannot be drawn is said. Figures of
/// the same runs are not drawn twice.
pub(crate) fn draw_inside(folder: &Path) -> anyhow::Result<()> {
    let stamp = folder.join("figures").join(DRAWN);
    let runs = scored_runs(folder)?;
    if std::fs::read_to_string(&stamp).is_ok_and(|before| before == runs) {
        return Ok(());
    }
    let inside = match Inside::open(folder) {
        Ok(inside) => inside,
        Err(error) => {
            output::note(&format!("figures of agents are not drawn: {error}"));
            return Ok(());
        }
    };
    let place = folder.join("figures");
    std::fs::create_dir_all(&place)?;
    for (name, _) in INSIDE {
        match inside.draw(name) {
            Ok((picture, _)) => {
                write_atomically(&place.join(format!("{name}.svg")), picture.svg().as_bytes())?;
            }
            Err(error) => output::note(&format!("{error}")),
        }
    }
    Ok(write_atomically(&stamp, runs.as_bytes())?)
}

/// The runs of a sweep's main experiment that have their scores, a line each.
fn scored_runs(folder: &Path) -> anyhow::Result<String> {
    let manifest = Manifest::path(folder, MAIN);
    if !manifest.exists() {
        return Ok(String::new());
    }
    let sweep = Sweep::open(&manifest)?;
    let scored = sweep.manifest.units.iter().filter(|unit| sweep.place(unit).join(SCORES).exists());
    let runs = scored.map(|unit| sweep.run_folder(unit)).collect::<Result<Vec<_>, _>>()?;
    Ok(runs.iter().filter_map(|run| run.file_name()?.to_str()).collect::<Vec<_>>().join("\n"))
}

/// What figures of agents look into.
struct Inside {
    device: Device,
    /// One run of each method, of the first seed.
    trained: Vec<Trained>,
    /// The runs of the other seeds.
    others: Vec<PathBuf>,
}

impl Inside {
    /// The runs of a sweep's first setting, or the one run in a folder.
    fn open(path: &Path) -> anyhow::Result<Self> {
        let device = DeviceName::Cpu.open()?;
        let manifest = Manifest::path(path, MAIN);
        if !manifest.exists() {
            let is_run = path.join("run.json").exists();
            anyhow::ensure!(is_run, "{}: neither a run nor a sweep's main experiment", path.display());
            return Ok(Self { device, trained: vec![trained(path)?], others: Vec::new() });
        }
        let sweep = Sweep::open(&manifest)?;
        let first = sweep.manifest.settings.first().map(|setting| setting.name.clone()).unwrap_or_default();
        let (mut folders, mut others) = (Vec::new(), Vec::new());
        for unit in sweep.manifest.units.iter().filter(|unit| unit.setting == first) {
            let Some(run) = sweep.run_of(unit)? else { continue };
            if run.model().is_dir() {
                let list = if unit.seed == 0 { &mut folders } else { &mut others };
                list.push(sweep.run_folder(unit)?);
            }
        }
        anyhow::ensure!(!folders.is_empty(), "{}: no finished run with seed 0 below it", path.display());
        let trained = folders.iter().map(|folder| trained(folder)).collect::<anyhow::Result<_>>()?;
        Ok(Self { device, trained, others })
    }

    fn draw(&self, name: &str) -> anyhow::Result<(Picture, Value)> {
        let subjects: Vec<Subject<'_>> = self
            .trained
            .iter()
            .map(|Trained { run, world, agent }| Subject { run, world: &**world, agent })
            .collect();
        let picture = match name {
            "layouts" | "occupancy" => {
                let data = Episodes::open(&self.trained[0].run.data)?;
                let subject = picture::Subject::new(&data, 12, None)?;
                if name == "layouts" { picture::layouts(&subject)? } else { picture::occupancy(&subject) }
            }
            "qmap" => inside::q_map(&subjects)?,
            "directions" => inside::interference(&subjects)?,
            "beliefs" => inside::beliefs(&subjects)?,
            "cones" => inside::around_beliefs(&subjects, &self.device)?,
            _ => {
                let bounds = self.bounds()?;
                return Ok((bounds.draw(), serde_json::to_value(&bounds)?));
            }
        };
        Ok((picture, Value::Null))
    }

    fn bounds(&self) -> anyhow::Result<Bounds> {
        let mut regrets = Vec::new();
        let mut add = |Trained { run, world, agent }: &Trained| -> anyhow::Result<()> {
            if let Some(grid) = world.grid() {
                regrets.extend(theory::regrets(run, &**world, grid, agent, REGRETS)?);
            }
            Ok(())
        };
        self.trained.iter().try_for_each(&mut add)?;
        self.others.iter().try_for_each(|folder| add(&trained(folder)?))?;
        Ok(Bounds::of(&*self.trained[0].world, regrets)?)
    }
}
