//! `windvane simulate`: what the whole table would take on a cluster.

use super::status::duration;
use crate::{output, table};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use windvane::sweep::measured::Table;
use windvane::sweep::simulate::{Outcome, Product, Work, simulate};

/// Says what to expect on a cluster: how long the paper's whole table takes on so many cores, and what the shared folder sees.
///
/// The table is every method, the main experiment and all ablations of the environments whose folders are given; unit costs
/// are those measured in these folders. Cores are simulated one unit at a time; nothing is run.
#[derive(Args)]
#[command(after_help = "Example:
  windvane simulate results/doors results/four-rooms results/pointmass --seeds 10 --cores 1,10,100,1000")]
pub(crate) struct Simulate {
    /// Folders that `windvane reproduce` made, one for each environment
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Seeds of everything
    #[arg(long, value_name = "N", default_value_t = 10)]
    seeds: u64,
    /// Numbers of cores
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,10,100,1000")]
    cores: Vec<usize>,
    /// CPU seconds that a task of several units has to do at most
    #[arg(long, value_name = "S", default_value_t = 300.0)]
    task_seconds: f64,
    /// How many times longer all trainings are than those measured
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    slower: f64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Simulate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.cores.contains(&0), "--cores has 0; expected at least 1");
        anyhow::ensure!(self.slower > 0.0, "--slower is {}; expected a positive number", self.slower);
        let mut work: Vec<Work> = Vec::new();
        let (mut measured, mut hours) = (0, 0.0);
        for folder in &self.folders {
            let table = Table::of(folder, self.seeds)?;
            output::note(&format!(
                "{}: {} units, {:.1} CPU-hours, {} with costs measured on their own setting",
                table.env,
                table.work.len(),
                table.cpu_hours * self.slower,
                table.measured
            ));
            measured += table.measured;
            hours += table.cpu_hours * self.slower;
            work.extend(table.work);
        }
        for product in work.iter_mut().flat_map(|work| &mut work.needs) {
            product.seconds *= self.slower;
        }
        let tasks = packed(&work, self.task_seconds);
        let outcomes: Vec<Outcome> = self.cores.iter().map(|&cores| simulate(&work, &tasks, cores)).collect();
        if self.json {
            let rows = outcomes.iter().map(|o| {
                json!({"cores": o.cores, "makespan_seconds": o.makespan, "busy": o.busy, "core_hours": o.core_hours,
                       "locks_per_second": {"mean": o.locks[0], "peak": o.locks[1]},
                       "bytes_per_second": {"mean": o.bytes[0], "peak": o.bytes[1]}, "files": o.files, "bytes": o.stored})
            });
            let rows: Vec<_> = rows.collect();
            return output::json(
                &json!({"units": work.len(), "tasks": tasks.len(), "measured": measured, "cpu_hours": hours, "outcomes": rows}),
            );
        }
        let rows = outcomes.iter().map(|o| {
            vec![
                o.cores.to_string(),
                duration(o.makespan),
                format!("{:.0}", 100.0 * o.busy),
                format!("{:.1}", o.locks[0]),
                format!("{:.0}", o.locks[1]),
                format!("{:.1}", o.bytes[0] / 1e6),
                format!("{:.0}", o.bytes[1] / 1e6),
            ]
        });
        let header = ["cores", "makespan", "busy %", "locks/s", "peak", "MB/s", "peak"];
        output::say(&table::render(&header, &rows.collect::<Vec<_>>()));
        if let Some(last) = outcomes.last() {
            output::say(&format!(
                "{} units in {} tasks, {hours:.1} CPU-hours; {:.0} files and {:.1} GB in the folder at the end",
                work.len(),
                tasks.len(),
                last.files,
                last.stored / 1e9
            ));
        }
        Ok(())
    }
}

/// Tasks of several units in order, as `--launcher slurm` makes them: by what units cost on average, beliefs shared.
fn packed(work: &[Work], most: f64) -> Vec<Vec<usize>> {
    let cost = |work: &Work| work.needs.iter().map(|Product { seconds, .. }| seconds).sum::<f64>();
    let mut tasks: Vec<(f64, Vec<usize>)> = Vec::new();
    for (index, work) in work.iter().enumerate() {
        let cost = cost(work);
        match tasks.last_mut() {
            Some((sum, task)) if *sum + cost <= most => {
                *sum += cost;
                task.push(index);
            }
            _ => tasks.push((cost, vec![index])),
        }
    }
    tasks.into_iter().map(|(_, task)| task).collect()
}
