//! From joint targets to torques, and the ant's images: in the mirror, and turned by a right angle.

use crate::mujoco::{MOTORS, POSTURE};

/// Torque for an angle that is off by a radian.
const STIFFNESS: f32 = 0.8;
/// Torque against a radian per second.
const DAMPING: f32 = 0.1;
/// Targets beyond this are cut.
pub(super) const FARTHEST: f32 = 1.5;
/// The joint that a motor turns, among the joints of the observation (hip and ankle of legs 1 to 4).
const JOINT: [usize; MOTORS] = [6, 7, 0, 1, 2, 3, 4, 5];
/// Place of the joints' angles, and of their velocities, in the observation.
const ANGLES: usize = 5;
const SPEEDS: usize = 19;
/// Where a target of 0 holds hips, and ankles of the legs in the order of the joints, in degrees: standing.
const ANKLES: [f32; 4] = [50.0, -50.0, -50.0, 50.0];
/// How far a target of 1 turns a hip and an ankle, in degrees.
const REACH: [f32; 2] = [35.0, 25.0];

/// Torques that turn the joints seen in `obs` toward `targets`.
pub(super) fn torques(obs: &[f32], targets: &[f32]) -> [f32; MOTORS] {
    std::array::from_fn(|motor| {
        let joint = JOINT[motor];
        let middle = if joint.is_multiple_of(2) { 0.0 } else { ANKLES[joint / 2].to_radians() };
        let wanted = middle + REACH[joint % 2].to_radians() * targets[motor].clamp(-FARTHEST, FARTHEST);
        let torque = STIFFNESS * (wanted - obs[ANGLES + joint]) - DAMPING * obs[SPEEDS + joint];
        torque.clamp(-1.0, 1.0)
    })
}

/// Joints as in the mirror: those of the leg on the other side.
const MIRRORED: [usize; 8] = [6, 7, 4, 5, 2, 3, 0, 1];

/// The observation of the ant's mirror image, left and right changed: y turns into -y.
pub(super) fn mirror(obs: &[f32]) -> [f32; POSTURE] {
    // z, the quaternion; velocities along and about the axes. Hips turn the other way, ankles as they did.
    const TORSO: [f32; 5] = [1.0, 1.0, -1.0, 1.0, -1.0];
    const MOTION: [f32; 6] = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
    let joint = |place: usize, base: usize| {
        let joint = place - base;
        [-1.0, 1.0][joint % 2] * obs[base + MIRRORED[joint]]
    };
    std::array::from_fn(|place| match place {
        0..ANGLES => TORSO[place] * obs[place],
        ANGLES..13 => joint(place, ANGLES),
        13..SPEEDS => MOTION[place - 13] * obs[place],
        _ => joint(place, SPEEDS),
    })
}

/// The torques of the mirror image.
pub(super) fn mirror_torques(torques: [f32; MOTORS]) -> [f32; MOTORS] {
    const MOTOR: [usize; MOTORS] = [2, 3, 0, 1, 6, 7, 4, 5];
    std::array::from_fn(|motor| [-1.0, 1.0][motor % 2] * torques[MOTOR[motor]])
}

/// (x, y) as seen by someone who has turned a right angle to the left.
pub(super) fn turn([x, y]: [f32; 2]) -> [f32; 2] {
    [y, -x]
}

/// The joint of the ant that is the turned image's joint `joint`, and the sign of its angle: the body has four legs alike, whose
/// ankles turn about axes of opposite signs.
fn turned_joint(joint: usize) -> (usize, f32) {
    ((joint + 2) % 8, if joint % 4 == 1 { -1.0 } else { 1.0 })
}

