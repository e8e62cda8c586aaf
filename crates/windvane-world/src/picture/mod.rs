//! Pictures: a small SVG builder, what figures are made of, and the figures of data sets.
//!
//! From the bottom up: [`Svg`] writes shapes and text; [`Scale`] and [`Axes`] place numbers; [`Sheet`] arranges panels;
//! [`ColourMap`], [`colour_bar`] and [`legend`] explain themselves. The same input gives the same bytes.

mod animation;
mod ant;
mod axes;
mod colour;
mod data;
mod gait;
mod legend;
mod maze;
mod png;
mod scale;
mod scene;
mod sheet;
mod svg;

pub use axes::Axes;
pub use colour::{CATEGORIES, Colour, ColourMap, HEAT, Ink, VIRIDIS};
pub use data::{Subject, layouts, occupancy, trajectories};
pub use gait::gait;
pub use legend::{Mark, colour_bar, legend, legend_rows};
pub use maze::Maze;
pub use scale::Scale;
pub use scene::scene;
pub use sheet::{Margins, Sheet};
pub use svg::{Anchor, Rect, Style, Svg, TextStyle, text_width};

use crate::episodes::new_file;
use crate::error::WorldError;
use std::io::Write as _;
use std::path::Path;

/// A finished picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    svg: String,
}

impl Picture {
    /// The picture as SVG text.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// The picture as PNG bytes, `scale` pixels for each unit of the SVG.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, WorldError> {
        png::render(&self.svg, scale)
    }

    /// The picture as red, green and blue of each pixel, row by row, and how many rows and columns there are.
    pub fn rgb(&self, scale: f32) -> Result<([usize; 2], Vec<u8>), WorldError> {
        png::rgb(&self.svg, scale)
    }

    /// Writes the new file `out`: SVG or PNG, as its name ends.
    pub fn save(&self, out: &Path, scale: f32) -> Result<(), WorldError> {
        let bytes = match out.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => self.svg.clone().into_bytes(),
            Some("png") => self.png(scale)?,
            _ => return Err(WorldError::data(out, "output", "ends neither in .svg nor in .png")),
        };
        new_file(
            out,
            |file| file.write_all(&bytes),
            |error| WorldError::io(out, "writing the picture", error),
        )
    }
}
