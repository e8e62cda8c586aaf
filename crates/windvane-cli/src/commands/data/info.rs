//! `windvane data info`.

use crate::output;
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;
use windvane_world::ActionSpace;
use windvane_world::episodes::Episodes;

/// Says what a data set is: spaces, sizes, where it came from.
#[derive(Args)]
#[command(after_help = "Example:
  windvane data info data/four-rooms")]
pub(crate) struct Info {
    /// The data set's folder
    data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let data = Episodes::open(&self.data)?;
        if self.json {
            let meta = data.meta();
            return output::json(&json!({
                "path": data.path(),
                "version": meta.version,
                "env": meta.plan.env,
                "provenance": meta.plan.provenance,
                "summary": data.summary(),
                "columns": meta.columns,
            }));
        }
        output::say(describe(&data).trim_end());
        Ok(())
    }
}

/// A few lines about a data set.
fn describe(data: &Episodes) -> String {
    let summary = data.summary();
    let plan = &data.meta().plan;
    let mut text = format!("{}, {}\n", data.path().display(), plan.env.name);
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<13}{value}");
    };
    line("transitions", summary.transitions.to_string());
    let lengths = match (summary.shortest, summary.longest) {
        (shortest, longest) if shortest == longest => format!("{longest} steps each"),
        (shortest, longest) => {
            format!("{shortest} to {longest} steps, {:.1} on average", summary.mean_length)
        }
    };
    line(
        "episodes",
        format!("{} ({lengths}; {} ended by the dynamics)", summary.episodes, summary.terminated),
    );
    let labels = if summary.contexts == 0 { "without context labels" } else { "labelled with their context" };
    line("groups", format!("{} ({labels})", summary.groups));
    let dims = plan.env.observation.iter().map(|dim| format!("{} {}..{}", dim.name, dim.low, dim.high));
    line("observation", shortened(&dims.collect::<Vec<_>>()));
    line(
        "action",
        match &plan.env.action {
            ActionSpace::Discrete { names } => format!("one of {}", shortened(names)),
            ActionSpace::Continuous { low, high } => shortened(
                &low.iter().zip(high).map(|(low, high)| format!("{low}..{high}")).collect::<Vec<_>>(),
            ),
        },
    );
    let seed = plan.provenance.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    line("made by", format!("{}{seed}, with {}", plan.provenance.policy, plan.provenance.generator));
    line("size", format!("{:.1} MB", summary.bytes as f64 / 1e6));
    text
}

fn shortened(items: &[String]) -> String {
    const SHOWN: usize = 8;
    match items.len() {
        count if count > SHOWN => format!("{}, .. ({count})", items[..SHOWN].join(", ")),
        _ => items.join(", "),
    }
}
