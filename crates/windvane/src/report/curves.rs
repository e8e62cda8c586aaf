//! Lines of results: ablations, learning curves, performance profiles.

use super::chart::{banded, colour_of, named_panel, width_of};
use crate::eval::BeliefMode;
use crate::stats::table::{COLUMNS, Line};
use crate::stats::{self, table};
use crate::sweep::ablation::Ablation;
use crate::sweep::paths::CurvePoint;
use windvane_world::Split;
use windvane_world::picture::{Axes, Ink, Margins, Mark, Picture, Sheet, Style, Svg, legend};

/// Names of the two splits, in the order of panels.
const SPLITS: [(Split, &str); 2] =
    [(Split::Train, "contexts seen in training"), (Split::Test, "unseen contexts")];

/// A sheet of two panels with room for a legend.
fn sheet(height: f64) -> Sheet {
    Sheet::new(2, 2, (330.0, height), (52.0, 20.0), Margins { left: 46.0, right: 8.0, bottom: 60.0 })
}

/// Writes the methods' names, and what a dashed line is if there is one.
fn names(svg: &mut Svg, sheet: &Sheet, methods: &[String], dashed: Option<&str>) {
    let area = sheet.area();
    let entries: Vec<(Mark, String)> =
        methods.iter().map(|m| (Mark::Line(colour_of(m)), table::title(m))).collect();
    let mut entries: Vec<(Mark, &str)> = entries.iter().map(|(mark, name)| (*mark, name.as_str())).collect();
    entries.extend(dashed.map(|text| (Mark::Dot(Ink::LINE), text)));
    let (first, second) = entries.split_at(entries.len().min(5));
    legend(svg, (area.x, area.y + area.height + 46.0), first);
    legend(svg, (area.x, area.y + area.height + 64.0), second);
}

/// Draws an ablation: success over what is varied.
pub fn ablation(about: &Ablation, env: &str, lines: &[Line]) -> Picture {
    let by_length = about.name == "context";
    let key = |line: &Line| {
        if by_length { line.context_steps.to_string() } else { value_of(&line.setting) }
    };
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
    let sheet = sheet(230.0);
    let subtitle = format!("{env}: mean over seeds with 95% bootstrap interval; {}", about.about);
    let mut svg = sheet.begin(&format!("Success by {}", about.axis), &subtitle);
    for (index, (split, title)) in SPLITS.into_iter().enumerate() {
        let rect = sheet.panel(index);
        sheet.panel_title(&mut svg, index, title);
        let axes = named_panel(&mut svg, rect, &values);
        let ceiling = if split == Split::Train { "bayes-known" } else { "bayes-frozen" };
        let both = |m: &'_ String| [BeliefMode::Frozen, BeliefMode::Online].map(|mode| (m.clone(), mode));
        let ways = methods.iter().flat_map(both).collect::<Vec<_>>();
        let ways = [(ceiling.to_owned(), BeliefMode::Frozen)].into_iter().chain(ways);
        for (player, mode) in ways {
            let column = COLUMNS.iter().position(|c| *c == (mode, split)).unwrap_or(0);
            let mut points = Vec::new();
            for (place, value) in values.iter().enumerate() {
                let line = lines.iter().find(|line| line.method == player && key(line) == *value);
                if let Some(cell) = line.and_then(|line| line.cells[column].as_ref()) {
                    points.push([place as f64 + 0.5, cell.interval.low, cell.mean, cell.interval.high]);
                }
            }
            let place = methods.iter().position(|m| *m == player).unwrap_or(0);
            let width = width_of(place, methods.len());
            banded(&mut svg, &axes, &points, colour_of(&player), width, mode == BeliefMode::Online);
        }
        axes.frame(&mut svg);
        axes.label(&mut svg, about.axis, if index == 0 { "success" } else { "" });
    }
    names(
        &mut svg,
        &sheet,
        &methods,
        Some("grey: exact ceiling of a frozen belief; dashed: belief goes on learning"),
    );
    svg.finish()
}

/// What follows the `=` of a setting's name.
fn value_of(setting: &str) -> String {
    setting.split_once('=').map_or(setting, |(_, value)| value).to_owned()
}

/// Draws learning curves: success over gradient steps, mean of seeds with the band between the extremes.
pub fn learning(env: &str, points: &[&CurvePoint]) -> Picture {
    let sheet = sheet(220.0);
    let subtitle =
        format!("{env}: mean over seeds with the band between the lowest and the highest; one game per task");
    let mut svg = sheet.begin("Learning curves of the agents", &subtitle);
    let last = points.iter().map(|p| p.step).max().unwrap_or(1) as f64;
    let mut methods: Vec<String> = Vec::new();
    for point in points {
        if !methods.contains(&point.method) {
            methods.push(point.method.clone());
        }
    }
    methods.sort_by_key(|m| crate::methods::METHODS.iter().position(|known| known.name == m));
    for (index, (split, title)) in SPLITS.into_iter().enumerate() {
        let rect = sheet.panel(index);
        sheet.panel_title(&mut svg, index, title);
        let axes = Axes::new(rect, (0.0, last * 1.02), (0.0, 1.03));
        axes.draw(&mut svg);
        for (place, method) in methods.iter().enumerate() {
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
            banded(&mut svg, &axes, &band, colour_of(method), width_of(place, methods.len()), false);
        }
        axes.frame(&mut svg);
        axes.label(&mut svg, "gradient steps", if index == 0 { "success" } else { "" });
    }
    names(&mut svg, &sheet, &methods, None);
    svg.finish()
}

/// Draws performance profiles: the share of seeds and tasks with a score above each threshold.
pub fn profiles(env: &str, lines: &[&Line]) -> Picture {
    let sheet = sheet(220.0);
    let subtitle =
        format!("{env}: share of seeds and tasks whose success lies above the threshold, belief frozen");
    let mut svg = sheet.begin("Performance profiles", &subtitle);
    let thresholds: Vec<f64> = (0..=100).map(|i| f64::from(i) / 100.0).collect();
    let learned: Vec<&&Line> = lines.iter().filter(|line| line.is_learned()).collect();
    for (index, (split, title)) in SPLITS.into_iter().enumerate() {
        let rect = sheet.panel(index);
        sheet.panel_title(&mut svg, index, title);
        let axes = Axes::new(rect, (0.0, 1.0), (0.0, 1.03));
        axes.draw(&mut svg);
        let column = COLUMNS.iter().position(|c| *c == (BeliefMode::Frozen, split)).unwrap_or(0);
        for (place, line) in learned.iter().enumerate() {
            let Some(cell) = &line.cells[column] else { continue };
            let shares = stats::profile(&cell.scores, &thresholds);
            let points = thresholds.iter().zip(&shares).map(|(t, share)| axes.at(*t, *share));
            svg.polyline(points, &Style::line(colour_of(&line.method), width_of(place, learned.len())));
        }
        axes.frame(&mut svg);
        axes.label(&mut svg, "success above", if index == 0 { "share of seeds and tasks" } else { "" });
    }
    let methods: Vec<String> = learned.iter().map(|line| line.method.clone()).collect();
    names(&mut svg, &sheet, &methods, None);
    svg.finish()
}
