//! The maps behind a data set.

use super::{Subject, counted};
use crate::error::WorldError;
use crate::picture::Picture;
use crate::picture::colour::Ink;
use crate::picture::legend::legend;
use crate::picture::maze::Maze;
use crate::picture::sheet::Margins;

/// Draws the map of each group, with start and goals.
pub fn layouts(subject: &Subject<'_>) -> Result<Picture, WorldError> {
    let mazes = subject.mazes.as_ref().ok_or_else(|| {
        WorldError::data(
            subject.path(),
            "contexts",
            "no maps are recorded in it; trajectories and occupancy can be drawn",
        )
    })?;
    let sheet = subject.sheet(Margins { bottom: 26.0, ..Margins::default() });
    let shown = format!(
        "{} of {} of {}",
        mazes.len(),
        counted(subject.data.groups(), "context"),
        subject.data.spec().name
    );
    let mut svg = sheet.begin("Layouts", &shown);
    for (group, maze) in mazes.iter().enumerate() {
        let rect = sheet.panel(group);
        maze.draw_cells(&mut svg, rect, |_, _| Ink::PAPER);
        maze.draw_grid(&mut svg, rect);
        maze.draw_walls(&mut svg, rect);
        maze.draw_marks(&mut svg, rect);
        sheet.panel_title(&mut svg, group, &subject.title(group));
    }
    let area = sheet.area();
    let entries = [(Maze::START, "start"), (Maze::GOAL, "goal"), (Maze::WALL, "wall")];
    legend(&mut svg, (area.x, area.y + area.height + 22.0), &entries);
    Ok(svg.finish())
}
