//! The summary of results: bars for seen and unseen dynamics, with intervals, ceilings and the paper's values.

use super::chart::{Format, colour_of, legend_below, measure, named_panel};
use super::published;
use crate::stats::table::{COLUMNS, Line};
use windvane_world::picture::{
    Axes, CATEGORIES, Colour, Ink, Margins, Mark, Picture, Rect, Sheet, Style, Svg,
};
use windvane_world::{Split, picture::Anchor, picture::TextStyle};

/// Room for one method, on a wide and on a narrow sheet.
const SLOTS: [f64; 2] = [84.0, 66.0];
/// Width of a bar, likewise.
const BARS: [f64; 2] = [26.0, 19.0];
/// The level of a reference policy; the first of those in training contexts, the last elsewhere.
struct Level {
    policies: &'static [&'static str],
    title: &'static str,
    ink: Colour,
    dash: f64,
}

const LEVELS: [Level; 3] = [
    Level {
        policies: &["bayes-known", "bayes-frozen"],
        title: "exact ceiling of a frozen belief",
        ink: Ink::SOFT,
        dash: 6.0,
    },
    Level { policies: &["still"], title: "no action at all", ink: Ink::SOFT, dash: 4.0 },
    Level { policies: &["random"], title: "random actions", ink: Ink::LINE, dash: 2.0 },
];
/// The mark of the paper's values.
const PAPER: Mark = Mark::Diamond(Ink::TEXT);

/// Draws the lines of one setting: learned methods as bars, reference policies as levels.
pub fn draw(env: &str, lines: &[&Line], format: Format) -> Picture {
    let learned: Vec<&Line> = lines.iter().copied().filter(|line| line.is_learned()).collect();
    let names: Vec<String> = learned.iter().map(|line| line.title()).collect();
    let published = |line: &&Line| {
        [Split::Train, Split::Test].iter().any(|split| published::score(env, &line.method, *split).is_some())
    };
    let mut entries = vec![
        (Mark::Square(CATEGORIES[0]), "belief frozen after the context"),
        (Mark::Square(pale(CATEGORIES[0])), "belief goes on learning"),
    ];
    if learned.iter().any(published) {
        entries.push((PAPER, "paper"));
    }
    let known = |level: &&Level| lines.iter().any(|line| level.policies.contains(&line.method.as_str()));
    entries
        .extend(LEVELS.iter().filter(known).map(|level| (Mark::Dashed(level.ink, level.dash), level.title)));
    let narrow = format == Format::Narrow;
    let panel = (SLOTS[usize::from(narrow)] * names.len().max(if narrow { 5 } else { 2 }) as f64, 240.0);
    let margins = Margins { left: 46.0, right: 10.0, bottom: if narrow { 94.0 } else { 58.0 } };
    // Many methods stand in two rows, so that a page of usual width holds them.
    let columns = if narrow || names.len() > 4 { 1 } else { 2 };
    let sheet = Sheet::new(2, columns, panel, (46.0, 26.0), margins);
    let subtitle = format!("{env}: {}", protocol(&learned));
    let mut svg = sheet.begin("Scores on seen and unseen dynamics", format.subtitle(&subtitle));
    for (index, split) in [Split::Train, Split::Test].into_iter().enumerate() {
        let rect = sheet.panel(index);
        let title = if split == Split::Train { "contexts seen in training" } else { "unseen contexts" };
        sheet.panel_title(&mut svg, index, title);
        let axes = named_panel(&mut svg, rect, &names);
        levels(&mut svg, &axes, rect, lines, split);
        for (place, line) in learned.iter().enumerate() {
            bars(&mut svg, &axes, env, place, line, split, BARS[usize::from(narrow)]);
        }
        axes.frame(&mut svg);
        axes.label(&mut svg, "", if sheet.is_leftmost(index) { measure(env) } else { "" });
    }
    legend_below(&mut svg, &sheet, 38.0, &entries);
    svg.finish()
}

/// How the scores of lines came about, in words.
pub fn protocol(lines: &[&Line]) -> String {
    let seeds = lines.iter().map(|line| line.seeds).max().unwrap_or(0);
    let steps = lines.iter().map(|line| line.context_steps).max().unwrap_or(0);
    let seeds = match seeds {
        1 => "1 seed".to_owned(),
        _ => format!("mean over {seeds} seeds with 95% bootstrap interval"),
    };
    format!("{seeds}, F alone, greedy, after {steps} steps of context")
}

fn pale(colour: Colour) -> Colour {
    colour.mix(Colour::WHITE, 0.6)
}

/// The levels of reference policies.
fn levels(svg: &mut Svg, axes: &Axes, rect: Rect, lines: &[&Line], split: Split) {
    for Level { policies, ink, dash, .. } in &LEVELS {
        let policy = if split == Split::Train { policies.first() } else { policies.last() };
        let found = lines.iter().find(|line| Some(&line.method.as_str()) == policy);
        let column = COLUMNS.iter().position(|column| column.1 == split).unwrap_or(0);
        if let Some(cell) = found.and_then(|line| line.cells[column].as_ref()) {
            let y = axes.y.at(cell.mean.max(0.0));
            svg.line((rect.x, y), (rect.x + rect.width, y), &Style::line(*ink, 1.2).dashed(*dash));
        }
    }
}

/// The bars of one method.
fn bars(svg: &mut Svg, axes: &Axes, env: &str, place: usize, line: &Line, split: Split, width: f64) {
    let colour = colour_of(&line.method);
    let shown: Vec<_> = COLUMNS.iter().zip(&line.cells).filter(|(column, _)| column.1 == split).collect();
    let shown: Vec<_> =
        shown.into_iter().filter_map(|(column, cell)| Some((column.0, cell.as_ref()?))).collect();
    let middle = axes.x.at(place as f64 + 0.5);
    let left = middle - width * shown.len() as f64 / 2.0;
    for (number, (_, cell)) in shown.iter().enumerate() {
        let x = left + width * number as f64;
        let (top, bottom) = (axes.y.at(cell.mean.max(0.0)), axes.y.at(0.0));
        let fill = if number == 0 { colour } else { pale(colour) };
        let bar = Rect { x: x + 1.0, y: top, width: width - 2.0, height: bottom - top };
        svg.rect(bar, &Style::fill(fill));
        let centre = x + width / 2.0;
        let ends = cell.interval.ends().map(|end| axes.y.at(end));
        if cell.interval.low.is_some() {
            let ink = Style::line(Ink::TEXT, 1.2);
            svg.line((centre, ends[0]), (centre, ends[1]), &ink);
            ends.iter().for_each(|&y| svg.line((centre - 4.0, y), (centre + 4.0, y), &ink));
        }
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
