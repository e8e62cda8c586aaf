//! What charts of results have in common: colours of methods, a panel of shares, lines with bands.

use crate::methods::METHODS;
use windvane_world::picture::{Anchor, Axes, CATEGORIES, Colour, Ink, Rect, Scale, Style, Svg, TextStyle};

/// The colour of a method, the same in all figures; grey for reference players.
pub fn colour_of(method: &str) -> Colour {
    let place = METHODS.iter().position(|m| m.name == method);
    place.map_or(Ink::LINE, |place| CATEGORIES[place % CATEGORIES.len()])
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

/// The width of line number `place` of `count`: each lies within the one before it.
pub fn width_of(place: usize, count: usize) -> f64 {
    1.4 + 2.4 * count.saturating_sub(place + 1) as f64 / count.saturating_sub(1).max(1) as f64
}

/// A line through points with a band from low to high around it; points are (x, low, middle, high).
///
/// Lines are drawn from the widest to the narrowest, so that one that lies on another leaves its rim visible.
pub fn banded(svg: &mut Svg, axes: &Axes, points: &[[f64; 4]], colour: Colour, width: f64, dashed: bool) {
    let upper = points.iter().map(|p| axes.at(p[0], p[3]));
    let lower = points.iter().rev().map(|p| axes.at(p[0], p[1]));
    svg.polygon(upper.chain(lower), &Style::fill(colour).opacity(0.14));
    let style = Style::line(colour, width);
    let style = if dashed { style.dashed(4.0) } else { style };
    svg.polyline(points.iter().map(|p| axes.at(p[0], p[2])), &style);
    for p in points {
        svg.circle(axes.at(p[0], p[2]), 0.6 + width, &Style::fill(colour));
    }
}
