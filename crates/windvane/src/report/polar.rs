//! Returns by the direction of the wind, around a circle.

use super::chart::{Format, SeriesStyle, colour_of, legend_below};
use crate::eval::BeliefMode;
use crate::methods::METHODS;
use crate::planner::Planner;
use crate::stats::{self, table::title};
use crate::sweep::Row;
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use windvane_world::Split;
use windvane_world::picture::{Anchor, Ink, Mark, Picture, Rect, Style, Svg, TextStyle};

/// Directions that wind comes in: context i blows toward the angle 2 pi i / 20.
const DIRECTIONS: u64 = 20;
/// The task whose returns are shown.
const TASK: &str = "forward";
/// The expert that is given the wind.
const ORACLE: &str = "oracle";
/// Dashes of the other reference policies, which are all of one colour.
const DASHES: [f64; 4] = [9.0, 6.0, 3.0, 1.0];

/// The mean return of one method or reference policy in each wind, belief frozen, F alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Rose {
    /// Who.
    pub method: String,
    /// By the wind's number: the split, and the mean return.
    pub winds: BTreeMap<u64, (Split, f64)>,
}

/// The roses of a setting's rows; empty for a world without winds.
pub fn roses(rows: &[&Row]) -> Vec<Rose> {
    let counted = |row: &&&Row| {
        row.env.starts_with("ant-wind")
            && row.task == TASK
            && row.belief == BeliefMode::Frozen
            && row.planner == Planner::None
    };
    let mut all: Vec<Rose> = Vec::new();
    for row in rows.iter().filter(counted) {
        if all.iter().any(|rose| rose.method == row.method) {
            continue;
        }
        let mut winds = BTreeMap::new();
        for wind in 0..DIRECTIONS {
            let own = rows.iter().filter(counted).filter(|r| r.method == row.method && r.context == wind);
            let (splits, returns): (Vec<Split>, Vec<f64>) =
                own.filter_map(|row| Some((row.split, row.reward?))).unzip();
            if let Some(split) = splits.first() {
                winds.insert(wind, (*split, stats::mean(&returns)));
            }
        }
        all.push(Rose { method: row.method.clone(), winds });
    }
    all
}

/// Draws two circles: returns, and returns as shares of the oracle's in the same wind. Unseen winds have rings.
pub fn draw(env: &str, roses: &[Rose], format: Format) -> Picture {
    let titles: Vec<String> = roses.iter().map(|rose| title(&rose.method)).collect();
    let mut dashes = DASHES.iter().copied();
    let style = |place: usize| {
        let method = &roses[place].method;
        let style = SeriesStyle::plain(method, place, roses.len());
        let solid = method == ORACLE || METHODS.iter().any(|own| own.name == method);
        if solid { style } else { dashes.next().map_or(style, |dash| style.dashed(dash)) }
    };
    let styles: Vec<SeriesStyle> = (0..roses.len()).map(style).collect();
    let entries: Vec<(Mark, &str)> =
        styles.iter().zip(&titles).map(|(style, title)| (style.mark(), title.as_str())).collect();
    let sheet = format.sheet(300.0, &entries);
    let subtitle =
        format!("{env}: return of \"{TASK}\" by the direction the wind blows to; rings are unseen winds");
    let mut svg = sheet.begin("Returns by wind", format.subtitle(&subtitle));
    let oracle = roses.iter().find(|rose| rose.method == ORACLE);
    let share = |wind: u64, value: f64| {
        let best = oracle.and_then(|rose| rose.winds.get(&wind)).map(|(_, best)| *best);
        best.filter(|best| *best > 0.0).map(|best| value / best)
    };
    sheet.panel_title(&mut svg, 0, "return");
    circle(&mut svg, sheet.panel(0), roses, &styles, |_, value| Some(value));
    sheet.panel_title(&mut svg, 1, "as a share of the expert's that is given the wind");
    circle(&mut svg, sheet.panel(1), roses, &styles, share);
    legend_below(&mut svg, &sheet, 24.0, &entries);
    svg.finish()
}

/// One circle of what `of` makes of each wind's return.
fn circle(
    svg: &mut Svg,
    rect: Rect,
    roses: &[Rose],
    styles: &[SeriesStyle],
    of: impl Fn(u64, f64) -> Option<f64>,
) {
    let centre = (rect.x + rect.width / 2.0, rect.y + rect.height / 2.0);
    let radius = rect.height.min(rect.width) / 2.0 - 10.0;
    let values = roses.iter().flat_map(|rose| rose.winds.iter().filter_map(|(wind, (_, r))| of(*wind, *r)));
    let most = values.fold(1e-9_f64, f64::max);
    for part in 1..=4 {
        let r = radius * f64::from(part) / 4.0;
        svg.circle(centre, r, &Style::line(Ink::FAINT, 1.0));
        let value = most * f64::from(part) / 4.0;
        let text = if most > 10.0 { format!("{value:.0}") } else { format!("{value:.2}") };
        let place = (centre.0 + 2.0, centre.1 - r - 2.0);
        svg.text(place, &text, &TextStyle::new(9.0, Ink::SOFT, Anchor::Start));
    }
    for (rose, style) in roses.iter().zip(styles) {
        let mut points = Vec::new();
        for (wind, (split, value)) in &rose.winds {
            let Some(value) = of(*wind, *value) else { continue };
            let (sin, cos) = (TAU * *wind as f64 / DIRECTIONS as f64).sin_cos();
            let r = radius * value.max(0.0) / most;
            let place = (centre.0 + r * cos, centre.1 - r * sin);
            if *split == Split::Test {
                svg.circle(place, 3.6, &Style::line(colour_of(&rose.method), 1.4));
            }
            points.push(place);
        }
        let first = points.first().copied();
        svg.polyline(points.into_iter().chain(first), &style.line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_of_the_same_wind_and_negative_returns_lie_in_the_middle() {
        let rose = |method: &str, returns: [f64; 2]| Rose {
            method: method.to_owned(),
            winds: BTreeMap::from([(0, (Split::Train, returns[0])), (16, (Split::Test, returns[1]))]),
        };
        let roses = [rose("bfb", [300.0, -50.0]), rose("oracle", [600.0, 900.0])];
        let drawn = draw("ant-wind", &roses, Format::Wide);
        assert!(drawn.svg().contains(">900<") && drawn.svg().contains(">1.00<"), "{}", drawn.svg());
        assert!(drawn.svg().contains("Belief-FB"));
    }
}
