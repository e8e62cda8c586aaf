//! MuJoCo's ant as it stands, drawn from an observation alone: no simulation and no graphics driver is asked.

use super::colour::{CATEGORIES, Colour, Ink};
use super::svg::{Style, Svg};
use serde_json::Value;

pub(super) type Vector = [f64; 3];

/// Numbers of an observation that say how the ant stands: height, orientation (w, x, y, z), hip and ankle of four legs.
pub(super) const POSE: usize = 13;
/// Signs of x and y of the legs, in the order of observations.
pub(super) const LEGS: [[f64; 2]; 4] = [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]];
/// Half the thickness of a leg and the radius of the torso, in metres.
pub(super) const LEG: f64 = 0.08;
pub(super) const TORSO: f64 = 0.25;
/// Metres from one side of the picture to the other.
const FIELD: f64 = 3.2;
/// From where it is seen: the camera's angle around the ant and how far down it looks, in radians.
const AZIMUTH: f64 = 1.05;
const ELEVATION: f64 = 0.55;

/// Draws the ant on its ground, the wind, and in another colour legs that turn the wrong way round; false if `obs` is no ant's.
pub(super) fn draw(svg: &mut Svg, side: f64, about: &Value, obs: &[f32]) -> bool {
    let Some(pose) = obs.get(..POSE) else { return false };
    let pose: Vec<f64> = pose.iter().map(|&x| f64::from(x)).collect();
    let unit = side / FIELD;
    let at = |point: Vector| {
        let [x, y] = project(point);
        (side / 2.0 + unit * x, 0.6 * side - unit * y)
    };
    for i in -3..=3 {
        let place = 0.5 * f64::from(i);
        for (from, to) in [([place, -1.5, 0.0], [place, 1.5, 0.0]), ([-1.5, place, 0.0], [1.5, place, 0.0])] {
            svg.line(at(from), at(to), &Style::line(Ink::FAINT, 1.0));
        }
    }
    wind(svg, at, about);
    let mut legs: Vec<_> = (0..LEGS.len()).map(|leg| (leg, points(&pose, leg))).collect();
    // Those that are farther away first; the torso is in the middle.
    legs.sort_by(|(_, a), (_, b)| depth(b[3]).total_cmp(&depth(a[3])));
    let torso = legs[0].1[0];
    let (behind, front) = legs.split_at(2);
    let draw_legs = |svg: &mut Svg, legs: &[(usize, [Vector; 4])]| {
        for (leg, points) in legs {
            limb(svg, at, unit, points, colour_of(about, *leg));
        }
    };
    draw_legs(svg, behind);
    svg.circle(at(torso), TORSO * unit, &Style::fill(CATEGORIES[2]).outlined(Ink::PAPER, 1.0));
    draw_legs(svg, front);
    true
}

/// The colour of a leg: another one if it turns the wrong way round.
pub(super) fn colour_of(about: &Value, leg: usize) -> Colour {
    // Commands count legs from the one before.
    let gear = about.pointer(&format!("/legs/{}", (leg + 1) % LEGS.len())).and_then(Value::as_i64);
    if gear == Some(-1) { CATEGORIES[1] } else { CATEGORIES[2] }
}

/// A leg from the torso to its foot, thinner towards the ground.
fn limb(svg: &mut Svg, at: impl Fn(Vector) -> (f64, f64), unit: f64, points: &[Vector; 4], colour: Colour) {
    for (part, ends) in points.windows(2).enumerate() {
        let width = 2.0 * LEG * unit * (1.0 - 0.12 * part as f64);
        svg.line(at(ends[0]), at(ends[1]), &Style::line(colour, width));
        svg.circle(at(ends[1]), width / 2.0, &Style::fill(colour));
    }
    svg.circle(at(points[2]), 0.5 * LEG * unit, &Style::fill(Ink::PAPER));
}

/// The wind, if there is one, as arrows on the ground that blow past the ant.
pub(super) fn wind(svg: &mut Svg, at: impl Fn(Vector) -> (f64, f64), about: &Value) {
    let along = |axis: usize| about.pointer(&format!("/wind/{axis}")).and_then(Value::as_f64).unwrap_or(0.0);
    let [x, y] = [0, 1].map(along);
    let length = x.hypot(y);
    if length == 0.0 {
        return;
    }
    let (x, y) = (x / length, y / length);
    let on_ground = |along: f64, across: f64| at([along * x - across * y, along * y + across * x, 0.0]);
    for across in [-0.6, 0.6] {
        svg.line(on_ground(-1.3, across), on_ground(0.9, across), &Style::line(Ink::LINE, 2.0));
        let head = [(1.15, 0.0), (0.88, 0.1), (0.88, -0.1)].map(|(a, b)| on_ground(a, across + b));
        svg.polygon(head, &Style::fill(Ink::LINE));
    }
}

