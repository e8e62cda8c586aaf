//! `--launcher slurm`: the sweep as one array job and a job for the report.

use crate::output;
use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use windvane::device::DeviceName;
use windvane::sweep::Sweep;
use windvane::sweep::attempt::Attempts;
use windvane::sweep::cost::Costs;
use windvane::sweep::launcher::slurm::{self, Job, MOST_TASKS, Options};
use windvane::train::checkpoint::write_atomically;
use windvane::train::folder::Lock;

/// Options of `--launcher slurm`.
#[derive(Args, Debug)]
pub(super) struct SlurmArgs {
    /// Slurm: the partition
    #[arg(long, value_name = "P")]
    partition: Option<String>,
    /// Slurm: time limit of a task; units that need longer save and go on in the next one
    #[arg(long, value_name = "T")]
    time: Option<String>,
    /// Slurm: memory of a task
    #[arg(long, value_name = "M")]
    mem: Option<String>,
    /// Slurm: tasks that run at once
    #[arg(long, value_name = "N")]
    max_running: Option<usize>,
    /// Slurm: other options of sbatch, as they are
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    sbatch: Option<String>,
    /// Slurm: seconds before the time limit at which a unit saves and is requeued
    #[arg(long, value_name = "S", default_value_t = 120)]
    margin: u64,
    /// Slurm: attempts without getting further after which a unit is given up
    #[arg(long, value_name = "N", default_value_t = 3)]
    tries: usize,
    /// Slurm: print the scripts; write and submit nothing
    #[arg(long)]
    dry_run: bool,
}

/// What was submitted, as the folder remembers it.
#[derive(Debug, Serialize, Deserialize)]
struct Submitted {
    /// The array job's number.
    job: u64,
    /// The report job's number.
    report: Option<u64>,
    /// The units of each task.
    tasks: Vec<Vec<usize>>,
}

impl SlurmArgs {
    pub(super) fn dry_run(&self) -> bool {
        self.dry_run
    }

    fn options(&self, threads: usize, device: DeviceName) -> anyhow::Result<Options> {
        self.time.as_deref().map(slurm::seconds).transpose()?;
        anyhow::ensure!(self.tries > 0, "--tries is 0; expected at least 1");
        anyhow::ensure!(self.max_running != Some(0), "--max-running is 0; expected at least 1");
        anyhow::ensure!(threads > 0, "--threads is 0; expected at least 1");
        Ok(Options {
            partition: self.partition.clone(),
            time: self.time.clone(),
            mem: self.mem.clone(),
            max_running: self.max_running,
            extra: self.sbatch.clone(),
            margin: self.margin,
            tries: self.tries,
            threads,
            device: device.to_string(),
        })
    }

    /// Submits the units that are neither done nor in the queue, and the report after them.
    pub(super) fn launch(
        &self,
        sweep: &Sweep,
        threads: usize,
        device: DeviceName,
        as_json: bool,
    ) -> anyhow::Result<()> {
        let options = self.options(threads, device)?;
        let program = crate::program::path().context("finding this program")?;
        let folder = std::path::absolute(&sweep.folder)?;
        let sweep = Sweep { folder, manifest: sweep.manifest.clone() };
        let job = Job { sweep: &sweep, program, options: &options };
        let path = job.folder().join("submit.lock");
        let lock = if self.dry_run { None } else { Some(Lock::try_take(&path)?) };
        anyhow::ensure!(
            !matches!(lock, Some(None)),
            "{}: another process is submitting this sweep; wait for it",
            path.display()
        );
        let records = records(&job)?;
        let queue =
            if self.dry_run && records.is_empty() { Vec::new() } else { queue(&slurm::name(&sweep))? };
        // Units keep their numbers when others are added.
        let mut queued = vec![false; sweep.manifest.units.len()];
        let mut alive = Vec::new();
        for Submitted { job, tasks, .. } in &records {
            let there = queue.iter().filter(|(id, _)| id == job);
            let units = there.clone().filter_map(|(_, task)| tasks.get(*task)).flatten();
            for &unit in units {
                if let Some(queued) = queued.get_mut(unit) {
                    *queued = true;
                }
            }
            alive.extend(there.map(|_| *job).next());
        }
        let mut missing = Vec::new();
        for (index, unit) in sweep.manifest.units.iter().enumerate() {
            if !queued[index] && !sweep.is_done(unit)? {
                missing.push(index);
            }
        }
        let in_queue = queued.iter().filter(|queued| **queued).count();
        let done = queued.len() - in_queue - missing.len();
        let note = format!("{done} units done, {in_queue} in the queue, {} to submit", missing.len());
        let limit = self.time.as_deref().map(slurm::seconds).transpose()?;
        let tasks = slurm::tasks(&sweep, &missing, &Costs::measured(&sweep.folder)?, limit, MOST_TASKS);
        if self.dry_run {
            output::note(&note);
            output::say(&job.array(&tasks));
            output::say(&job.report());
            return Ok(());
        }
        output::note(&note);
        let report_missing = !sweep.folder.join("report.html").exists() && alive.is_empty();
        if missing.is_empty() && !report_missing {
            return say(&sweep, &alive, None, as_json);
        }
        for &index in &missing {
            let place = sweep.place(&sweep.manifest.units[index]);
            if Attempts::read(&place).given_up() {
                output::note(&format!(
                    "{} had failed; it is tried again",
                    sweep.manifest.units[index].name()
                ));
                Attempts::forget(&place)?;
            }
        }
        if !missing.is_empty() {
            let array = submit(&job, "array", &job.array(&tasks), &[])?;
            remember(&job, &Submitted { job: array, report: None, tasks: tasks.clone() })?;
            alive.push(array);
        }
        // The report of an earlier submission would come too early.
        for earlier in records.iter().filter_map(|record| record.report) {
            let _ = Command::new("scancel").args(["--state=PENDING", &earlier.to_string()]).output();
        }
        let report = submit(&job, "report", &job.report(), &alive)?;
        if let Some(&array) = alive.last() {
            let tasks = if missing.is_empty() { Vec::new() } else { tasks };
            remember(&job, &Submitted { job: array, report: Some(report), tasks })?;
        }
        say(&sweep, &alive, Some(report), as_json)
    }
}

