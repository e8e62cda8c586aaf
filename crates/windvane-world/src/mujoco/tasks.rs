//! What an ant can be asked for: rewards over its observations. What a step costs is taken off elsewhere.

use super::ant::VELOCITY;
use crate::reward::{Reward, Task};
use std::sync::Arc;

/// The speed of the task `speed-1`, in m/s.
const SPEED: f32 = 1.0;

/// A task: its name and what it pays for the torso's velocity (vx, vy), in m/s.
type Wanted = (&'static str, fn(vx: f32, vy: f32) -> f32);

/// The tasks; each also pays 1 for being at a healthy height.
const TASKS: [Wanted; 7] = [
    ("forward", |vx, _| vx),
    ("backward", |vx, _| -vx),
    ("left", |_, vy| vy),
    ("right", |_, vy| -vy),
    ("stand", |vx, vy| -vx.hypot(vy)),
    ("speed-1", |vx, vy| -(vx - SPEED).hypot(vy)),
    ("heading-45", |vx, vy| (vx + vy) * std::f32::consts::FRAC_1_SQRT_2),
];

/// All of them; the paper's is the first.
pub(super) fn tasks() -> Vec<Task> {
    TASKS.iter().map(|&(name, paid)| Task { name: name.into(), reward: reward(paid) }).collect()
}

fn reward(paid: fn(f32, f32) -> f32) -> Reward {
    Reward::Function(Arc::new(move |obs| {
        let healthy = (0.2..=1.0).contains(&obs[0]);
        paid(obs[VELOCITY], obs[VELOCITY + 1]) + f32::from(u8::from(healthy))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mujoco::POSTURE;

    #[test]
    fn each_task_pays_for_what_its_name_says() {
        let of = |name: &str, z: f32, [vx, vy]: [f32; 2]| {
            let mut obs = [0.0; POSTURE];
            (obs[0], obs[VELOCITY], obs[VELOCITY + 1]) = (z, vx, vy);
            tasks().iter().find(|task| task.name == name).unwrap().reward.of(&obs)
        };
        assert_eq!(of("forward", 0.5, [2.0, 1.0]), 3.0);
        assert_eq!(of("backward", 0.5, [2.0, 1.0]), -1.0);
        assert_eq!(of("left", 0.5, [2.0, 1.0]), 2.0);
        assert_eq!(of("right", 0.5, [2.0, 1.0]), 0.0);
        assert_eq!([of("stand", 0.5, [0.0, 0.0]), of("stand", 0.5, [3.0, 4.0])], [1.0, -4.0]);
        assert_eq!([of("speed-1", 0.5, [1.0, 0.0]), of("speed-1", 0.5, [2.0, 0.0])], [1.0, 0.0]);
        assert!((of("heading-45", 0.5, [1.0, 1.0]) - 1.0 - 2.0_f32.sqrt()).abs() < 1e-6);
        assert_eq!(of("forward", 0.1, [2.0, 0.0]), 2.0, "fallen");
    }
}
