//! A finite view of an environment: as it is where its states can be listed, in boxes where it is continuous.
//!
//! In boxes a state is a box and an action is a push along one axis. A single step of the environment tells something of boxes
//! when it crosses into the next one, or when a push along an axis does not move at all along it: then it was blocked. A policy
//! pushes along several axes at once where each of them leads on, and so slides along what blocks one of them.

use crate::env::{Action, ActionBuf, ActionSpace, Dim, EnvSpec};
use crate::error::WorldError;

/// A push along an axis weaker than this share of the strongest says nothing.
const WEAKEST_PUSH: f32 = 0.1;
/// A push that steps by less than this share of a box was refused.
const STANDSTILL: f32 = 1e-5;

/// A finite view of an environment.
#[derive(Clone, Debug)]
pub struct Discretizer {
    spec: EnvSpec,
    boxes: Option<Boxes>,
}

#[derive(Clone, Debug)]
struct Boxes {
    /// Where the first box begins, along each axis.
    low: Vec<f32>,
    side: f32,
    /// The lowest and the highest value of each component of an action.
    range: Vec<[f32; 2]>,
}

/// One action and where it led: states as [`Discretizer::spec`] lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateStep {
    /// The state it was taken in.
    pub from: usize,
    /// The action.
    pub action: usize,
    /// The state it led to.
    pub to: usize,
}

impl Discretizer {
    /// A discretizer of an environment, in boxes of `box_side` where it is continuous; an error if that does not make it finite.
    pub fn new(world: &EnvSpec, box_side: f64) -> Result<Self, WorldError> {
        let bad = |problem: String| WorldError::Invalid(format!("{}: {problem}", world.name));
        match &world.action {
            _ if box_side < 0.0 || !box_side.is_finite() => {
                Err(bad(format!("\"encoder.box_side\" is {box_side}; expected at least 0")))
            }
            ActionSpace::Discrete { .. } if world.states().is_some() => {
                Ok(Self { spec: world.clone(), boxes: None })
            }
            ActionSpace::Continuous { low, high } if box_side > 0.0 => {
                if low.len() != world.obs_dim() {
                    return Err(bad(format!(
                        "boxes are for actions that push along the axes of the observation; there are {} components of one and {} \
                         of the other",
                        low.len(),
                        world.obs_dim()
                    )));
                }
                let range = low.iter().zip(high).map(|(&low, &high)| [low, high]).collect();
                Ok(Self::in_boxes(world, box_side as f32, range))
            }
            _ => Err(bad(
                "its states cannot be listed; set \"encoder.box_side\", or encoder.states = \"observations\""
                    .into(),
            )),
        }
    }

    fn in_boxes(world: &EnvSpec, side: f32, range: Vec<[f32; 2]>) -> Self {
        let count = |dim: &Dim| ((dim.high - dim.low) / side).ceil().max(1.0);
        // As many as cover the range, around its middle.
        let low =
            world.observation.iter().map(|dim| f32::midpoint(dim.low, dim.high) - count(dim) * side / 2.0);
        let observation = world.observation.iter();
        let observation = observation.map(|dim| Dim {
            low: 0.0,
            high: count(dim) - 1.0,
            integer: true,
            name: dim.name.clone(),
        });
        let names =
            world.observation.iter().flat_map(|dim| ["+", "-"].map(|sign| format!("{}{sign}", dim.name)));
        let spec = EnvSpec {
            name: world.name.clone(),
            observation: observation.collect(),
            action: ActionSpace::Discrete { names: names.collect() },
            horizon: world.horizon,
        };
        Self { spec, boxes: Some(Boxes { low: low.collect(), side, range }) }
    }

    /// The finite environment.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// The state seen as `obs`; nothing if there is no such state.
    pub fn state_of(&self, obs: &[f32]) -> Option<usize> {
        match &self.boxes {
            None => self.spec.state_of(obs),
            Some(boxes) => {
                let place = obs.iter().zip(&boxes.low).zip(&self.spec.observation);
                let place =
                    place.map(|((x, low), dim)| ((x - low) / boxes.side).floor().clamp(0.0, dim.high));
                self.spec.state_of(&place.collect::<Vec<_>>())
            }
        }
    }