/// The observation of the ant as seen by someone who has turned a right angle to the left, and who takes the leg in front of
/// them on their left for the first: what was to the left is ahead.
pub(super) fn turned(obs: &[f32]) -> [f32; POSTURE] {
    let joint = |place: usize, base: usize| {
        let (joint, sign) = turned_joint(place - base);
        sign * obs[base + joint]
    };
    std::array::from_fn(|place| match place {
        // The quaternion's vector, the velocity and the angular velocity begin at 2, 13 and 16.
        2 | 13 | 16 => obs[place + 1],
        3 | 14 | 17 => -obs[place - 1],
        0..ANGLES | 15 | 18 => obs[place],
        ANGLES..13 => joint(place, ANGLES),
        _ => joint(place, SPEEDS),
    })
}

/// The torques of the ant whose turned image has these.
pub(super) fn turn_back_torques(torques: [f32; MOTORS]) -> [f32; MOTORS] {
    let mut own = [0.0; MOTORS];
    for (motor, torque) in torques.into_iter().enumerate() {
        let (joint, sign) = turned_joint(JOINT[motor]);
        if let Some(same) = JOINT.iter().position(|other| *other == joint) {
            own[same] = sign * torque;
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mujoco::{Air, Ant, AntModel, Integrator};
    use crate::rng::stream;

    #[test]
    fn the_mirror_image_is_what_mirrored_torques_lead_to() {
        let model = AntModel::load().unwrap();
        let ant = || Ant::new(&model, Air::STILL, Integrator::RungeKutta).unwrap();
        let (mut one, mut other) = (ant(), ant());
        let mut rng = stream(2, "test", &[]);
        let (mut seen, mut image) = ([0.0; POSTURE], [0.0; POSTURE]);
        for _ in 0..50 {
            let targets: [f32; MOTORS] = std::array::from_fn(|_| 1.5 * super::super::gauss(&mut rng));
            one.observe(&mut seen);
            let torques = torques(&seen, &targets);
            one.step(torques.map(f64::from)).unwrap();
            other.step(mirror_torques(torques).map(f64::from)).unwrap();
            one.observe(&mut seen);
            other.observe(&mut image);
            let far = mirror(&seen).iter().zip(&image).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 1e-4, "{far}");
        }
        assert_eq!(mirror(&mirror(&seen)), seen);
    }

    #[test]
    fn the_turned_image_is_what_turned_torques_lead_to_in_turned_wind() {
        let model = AntModel::load().unwrap();
        let wind = [3.0, 1.0];
        let ant = |wind| Ant::new(&model, Air { wind, viscosity: 0.05 }, Integrator::RungeKutta).unwrap();
        let mut one = ant(wind);
        let mut other = ant(turn(wind.map(|w| w as f32)).map(f64::from));
        let mut rng = stream(4, "test", &[]);
        let (mut seen, mut image) = ([0.0; POSTURE], [0.0; POSTURE]);
        for _ in 0..50 {
            let targets: [f32; MOTORS] = std::array::from_fn(|_| 1.5 * super::super::gauss(&mut rng));
            other.observe(&mut image);
            let torques = torques(&image, &targets);
            other.step(torques.map(f64::from)).unwrap();
            one.step(turn_back_torques(torques).map(f64::from)).unwrap();
            one.observe(&mut seen);
            other.observe(&mut image);
            let far = turned(&seen).iter().zip(&image).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 1e-3, "{far}");
        }
        let around = (0..4).fold(seen, |seen, _| turned(&seen));
        assert_eq!(around, seen);
    }

    #[test]
    fn targets_of_zero_stand() {
        let mut ant = Ant::new(&AntModel::load().unwrap(), Air::STILL, Integrator::RungeKutta).unwrap();
        ant.reset(&mut stream(0, "test", &[]));
        let mut obs = [0.0; POSTURE];
        for _ in 0..256 {
            ant.observe(&mut obs);
            assert!(ant.step(torques(&obs, &[0.0; MOTORS]).map(f64::from)).unwrap().healthy);
        }
        assert!(ant.positions()[0].abs() < 0.5, "{:?}", ant.positions());
    }
}
