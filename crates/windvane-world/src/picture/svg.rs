//! A small SVG builder: shapes, text, groups.

use super::colour::Colour;
use std::fmt::Write as _;

/// A rectangle, from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// How a shape looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    fill: Option<Colour>,
    stroke: Option<(Colour, f64)>,
    opacity: f64,
    dash: Option<f64>,
    crisp: bool,
}

impl Style {
    /// A filled shape.
    pub const fn fill(colour: Colour) -> Self {
        Self { fill: Some(colour), stroke: None, opacity: 1.0, dash: None, crisp: false }
    }

    /// A line of the given width.
    pub const fn line(colour: Colour, width: f64) -> Self {
        Self { fill: None, stroke: Some((colour, width)), opacity: 1.0, dash: None, crisp: false }
    }

    /// With an outline.
    #[must_use]
    pub const fn outlined(self, colour: Colour, width: f64) -> Self {
        Self { stroke: Some((colour, width)), ..self }
    }

    /// See-through.
    #[must_use]
    pub const fn opacity(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }

    /// In dashes of the given length.
    #[must_use]
    pub const fn dashed(self, length: f64) -> Self {
        Self { dash: Some(length), ..self }
    }

    /// With edges on whole pixels, so that no seam shows between neighbours.
    #[must_use]
    pub const fn crisp(self) -> Self {
        Self { crisp: true, ..self }
    }

    pub(super) fn attributes(&self) -> String {
        // Writing to a string cannot fail.
        let mut text = match self.fill {
            Some(colour) => format!(" fill=\"{colour}\""),
            None => " fill=\"none\"".to_owned(),
        };
        if let Some((colour, width)) = self.stroke {
            let _ = write!(text, " stroke=\"{colour}\" stroke-width=\"{}\"", number(width));
        }
        if self.opacity < 1.0 {
            let _ = write!(text, " opacity=\"{}\"", number(self.opacity));
        }
        if let Some(length) = self.dash {
            let _ = write!(text, " stroke-dasharray=\"{0} {0}\"", number(length));
        }
        if self.crisp {
            text += " shape-rendering=\"crispEdges\"";
        }
        text
    }
}

/// Which point of a text is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextStyle {
    /// Height of the font.
    pub size: f64,
    /// Colour.
    pub colour: Colour,
    /// Which point is placed.
    pub anchor: Anchor,
    /// Medium instead of regular weight.
    pub strong: bool,
    /// Turned to be read from below.
    pub upright: bool,
}

impl TextStyle {
    /// Regular text.
    pub const fn new(size: f64, colour: Colour, anchor: Anchor) -> Self {
        Self { size, colour, anchor, strong: false, upright: false }
    }

    /// In medium weight.
    #[must_use]
    pub const fn strong(self) -> Self {
        Self { strong: true, ..self }
    }

    /// Turned to be read from below.
    #[must_use]
    pub const fn upright(self) -> Self {
        Self { upright: true, ..self }
    }
}

/// A picture in the making.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
    clips: usize,
}

impl Svg {
    /// A white sheet.
    pub fn new(width: f64, height: f64) -> Self {
        let mut svg = Self { width, height, body: String::new(), clips: 0 };
        svg.rect(Rect { x: 0.0, y: 0.0, width, height }, &Style::fill(Colour::WHITE));
        svg
    }

    /// A rectangle.
    pub fn rect(&mut self, rect: Rect, style: &Style) {
        let [x, y, width, height] = [rect.x, rect.y, rect.width, rect.height].map(number);
        let style = style.attributes();
        self.line_of(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{style}/>"));
    }

    /// A circle.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, style: &Style) {
        let [x, y, radius] = [x, y, radius].map(number);
        self.line_of(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{}/>", style.attributes()));
    }

    /// A straight line.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), style: &Style) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.line_of(&format!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"{}/>",
            style.attributes()
        ));
    }

    /// Straight lines from point to point, round at the joints.
    pub fn polyline(&mut self, points: impl IntoIterator<Item = (f64, f64)>, style: &Style) {
        let points = listed(points);
        let style = style.attributes();
        self.line_of(&format!(
            "<polyline points=\"{points}\" stroke-linejoin=\"round\" stroke-linecap=\"round\"{style}/>"
        ));
    }

    /// A closed shape.
    pub fn polygon(&mut self, points: impl IntoIterator<Item = (f64, f64)>, style: &Style) {
        self.line_of(&format!("<polygon points=\"{}\"{}/>", listed(points), style.attributes()));
    }

    /// A line of text whose foot is at `y`.
    pub fn text(&mut self, (x, y): (f64, f64), text: &str, style: &TextStyle) {
        let anchor = match style.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if style.strong { " font-weight=\"500\"" } else { "" };
        let (x, y) = (number(x), number(y));
        let turn = if style.upright { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
        let (size, colour, text) = (number(style.size), style.colour, escaped(text));
        self.line_of(&format!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{colour}\"{anchor}{weight}{turn}>{text}</text>"
        ));
    }

    /// Draws what `draw` draws, but only within `rect`.
    pub fn within(&mut self, rect: Rect, draw: impl FnOnce(&mut Self)) {
        self.clips += 1;
        let name = format!("clip{}", self.clips);
        self.line_of(&format!("<clipPath id=\"{name}\">"));
        self.rect(rect, &Style::fill(Colour::WHITE));
        self.line_of(&format!("</clipPath>\n<g clip-path=\"url(#{name})\">"));
        draw(self);
        self.line_of("</g>");
    }

    /// The finished picture.
    pub fn finish(self) -> super::Picture {
        let (width, height) = (number(self.width), number(self.height));
        // Roboto travels with PNGs; a browser that lacks it takes what looks most like it.
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Roboto, Helvetica, Arial, sans-serif\">\n{}</svg>\n",
            self.body
        );
        super::Picture { svg }
    }

    pub(super) fn line_of(&mut self, text: &str) {
        self.body.push_str(text);
        self.body.push('\n');
    }
}

/// A number with at most two decimals; what is none becomes 0, because one bad number must not spoil a file.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

pub(super) fn listed(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (x, y) in points {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{space}{},{}", number(x), number(y));
    }
    text
}

/// Text that is safe within SVG; characters that XML forbids are dropped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// About how wide a text is; for leaving room, not for setting type.
pub fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' => 0.26,
        'm' | 'w' | 'M' | 'W' | '%' => 0.85,
        c if c.is_ascii_uppercase() => 0.64,
        _ => 0.555,
    };
    text.chars().map(width).sum::<f64>() * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_always_numbers() {
        let shown = [1.0, 0.126, -0.001, 1234.5, f64::NAN, f64::INFINITY].map(number);
        assert_eq!(shown, ["1", "0.13", "0", "1234.5", "0", "0"]);
    }

    #[test]
    fn text_cannot_break_out_of_its_element() {
        assert_eq!(escaped("<b> & \"c\"\u{0}\n"), "&lt;b&gt; &amp; &quot;c&quot;");
    }
}
