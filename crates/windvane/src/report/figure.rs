//! Any figure by its name: of a sweep's rows, of its data, or of what its agents think.

use super::INSIDE;
use super::bounds::Bounds;
use super::gaits;
use super::inside::{self, Subject};
use super::results::Results;
use crate::device::{Device, DeviceName};
use crate::error::LearnError;
use crate::sweep::ablation::{ABLATIONS, MAIN};
use crate::sweep::{Manifest, Sweep};
use crate::theory;
use crate::trained::{Trained, trained};
use serde_json::Value;
use std::path::{Path, PathBuf};
use windvane_world::WorldError;
use windvane_world::episodes::Episodes;
use windvane_world::picture::{self, Picture};

/// Contexts of each split in which regrets are computed.
const REGRETS: usize = 5;

/// The figure called `name` of the sweep or run in a folder, and the numbers in it where it is made of any.
pub fn figure(name: &str, path: &Path) -> Result<(Picture, Value), LearnError> {
    let from_rows = ["summary", "learning", "profiles", "winds"].map(str::to_owned);
    let ablations = ABLATIONS.iter().filter(|a| a.drawn).map(|a| format!("ablation-{}", a.name));
    let from_rows: Vec<String> = from_rows.into_iter().chain(ablations).collect();
    let inside: Vec<&str> = INSIDE.iter().map(|(name, _)| *name).collect();
    if from_rows.iter().any(|known| known == name) {
        let figures = Results::read(path)?.figures();
        let names: Vec<String> = figures.iter().map(|figure| figure.name.clone()).collect();
        let found = figures.into_iter().find(|figure| figure.name == name);
        let there = if names.is_empty() { "none for any figure".to_owned() } else { names.join(", ") };
        let missing = || LearnError::run(path, format!("no rows for {name}; there are {there}"));
        return Ok((found.ok_or_else(missing)?.wide, Value::Null));
    }
    if inside.contains(&name) {
        return Inside::open(path)?.draw(name);
    }
    let known = from_rows.iter().map(String::as_str).chain(inside).collect::<Vec<_>>().join(", ");
    Err(WorldError::Unknown { kind: "figure", name: name.to_owned(), known }.into())
}

/// What figures of agents look into.
#[derive(Debug)]
pub struct Inside {
    device: Device,
    /// One run of each method, of the first seed.
    trained: Vec<Trained>,
    /// The runs of the other seeds.
    others: Vec<PathBuf>,
}

impl Inside {
    /// The runs of a sweep's first setting, or the one run in a folder.
    pub fn open(path: &Path) -> Result<Self, LearnError> {
        let device = DeviceName::Cpu.open()?;
        let manifest = Manifest::path(path, MAIN);
        if !manifest.exists() {
            if !path.join("run.json").exists() {
                return Err(LearnError::run(path, "neither a run nor a sweep's main experiment"));
            }
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
        if folders.is_empty() {
            return Err(LearnError::run(path, "no finished run with seed 0 below it"));
        }
        let trained = folders.iter().map(|folder| trained(folder)).collect::<Result<_, _>>()?;
        Ok(Self { device, trained, others })
    }

    /// Draws the figure called `name`, and the numbers in it where it is made of any.
    pub fn draw(&self, name: &str) -> Result<(Picture, Value), LearnError> {
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
            "hidden" => inside::hidden(&subjects)?,
            "gaits" => gaits::draw(&subjects)?,
            "cones" => inside::around_beliefs(&subjects, &self.device)?,
            _ => {
                let bounds = self.bounds()?;
                let numbers = serde_json::to_value(&bounds);
                let numbers =
                    numbers.map_err(|e| LearnError::run(&self.trained[0].run.folder, e.to_string()))?;
                return Ok((bounds.draw(), numbers));
            }
        };
        Ok((picture, Value::Null))
    }

    fn bounds(&self) -> Result<Bounds, LearnError> {
        let mut regrets = Vec::new();
        let mut add = |Trained { run, world, agent }: &Trained| -> Result<(), LearnError> {
            if let Some(grid) = world.grid() {
                regrets.extend(theory::regrets(run, &**world, grid, agent, REGRETS)?);
            }
            Ok(())
        };
        self.trained.iter().try_for_each(&mut add)?;
        self.others.iter().try_for_each(|folder| add(&trained(folder)?))?;
        Bounds::of(&*self.trained[0].world, regrets)
    }
}
