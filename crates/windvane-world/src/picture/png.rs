//! SVG to pixels and PNG, with the font that travels with the program.

use crate::error::WorldError;
use resvg::tiny_skia::{Pixmap, PremultipliedColorU8, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::{Arc, LazyLock};

const REGULAR: &[u8] = include_bytes!("font/Roboto-Regular.ttf");
const MEDIUM: &[u8] = include_bytes!("font/Roboto-Medium.ttf");
/// Most pixels along a side.
const LARGEST: f32 = 20_000.0;

/// Renders `svg` as PNG bytes, `scale` pixels for each of its units.
pub(super) fn render(svg: &str, scale: f32) -> Result<Vec<u8>, WorldError> {
    rasterise(svg, scale)?.encode_png().map_err(|error| wrong(error.to_string()))
}

/// Renders `svg` as red, green and blue of each pixel, row by row, and says how many rows and columns there are.
pub(super) fn rgb(svg: &str, scale: f32) -> Result<([usize; 2], Vec<u8>), WorldError> {
    let pixels = rasterise(svg, scale)?;
    let colours = pixels.pixels().iter().map(PremultipliedColorU8::demultiply);
    let rgb = colours.flat_map(|colour| [colour.red(), colour.green(), colour.blue()]).collect();
    Ok(([pixels.height() as usize, pixels.width() as usize], rgb))
}

fn wrong(problem: String) -> WorldError {
    WorldError::Invalid(format!("the picture cannot be rendered: {problem}"))
}

fn rasterise(svg: &str, scale: f32) -> Result<Pixmap, WorldError> {
    static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(REGULAR.to_vec());
        fonts.load_font_data(MEDIUM.to_vec());
        Arc::new(fonts)
    });
    let options = Options { fontdb: FONTS.clone(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| wrong(error.to_string()))?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    let fits = |side: f32| (1.0..=LARGEST).contains(&side);
    if !fits(width) || !fits(height) {
        return Err(wrong(format!("{width} x {height} pixels, expected 1 to {LARGEST} along each side")));
    }
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| wrong("there is not enough memory".into()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    Ok(pixels)
}
