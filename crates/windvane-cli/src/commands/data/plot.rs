//! `windvane data plot`.

use crate::{bounds, output};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use windvane_world::episodes::Episodes;
use windvane_world::picture::{Subject, layouts, occupancy, trajectories};

/// Draws a data set: its layouts, some trajectories, or how often each place was visited.
///
/// One panel for each group. Worlds with a map are drawn on it; for other data, --dims chooses the plane.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane data plot data/four-rooms --what occupancy --out occupancy.svg
  windvane data plot data/robot --what trajectories --dims x,speed --panels 4 --out robot.png")]
pub(crate) struct Plot {
    /// The data set's folder
    data: PathBuf,
    /// What to draw
    #[arg(long, value_enum)]
    what: What,
    /// File to make, .svg or .png; it must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Most panels
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = bounds::count::<usize>(1..=1000))]
    panels: usize,
    /// Episodes in each panel of trajectories
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = bounds::count::<usize>(1..=8))]
    episodes: usize,
    /// The two dimensions to draw, separated by a comma; by default the first two
    #[arg(long, value_name = "X,Y", value_delimiter = ',')]
    dims: Option<Vec<String>>,
    /// Pixels of a PNG for each unit of the SVG
    #[arg(long, value_name = "SCALE", default_value_t = 2.0)]
    scale: f32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Maps with start and goals
    Layouts,
    /// Some episodes
    Trajectories,
    /// How often each place was visited
    Occupancy,
}

impl Plot {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let data = Episodes::open(&self.data)?;
        let dims = match self.dims.as_deref() {
            Some([x, y]) => Some((x.as_str(), y.as_str())),
            Some(_) => anyhow::bail!("--dims needs two names, for instance x,y"),
            None => None,
        };
        let subject = Subject::new(&data, self.panels, dims)?;
        let picture = match self.what {
            What::Layouts => layouts(&subject)?,
            What::Trajectories => trajectories(&subject, self.episodes),
            What::Occupancy => occupancy(&subject),
        };
        picture.save(&self.out, self.scale)?;
        if self.json {
            return output::json(&json!({"path": self.out}));
        }
        output::say(&self.out.display().to_string());
        Ok(())
    }
}
