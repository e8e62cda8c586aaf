//! What colours and marks mean.

use super::colour::{Colour, ColourMap, Ink};
use super::scale::Scale;
use super::svg::{Anchor, Rect, Style, Svg, TextStyle, text_width};

/// A mark of a legend, and of the picture that it explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// A dot.
    Dot(Colour),
    /// A diamond.
    Diamond(Colour),
    /// A ring.
    Ring(Colour),
    /// A filled square.
    Square(Colour),
    /// A piece of line.
    Line(Colour),
    /// A piece of dashed line, with the length of its dashes.
    Dashed(Colour, f64),
}

impl Mark {
    /// Draws it around a point; `radius` is half its size.
    pub fn draw(&self, svg: &mut Svg, (x, y): (f64, f64), radius: f64) {
        let rim = |colour| Style::fill(colour).outlined(Colour::WHITE, radius / 4.0);
        match *self {
            Self::Dot(colour) => svg.circle((x, y), radius, &rim(colour)),
            Self::Diamond(colour) => {
                let r = radius * 1.25;
                svg.polygon([(x, y - r), (x + r, y), (x, y + r), (x - r, y)], &rim(colour));
            }
            Self::Ring(colour) => {
                svg.circle((x, y), radius, &Style::fill(Colour::WHITE).outlined(colour, radius / 2.0));
            }
            Self::Square(colour) => {
                let rect = Rect { x: x - radius, y: y - radius, width: 2.0 * radius, height: 2.0 * radius };
                svg.rect(rect, &Style::fill(colour));
            }
            Self::Line(colour) => {
                svg.line((x - 1.5 * radius, y), (x + 1.5 * radius, y), &Style::line(colour, 2.0));
            }
            Self::Dashed(colour, length) => {
                let style = Style::line(colour, 2.0).dashed(length.min(radius));
                svg.line((x - 1.5 * radius, y), (x + 1.5 * radius, y), &style);
            }
        }
    }
}

/// A row of marks and their names, from `(x, y)` to the right.
pub fn legend(svg: &mut Svg, (x, y): (f64, f64), entries: &[(Mark, &str)]) {
    let mut x = x;
    for (mark, name) in entries {
        mark.draw(svg, (x + 6.0, y), 4.5);
        svg.text((x + 17.0, y + 3.8), name, &TextStyle::new(11.0, Ink::SOFT, Anchor::Start));
        x += entry_width(name);
    }
}

/// The room that an entry of a legend takes.
fn entry_width(name: &str) -> f64 {
    17.0 + text_width(name, 11.0) + 18.0
}

/// The rows of a legend that is no wider than `width`.
pub fn legend_rows<'a>(entries: &'a [(Mark, &'a str)], width: f64) -> Vec<&'a [(Mark, &'a str)]> {
    let mut rows = Vec::new();
    let (mut first, mut x) = (0, 0.0);
    for (place, (_, name)) in entries.iter().enumerate() {
        x += entry_width(name);
        if x > width && place > first {
            rows.push(&entries[first..place]);
            (first, x) = (place, entry_width(name));
        }
    }
    rows.push(&entries[first..]);
    rows
}

/// Ticks of a colour bar, about.
pub(super) const BAR_TICKS: usize = 5;

/// A colour bar beside `area`: the colours of the numbers from `domain`, and what they are.
pub fn colour_bar(svg: &mut Svg, area: Rect, map: &ColourMap, domain: (f64, f64), label: &str) {
    const WIDTH: f64 = 12.0;
    const STEPS: usize = 64;
    let height = area.height.min(260.0);
    let rect = Rect {
        x: area.x + area.width + 22.0,
        y: area.y + (area.height - height) / 2.0,
        width: WIDTH,
        height,
    };
    let scale = Scale::new(domain, (rect.y + rect.height, rect.y));
    for step in 0..STEPS {
        let part = rect.height / STEPS as f64;
        let strip = Rect { y: rect.y + step as f64 * part, height: part, ..rect };
        svg.rect(strip, &Style::fill(map.at(1.0 - (step as f64 + 0.5) / STEPS as f64)).crisp());
    }
    svg.rect(rect, &Style::line(Ink::LINE, 1.0));
    let right = rect.x + rect.width;
    for (value, text) in scale.ticks(BAR_TICKS) {
        let y = scale.at(value);
        svg.line((right, y), (right + 4.0, y), &Style::line(Ink::LINE, 1.0));
        svg.text((right + 7.0, y + 3.5), &text, &TextStyle::new(10.0, Ink::SOFT, Anchor::Start));
    }
    let style = TextStyle::new(11.0, Ink::TEXT, Anchor::Middle).upright();
    svg.text((right + 48.0, rect.y + rect.height / 2.0), label, &style);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_breaks_into_rows_that_fit_and_keeps_every_entry() {
        let entries = ["one", "two", "three", "a name that is wider than the sheet by itself", "five"];
        let entries = entries.map(|name| (Mark::Line(Ink::LINE), name));
        let rows = legend_rows(&entries, 120.0);
        assert_eq!(rows.iter().map(|row| row.len()).collect::<Vec<_>>(), [2, 1, 1, 1]);
        assert_eq!(legend_rows(&entries, 1e3).len(), 1);
        assert_eq!(rows.concat(), entries);
    }
}
