//! The figures of a data set: layouts, trajectories, occupancy.

mod layouts;
mod occupancy;
mod trajectories;

pub use layouts::layouts;
pub use occupancy::occupancy;
pub use trajectories::trajectories;

use super::axes::Axes;
use super::maze::Maze;
use super::sheet::{Margins, Sheet};
use super::svg::{Rect, Svg};
use crate::episodes::Episodes;
use crate::error::WorldError;
use std::path::Path;

/// What a figure shows of a data set: some groups, one panel each, in a plane of two dimensions.
pub struct Subject<'a> {
    data: &'a Episodes,
    groups: usize,
    dims: (usize, usize),
    /// The map of each group, where all groups have one.
    mazes: Option<Vec<Maze>>,
    /// Smallest and largest value of the two dimensions.
    range: [(f64, f64); 2],
}

impl<'a> Subject<'a> {
    /// The first `panels` groups, in the plane of the dimensions named `dims` (by default the first two).
    pub fn new(data: &'a Episodes, panels: usize, dims: Option<(&str, &str)>) -> Result<Self, WorldError> {
        let names = &data.spec().observation;
        let find = |name: &str| {
            names.iter().position(|dim| dim.name == name).ok_or_else(|| WorldError::Unknown {
                kind: "dimension",
                name: name.to_owned(),
                known: names.iter().take(30).map(|dim| dim.name.clone()).collect::<Vec<_>>().join(", "),
            })
        };
        let dims = match dims {
            Some((x, y)) => (find(x)?, find(y)?),
            None if names.len() >= 2 => (0, 1),
            None => {
                return Err(WorldError::Invalid(format!(
                    "{}: observations have one dimension; a picture needs two",
                    data.path().display()
                )));
            }
        };
        let groups = data.groups().min(panels.clamp(1, 48));
        let mazes =
            if dims == (0, 1) { (0..groups).map(|group| maze_of(data, group)).collect() } else { None };
        let observed = data.observed_range();
        let wide = |(low, high): (f32, f32)| (f64::from(low), f64::from(high));
        Ok(Self { data, groups, dims, mazes, range: [wide(observed[dims.0]), wide(observed[dims.1])] })
    }

    /// A sheet with one panel for each group.
    fn sheet(&self, margins: Margins) -> Sheet {
        let columns = Sheet::columns_for(self.groups);
        // Maps need no numbers beside them; axes do.
        let (gap, left) = if self.mazes.is_some() { ((14.0, 10.0), 0.0) } else { ((48.0, 30.0), 50.0) };
        let side = match self.groups {
            1 => 340.0,
            2..=4 => 220.0,
            _ => 150.0,
        };
        let bottom = margins.bottom + if self.mazes.is_some() { 0.0 } else { 38.0 };
        Sheet::new(self.groups, columns, (side, side), gap, Margins { left, bottom, ..margins })
    }

    /// Where the content of a panel goes: a map that keeps its proportions, or axes.
    fn axes(&self, rect: Rect) -> Axes {
        let [x, y] = self.range.map(|(low, high)| {
            let room = 0.04 * (high - low);
            (low - room, high + room)
        });
        Axes::new(rect, x, y)
    }

    /// What a group is called.
    fn title(&self, group: usize) -> String {
        let episode = self.data.group_episodes(group).start;
        match self.data.privileged_context_labels() {
            Some(labels) => format!("context {}", labels.of(episode).0),
            None => format!("group {group}"),
        }
    }

    /// Writes the names of the two dimensions, where no panel on the left or below does.
    fn label(&self, svg: &mut Svg, sheet: &Sheet, group: usize, axes: &Axes) {
        let dims = &self.data.spec().observation;
        let name = |dim: usize, shown: bool| if shown { dims[dim].name.as_str() } else { "" };
        axes.label(
            svg,
            name(self.dims.0, sheet.is_lowest(group)),
            name(self.dims.1, sheet.is_leftmost(group)),
        );
    }

    /// The two coordinates of every observation of an episode.
    fn points(&self, episode: usize) -> impl Iterator<Item = (f64, f64)> {
        let (x, y) = self.dims;
        let rows = self.data.observations(episode).chunks_exact(self.data.spec().obs_dim());
        rows.map(move |row| (f64::from(row[x]), f64::from(row[y])))
    }

    /// Who acted, for subtitles.
    fn provenance(&self) -> String {
        let provenance = &self.data.meta().plan.provenance;
        let seed = provenance.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
        match provenance.policy.as_str() {
            "imported" => format!("{}, imported", self.data.spec().name),
            policy => format!("{}, {policy} policy{seed}", self.data.spec().name),
        }
    }

    fn path(&self) -> &Path {
        self.data.path()
    }
}

fn maze_of(data: &Episodes, group: usize) -> Option<Maze> {
    let context = data.privileged_context_labels()?.of(data.group_episodes(group).start);
    let entry = data.meta().plan.contexts.iter().find(|entry| entry.id == context)?;
    Maze::from_description(&entry.about)
}

/// A count and what is counted.
fn counted(count: usize, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A count as people write it.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn counts_are_written_as_people_do() {
        let written = [0, 1, 999, 1000, 1_234_567].map(|count| counted(count, "state"));
        assert_eq!(written, ["0 states", "1 state", "999 states", "1,000 states", "1,234,567 states"]);
    }
}
