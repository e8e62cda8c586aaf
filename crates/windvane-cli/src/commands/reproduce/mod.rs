//! `windvane reproduce`: an experiment of the paper, from nothing to its report.

mod jobs;
mod slurm;

use super::{figure, report};
use crate::{bounds, interrupt, output};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use windvane::config::Plan;
use windvane::device::{DeviceName, Threads};
use windvane::request;
use windvane::sweep::{Manifest, Sweep, ablation};

/// Reproduces an experiment: trains every method with every seed, scores it beside exact policies, writes the report.
///
/// The experiment becomes a manifest of units; each is done once, goes on after a kill, and may be done by any machine that
/// shares the folder: give the same command there, or `windvane run` with the manifest. Later commands may add methods,
/// seeds and ablations to the same folder; what is trained is shared.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane reproduce doors --preset quick --seeds 1 --out results/doors-quick
  windvane reproduce four-rooms --methods fb,bfb,rfb --seeds 5 --out results/four-rooms
  windvane reproduce four-rooms --methods bfb,rfb --ablation context --out results/four-rooms
  windvane reproduce pointmass --preset paper --device cuda --jobs 1 --out results/pointmass-paper
  windvane reproduce four-rooms --seeds 10 --launcher slurm --partition short --time 1:00:00 --out results/four-rooms

Ablations: context, layouts, kappa, forward, episode, parts, rotation.")]
pub(crate) struct Reproduce {
    /// The world (`windvane envs` lists them)
    #[arg(value_name = "ENV")]
    env: String,
    /// Vary one thing: context, layouts, kappa, forward, episode, parts or rotation
    #[arg(long, value_name = "NAME")]
    ablation: Option<String>,
    /// Methods, separated by commas; by default all, in ablations those it is about
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    methods: Option<Vec<String>>,
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = bounds::count::<u64>(bounds::SEEDS))]
    seeds: u64,
    /// The first of them; for development, seeds that no table shows
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first_seed: u64,
    /// Built-in settings: quick (minutes a run), standard, or paper (its sizes, for a GPU)
    #[arg(long, value_name = "NAME", default_value = "standard")]
    preset: String,
    /// A TOML file of settings to lay on top
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A single setting to lay on top, for instance agent.steps=400
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Units at once; by default one for each core
    #[arg(long, value_name = "J", value_parser = bounds::count::<usize>(bounds::THREADS))]
    jobs: Option<usize>,
    /// Threads of each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = bounds::count::<usize>(bounds::THREADS))]
    threads: usize,
    /// Where tensors live: cpu, vulkan, wgpu, cuda or metal
    #[arg(long, default_value_t = DeviceName::Cpu)]
    device: DeviceName,
    /// Folder for everything
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write the manifest and stop: the units are done by `windvane run`
    #[arg(long)]
    plan_only: bool,
    /// Who runs the units
    #[arg(long, value_enum, default_value_t = Launcher::Local)]
    launcher: Launcher,
    #[command(flatten)]
    slurm: slurm::SlurmArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Who runs the units of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Launcher {
    /// This machine, now
    Local,
    /// A cluster: submits jobs and returns (docs/cluster.md)
    Slurm,
}

/// Does all units of a sweep, draws its figures and writes its report.
pub(crate) fn do_and_report(
    sweep: &Sweep,
    jobs: usize,
    threads: usize,
    device: DeviceName,
    json: bool,
) -> anyhow::Result<()> {
    let manifest = Manifest::path(&sweep.folder, &sweep.manifest.sweep);
    let failed = jobs::do_all(sweep, &manifest, jobs, threads, device)?;
    // What could be done is shown, whatever else failed.
    let _figures_can_be_drawn_again = interrupt::at_once()?;
    if failed.len() < sweep.manifest.units.len() {
        Threads::new(jobs)?.run(|| figure::draw_inside(&sweep.folder))?;
        report::write_and_say(&sweep.folder, &sweep.folder.join("report.html"), json)?;
    }
    anyhow::ensure!(failed.is_empty(), "{} units failed; see {}", failed.len(), failed.join(", "));
    Ok(())
}

/// One unit for each core.
pub(crate) fn usual_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

impl Reproduce {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let sweep_name = match &self.ablation {
            Some(name) => ablation::find(name)?.name,
            None => ablation::MAIN,
        };
        let base = request::laid(Plan::preset(&self.env, &self.preset)?, self.config.as_deref(), &self.set)?;
        let settings = ablation::settings(sweep_name, &self.preset, &base)?;
        let methods = match &self.methods {
            Some(names) => {
                names.iter().map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()).collect()
            }
            None => ablation::usual_methods(sweep_name, &base.clone().value()),
        };
        let seeds = self.first_seed..self.first_seed.saturating_add(self.seeds);
        let manifest = Manifest::new(sweep_name, &self.env, settings, &methods, seeds)?;
        let on_slurm = self.launcher == Launcher::Slurm;
        let dry_run = self.slurm.dry_run();
        anyhow::ensure!(on_slurm || !dry_run, "--dry-run prints scripts; expected --launcher slurm");
        let manifest = if dry_run { manifest.merged(&self.out)? } else { manifest.write(&self.out)? };
        let path = Manifest::path(&self.out, sweep_name);
        let sweep = Sweep { folder: self.out.clone(), manifest };
        if self.plan_only {
            return self.say_plan(&sweep, &path);
        }
        if on_slurm {
            return self.slurm.launch(&sweep, self.threads, self.device, self.json);
        }
        let jobs = self.jobs.unwrap_or_else(usual_jobs);
        do_and_report(&sweep, jobs, self.threads, self.device, self.json)
    }

    fn say_plan(&self, sweep: &Sweep, path: &std::path::Path) -> anyhow::Result<()> {
        let units = &sweep.manifest.units;
        if self.json {
            return output::json(&json!({"manifest": path, "units": units}));
        }
        for (index, unit) in units.iter().enumerate() {
            output::say(&format!("{index:>4}  {}", unit.name()));
        }
        output::say(&format!("windvane run --manifest {} --index I    # for each I", path.display()));
        Ok(())
    }
}
