//! An ant that walks: a loop of a few seconds, drawn from observations alone.

use super::ant::{LEG, LEGS, POSE, TORSO, Vector, colour_of, depth, points, project, wind};
use super::colour::{CATEGORIES, Ink};
use super::svg::{Rect, Style, Svg};
use serde_json::Value;

/// Metres from one side of the picture to the other, and between two lines of the ground.
const FIELD: f64 = 3.2;
const TILE: f64 = 0.5;
/// Lines of the ground to either side.
const LINES: i32 = 8;
/// Places of the torso's velocity along x and y in an observation.
const VELOCITY: usize = 13;

/// Draws an ant within `rect` as it moves through `frames`, one observation each, in a loop of so many seconds. The camera goes with
/// it, so that the ground passes below. False, and nothing is drawn, if these are no observations of an ant.
pub fn gait(svg: &mut Svg, rect: Rect, about: &Value, frames: &[&[f32]], seconds: f64) -> bool {
    let known = |obs: &&[f32]| obs.len() > VELOCITY + 1 && obs.len() > POSE;
    if frames.is_empty() || !frames.iter().all(known) {
        return false;
    }
    let unit = rect.width / FIELD;
    let at = |point: Vector| {
        let [x, y] = project(point);
        (rect.x + rect.width / 2.0 + unit * x, rect.y + 0.62 * rect.height - unit * y)
    };
    let poses: Vec<Vec<f64>> =
        frames.iter().map(|obs| obs[..POSE].iter().map(|&x| f64::from(x)).collect()).collect();
    svg.within(rect, |svg| {
        svg.rect(rect, &Style::fill(Ink::PAPER));
        svg.moving(&ground(frames, seconds, unit), seconds, |svg| {
            let far = TILE * f64::from(LINES);
            for place in (-LINES..=LINES).map(|i| TILE * f64::from(i)) {
                let across =
                    [([place, -far, 0.0], [place, far, 0.0]), ([-far, place, 0.0], [far, place, 0.0])];
                for (from, to) in across {
                    svg.line(at(from), at(to), &Style::line(Ink::FAINT, 1.0));
                }
            }
        });
        wind(svg, at, about);
        let torso: Vec<(f64, f64)> = poses.iter().map(|pose| at(points(pose, 0)[0])).collect();
        // Those that are farther away at first are drawn first; the torso is in the middle.
        let mut legs: Vec<usize> = (0..LEGS.len()).collect();
        legs.sort_by(|a, b| depth(points(&poses[0], *b)[3]).total_cmp(&depth(points(&poses[0], *a)[3])));
        for (place, leg) in legs.into_iter().enumerate() {
            if place == LEGS.len() / 2 {
                let style = Style::fill(CATEGORIES[2]).outlined(Ink::PAPER, 1.0);
                svg.moving_circle(&torso, seconds, TORSO * unit, &style);
            }
            let limbs: Vec<Vec<(f64, f64)>> =
                poses.iter().map(|pose| points(pose, leg).map(at).to_vec()).collect();
            svg.moving_polyline(&limbs, seconds, &Style::line(colour_of(about, leg), 1.7 * LEG * unit));
        }
    });
    true
}

/// How far the ground has moved in each frame, within a tile of it, on the picture.
fn ground(frames: &[&[f32]], seconds: f64, unit: f64) -> Vec<(f64, f64)> {
    let step = seconds / frames.len() as f64;
    let (mut x, mut y) = (0.0, 0.0);
    let mut offsets = Vec::with_capacity(frames.len());
    for obs in frames {
        let [right, up] = project([-x % TILE, -y % TILE, 0.0]);
        offsets.push((unit * right, -unit * up));
        x += f64::from(obs[VELOCITY]) * step;
        y += f64::from(obs[VELOCITY + 1]) * step;
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obs(speed: f32) -> Vec<f32> {
        let mut obs = vec![0.0; 27];
        (obs[0], obs[1], obs[VELOCITY]) = (0.5, 1.0, speed);
        obs
    }

    #[test]
    fn the_ground_passes_below_an_ant_that_moves_and_rests_below_one_that_stands() {
        let (fast, still) = (obs(1.0), obs(0.0));
        let offsets = |obs: &[f32]| ground(&[obs; 6], 0.6, 100.0);
        assert!(offsets(&still).iter().all(|offset| *offset == (0.0, 0.0)));
        let [right, up] = project([-0.1, 0.0, 0.0]);
        let moved = offsets(&fast)[1];
        assert!((moved.0 - 100.0 * right).abs() < 1e-6 && (moved.1 + 100.0 * up).abs() < 1e-6, "{moved:?}");
        // After half a metre it looks as at first.
        let after = offsets(&fast)[5];
        assert!(after.0.abs() < 1e-4 || (after.0 - 500.0 * right).abs() < 1e-4, "{after:?}");
    }

    #[test]
    fn a_gait_needs_observations_of_an_ant() {
        let rect = Rect { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };
        let about = serde_json::json!({ "legs": [1, -1, 1, 1] });
        let mut svg = Svg::new(100.0, 100.0);
        assert!(!gait(&mut svg, rect, &about, &[&[0.0; 3]], 1.0));
        assert!(!gait(&mut svg, rect, &about, &[], 1.0));
        let frame = obs(1.0);
        assert!(gait(&mut svg, rect, &about, &[&frame, &frame], 1.0));
        assert!(svg.finish().svg().matches("<animate ").count() == 6, "four legs, the torso's two numbers");
    }
}
