//! Q-maps: the value a policy gives each cell and where it would go, beside the exact answer.

use windvane_world::picture::{Ink, Margins, Maze, Picture, Rect, Sheet, Style, Svg, VIRIDIS, colour_bar};

/// One policy's view of a maze.
#[derive(Clone, Debug)]
pub struct View {
    /// Whose it is.
    pub title: String,
    /// Cells it can speak of: observation, value of its best action, and where that action points (x, y).
    pub cells: Vec<Cell>,
}

/// What a policy thinks of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Where it is.
    pub at: [f32; 2],
    /// The value of the best action there.
    pub value: f64,
    /// The direction of that action.
    pub arrow: [f64; 2],
}

/// Draws views side by side on one maze. Worths are shown as ranks within each view, so that scales do not matter.
pub fn draw(maze: &Maze, title: &str, subtitle: &str, views: &[View]) -> Picture {
    let side = 190.0;
    let margins = Margins { right: 90.0, ..Margins::default() };
    let sheet = Sheet::new(views.len(), Sheet::columns_for(views.len()), (side, side), (18.0, 12.0), margins);
    let mut svg = sheet.begin(title, subtitle);
    for (index, view) in views.iter().enumerate() {
        let rect = sheet.panel(index);
        sheet.panel_title(&mut svg, index, &view.title);
        draw_view(&mut svg, rect, maze, view);
    }
    let area = sheet.area();
    colour_bar(&mut svg, Rect { height: side, ..area }, &VIRIDIS, (0.0, 1.0), "rank of value");
    svg.finish()
}

fn draw_view(svg: &mut Svg, rect: Rect, maze: &Maze, view: &View) {
    let mut order: Vec<f64> = view.cells.iter().map(|cell| cell.value).collect();
    order.sort_by(f64::total_cmp);
    let rank = |value: f64| order.partition_point(|w| *w < value) as f64 / (order.len().max(2) - 1) as f64;
    let unit = maze.unit(rect);
    for cell in &view.cells {
        let (x, y) = maze.at(rect, f64::from(cell.at[0]), f64::from(cell.at[1]));
        let square = Rect { x: x - unit / 2.0, y: y - unit / 2.0, width: unit, height: unit };
        svg.rect(square, &Style::fill(VIRIDIS.at(rank(cell.value))).crisp());
    }
    maze.draw_walls(svg, rect);
    for cell in &view.cells {
        let centre = maze.at(rect, f64::from(cell.at[0]), f64::from(cell.at[1]));
        arrow(svg, centre, cell.arrow, unit * 0.34);
    }
    maze.draw_marks(svg, rect);
}

/// A small filled arrow head and its shaft.
fn arrow(svg: &mut Svg, (x, y): (f64, f64), [dx, dy]: [f64; 2], reach: f64) {
    let tip = (x + dx * reach, y + dy * reach);
    let tail = (x - dx * reach, y - dy * reach);
    svg.line(tail, tip, &Style::line(Ink::PAPER, 1.1));
    let back = (x + dx * reach * 0.2, y + dy * reach * 0.2);
    let (side_x, side_y) = (-dy * reach * 0.55, dx * reach * 0.55);
    svg.polygon(
        [tip, (back.0 + side_x, back.1 + side_y), (back.0 - side_x, back.1 - side_y)],
        &Style::fill(Ink::PAPER),
    );
}
