//! Theorem 1 in a figure: class errors by the number of layouts and of cones, and true regrets below their bounds.

use super::chart::colour_of;
use crate::error::LearnError;
use crate::stats::table;
use crate::theory::{ClassError, Conditioning, Measure, Regret, class_error, split_errors};
use serde::Serialize;
use windvane_world::grid::Layout;
use windvane_world::picture::{
    Axes, CATEGORIES, Colour, Ink, Margins, Mark, Picture, Rect, Sheet, Style, Svg, legend,
};
use windvane_world::{Cmdp, Split};

/// Numbers of layouts.
const LAYOUTS: [usize; 6] = [1, 2, 5, 10, 20, 30];
/// Numbers of cones.
const CONES: [usize; 7] = [1, 2, 3, 5, 10, 15, 30];
/// Ranks of a B that is shared; from the number of cells on every layout is fitted exactly.
const RANKS: [usize; 3] = [8, 16, 32];
/// Discount, that of the grids' presets.
const GAMMA: f64 = 0.95;

/// One class of F and B, and its errors.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// What F is conditioned on.
    pub conditioning: Conditioning,
    /// Errors by number of layouts: (k, error).
    pub by_layouts: Vec<(usize, ClassError)>,
    /// Errors of all layouts by number of cones: (cones, error).
    pub by_cones: Vec<(usize, ClassError)>,
}

/// All numbers of the figure.
#[derive(Clone, Debug, Serialize)]
pub struct Bounds {
    /// The environment.
    pub env: String,
    /// Class errors.
    pub curves: Vec<Curve>,
    /// Regrets of runs.
    pub regrets: Vec<Regret>,
}

impl Bounds {
    /// Computes the class errors of a grid's training layouts, for a goal that is free in all of them.
    pub fn of(world: &dyn Cmdp, regrets: Vec<Regret>) -> Result<Self, LearnError> {
        let bad =
            |problem: &str| LearnError::Config { origin: "figure theory".into(), problem: problem.into() };
        let grid = world.grid().ok_or_else(|| bad("needs a grid, where everything is exact"))?;
        let most = LAYOUTS[LAYOUTS.len() - 1];
        let contexts = world.contexts(Split::Train).iter().take(most);
        let layouts: Vec<Layout> = contexts.map(|c| grid.layout(*c).copied()).collect::<Result<_, _>>()?;
        let cells = layouts.first().map_or(0, Layout::cells);
        let goal = (0..cells).rev().find(|&cell| layouts.iter().all(|layout| layout.is_free(cell)));
        let goal = goal.ok_or_else(|| bad("needs a cell that is free in all training layouts"))?;
        let measures: Vec<Measure> = layouts.iter().map(|l| Measure::of(l, goal, GAMMA)).collect();
        let counts = |of: &[usize]| -> Vec<usize> {
            let mut counts: Vec<usize> = of.iter().map(|&k| k.min(measures.len())).collect();
            counts.dedup();
            counts
        };
        let (layouts, cones) = (counts(&LAYOUTS), counts(&CONES));
        let curve = |conditioning: Conditioning| Curve {
            conditioning,
            by_layouts: layouts
                .iter()
                .map(|&k| (k, class_error(&measures[..k].iter().collect::<Vec<_>>(), conditioning)))
                .collect(),
            by_cones: cones.iter().copied().zip(split_errors(&measures, conditioning, &cones)).collect(),
        };
        let classes = [Conditioning::Nothing].into_iter().chain(RANKS.map(|d| Conditioning::Layout { d }));
        Ok(Self { env: world.spec().name.clone(), curves: classes.map(curve).collect(), regrets })
    }

