//! Lines of results: ablations, learning curves, performance profiles.

use super::chart::{DASH, Format, SeriesStyle, banded, legend_below, measure, named_panel};
use super::results::AblationResults;
use crate::eval::BeliefMode;
use crate::stats::table::{COLUMNS, Line};
use crate::stats::{self, table};
use crate::sweep::paths::CurvePoint;
use windvane_world::Split;
use windvane_world::picture::{Axes, Ink, Mark, Picture};

/// Names of the two splits, in the order of panels.
const SPLITS: [(Split, &str); 2] =
    [(Split::Train, "contexts seen in training"), (Split::Test, "unseen contexts")];

/// The names of methods, in the order they are drawn.
fn titles(methods: &[String]) -> Vec<String> {
    methods.iter().map(|method| table::title(method)).collect()
}

/// Draws an ablation: success over what is varied.
pub fn ablation(results: &AblationResults, env: &str, format: Format) -> Picture {
    let AblationResults { about, lines, .. } = results;
    let key = |line: &Line| results.value(line);
    let learned: Vec<&Line> = lines.iter().filter(|line| line.is_learned()).collect();
    let mut values: Vec<String> = learned.iter().map(|line| key(line)).collect();
    values.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    });
    values.dedup();
    let mut methods: Vec<String> = Vec::new();
    for line in &learned {
        if !methods.contains(&line.method) {
            methods.push(line.method.clone());
        }
    }
    let style = |method: &str| {
        let place = methods.iter().position(|m| m == method).unwrap_or(0);
        SeriesStyle::plain(method, place, methods.len())
    };
    let titles = titles(&methods);
    let mut entries: Vec<(Mark, &str)> =
        methods.iter().zip(&titles).map(|(method, title)| (style(method).mark(), title.as_str())).collect();
    if lines.iter().any(|line| line.method == "bayes-frozen") {
        entries.push((Mark::Line(Ink::LINE), "exact ceiling of a frozen belief"));
    }
    entries.push((style("").dashed(DASH).mark(), "dashed: belief goes on learning"));
    let sheet = format.sheet(230.0, &entries);
    let seeds = if lines.iter().any(|line| line.seeds > 1) {
        "mean over seeds with 95% bootstrap interval"
    } else {
        "1 seed"
    };
    let subtitle = format!("{env}: {seeds}; {}", about.about);
    let mut svg = sheet.begin(&format!("Score by {}", about.axis), format.subtitle(&subtitle));
    for (index, (split, title)) in SPLITS.into_iter().enumerate() {
        let rect = sheet.panel(index);
        sheet.panel_title(&mut svg, index, title);
        let axes = named_panel(&mut svg, rect, &values);
        let ceiling = if split == Split::Train { "bayes-known" } else { "bayes-frozen" };
        let both = |m: &'_ String| [BeliefMode::Frozen, BeliefMode::Online].map(|mode| (m.clone(), mode));
        let ways = methods.iter().flat_map(both).collect::<Vec<_>>();
        let ways = [(ceiling.to_owned(), BeliefMode::Frozen)].into_iter().chain(ways);
        for (policy, mode) in ways {
            let column = COLUMNS.iter().position(|c| *c == (mode, split)).unwrap_or(0);
            let mut points = Vec::new();
            for (place, value) in values.iter().enumerate() {
                let line = lines.iter().find(|line| line.method == policy && key(line) == *value);
                if let Some(cell) = line.and_then(|line| line.cells[column].as_ref()) {
                    let [low, high] = cell.interval.ends();
                    points.push([place as f64 + 0.5 + aside(&methods, &policy), low, cell.mean, high]);
                }
            }
            let style = style(&policy);
            banded(
                &mut svg,
                &axes,
                &points,
                if mode == BeliefMode::Online { style.dashed(DASH) } else { style },
            );
        }
        axes.frame(&mut svg);
        axes.label(&mut svg, about.axis, if sheet.is_leftmost(index) { measure(env) } else { "" });
    }
    legend_below(&mut svg, &sheet, 46.0, &entries);
    svg.finish()
}

/// How far a method's points stand beside their place, so that equal ones do not hide each other.
fn aside(methods: &[String], method: &str) -> f64 {
    let place = methods.iter().position(|m| m == method);
    place.map_or(0.0, |place| 0.07 * (place as f64 - (methods.len() - 1) as f64 / 2.0))
}

