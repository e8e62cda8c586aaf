//! How panels stand on a sheet: rows and columns of one size, with room for titles and what belongs to all.

use super::colour::Ink;
use super::svg::{Anchor, Rect, Svg, TextStyle, text_width};

/// Height of a panel's title.
const PANEL_TITLE: f64 = 20.0;
/// Height of the title of all.
const TITLE: f64 = 38.0;

/// Room around all panels together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Margins {
    /// For labels of vertical axes.
    pub left: f64,
    /// For a colour bar.
    pub right: f64,
    /// For a legend.
    pub bottom: f64,
}

/// A sheet of equal panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    panels: usize,
    columns: usize,
    panel: (f64, f64),
    gap: (f64, f64),
    margins: Margins,
}

impl Sheet {
    /// Room between the edge and everything.
    const EDGE: f64 = 20.0;

    /// Arranges `panels` of one size, `columns` to a row, `gap` apart (the titles of panels not counted).
    pub fn new(panels: usize, columns: usize, panel: (f64, f64), gap: (f64, f64), margins: Margins) -> Self {
        Self { panels, columns: columns.clamp(1, panels.max(1)), panel, gap, margins }
    }

    /// Columns that make a sheet of square panels pleasant to look at.
    pub fn columns_for(panels: usize) -> usize {
        match panels {
            0..=4 => panels.max(1),
            5 | 6 | 9 => 3,
            7 | 8 | 10..=12 => 4,
            _ => 6,
        }
    }

    /// Where a panel is.
    pub fn panel(&self, index: usize) -> Rect {
        let (column, row) = (index % self.columns, index / self.columns);
        let (width, height) = self.panel;
        Rect {
            x: Self::EDGE + self.margins.left + column as f64 * (width + self.gap.0),
            y: Self::EDGE + TITLE + PANEL_TITLE + row as f64 * (height + self.gap.1 + PANEL_TITLE),
            width,
            height,
        }
    }

    /// Whether no panel is on its left.
    pub fn is_leftmost(&self, index: usize) -> bool {
        index.is_multiple_of(self.columns)
    }

    /// Whether no panel is below it.
    pub fn is_lowest(&self, index: usize) -> bool {
        index + self.columns >= self.panels
    }

    /// What all panels together cover.
    pub fn area(&self) -> Rect {
        let first = self.panel(0);
        let rows = self.panels.div_ceil(self.columns).max(1);
        let last = self.panel(rows * self.columns - 1);
        Rect {
            x: first.x,
            y: first.y,
            width: last.x + last.width - first.x,
            height: last.y + last.height - first.y,
        }
    }

    /// An empty sheet with its title.
    pub fn begin(&self, title: &str, subtitle: &str) -> Svg {
        let area = self.area();
        let width = area.width.max(text_width(subtitle, 11.0));
        let mut svg = Svg::new(
            area.x + width + self.margins.right + Self::EDGE,
            area.y + area.height + self.margins.bottom + Self::EDGE,
        );
        svg.text(
            (area.x, Self::EDGE + 12.0),
            title,
            &TextStyle::new(15.0, Ink::TEXT, Anchor::Start).strong(),
        );
        svg.text((area.x, Self::EDGE + 30.0), subtitle, &TextStyle::new(11.0, Ink::SOFT, Anchor::Start));
        svg
    }

    /// Writes the title of a panel.
    pub fn panel_title(&self, svg: &mut Svg, index: usize, title: &str) {
        let panel = self.panel(index);
        let style = TextStyle::new(11.0, Ink::TEXT, Anchor::Middle);
        svg.text((panel.x + panel.width / 2.0, panel.y - 6.0), title, &style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_never_overlap_and_stay_within_their_area() {
        for panels in 1..=30 {
            let sheet = Sheet::new(
                panels,
                Sheet::columns_for(panels),
                (100.0, 80.0),
                (10.0, 5.0),
                Margins::default(),
            );
            let area = sheet.area();
            let rects: Vec<Rect> = (0..panels).map(|index| sheet.panel(index)).collect();
            for (index, a) in rects.iter().enumerate() {
                assert!(a.x >= area.x && a.x + a.width <= area.x + area.width + 1e-9);
                assert!(a.y >= area.y && a.y + a.height <= area.y + area.height + 1e-9);
                for b in &rects[..index] {
                    assert!(
                        a.x >= b.x + b.width
                            || b.x >= a.x + a.width
                            || a.y >= b.y + b.height
                            || b.y >= a.y + a.height
                    );
                }
            }
        }
    }
}