/// Where a leg begins, its hip, its ankle and its foot are, in metres; the torso stands above the origin.
pub(super) fn points(pose: &[f64], leg: usize) -> [Vector; 4] {
    let [sx, sy] = LEGS[leg];
    let (hip, ankle) = (pose[5 + 2 * leg], pose[6 + 2 * leg]);
    // The ankle turns around a level axis: (-1, 1, 0) of the first and third leg, (1, 1, 0) of the others.
    let level = std::f64::consts::FRAC_1_SQRT_2;
    let axis = if sx * sy > 0.0 { [-level, level, 0.0] } else { [level, level, 0.0] };
    let first = [0.2 * sx, 0.2 * sy, 0.0];
    let shin = turn([0.0, 0.0, 1.0], hip, turn(axis, ankle, [0.4 * sx, 0.4 * sy, 0.0]));
    let knee = add(first, turn([0.0, 0.0, 1.0], hip, first));
    let orientation = &pose[1..5];
    [[0.0; 3], first, knee, add(knee, shin)].map(|point| add([0.0, 0.0, pose[0]], rotate(orientation, point)))
}

/// `v` turned by an angle around a unit axis.
fn turn(axis: Vector, angle: f64, v: Vector) -> Vector {
    let (sin, cos) = (0.5 * angle).sin_cos();
    rotate(&[cos, sin * axis[0], sin * axis[1], sin * axis[2]], v)
}

/// `v` turned by the quaternion (w, x, y, z), which need not have length 1.
fn rotate(q: &[f64], v: Vector) -> Vector {
    let square = q.iter().map(|x| x * x).sum::<f64>().max(f64::MIN_POSITIVE);
    let [w, x, y, z] = [q[0], q[1], q[2], q[3]];
    let cross = |a: Vector, b: Vector| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let inner = add(cross([x, y, z], v), v.map(|v| w * v));
    add(v, cross([x, y, z], inner).map(|c| 2.0 * c / square))
}

fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// A point as the camera sees it, to the right and up.
pub(super) fn project([x, y, z]: Vector) -> [f64; 2] {
    let ((sa, ca), (se, ce)) = (AZIMUTH.sin_cos(), ELEVATION.sin_cos());
    [sa * x - ca * y, se * (ca * x + sa * y) + ce * z]
}

/// How far a point is from the camera.
pub(super) fn depth([x, y, z]: Vector) -> f64 {
    let ((sa, ca), (se, ce)) = (AZIMUTH.sin_cos(), ELEVATION.sin_cos());
    ce * (ca * x + sa * y) - se * z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ant_at_rest_has_level_legs_and_turned_ankles_reach_down() {
        let mut pose = vec![0.75, 1.0, 0.0, 0.0, 0.0];
        pose.resize(POSE, 0.0);
        for (leg, [sx, sy]) in LEGS.into_iter().enumerate() {
            let foot = points(&pose, leg)[3];
            for (x, expected) in foot.into_iter().zip([0.8 * sx, 0.8 * sy, 0.75]) {
                assert!((x - expected).abs() < 1e-9, "leg {leg}: {foot:?}");
            }
            // The model bends ankles 1 and 4 by 30 to 70 degrees, 2 and 3 by -70 to -30: all feet go down.
            let mut bent = pose.clone();
            bent[6 + 2 * leg] = if leg == 0 || leg == 3 { 1.0 } else { -1.0 };
            let [.., knee, foot] = points(&bent, leg);
            let expected = 0.75 - 0.4 * std::f64::consts::SQRT_2 * 1.0_f64.sin();
            assert!(
                (foot[2] - expected).abs() < 1e-9 && (knee[2] - 0.75).abs() < 1e-9,
                "leg {leg}: {foot:?}"
            );
        }
        // On its back, by half a turn around x, what was to the left is to the right.
        pose[1..5].copy_from_slice(&[0.0, 2.0, 0.0, 0.0]);
        let foot = points(&pose, 0)[3];
        assert!((foot[0] - 0.8).abs() < 1e-9 && (foot[1] + 0.8).abs() < 1e-9, "{foot:?}");
    }

    #[test]
    fn a_picture_needs_a_pose_and_shows_what_is_hidden() {
        let picture = |about: &Value, obs: &[f32]| {
            let mut svg = Svg::new(240.0, 240.0);
            draw(&mut svg, 240.0, about, obs).then(|| svg.finish())
        };
        let mut obs = vec![0.0; 27];
        obs[1] = 1.0;
        let healthy = serde_json::json!({ "wind": [0.0, 0.0], "legs": [1, 1, 1, 1] });
        assert!(picture(&healthy, &obs[..12]).is_none());
        let calm = picture(&healthy, &obs).unwrap();
        let wind = serde_json::json!({ "wind": [0.0, 4.0], "legs": [1, 1, 1, 1] });
        assert_ne!(picture(&wind, &obs).unwrap(), calm);
        let fault = serde_json::json!({ "wind": [0.0, 0.0], "legs": [1, -1, 1, 1] });
        assert_ne!(picture(&fault, &obs).unwrap(), calm);
    }
}
