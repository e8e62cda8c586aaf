//! What the belief holds of what is hidden: winds as a circle, legs as a confusion matrix.

use super::plane::Plane;
use crate::diagnostics::readout::{Quantity, Reading, Readout};
use windvane_world::Split;
use windvane_world::picture::{
    Anchor, Axes, CATEGORIES, Colour, Ink, Margins, Mark, Picture, Rect, Sheet, Style, Svg, TextStyle,
    VIRIDIS, legend,
};

/// Draws a readout; `about` says of what.
pub fn draw(readout: &Readout, about: &str) -> Picture {
    match readout.quantity {
        Quantity::Direction => circle(readout, about),
        Quantity::Signs => confusion(readout, about),
    }
}

/// The direction of a vector, in degrees from 0 to 360.
fn degrees(v: &[f64]) -> f64 {
    v[1].atan2(v[0]).to_degrees().rem_euclid(360.0)
}

/// A colour for each direction, without a seam: through four colours and back to the first.
fn hue(degrees: f64) -> Colour {
    let around = [CATEGORIES[0], CATEGORIES[1], CATEGORIES[2], CATEGORIES[3], CATEGORIES[0]];
    let place = degrees.rem_euclid(360.0) / 90.0;
    let from = (place as usize).min(3);
    around[from].mix(around[from + 1], place - from as f64)
}

/// A dot for a seen context, a ring for an unseen one.
fn point(svg: &mut Svg, at: (f64, f64), split: Split, colour: Colour) {
    match split {
        Split::Train => svg.circle(at, 3.0, &Style::fill(colour).opacity(0.85)),
        Split::Test => svg.circle(at, 4.2, &Style::line(colour, 2.0)),
    }
}

/// Beliefs in the first two principal components of the seen contexts', coloured by the wind's direction; and directions read
/// off them against the true ones.
fn circle(readout: &Readout, about: &str) -> Picture {
    let margins = Margins { left: 46.0, right: 8.0, bottom: 58.0 };
    let sheet = Sheet::new(2, 2, (300.0, 300.0), (66.0, 20.0), margins);
    let mut svg = sheet.begin("Winds in the belief", about);
    let seen = readout.readings.iter().filter(|reading| reading.split == Split::Train);
    let plane = Plane::of(&seen.map(|reading| reading.h.clone()).collect::<Vec<_>>());
    let places: Vec<[f64; 2]> = readout.readings.iter().map(|reading| plane.at(&reading.h)).collect();
    let far = 1.1 * places.iter().flatten().fold(1e-9_f64, |far, x| far.max(x.abs()));
    sheet.panel_title(&mut svg, 0, "h, coloured by the direction of the wind");
    let axes = Axes::new(sheet.panel(0), (-far, far), (-far, far));
    axes.draw(&mut svg);
    for (reading, at) in readout.readings.iter().zip(&places) {
        point(&mut svg, axes.at(at[0], at[1]), reading.split, hue(degrees(&reading.truth)));
    }
    axes.frame(&mut svg);
    let label = |k: usize| format!("component {} ({:.0}% of variance)", k + 1, 100.0 * plane.shares[k]);
    axes.label(&mut svg, &label(0), &label(1));
    let [known, unseen] = [Split::Train, Split::Test].map(|split| readout.score(split));
    sheet.panel_title(&mut svg, 1, &format!("median error {known:.1} degrees seen, {unseen:.1} unseen"));
    let axes = Axes::new(sheet.panel(1), (0.0, 360.0), (0.0, 360.0));
    axes.draw(&mut svg);
    svg.line(axes.at(0.0, 0.0), axes.at(360.0, 360.0), &Style::line(Ink::LINE, 1.0).dashed(4.0));
    for reading in &readout.readings {
        let true_angle = degrees(&reading.truth);
        point(&mut svg, axes.at(true_angle, degrees(&reading.read)), reading.split, hue(true_angle));
    }
    axes.frame(&mut svg);
    axes.label(&mut svg, "true direction, degrees", "read off h, degrees");
    let area = sheet.area();
    let entries =
        [(Mark::Dot(Ink::SOFT), "seen winds (dots)"), (Mark::Dot(Ink::LINE), "unseen winds (rings)")];
    legend(&mut svg, (area.x, area.y + area.height + 48.0), &entries);
    svg.finish()
}

