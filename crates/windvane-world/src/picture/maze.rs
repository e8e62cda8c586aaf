//! Mazes: grids of cells, drawn as a map on which observations can be placed.

use super::colour::{CATEGORIES, Colour, Ink};
use super::legend::Mark;
use super::svg::{Rect, Style, Svg};
use serde::Deserialize;

/// A map as [`crate::Cmdp::describe`] gives it. The second coordinate points down.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Maze {
    /// Lines of text, `#` for walls.
    rows: Vec<String>,
    /// Width of a cell, in units of the observation.
    cell_size: f64,
    /// The observation in the middle of the first cell of the first row.
    origin: [f64; 2],
    /// Where episodes begin.
    start: Vec<f64>,
    /// Where they should end.
    goals: Vec<Vec<f64>>,
}

impl Maze {
    /// The mark of a start.
    pub const START: Mark = Mark::Dot(CATEGORIES[0]);
    /// The mark of a goal.
    pub const GOAL: Mark = Mark::Diamond(CATEGORIES[1]);
    /// The mark of a wall.
    pub const WALL: Mark = Mark::Square(Ink::WALL);

    /// The map that a context's description holds; nothing if it is of another kind.
    pub fn from_description(about: &serde_json::Value) -> Option<Self> {
        let maze = Self::deserialize(about).ok()?;
        let numbers = maze.origin.iter().chain(&maze.start).chain(maze.goals.iter().flatten());
        let sound = maze.cell_size > 0.0
            && maze.cell_size.is_finite()
            && numbers.copied().all(f64::is_finite)
            && (1..=1000).contains(&maze.rows.len())
            && maze.rows.iter().all(|row| row.chars().count() == maze.columns() && row.len() <= 1000)
            && maze.columns() > 0;
        sound.then_some(maze)
    }

    /// Cells in a row.
    pub fn columns(&self) -> usize {
        self.rows.first().map_or(0, |row| row.chars().count())
    }

    /// Rows of cells.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Pixels along a cell when the map fills `rect`.
    pub fn unit(&self, rect: Rect) -> f64 {
        (rect.width / self.columns() as f64).min(rect.height / self.rows() as f64)
    }

    /// Where an observation is when the map fills `rect`.
    pub fn at(&self, rect: Rect, x: f64, y: f64) -> (f64, f64) {
        let unit = self.unit(rect);
        let place = |value: f64, origin: f64| ((value - origin) / self.cell_size + 0.5) * unit;
        (rect.x + place(x, self.origin[0]), rect.y + place(y, self.origin[1]))
    }

    /// Whether a cell is free.
    pub fn is_free(&self, column: usize, row: usize) -> bool {
        self.rows.get(row).and_then(|row| row.chars().nth(column)).is_some_and(|c| c != '#')
    }

    /// Draws free cells in the colours that `colour` gives them.
    pub fn draw_cells(&self, svg: &mut Svg, rect: Rect, mut colour: impl FnMut(usize, usize) -> Colour) {
        let unit = self.unit(rect);
        for row in 0..self.rows() {
            for column in (0..self.columns()).filter(|&column| self.is_free(column, row)) {
                let (x, y) = (rect.x + column as f64 * unit, rect.y + row as f64 * unit);
                svg.rect(Rect { x, y, width: unit, height: unit }, &Style::fill(colour(column, row)).crisp());
            }
        }
    }

    /// Draws faint lines between cells.
    pub fn draw_grid(&self, svg: &mut Svg, rect: Rect) {
        let unit = self.unit(rect);
        let (width, height) = (self.columns() as f64 * unit, self.rows() as f64 * unit);
        let style = Style::line(Ink::FAINT, 0.75);
        for column in 1..self.columns() {
            let x = rect.x + column as f64 * unit;
            svg.line((x, rect.y), (x, rect.y + height), &style);
        }
        for row in 1..self.rows() {
            let y = rect.y + row as f64 * unit;
            svg.line((rect.x, y), (rect.x + width, y), &style);
        }
    }

    /// Draws walls, each run of a row in one piece.
    pub fn draw_walls(&self, svg: &mut Svg, rect: Rect) {
        let unit = self.unit(rect);
        for row in 0..self.rows() {
            let mut column = 0;
            while column < self.columns() {
                let run = (column..self.columns()).take_while(|&c| !self.is_free(c, row)).count();
                if run > 0 {
                    let (x, y) = (rect.x + column as f64 * unit, rect.y + row as f64 * unit);
                    svg.rect(
                        Rect { x, y, width: run as f64 * unit, height: unit },
                        &Style::fill(Ink::WALL).crisp(),
                    );
                }
                column += run + 1;
            }
        }
    }

    /// Draws start and goals.
    pub fn draw_marks(&self, svg: &mut Svg, rect: Rect) {
        let radius = self.unit(rect) * 0.27;
        let point = |place: &[f64]| place.first().copied().zip(place.get(1).copied());
        for (x, y) in self.goals.iter().filter_map(|goal| point(goal)) {
            Self::GOAL.draw(svg, self.at(rect, x, y), radius);
        }
        if let Some((x, y)) = point(&self.start) {
            Self::START.draw(svg, self.at(rect, x, y), radius);
        }
    }
}
