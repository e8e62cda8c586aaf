//! The summary of results: bars for seen and unseen dynamics, with intervals, ceilings and the paper's values.

use super::chart::{colour_of, named_panel};
use super::published;
use crate::stats::table::{COLUMNS, Line};
use windvane_world::picture::{
    Axes, CATEGORIES, Colour, Ink, Margins, Mark, Picture, Rect, Sheet, Style, Svg, legend,
};
use windvane_world::{Split, picture::Anchor, picture::TextStyle};

/// Room for one method.
const SLOT: f64 = 84.0;
/// Width of a bar.
const BAR: f64 = 26.0;
/// The mark of the paper's values.
const PAPER: Mark = Mark::Diamond(Ink::TEXT);

/// Draws the lines of one setting: learned methods as bars, reference players as levels.
pub fn draw(env: &str, lines: &[&Line]) -> Picture {
    let learned: Vec<&Line> = lines.iter().copied().filter(|line| line.is_learned()).collect();
    let names: Vec<String> = learned.iter().map(|line| line.title()).collect();
    let panel = (SLOT * names.len().max(2) as f64, 240.0);
    let margins = Margins { left: 46.0, right: 10.0, bottom: 58.0 };
    // Many methods stand in two rows, so that a page of usual width holds them.
    let columns = if names.len() > 4 { 1 } else { 2 };
    let sheet = Sheet::new(2, columns, panel, (46.0, 26.0), margins);
    let seeds = learned.iter().map(|line| line.seeds).max().unwrap_or(0);
    let steps = learned.iter().map(|line| line.context_steps).max().unwrap_or(0);
    let subtitle = format!(
        "{env}: mean over {seeds} seeds with 95% bootstrap interval, greedy play after {steps} steps of context"
    );
    let mut svg = sheet.begin("Success on seen and unseen dynamics", &subtitle);
    for (index, split) in [Split::Train, Split::Test].into_iter().enumerate() {
        let rect = sheet.panel(index);
        let title = if split == Split::Train { "contexts seen in training" } else { "unseen contexts" };
        sheet.panel_title(&mut svg, index, title);
        let axes = named_panel(&mut svg, rect, &names);
        levels(&mut svg, &axes, rect, lines, split);
        for (place, line) in learned.iter().enumerate() {
            bars(&mut svg, &axes, env, place, line, split);
        }
        axes.frame(&mut svg);
        axes.label(&mut svg, "", if sheet.is_leftmost(index) { "success" } else { "" });
    }
    let area = sheet.area();
    let entries = [
        (Mark::Square(CATEGORIES[0]), "belief frozen after the context"),
        (Mark::Square(pale(CATEGORIES[0])), "belief goes on learning"),
        (PAPER, "paper"),
        (Mark::Line(Ink::SOFT), "exact ceiling of a frozen belief"),
        (Mark::Line(Ink::LINE), "random"),
    ];
    let bottom = area.y + area.height + 38.0;
    legend(&mut svg, (area.x, bottom), &entries[..3]);
    legend(&mut svg, (area.x, bottom + 18.0), &entries[3..]);
    svg.finish()
}

fn pale(colour: Colour) -> Colour {
    colour.mix(Colour::WHITE, 0.6)
}

/// The levels of reference players.
fn levels(svg: &mut Svg, axes: &Axes, rect: Rect, lines: &[&Line], split: Split) {
    let ceiling = if split == Split::Train { "bayes-known" } else { "bayes-frozen" };
    for (player, colour, dash) in [(ceiling, Ink::SOFT, 6.0), ("random", Ink::LINE, 2.0)] {
        let found = lines.iter().find(|line| line.method == player);
        let column = COLUMNS.iter().position(|column| column.1 == split).unwrap_or(0);
        if let Some(cell) = found.and_then(|line| line.cells[column].as_ref()) {
            let y = axes.y.at(cell.mean);
            svg.line((rect.x, y), (rect.x + rect.width, y), &Style::line(colour, 1.2).dashed(dash));
        }
    }
}

/// The bars of one method.
fn bars(svg: &mut Svg, axes: &Axes, env: &str, place: usize, line: &Line, split: Split) {
    let colour = colour_of(&line.method);
    let shown: Vec<_> = COLUMNS.iter().zip(&line.cells).filter(|(column, _)| column.1 == split).collect();
    let shown: Vec<_> =
        shown.into_iter().filter_map(|(column, cell)| Some((column.0, cell.as_ref()?))).collect();
    let middle = axes.x.at(place as f64 + 0.5);
    let left = middle - BAR * shown.len() as f64 / 2.0;
    for (number, (_, cell)) in shown.iter().enumerate() {
        let x = left + BAR * number as f64;
        let (top, bottom) = (axes.y.at(cell.mean), axes.y.at(0.0));
        let fill = if number == 0 { colour } else { pale(colour) };
        let bar = Rect { x: x + 1.0, y: top, width: BAR - 2.0, height: bottom - top };
        svg.rect(bar, &Style::fill(fill));
        let centre = x + BAR / 2.0;
        let ends = [axes.y.at(cell.interval.low), axes.y.at(cell.interval.high)];
        let ink = Style::line(Ink::TEXT, 1.2);
        svg.line((centre, ends[0]), (centre, ends[1]), &ink);
        ends.iter().for_each(|&y| svg.line((centre - 4.0, y), (centre + 4.0, y), &ink));
        let text = format!("{:.2}", cell.mean);
        let above = ends[1].min(top) - 4.0;
        let behind = Rect { x: centre - 11.0, y: above - 8.5, width: 22.0, height: 10.5 };
        svg.rect(behind, &Style::fill(Ink::PAPER).opacity(0.85));
        svg.text((centre, above), &text, &TextStyle::new(9.0, Ink::SOFT, Anchor::Middle));
    }
    if let Some([mean, _]) = published::score(env, &line.method, split) {
        PAPER.draw(svg, (left - 6.0, axes.y.at(mean)), 4.5);
    }
}
