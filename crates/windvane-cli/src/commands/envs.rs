//! `windvane envs`: the worlds there are.

use crate::{output, table};
use clap::Args;
use serde_json::json;
use windvane_world::registry::{WORLDS, WorldConfig, make};
use windvane_world::{ActionSpace, Cmdp, Dim, Split};

/// Lists the worlds: spaces, horizon, contexts and tasks.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane envs
  windvane envs --json | jq '.envs[].name'")]
pub(crate) struct Envs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Envs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut documents = Vec::new();
        let mut rows = Vec::new();
        for entry in WORLDS {
            let world = make(entry.name, &WorldConfig::default())?;
            let spec = world.spec();
            let tasks = task_names(world.as_ref())?;
            let [train, test] = entry.paper_sizes;
            documents.push(json!({
                "name": entry.name,
                "about": entry.about,
                "observation": spec.observation,
                "action": spec.action,
                "horizon": spec.horizon,
                "contexts": { "train": train, "test": test, "universe": entry.universe },
                "tasks": tasks,
            }));
            rows.push(vec![
                entry.name.to_owned(),
                observations(&spec.observation),
                actions(&spec.action),
                spec.horizon.to_string(),
                format!("{train} train, {test} test of {}", entry.universe),
                tasks.join(" "),
                entry.about.to_owned(),
            ]);
        }
        if self.json {
            return output::json(&json!({ "envs": documents }));
        }
        let header =
            ["name", "observation", "action", "horizon", "contexts (default)", "tasks", "what it is"];
        output::say(&table::render(&header, &rows));
        Ok(())
    }
}

/// The names of the tasks, which are those of any context.
fn task_names(world: &dyn Cmdp) -> anyhow::Result<Vec<String>> {
    let first = world.contexts(Split::Train).first();
    let tasks = first.map(|&context| world.tasks(context)).transpose()?.unwrap_or_default();
    Ok(tasks.into_iter().map(|task| task.name).collect())
}

/// Ranges of a few coordinates, the names of many.
fn observations(dims: &[Dim]) -> String {
    if dims.len() <= 6 {
        return dims.iter().map(range).collect::<Vec<_>>().join(" ");
    }
    format!("{} numbers, {} to {}", dims.len(), dims[0].name, dims[dims.len() - 1].name)
}

fn range(dim: &Dim) -> String {
    format!("{}={}..{}", dim.name, dim.low, dim.high)
}

fn actions(space: &ActionSpace) -> String {
    match space {
        ActionSpace::Discrete { names } => names.join(" "),
        ActionSpace::Continuous { low, high } => {
            let ranges: Vec<String> =
                low.iter().zip(high).map(|(low, high)| format!("{low}..{high}")).collect();
            match &ranges[..] {
                [first, rest @ ..] if rest.len() > 2 && rest.iter().all(|range| range == first) => {
                    format!("{} of {first}", ranges.len())
                }
                _ => ranges.join(" "),
            }
        }
    }
}
