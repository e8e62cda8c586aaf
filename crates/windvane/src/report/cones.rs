//! Task vectors around beliefs, before and after the belief is trained.

use super::plane::{Plane, rows};
use windvane_world::picture::{CATEGORIES, Colour, Ink, Margins, Picture, Rect, Sheet, Style, Svg};

/// Beliefs as axes, and the task vectors drawn around them.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The axes, all of one context together.
    pub axes: Vec<Vec<f32>>,
    /// The same number of task vectors for each axis.
    pub tasks: Vec<Vec<f32>>,
}

/// Beliefs as axes: what they have in common points nowhere, so it is taken out; the rest is filled up with zeros.
pub fn axes(beliefs: &[f32], count: usize, dim: usize) -> Vec<Vec<f32>> {
    let mut rows = rows(beliefs, count);
    let width = rows.first().map_or(0, Vec::len);
    let mean: Vec<f32> =
        (0..width).map(|k| rows.iter().map(|row| row[k]).sum::<f32>() / count.max(1) as f32).collect();
    for row in &mut rows {
        row.iter_mut().zip(&mean).for_each(|(x, m)| *x -= m);
        row.resize(dim.max(width), 0.0);
    }
    rows
}

/// Draws three panels: h untrained, z around it, and both after training; `trajectories` axes of each context, `around` tasks of
/// each axis.
pub fn draw(about: &str, before: &Stage, after: &Stage, trajectories: usize, around: usize) -> Picture {
    let sheet = Sheet::new(3, 3, (230.0, 230.0), (26.0, 16.0), Margins { bottom: 6.0, ..Margins::default() });
    let mut svg = sheet.begin("Task vectors around beliefs", about);
    let panels = [
        ("before training: beliefs", before, false),
        ("before training: and tasks around them", before, true),
        ("after training", after, true),
    ];
    for (index, (title, stage, with_tasks)) in panels.into_iter().enumerate() {
        sheet.panel_title(&mut svg, index, title);
        panel(&mut svg, sheet.panel(index), stage, with_tasks, trajectories, around);
    }
    svg.finish()
}

fn panel(svg: &mut Svg, rect: Rect, stage: &Stage, with_tasks: bool, trajectories: usize, around: usize) {
    let plane = Plane::of(&stage.axes);
    let centre = (rect.x + rect.width / 2.0, rect.y + rect.height / 2.0);
    let radius = rect.width / 2.0 - 8.0;
    let colour = |number: usize| CATEGORIES[number / trajectories % CATEGORIES.len()];
    svg.circle(centre, radius, &Style::fill(Ink::PAPER).outlined(Ink::LINE, 1.0));
    let turned = |vector: &[f32]| {
        let [x, y] = plane.direction(vector);
        let length = x.hypot(y).max(1e-12);
        (x / length, y / length, length)
    };
    if with_tasks {
        for (number, task) in stage.tasks.iter().enumerate() {
            let (x, y, _) = turned(task);
            // A little inside and outside the circle by turns, so that neighbours stay visible.
            let r = radius + [-3.5, 0.0, 3.5][number % 3];
            let style = Style::fill(colour(number / around)).opacity(0.75);
            svg.circle((centre.0 + r * x, centre.1 - r * y), 2.6, &style);
        }
    }
    let longest = stage.axes.iter().map(|axis| turned(axis).2).fold(1e-12, f64::max);
    for (number, axis) in stage.axes.iter().enumerate() {
        let (x, y, length) = turned(axis);
        let r = 0.86 * radius * length / longest;
        arrow(svg, centre, (centre.0 + r * x, centre.1 - r * y), colour(number));
    }
}

/// A thin arrow.
pub(super) fn arrow(svg: &mut Svg, from: (f64, f64), to: (f64, f64), colour: Colour) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    svg.line(from, to, &Style::line(colour, 1.1).opacity(0.85));
    if length > 8.0 {
        let (ux, uy) = (dx / length, dy / length);
        let back = (to.0 - 6.0 * ux, to.1 - 6.0 * uy);
        let side = (-uy * 2.6, ux * 2.6);
        svg.polygon(
            [to, (back.0 + side.0, back.1 + side.1), (back.0 - side.0, back.1 - side.1)],
            &Style::fill(colour),
        );
    }
}