    /// Writes what the world would show in a state; in the middle of a box.
    pub fn write_obs(&self, state: usize, obs: &mut [f32]) {
        self.spec.write_state(state, obs);
        if let Some(boxes) = &self.boxes {
            obs.iter_mut().zip(&boxes.low).for_each(|(x, low)| *x = low + (*x + 0.5) * boxes.side);
        }
    }

    /// The steps between states that consecutive steps of the world amount to; `obs` has one row more than there are actions.
    pub fn steps(&self, obs: &[f32], actions: &[Action<'_>]) -> Vec<StateStep> {
        let dim = self.spec.obs_dim();
        let mut steps = Vec::with_capacity(actions.len());
        for (pair, &action) in obs.windows(2 * dim).step_by(dim).zip(actions) {
            self.add_steps(&pair[..dim], action, &pair[dim..], &mut steps);
        }
        steps
    }

    /// Adds the steps that one step of the world amounts to.
    fn add_steps(&self, obs: &[f32], action: Action<'_>, next: &[f32], steps: &mut Vec<StateStep>) {
        let (Some(from), Some(to)) = (self.state_of(obs), self.state_of(next)) else { return };
        match (&self.boxes, action) {
            (None, Action::Discrete(action)) => steps.push(StateStep { from, action: action as usize, to }),
            (Some(boxes), Action::Continuous(action)) => {
                for (axis, (&push, &range)) in action.iter().zip(&boxes.range).enumerate() {
                    let push = share(push, range);
                    let action = 2 * axis + usize::from(push < 0.0);
                    let still = (next[axis] - obs[axis]).abs() < STANDSTILL * boxes.side;
                    let refused = from == to && still && push.abs() > WEAKEST_PUSH;
                    if refused || self.beside(from, action) == Some(to) {
                        steps.push(StateStep { from, action, to });
                    }
                }
            }
            _ => {}
        }
    }

    /// The box that a push leads to if nothing is in its way.
    fn beside(&self, state: usize, action: usize) -> Option<usize> {
        let mut place = vec![0.0; self.spec.obs_dim()];
        self.spec.write_state(state, &mut place);
        place[action / 2] += sign(action);
        self.spec.state_of(&place)
    }

    /// The best action under the values `q [actions]`; in boxes every push whose value is above `enough` of the best.
    pub fn action(&self, q: &[f32], enough: f32) -> ActionBuf {
        let better = |best: usize, a: usize| if q[a] > q[best] { a } else { best };
        let best = (1..q.len()).fold(0, better);
        let Some(boxes) = &self.boxes else { return ActionBuf::Discrete(best as u32) };
        boxes.push((0..q.len() / 2).map(|axis| {
            let push = better(2 * axis, 2 * axis + 1);
            if push == best || q[push] > enough * q[best] { sign(push) } else { 0.0 }
        }))
    }

    /// Straight from `obs` to `goal`: within a box nothing better is known. Nothing where states are points.
    pub fn straight(&self, obs: &[f32], goal: &[f32]) -> Option<ActionBuf> {
        let boxes = self.boxes.as_ref()?;
        let offset = || goal.iter().zip(obs).map(|(to, x)| to - x);
        let longest = offset().fold(f32::MIN_POSITIVE, |longest, x| longest.max(x.abs()));
        Some(boxes.push(offset().map(|x| x / longest)))
    }
}

impl Boxes {
    /// The action that pushes by these shares of the strongest.
    fn push(&self, shares: impl Iterator<Item = f32>) -> ActionBuf {
        let component =
            |(share, &[low, high]): (f32, &[f32; 2])| f32::midpoint(low, high) + share * (high - low) / 2.0;
        ActionBuf::Continuous(shares.zip(&self.range).map(component).collect())
    }
}

/// The sign of a push along its axis.
fn sign(action: usize) -> f32 {
    if action.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// A push as a share of the strongest.
fn share(push: f32, [low, high]: [f32; 2]) -> f32 {
    2.0 * (push - low) / (high - low) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{WorldConfig, make};

    fn boxes() -> (EnvSpec, Discretizer) {
        let world = make("pointmass", &WorldConfig { seed: 0, train: Some(1), test: Some(1) }).unwrap();
        let spec = world.spec().clone();
        let discretizer = Discretizer::new(&spec, 4.0).unwrap();
        (spec, discretizer)
    }

    #[test]
    fn boxes_cover_the_world_and_hold_their_middles() {
        let (world, discretizer) = boxes();
        let states = discretizer.spec().states().unwrap();
        assert_eq!(states, 36, "6 by 6 boxes");
        let mut obs = [0.0; 2];
        for state in 0..states {
            discretizer.write_obs(state, &mut obs);
            assert_eq!(discretizer.state_of(&obs), Some(state));
        }
        for corner in [[world.observation[0].low; 2], [world.observation[0].high; 2]] {
            assert!(discretizer.state_of(&corner).is_some());
        }
    }

    #[test]
    fn a_step_tells_of_boxes_when_it_crosses_or_is_refused() {
        let (_, discretizer) = boxes();
        let at = |obs: [f32; 2]| discretizer.state_of(&obs).unwrap();
        let seen = |obs: [f32; 2], push: [f32; 2], next: [f32; 2]| {
            discretizer.steps(&[obs, next].concat(), &[Action::Continuous(&push)])
        };
        let here = at([0.0, 0.0]);
        let led = |action, to| StateStep { from: here, action, to };
        assert_eq!(seen([0.0, 0.0], [1.0, 0.5], [0.2, 0.1]), [], "on its way");
        let east = at([4.0, 0.0]);
        assert_eq!(seen([1.9, 0.0], [1.0, 0.5], [2.1, 0.1]), [led(0, east)]);
        assert_eq!(
            seen([1.3, 0.0], [1.0, -1.0], [1.3, -0.2]),
            [led(0, here)],
            "refused along x, not along y"
        );
        let corner = seen([1.3, 1.3], [1.0, 1.0], [1.3, 1.3]);
        assert_eq!(corner, [led(0, here), led(2, here)], "refused along both");
        assert_eq!(seen([1.3, 0.0], [0.05, 0.0], [1.3, 0.0]), [], "hardly a push");
        let there = at([0.0, 4.0]);
        let back = seen([0.0, 2.1], [0.0, -1.0], [0.0, 1.9]);
        assert_eq!(back, [StateStep { from: there, action: 3, to: here }]);
    }

    #[test]
    fn what_leads_on_along_several_axes_is_pushed_along_all_of_them() {
        let (_, discretizer) = boxes();
        let ActionSpace::Discrete { names } = &discretizer.spec().action else { panic!("pushes are listed") };
        assert_eq!(names.join(" "), "x+ x- y+ y-");
        assert_eq!(discretizer.action(&[1.0, 0.5, 0.2, 0.8], 0.9), ActionBuf::Continuous(vec![1.0, 0.0]));
        assert_eq!(discretizer.action(&[1.0, 0.5, 0.2, 0.95], 0.9), ActionBuf::Continuous(vec![1.0, -1.0]));
        assert_eq!(
            discretizer.straight(&[0.0, 0.0], &[0.5, -1.0]),
            Some(ActionBuf::Continuous(vec![0.5, -1.0]))
        );
    }

    #[test]
    fn what_is_not_finite_is_refused_with_the_way_out() {
        let (world, _) = boxes();
        let error = Discretizer::new(&world, 0.0).unwrap_err().to_string();
        assert!(error.contains("encoder.box_side"), "{error}");
        assert!(Discretizer::new(&world, -1.0).is_err());
    }
}
