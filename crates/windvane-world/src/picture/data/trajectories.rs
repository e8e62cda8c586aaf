//! Where some episodes went.

use super::{Subject, counted};
use crate::picture::Picture;
use crate::picture::colour::{CATEGORIES, Ink};
use crate::picture::legend::{Mark, legend};
use crate::picture::maze::Maze;
use crate::picture::sheet::Margins;
use crate::picture::svg::{Rect, Style, Svg};

/// Draws the first `episodes` episodes of each group, each in its own colour.
pub fn trajectories(subject: &Subject<'_>, episodes: usize) -> Picture {
    let episodes = episodes.clamp(1, CATEGORIES.len());
    let sheet = subject.sheet(Margins { bottom: 26.0, ..Margins::default() });
    let shown =
        if episodes == 1 { "the first episode".to_owned() } else { format!("the first {episodes} episodes") };
    let subtitle = format!("{}: {shown} of {}", subject.provenance(), counted(subject.groups, "group"));
    let mut svg = sheet.begin("Trajectories", &subtitle);
    for group in 0..subject.groups {
        let rect = sheet.panel(group);
        if let Some(mazes) = &subject.mazes {
            let maze = &mazes[group];
            maze.draw_cells(&mut svg, rect, |_, _| Ink::PAPER);
            maze.draw_grid(&mut svg, rect);
            maze.draw_walls(&mut svg, rect);
            let lane = lane_width(subject, maze, rect, episodes);
            draw(&mut svg, subject, group, episodes, |number, (x, y)| {
                let (x, y) = maze.at(rect, x, y);
                let shift = (number as f64 - (episodes as f64 - 1.0) / 2.0) * lane;
                (x + shift, y + shift)
            });
        } else {
            let axes = subject.axes(rect);
            axes.draw(&mut svg);
            draw(&mut svg, subject, group, episodes, |_, (x, y)| axes.at(x, y));
            axes.frame(&mut svg);
            subject.label(&mut svg, &sheet, group, &axes);
        }
        sheet.panel_title(&mut svg, group, &subject.title(group));
    }
    let area = sheet.area();
    let below = area.y + area.height + if subject.mazes.is_some() { 22.0 } else { 58.0 };
    let entries = [(Mark::Dot(Ink::SOFT), "first state"), (Mark::Ring(Ink::SOFT), "last state")];
    legend(&mut svg, (area.x, below), &entries);
    svg.finish()
}

/// On a grid every path runs through the middle of cells: side by side, all of them can be seen.
fn lane_width(subject: &Subject<'_>, maze: &Maze, rect: Rect, episodes: usize) -> f64 {
    let on_grid = subject.data.spec().observation.iter().all(|dim| dim.integer);
    if on_grid && episodes > 1 { 0.5 * maze.unit(rect) / (episodes as f64 - 1.0).max(2.0) } else { 0.0 }
}

fn draw(
    svg: &mut Svg,
    subject: &Subject<'_>,
    group: usize,
    episodes: usize,
    place: impl Fn(usize, (f64, f64)) -> (f64, f64),
) {
    let shown = || subject.data.group_episodes(group).take(episodes).enumerate();
    for (number, episode) in shown() {
        let style = Style::line(CATEGORIES[number], 1.4).opacity(0.8);
        svg.polyline(subject.points(episode).map(|point| place(number, point)), &style);
    }
    // Above all lines, so that no end is hidden.
    for (number, episode) in shown() {
        let mut points = subject.points(episode);
        let ends = points.next().zip(points.last());
        if let Some((first, last)) = ends {
            Mark::Dot(CATEGORIES[number]).draw(svg, place(number, first), 3.6);
            Mark::Ring(CATEGORIES[number]).draw(svg, place(number, last), 3.0);
        }
    }
}
