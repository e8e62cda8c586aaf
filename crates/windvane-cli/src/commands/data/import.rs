//! `windvane import`, also `windvane data import`.

use crate::output;
use crate::revision::GENERATOR;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use std::str::FromStr;
use windvane_world::episodes::{ActionKind, GroupBy, ImportConfig, import};

/// Reads logs of any robot into a data set: .npz files, or Minari data sets.
///
/// An .npz file holds `observations` and `actions`, and says where episodes end by `terminals` and `timeouts` (a flag on
/// each row) or `episode_offsets` (first transition of each, and the total); without either it is one episode. Actions
/// may have as many rows as observations (the last of each episode is then ignored, as OGBench does) or one less for each
/// episode; with `next_observations` every row is a transition. Arrays may have any shape, byte order and memory order, and
/// hold any type of number: bool, integers of 8 to 64 bits, float16, float32, float64 (not complex numbers, text or objects).
#[derive(Args)]
#[command(after_help = "Examples:
  windvane import logs/monday.npz logs/tuesday.npz --out data/robot
  windvane import logs.npz --group-by column:robot_id --dims x,y,speed --out data/robot
  windvane import ~/.minari/datasets/cartpole/random-v0 --group-by column:mass --out data/cartpole")]
pub(crate) struct Import {
    /// Files (.npz) or folders (Minari, Arrow layout)
    #[arg(required = true)]
    sources: Vec<PathBuf>,
    /// Folder to make; it must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the environment; by default the source's
    #[arg(long)]
    name: Option<String>,
    /// Names of the observation's dimensions, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    dims: Option<Vec<String>>,
    /// Which episodes share the same dynamics: auto (as the source says; else one group for each file if there are
    /// several; else each episode alone), episode, file, or column:NAME (an array of the file, or a key of the options
    /// of a Minari episode)
    #[arg(long, value_name = "HOW", default_value = "auto")]
    group_by: Grouping,
    /// What actions are: whole-number scalars are moves, all else vectors, unless said otherwise
    #[arg(long, value_enum, default_value_t = Kind::Auto)]
    actions: Kind,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone)]
struct Grouping(GroupBy);

impl FromStr for Grouping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let by = match (text, text.split_once(':')) {
            ("auto", _) => GroupBy::Auto,
            ("episode", _) => GroupBy::Episode,
            ("file", _) => GroupBy::File,
            (_, Some(("column", name))) if !name.is_empty() => GroupBy::Column(name.to_owned()),
            _ => return Err("expected auto, episode, file or column:NAME".to_owned()),
        };
        Ok(Self(by))
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Auto,
    Discrete,
    Continuous,
}

impl Import {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = ImportConfig {
            name: self.name,
            dims: self.dims,
            group_by: self.group_by.0,
            actions: match self.actions {
                Kind::Auto => ActionKind::Auto,
                Kind::Discrete => ActionKind::Discrete,
                Kind::Continuous => ActionKind::Continuous,
            },
        };
        let data = import(&self.sources, &config, GENERATOR, &self.out)?;
        if self.json {
            return output::json(
                &json!({"path": data.path(), "env": data.spec(), "summary": data.summary()}),
            );
        }
        output::say(&format!(
            "{}: {} transitions in {} episodes of {} groups",
            data.path().display(),
            data.transitions(),
            data.episodes(),
            data.groups()
        ));
        Ok(())
    }
}
