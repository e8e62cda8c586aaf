//! A panel with numbered axes.

use super::colour::Ink;
use super::scale::Scale;
use super::svg::{Anchor, Rect, Style, Svg, TextStyle};

/// A panel, and how numbers fall on it; the vertical axis points up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axes {
    /// The panel.
    pub rect: Rect,
    /// Left to right.
    pub x: Scale,
    /// Bottom to top.
    pub y: Scale,
}

impl Axes {
    /// Axes over the given intervals.
    pub fn new(rect: Rect, x: (f64, f64), y: (f64, f64)) -> Self {
        Self {
            rect,
            x: Scale::new(x, (rect.x, rect.x + rect.width)),
            y: Scale::new(y, (rect.y + rect.height, rect.y)),
        }
    }

    /// Where a point is.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Draws the frame's background, grid lines, ticks and numbers; call it before the content.
    pub fn draw(&self, svg: &mut Svg) {
        let Rect { x: left, y: top, width, height } = self.rect;
        let (right, bottom) = (left + width, top + height);
        svg.rect(self.rect, &Style::fill(Ink::PAPER));
        let grid = Style::line(Ink::FAINT, 1.0);
        for (value, text) in self.x.ticks((width / 45.0) as usize) {
            let x = self.x.at(value);
            svg.line((x, top), (x, bottom), &grid);
            svg.text((x, bottom + 14.0), &text, &TextStyle::new(10.0, Ink::SOFT, Anchor::Middle));
        }
        for (value, text) in self.y.ticks((height / 35.0) as usize) {
            let y = self.y.at(value);
            svg.line((left, y), (right, y), &grid);
            svg.text((left - 6.0, y + 3.5), &text, &TextStyle::new(10.0, Ink::SOFT, Anchor::End));
        }
    }

    /// Draws the frame; call it after the content.
    pub fn frame(&self, svg: &mut Svg) {
        svg.rect(self.rect, &Style::line(Ink::LINE, 1.0));
    }

    /// Writes what the axes show; either may be empty.
    pub fn label(&self, svg: &mut Svg, x: &str, y: &str) {
        let Rect { x: left, y: top, width, height } = self.rect;
        let style = TextStyle::new(11.0, Ink::TEXT, Anchor::Middle);
        if !x.is_empty() {
            svg.text((left + width / 2.0, top + height + 30.0), x, &style);
        }
        if !y.is_empty() {
            svg.text((left - 38.0, top + height / 2.0), y, &style.upright());
        }
    }
}