/// Draws learning curves: success over gradient steps, mean of seeds with the band between the extremes.
///
/// A split that nobody played in, `played` says which, has no curves.
pub fn learning(env: &str, points: &[&CurvePoint], played: [bool; 2], format: Format) -> Picture {
    let last = points.iter().map(|p| p.step).max().unwrap_or(1) as f64;
    // Successes are shares; returns have bounds of their own.
    let most = points.iter().flat_map(|p| [p.train, p.test]).fold(1.0, f64::max);
    let word = if most > 1.0 { "return" } else { "success" };
    let mut methods: Vec<String> = Vec::new();
    for point in points {
        if !methods.contains(&point.method) {
            methods.push(point.method.clone());
        }
    }
    methods.sort_by_key(|m| crate::methods::METHODS.iter().position(|known| known.name == m));
    let styles: Vec<SeriesStyle> =
        (0..methods.len()).map(|i| SeriesStyle::of(&methods[i], i, methods.len())).collect();
    let titles = titles(&methods);
    let entries: Vec<(Mark, &str)> =
        styles.iter().zip(&titles).map(|(style, title)| (style.mark(), title.as_str())).collect();
    let sheet = format.sheet(220.0, &entries);
    let seeds = if points.iter().any(|point| point.seed != points[0].seed) {
        "mean over seeds with the band between the lowest and the highest"
    } else {
        "1 seed"
    };
    let subtitle = format!("{env}: {seeds}; one episode per task");
    let mut svg = sheet.begin("Learning curves: F alone", format.subtitle(&subtitle));
    for (index, (split, title)) in SPLITS.into_iter().enumerate() {
        let rect = sheet.panel(index);
        sheet.panel_title(&mut svg, index, title);
        let axes = Axes::new(rect, (0.0, last * 1.02), (0.0, 1.03 * most));
        axes.draw(&mut svg);
        for place in SeriesStyle::order(methods.len()).filter(|_| played[index]) {
            let method = &methods[place];
            let own: Vec<&CurvePoint> = points.iter().copied().filter(|p| p.method == *method).collect();
            let mut steps: Vec<u64> = own.iter().map(|p| p.step).collect();
            steps.sort_unstable();
            steps.dedup();
            let band: Vec<[f64; 4]> = steps
                .iter()
                .map(|&step| {
                    let at = own.iter().filter(|p| p.step == step);
                    let values: Vec<f64> =
                        at.map(|p| if split == Split::Train { p.train } else { p.test }).collect();
                    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    [step as f64, low, stats::mean(&values), high]
                })
                .collect();
            banded(&mut svg, &axes, &band, styles[place]);
        }
        axes.frame(&mut svg);
        axes.label(&mut svg, "gradient steps", if sheet.is_leftmost(index) { word } else { "" });
    }
    legend_below(&mut svg, &sheet, 46.0, &entries);
    svg.finish()
}

/// Draws performance profiles: the share of seeds and tasks with a score above each threshold.
pub fn profiles(env: &str, lines: &[&Line], format: Format) -> Picture {
    let learned: Vec<&&Line> = lines.iter().filter(|line| line.is_learned()).collect();
    let styles: Vec<SeriesStyle> =
        (0..learned.len()).map(|i| SeriesStyle::of(&learned[i].method, i, learned.len())).collect();
    let titles: Vec<String> = learned.iter().map(|line| line.title()).collect();
    let entries: Vec<(Mark, &str)> =
        styles.iter().zip(&titles).map(|(style, title)| (style.mark(), title.as_str())).collect();
    let sheet = format.sheet(220.0, &entries);
    let subtitle =
        format!("{env}: share of seeds and tasks whose score lies above the threshold, belief frozen");
    let mut svg = sheet.begin("Performance profiles", format.subtitle(&subtitle));
    let thresholds: Vec<f64> = (0..=100).map(|i| f64::from(i) / 100.0).collect();
    for (index, (split, title)) in SPLITS.into_iter().enumerate() {
        let rect = sheet.panel(index);
        sheet.panel_title(&mut svg, index, title);
        let axes = Axes::new(rect, (0.0, 1.0), (0.0, 1.03));
        axes.draw(&mut svg);
        let column = COLUMNS.iter().position(|c| *c == (BeliefMode::Frozen, split)).unwrap_or(0);
        for place in SeriesStyle::order(learned.len()) {
            let Some(cell) = &learned[place].cells[column] else { continue };
            let shares = stats::profile(&cell.scores, &thresholds);
            let points = thresholds.iter().zip(&shares).map(|(t, share)| axes.at(*t, *share));
            svg.polyline(points, &styles[place].line());
        }
        axes.frame(&mut svg);
        let left = if sheet.is_leftmost(index) { "share of seeds and tasks" } else { "" };
        axes.label(&mut svg, &format!("{} above", measure(env)), left);
    }
    legend_below(&mut svg, &sheet, 46.0, &entries);
    svg.finish()
}