/// Says what runs, how to watch it and how to end it.
fn say(sweep: &Sweep, arrays: &[u64], report: Option<u64>, as_json: bool) -> anyhow::Result<()> {
    let folder = sweep.folder.display();
    if as_json {
        return output::json(&json!({"folder": sweep.folder, "jobs": arrays, "report_job": report}));
    }
    let ids: Vec<String> = arrays.iter().chain(&report).map(ToString::to_string).collect();
    if ids.is_empty() {
        output::say(&format!("all units are done: {folder}/report.html"));
        return Ok(());
    }
    if let Some(report) = report {
        output::say(&format!("report: job {report}, when the others have ended: {folder}/report.html"));
    }
    output::say(&format!(
        "units:  jobs {}",
        arrays.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    ));
    output::say(&format!("watch:  windvane status {folder} --watch    # or: squeue --me"));
    output::say(&format!("output: {folder}/slurm/"));
    output::say(&format!(
        "cancel: scancel {}    # the same command submits again what is missing",
        ids.join(" ")
    ));
    Ok(())
}

/// Submits a script, after `others` have ended, and returns the job's number.
fn submit(job: &Job<'_>, what: &str, script: &str, others: &[u64]) -> anyhow::Result<u64> {
    let path = job.folder().join(format!("{}-{what}.sh", job.sweep.manifest.sweep));
    write_atomically(&path, script.as_bytes())?;
    let mut command = Command::new("sbatch");
    command.arg("--parsable");
    if !others.is_empty() {
        let ids: Vec<String> = others.iter().map(ToString::to_string).collect();
        command.arg(format!("--dependency=afterany:{}", ids.join(":")));
    }
    let said = output_of(command.arg(&path))?;
    // `--parsable` prints "123" or "123;cluster".
    let number = said.trim().split(';').next().and_then(|number| number.parse().ok());
    number.with_context(|| format!("sbatch said \"{}\"; expected a job's number", said.trim()))
}

/// What Slurm has of the jobs called `name`: the array's number and the task's, pending or running.
fn queue(name: &str) -> anyhow::Result<Vec<(u64, usize)>> {
    let said =
        output_of(Command::new("squeue").args(["--noheader", "--array", "--format=%F %K", "--name", name]))?;
    let task = |line: &str| {
        let (job, task) = line.split_once(' ')?;
        Some((job.trim().parse().ok()?, task.trim().parse().ok()?))
    };
    Ok(said.lines().filter_map(task).collect())
}

/// What a command prints if it succeeds.
fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| {
        format!("starting {name}; --launcher slurm needs Slurm's commands on this machine")
    })?;
    let error = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    anyhow::ensure!(output.status.success(), "{name} failed: {error}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn record_path(job: &Job<'_>, number: u64) -> PathBuf {
    job.folder().join(format!("{}-{number}.json", job.sweep.manifest.sweep))
}

fn remember(job: &Job<'_>, submitted: &Submitted) -> anyhow::Result<()> {
    let path = record_path(job, submitted.job);
    let mut submitted = json!(submitted);
    // Only the report is new: the tasks are as they were.
    if submitted["tasks"].as_array().is_some_and(Vec::is_empty)
        && let Ok(text) = std::fs::read_to_string(&path)
    {
        let there: Submitted = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        submitted["tasks"] = json!(there.tasks);
    }
    write_atomically(&path, serde_json::to_string(&submitted)?.as_bytes())?;
    Ok(())
}

/// Earlier submissions of this sweep.
fn records(job: &Job<'_>) -> anyhow::Result<Vec<Submitted>> {
    let prefix = format!("{}-", job.sweep.manifest.sweep);
    let ours = |path: &Path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && path.extension().is_some_and(|kind| kind == "json")
    };
    let Ok(entries) = std::fs::read_dir(job.folder()) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| ours(path));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| format!("{}: not a record of jobs", path.display()))
    };
    paths.iter().map(read).collect()
}