/// For each number whose sign is hidden and each split: how often either sign was read as either.
fn confusion(readout: &Readout, about: &str) -> Picture {
    let legs = readout.readings.first().map_or(0, |reading| reading.truth.len());
    let margins = Margins { left: 56.0, right: 8.0, bottom: 40.0 };
    let sheet = Sheet::new(2 * legs.max(1), legs.max(1), (120.0, 120.0), (24.0, 40.0), margins);
    let mut svg = sheet.begin("Legs in the belief", about);
    for (row, split) in [Split::Train, Split::Test].into_iter().enumerate() {
        let name = if split == Split::Train { "seen" } else { "unseen" };
        let own: Vec<&Reading> = readout.readings.iter().filter(|reading| reading.split == split).collect();
        for leg in 0..legs {
            let index = row * legs + leg;
            sheet.panel_title(&mut svg, index, &format!("leg {}, {name}", leg + 1));
            cells(&mut svg, sheet.panel(index), counts(&own, leg));
        }
    }
    let area = sheet.area();
    let note = "rows: the leg turns as commanded (+) or the other way round (-); columns: what is read off h; shares of trajectories";
    svg.text((area.x, area.y + area.height + 26.0), note, &TextStyle::new(10.0, Ink::SOFT, Anchor::Start));
    svg.finish()
}

/// Numbers of readings by true sign (+, -) and read sign.
fn counts(readings: &[&Reading], leg: usize) -> [[usize; 2]; 2] {
    let mut counts = [[0; 2]; 2];
    for reading in readings {
        let place = |x: f64| usize::from(x < 0.0);
        counts[place(reading.truth[leg])][place(reading.read[leg])] += 1;
    }
    counts
}

fn cells(svg: &mut Svg, rect: Rect, counts: [[usize; 2]; 2]) {
    let (width, height) = (rect.width / 2.0, rect.height / 2.0);
    for (row, line) in counts.iter().enumerate() {
        let all = line.iter().sum::<usize>().max(1) as f64;
        for (column, &count) in line.iter().enumerate() {
            let share = count as f64 / all;
            let cell =
                Rect { x: rect.x + column as f64 * width, y: rect.y + row as f64 * height, width, height };
            svg.rect(cell, &Style::fill(VIRIDIS.at(share)));
            let ink = if share > 0.5 { Ink::TEXT } else { Colour::WHITE };
            let middle = (cell.x + width / 2.0, cell.y + height / 2.0 + 4.0);
            svg.text(middle, &format!("{share:.2}"), &TextStyle::new(12.0, ink, Anchor::Middle));
        }
        let sign = ["+", "-"][row];
        let style = TextStyle::new(11.0, Ink::SOFT, Anchor::Middle);
        svg.text((rect.x - 9.0, rect.y + (row as f64 + 0.5) * height + 4.0), sign, &style);
        svg.text((rect.x + (row as f64 + 0.5) * width, rect.y + rect.height + 13.0), sign, &style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(truth: &[[f64; 2]]) -> Vec<Reading> {
        let reading = |truth: &[f64; 2]| Reading {
            split: Split::Train,
            truth: truth.to_vec(),
            read: vec![truth[0], -truth[1]],
            h: vec![truth[0] as f32, truth[1] as f32, 0.5],
        };
        truth.iter().map(reading).collect()
    }

    #[test]
    fn legs_that_are_read_wrong_stand_off_the_diagonal() {
        let readings = readings(&[[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]]);
        let all: Vec<&Reading> = readings.iter().collect();
        assert_eq!(counts(&all, 0), [[2, 0], [0, 1]]);
        assert_eq!(counts(&all, 1), [[0, 2], [1, 0]]);
        let drawn = draw(&Readout { quantity: Quantity::Signs, steps: 100, readings }, "a test");
        assert!(drawn.svg().contains("leg 2, unseen"));
    }

    #[test]
    fn opposite_winds_have_different_colours_and_full_turns_the_same() {
        assert_eq!(hue(0.0), hue(360.0));
        assert_ne!(hue(10.0), hue(190.0));
        let readings = readings(&[[4.0, 0.0], [0.0, 4.0]]);
        let drawn = draw(&Readout { quantity: Quantity::Direction, steps: 100, readings }, "a test");
        assert!(drawn.svg().contains("median error 90.0 degrees seen"), "{}", drawn.svg());
    }
}
