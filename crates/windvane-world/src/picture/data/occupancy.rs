//! How often each place was visited: the heat map of the paper's data figures.

use super::{Subject, counted};
use crate::picture::Picture;
use crate::picture::axes::Axes;
use crate::picture::colour::{Colour, HEAT};
use crate::picture::legend::{BAR_TICKS, colour_bar};
use crate::picture::maze::Maze;
use crate::picture::scale::Scale;
use crate::picture::sheet::Margins;
use crate::picture::svg::{Rect, Style, Svg};

/// Bins along each side of a plane without a map.
const BINS: usize = 40;
/// Bins along each side of a cell of a map that is not a grid world.
const FINE: usize = 8;

/// Shares of visits in a rectangle of bins, row by row, in percent.
struct Histogram {
    columns: usize,
    shares: Vec<f64>,
}

impl Histogram {
    fn of(columns: usize, rows: usize, bins: impl Iterator<Item = Option<(usize, usize)>>) -> Self {
        let mut counts = vec![0_u64; columns * rows];
        bins.flatten().for_each(|(column, row)| counts[column + columns * row] += 1);
        let total = counts.iter().sum::<u64>().max(1) as f64;
        Self { columns, shares: counts.iter().map(|&count| 100.0 * count as f64 / total).collect() }
    }

    fn share(&self, column: usize, row: usize) -> f64 {
        self.shares[column + self.columns * row]
    }
}

/// Draws the share of visits of every place, in one colour scale for all groups.
pub fn occupancy(subject: &Subject<'_>) -> Picture {
    let histograms: Vec<Histogram> = (0..subject.groups).map(|group| count(subject, group)).collect();
    let top = top_of(&histograms);
    let sheet = subject.sheet(Margins { right: 84.0, ..Margins::default() });
    let visits: usize = (0..subject.groups)
        .flat_map(|group| subject.data.group_episodes(group))
        .map(|episode| subject.data.length(episode) + 1)
        .sum();
    let subtitle = format!(
        "{}: {} of {}",
        subject.provenance(),
        counted(visits, "state"),
        counted(subject.groups, "group")
    );
    let mut svg = sheet.begin("Occupancy", &subtitle);
    for (group, histogram) in histograms.iter().enumerate() {
        let rect = sheet.panel(group);
        let colour = |share: f64| HEAT.at(share / top);
        if let Some(mazes) = &subject.mazes {
            draw_maze(&mut svg, &mazes[group], rect, histogram, colour);
        } else {
            let axes = draw_plane(&mut svg, subject, rect, histogram, colour);
            subject.label(&mut svg, &sheet, group, &axes);
        }
        sheet.panel_title(&mut svg, group, &subject.title(group));
    }
    colour_bar(&mut svg, sheet.area(), &HEAT, (0.0, top), "share of visited states (%)");
    svg.finish()
}

/// Bins along a cell of a map.
fn fineness(subject: &Subject<'_>) -> usize {
    if subject.data.spec().observation.iter().all(|dim| dim.integer) { 1 } else { FINE }
}

fn count(subject: &Subject<'_>, group: usize) -> Histogram {
    let points = subject.data.group_episodes(group).flat_map(|episode| subject.points(episode));
    if let Some(mazes) = &subject.mazes {
        let (maze, fine) = (&mazes[group], fineness(subject));
        // A map drawn one unit to a cell says which part of which cell a point is in.
        let unit = Rect { x: 0.0, y: 0.0, width: maze.columns() as f64, height: maze.rows() as f64 };
        let (columns, rows) = (maze.columns() * fine, maze.rows() * fine);
        let place = |(x, y)| {
            let (x, y) = maze.at(unit, x, y);
            bin(x * fine as f64, columns).zip(bin(y * fine as f64, rows))
        };
        return Histogram::of(columns, rows, points.map(place));
    }
    let [x_range, y_range] = subject.range;
    let place = |value: f64, (low, high): (f64, f64)| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        bin((share * BINS as f64).min(BINS as f64 - 0.5), BINS)
    };
    Histogram::of(BINS, BINS, points.map(|(x, y)| place(x, x_range).zip(place(y, y_range))))
}

fn bin(place: f64, count: usize) -> Option<usize> {
    (place >= 0.0 && place < count as f64).then_some(place as usize)
}

/// The round end of the colour scale: the highest shares but for the highest hundredth, which would leave all else pale.
fn top_of(histograms: &[Histogram]) -> f64 {
    let mut shares: Vec<f64> = histograms
        .iter()
        .flat_map(|histogram| &histogram.shares)
        .copied()
        .filter(|&share| share > 0.0)
        .collect();
    shares.sort_by(f64::total_cmp);
    let place = (shares.len() * 99 / 100).min(shares.len().saturating_sub(1));
    Scale::round_up(shares.get(place).copied().unwrap_or(1.0), BAR_TICKS)
}

fn draw_maze(svg: &mut Svg, maze: &Maze, rect: Rect, histogram: &Histogram, colour: impl Fn(f64) -> Colour) {
    let fine = histogram.columns / maze.columns();
    if fine == 1 {
        maze.draw_cells(svg, rect, |column, row| colour(histogram.share(column, row)));
        maze.draw_grid(svg, rect);
    } else {
        maze.draw_cells(svg, rect, |_, _| colour(0.0));
        let side = maze.unit(rect) / fine as f64;
        draw_bins(svg, (rect.x, rect.y), (side, side), histogram, colour);
    }
    maze.draw_walls(svg, rect);
}

fn draw_plane(
    svg: &mut Svg,
    subject: &Subject<'_>,
    rect: Rect,
    histogram: &Histogram,
    colour: impl Fn(f64) -> Colour,
) -> Axes {
    let axes = subject.axes(rect);
    axes.draw(svg);
    let [x, y] = subject.range;
    let (left, bottom) = axes.at(x.0, y.0);
    let (right, top) = axes.at(x.1, y.1);
    let (width, height) = ((right - left) / BINS as f64, (bottom - top) / BINS as f64);
    // Rows count upwards here.
    draw_bins(svg, (left, bottom - height), (width, -height), histogram, colour);
    axes.frame(svg);
    axes
}

/// Draws all bins that were visited, from the first row on.
fn draw_bins(
    svg: &mut Svg,
    (left, first): (f64, f64),
    (width, step): (f64, f64),
    histogram: &Histogram,
    colour: impl Fn(f64) -> Colour,
) {
    for (place, &share) in histogram.shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let (column, row) = (place % histogram.columns, place / histogram.columns);
        let (x, y) = (left + column as f64 * width, first + row as f64 * step);
        svg.rect(Rect { x, y, width, height: step.abs() }, &Style::fill(colour(share)).crisp());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_points_outside_do_not_count() {
        let bins = [Some((0, 0)), Some((1, 1)), Some((1, 1)), None];
        let histogram = Histogram::of(2, 2, bins.into_iter());
        assert_eq!(histogram.shares.iter().sum::<f64>().round(), 100.0);
        assert!((histogram.share(1, 1) - 200.0 / 3.0).abs() < 1e-9);
    }
}