    /// Draws them.
    pub fn draw(&self) -> Picture {
        let panels = if self.regrets.is_empty() { 2 } else { 3 };
        let margins = Margins { left: 50.0, right: 8.0, bottom: 78.0 };
        let sheet = Sheet::new(panels, 3, (250.0, 220.0), (64.0, 20.0), margins);
        let about =
            format!("{}, exact: best policies for one goal, discount {GAMMA}; errors in L2(rho)", self.env);
        let mut svg = sheet.begin("Theorem 1, computed", &about);
        let colours: Vec<Colour> = (0..self.curves.len()).map(|i| CATEGORIES[i % CATEGORIES.len()]).collect();
        let highest =
            self.curves.iter().flat_map(|c| &c.by_layouts).map(|(_, e)| e.upper).fold(1e-9, f64::max);
        let all = self.curves.first().and_then(|c| c.by_layouts.last()).map_or(0, |(k, _)| *k);
        let titles = ["more layouts".to_owned(), format!("{all} layouts in more cones")];
        for (index, title) in titles.iter().enumerate() {
            sheet.panel_title(&mut svg, index, title);
            let points =
                |curve: &Curve| if index == 0 { curve.by_layouts.clone() } else { curve.by_cones.clone() };
            let most = self.curves.first().and_then(|c| points(c).last().map(|(k, _)| *k)).unwrap_or(1);
            let axes = Axes::new(sheet.panel(index), (0.0, most as f64 + 1.0), (0.0, highest * 1.06));
            axes.draw(&mut svg);
            for (curve, colour) in self.curves.iter().zip(&colours) {
                let points = points(curve);
                svg.polyline(
                    points.iter().map(|(k, e)| axes.at(*k as f64, e.upper)),
                    &Style::line(*colour, 1.8),
                );
                for (k, e) in &points {
                    svg.circle(axes.at(*k as f64, e.upper), 2.6, &Style::fill(*colour));
                }
            }
            axes.frame(&mut svg);
            let x = if index == 0 { "training layouts k" } else { "cones" };
            axes.label(&mut svg, x, if index == 0 { "error of the best fit" } else { "" });
        }
        if panels == 3 {
            sheet.panel_title(&mut svg, 2, "true regret of each run, goal and layout");
            self.draw_regrets(&mut svg, sheet.panel(2));
        }
        self.explain(&mut svg, &sheet, &colours);
        svg.finish()
    }

    fn explain(&self, svg: &mut Svg, sheet: &Sheet, colours: &[Colour]) {
        let area = sheet.area();
        let names: Vec<String> = self
            .curves
            .iter()
            .map(|curve| match curve.conditioning {
                Conditioning::Nothing => "unconditioned F, any rank".to_owned(),
                Conditioning::Layout { d } => format!("F conditioned on the layout, B of rank {d}"),
            })
            .collect();
        let entries: Vec<(Mark, &str)> =
            colours.iter().zip(&names).map(|(c, name)| (Mark::Line(*c), name.as_str())).collect();
        legend(svg, (area.x, area.y + area.height + 50.0), &entries);
        let mut methods: Vec<&str> = Vec::new();
        for regret in &self.regrets {
            if !methods.contains(&regret.method.as_str()) {
                methods.push(&regret.method);
            }
        }
        let titles: Vec<String> = methods.iter().map(|m| format!("regret of {}", table::title(m))).collect();
        let mut entries: Vec<(Mark, &str)> =
            methods.iter().zip(&titles).map(|(m, title)| (Mark::Dot(colour_of(m)), title.as_str())).collect();
        if !entries.is_empty() {
            entries.push((Mark::Line(Ink::SOFT), "regret = bound"));
        }
        legend(svg, (area.x, area.y + area.height + 68.0), &entries);
    }

    /// Regret over bound, both in powers of ten.
    fn draw_regrets(&self, svg: &mut Svg, rect: Rect) {
        // Regrets of nothing are shown at the lower edge.
        let log = |value: f64| value.max(1e-4).log10();
        let most = self.regrets.iter().map(|r| log(r.bound)).fold(1.0, f64::max);
        let least = self.regrets.iter().map(|r| log(r.bound)).fold(f64::INFINITY, f64::min);
        let lowest = self.regrets.iter().map(|r| log(r.regret)).fold(0.0, f64::min).floor();
        let axes = Axes::new(rect, (least.floor(), most.ceil()), (lowest, most.ceil()));
        axes.draw(svg);
        svg.within(rect, |svg| {
            let line = [lowest, most.ceil()].map(|v| axes.at(v, v));
            svg.polyline(line, &Style::line(Ink::SOFT, 1.2).dashed(5.0));
            for r in &self.regrets {
                let style = Style::fill(colour_of(&r.method)).opacity(0.6);
                svg.circle(axes.at(log(r.bound), log(r.regret)), 2.6, &style);
            }
        });
        axes.frame(svg);
        axes.label(svg, "bound of theorem 1 (power of ten)", "regret (power of ten)");
    }
}
