//! What charts of results have in common: colours of methods, styles of series, a panel of shares, lines with bands.

use crate::methods::METHODS;
use windvane_world::picture::{
    Anchor, Axes, CATEGORIES, Colour, Ink, Margins, Mark, Rect, Scale, Sheet, Style, Svg, TextStyle, legend,
    legend_rows,
};

/// The colour of a method, the same in all figures; greys for reference policies and for cloning, dark with a belief.
pub fn colour_of(method: &str) -> Colour {
    match METHODS.iter().position(|m| m.name == method) {
        Some(place) if METHODS[place].clones && METHODS[place].believes() => Ink::TEXT,
        Some(place) if METHODS[place].clones => Ink::SOFT,
        Some(place) => CATEGORIES[place % CATEGORIES.len()],
        None => Ink::LINE,
    }
}

/// Draws a panel whose vertical axis is a share from 0 to 1 and whose horizontal places carry names.
pub fn named_panel(svg: &mut Svg, rect: Rect, names: &[String]) -> Axes {
    // A little room above for what stands on a full bar.
    let axes = Axes::new(rect, (0.0, names.len() as f64), (0.0, 1.06));
    svg.rect(rect, &Style::fill(Ink::PAPER));
    let soft = |anchor| TextStyle::new(10.0, Ink::SOFT, anchor);
    for (value, text) in Scale::new((0.0, 1.0), (0.0, 1.0)).ticks(5) {
        let y = axes.y.at(value);
        svg.line((rect.x, y), (rect.x + rect.width, y), &Style::line(Ink::FAINT, 1.0));
        svg.text((rect.x - 6.0, y + 3.5), &text, &soft(Anchor::End));
    }
    for (place, name) in names.iter().enumerate() {
        let x = axes.x.at(place as f64 + 0.5);
        svg.text((x, rect.y + rect.height + 14.0), name, &soft(Anchor::Middle));
    }
    axes
}

/// What scores of an environment measure: worlds of ants have returns and no success.
pub fn measure(env: &str) -> &'static str {
    if env.starts_with("ant-") { "share of the expert's return" } else { "success" }
}

/// For which screen a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Panels side by side, with a subtitle that says all.
    Wide,
    /// A phone: panels below each other; what the subtitle would say stands in the caption.
    Narrow,
}

impl Format {
    /// A sheet of two panels, `height` each, with room for a legend below.
    pub fn sheet(self, height: f64, entries: &[(Mark, &str)]) -> Sheet {
        let (columns, width) = match self {
            Self::Wide => (2, 2.0 * PANEL + GAP),
            Self::Narrow => (1, PANEL),
        };
        let bottom = 42.0 + LEGEND_ROW * legend_rows(entries, width).len() as f64;
        let margins = Margins { left: 46.0, right: 8.0, bottom };
        Sheet::new(2, columns, (PANEL, height), (GAP, 36.0), margins)
    }

    /// The subtitle, where there is room for one.
    pub fn subtitle(self, text: &str) -> &str {
        if self == Self::Wide { text } else { "" }
    }
}

/// Width of a panel.
const PANEL: f64 = 330.0;
/// Room between panels.
const GAP: f64 = 52.0;
/// Height of a row of a legend.
const LEGEND_ROW: f64 = 18.0;

/// Draws a legend below all panels of a sheet, `below` their lower edge.
pub fn legend_below(svg: &mut Svg, sheet: &Sheet, below: f64, entries: &[(Mark, &str)]) {
    let area = sheet.area();
    for (row, entries) in legend_rows(entries, area.width).into_iter().enumerate() {
        legend(svg, (area.x, area.y + area.height + below + LEGEND_ROW * row as f64), entries);
    }
}

/// Length of a dash where all are alike.
pub const DASH: f64 = 5.0;

/// How a series is drawn, so that one that lies on another leaves it visible: each is narrower than the one before, and every
/// other one is dashed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesStyle {
    colour: Colour,
    width: f64,
    dash: Option<f64>,
}

impl SeriesStyle {
    /// The style of a method's series, number `place` of `count`.
    pub fn of(method: &str, place: usize, count: usize) -> Self {
        let plain = Self::plain(method, place, count);
        if place % 2 == 1 { plain.dashed(DASH) } else { plain }
    }

    /// The same without dashes, where dashes mean something else.
    pub fn plain(method: &str, place: usize, count: usize) -> Self {
        let rest = count.saturating_sub(place + 1) as f64 / count.saturating_sub(1).max(1) as f64;
        Self { colour: colour_of(method), width: 1.4 + 2.4 * rest, dash: None }
    }

    /// The order in which `count` series are drawn: dashes over lines, so that both show where they meet.
    pub fn order(count: usize) -> impl Iterator<Item = usize> {
        (0..count).step_by(2).chain((1..count).step_by(2))
    }

    /// In dashes of this length.
    #[must_use]
    pub fn dashed(self, dash: f64) -> Self {
        Self { dash: Some(dash), ..self }
    }

    /// Its mark in a legend.
    pub fn mark(self) -> Mark {
        self.dash.map_or(Mark::Line(self.colour), |dash| Mark::Dashed(self.colour, dash))
    }

    /// Its line.
    pub fn line(self) -> Style {
        let style = Style::line(self.colour, self.width);
        // Ends are round: a dash is drawn longer by its own width, and a gap shorter.
        self.dash.map_or(style, |dash| style.dashed(dash + self.width))
    }
}

/// A line through points with a band from low to high around it; points are (x, low, middle, high).
pub fn banded(svg: &mut Svg, axes: &Axes, points: &[[f64; 4]], style: SeriesStyle) {
    let upper = points.iter().map(|p| axes.at(p[0], p[3]));
    let lower = points.iter().rev().map(|p| axes.at(p[0], p[1]));
    svg.polygon(upper.chain(lower), &Style::fill(style.colour).opacity(0.14));
    svg.polyline(points.iter().map(|p| axes.at(p[0], p[2])), &style.line());
    let radius = 0.6 + style.width;
    for p in points {
        let at = axes.at(p[0], p[2]);
        // A dashed line has open points.
        match style.dash {
            None => svg.circle(at, radius, &Style::fill(style.colour)),
            Some(_) => svg.circle(at, radius, &Style::fill(Ink::PAPER).outlined(style.colour, 1.4)),
        }
    }
}
