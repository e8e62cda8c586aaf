//! How a world is seen as a finite one: as it is, or a continuous one in boxes.
//!
//! In boxes a state is a box and an action is a push in one of a few directions, held for some steps. A push leads one box
//! on along each axis that it has a part of, or not: slides along walls are outcomes of their own.

use crate::error::LearnError;
use crate::neural::moves::Moves;
use serde::{Deserialize, Serialize};
use windvane_world::{Action, ActionBuf, ActionSpace, Dim, EnvSpec};

/// How a continuous world is made finite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxConfig {
    /// Side of a box, in units of the observation; 0 takes the world's own states.
    pub side: f64,
    /// Directions of a push.
    pub directions: usize,
    /// Steps that a push is held, unless it reaches another box before.
    pub hold: usize,
}

impl Default for BoxConfig {
    fn default() -> Self {
        Self { side: 0.0, directions: 8, hold: 10 }
    }
}

/// A finite view of a world.
#[derive(Clone, Debug)]
pub struct View {
    spec: EnvSpec,
    boxes: Option<Boxes>,
}

#[derive(Clone, Debug)]
struct Boxes {
    /// Where the first box begins, along each axis.
    low: Vec<f32>,
    side: f32,
    hold: usize,
    moves: Moves,
}

/// One action and where it led: states as [`View::spec`] lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The state it was taken in.
    pub from: usize,
    /// The action.
    pub action: usize,
    /// The state it led to.
    pub to: usize,
}

impl View {
    /// A view of a world; an error if it is not finite and `config` does not make it so.
    pub fn new(world: &EnvSpec, config: &BoxConfig) -> Result<Self, LearnError> {
        let bad = |problem: &str| LearnError::Config { origin: world.name.clone(), problem: problem.into() };
        match &world.action {
            _ if config.side < 0.0 || (config.side > 0.0 && (config.directions < 4 || config.hold == 0)) => {
                Err(bad(
                    "\"boxes\" wants a side of at least 0, at least 4 directions and a hold of at least 1",
                ))
            }
            ActionSpace::Discrete { .. } if world.states().is_some() => {
                Ok(Self { spec: world.clone(), boxes: None })
            }
            ActionSpace::Continuous { low, high }
                if config.side > 0.0 && low.len() == 2 && world.obs_dim() == 2 =>
            {
                let moves =
                    Moves::Compass { directions: config.directions, low: low.clone(), high: high.clone() };
                Ok(Self::in_boxes(world, config, moves))
            }
            ActionSpace::Continuous { .. } if config.side > 0.0 => {
                Err(bad("boxes are for observations and actions of two components"))
            }
            _ => Err(bad("its states cannot be listed; set \"boxes.side\", or core = \"neural\"")),
        }
    }

    fn in_boxes(world: &EnvSpec, config: &BoxConfig, moves: Moves) -> Self {
        let side = config.side as f32;
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
        let names = (0..config.directions).map(|d| format!("push-{d}")).collect();
        let spec = EnvSpec {
            name: world.name.clone(),
            observation: observation.collect(),
            action: ActionSpace::Discrete { names },
            horizon: world.horizon,
        };
        Self { spec, boxes: Some(Boxes { low: low.collect(), side, hold: config.hold, moves }) }
    }

    /// The finite world.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// Steps that an action is held.
    pub fn hold(&self) -> usize {
        self.boxes.as_ref().map_or(1, |boxes| boxes.hold)
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

    /// Writes the place of a state among the others: coordinates in [`View::spec`].
    pub fn write_place(&self, state: usize, place: &mut [f32]) {
        self.spec.write_state(state, place);
    }

    /// Writes what the world would show in a state; in the middle of a box.
    pub fn write_obs(&self, state: usize, obs: &mut [f32]) {
        self.spec.write_state(state, obs);
        if let Some(boxes) = &self.boxes {
            obs.iter_mut().zip(&boxes.low).for_each(|(x, low)| *x = low + (*x + 0.5) * boxes.side);
        }
    }

    /// The moves that a walk is made of: one for each step, or for each held push. `observations` has one row more than
    /// there are actions; what is no single push, or leads to no state, is left out.
    pub fn moves<'a>(
        &self,
        observations: &[f32],
        actions: impl Fn(usize) -> Action<'a>,
        count: usize,
    ) -> Vec<Move> {
        let dim = self.spec.obs_dim();
        let state = |row: usize| self.state_of(&observations[row * dim..(row + 1) * dim]);
        let held = |start: usize| {
            let end = start + self.hold();
            let action = match &self.boxes {
                None => match actions(start) {
                    Action::Discrete(action) => action as usize,
                    Action::Continuous(_) => return None,
                },
                Some(boxes) => {
                    let mut seen = Vec::new();
                    boxes.moves.push((start..end).map(&actions), &mut seen);
                    boxes.moves.choice(&seen)?
                }
            };
            self.led(state(start)?, action, state(end)?)
        };
        (0..count / self.hold()).filter_map(|number| held(number * self.hold())).collect()
    }

    /// The move of taking `action` in `from` and being in `to` afterwards: at most a box on along each axis of the push.
    pub fn led(&self, from: usize, action: usize, to: usize) -> Option<Move> {
        let Some(boxes) = &self.boxes else { return Some(Move { from, action, to }) };
        let dim = self.spec.obs_dim();
        let (mut start, mut end) = (vec![0.0; dim], vec![0.0; dim]);
        self.write_place(from, &mut start);
        self.write_place(to, &mut end);
        for ((x, end), push) in start.iter_mut().zip(end).zip(boxes.moves.seen(action)) {
            let way = push.round();
            *x += if way * (end - *x) >= 1.0 { way } else { 0.0 };
        }
        Some(Move { from, action, to: self.spec.state_of(&start)? })
    }

    /// The action behind a choice.
    pub fn action(&self, choice: usize) -> ActionBuf {
        match &self.boxes {
            None => ActionBuf::Discrete(choice as u32),
            Some(boxes) => boxes.moves.action(choice, &[]),
        }
    }

    /// Straight from `obs` to `goal`: within a box nothing better is known. Nothing where states are points.
    pub fn straight(&self, obs: &[f32], goal: &[f32]) -> Option<ActionBuf> {
        let boxes = self.boxes.as_ref()?;
        let way: Vec<f32> = goal.iter().zip(obs).map(|(goal, x)| goal - x).collect();
        let length = way.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
        let choice = boxes.moves.choice(&way.iter().map(|x| x / length).collect::<Vec<_>>())?;
        Some(boxes.moves.action(choice, &[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_world::registry::{WorldConfig, make};

    fn boxes() -> (EnvSpec, View) {
        let world = make("pointmass", &WorldConfig { seed: 0, train: Some(1), test: Some(1) }).unwrap();
        let spec = world.spec().clone();
        let view = View::new(&spec, &BoxConfig { side: 2.0, ..BoxConfig::default() }).unwrap();
        (spec, view)
    }

    #[test]
    fn boxes_cover_the_world_and_hold_their_middles() {
        let (world, view) = boxes();
        let states = view.spec().states().unwrap();
        assert_eq!(states, 144, "12 by 12 boxes, four to a cell");
        let mut obs = [0.0; 2];
        for state in 0..states {
            view.write_obs(state, &mut obs);
            assert_eq!(view.state_of(&obs), Some(state));
        }
        for corner in [[world.observation[0].low; 2], [world.observation[0].high; 2]] {
            assert!(view.state_of(&corner).is_some());
        }
    }

    #[test]
    fn a_push_leads_on_along_its_own_axes_only() {
        let (_, view) = boxes();
        let at = |x: f32, y: f32| view.spec().state_of(&[x, y]).unwrap();
        let led = |action, to| view.led(at(5.0, 5.0), action, to).unwrap().to;
        assert_eq!(led(0, at(6.0, 6.0)), at(6.0, 5.0), "east: what it drifted north does not count");
        assert_eq!(led(0, at(5.0, 5.0)), at(5.0, 5.0), "refused");
        assert_eq!(led(1, at(6.0, 6.0)), at(6.0, 6.0), "north-east");
        assert_eq!(led(1, at(5.0, 6.0)), at(5.0, 6.0), "north-east, sliding along a wall");
        assert_eq!(led(4, at(6.0, 5.0)), at(5.0, 5.0), "west never leads east");
    }

    #[test]
    fn what_is_not_finite_is_refused_with_the_way_out() {
        let (world, _) = boxes();
        let error = View::new(&world, &BoxConfig::default()).unwrap_err().to_string();
        assert!(error.contains("boxes.side"), "{error}");
        assert!(View::new(&world, &BoxConfig { side: 2.0, directions: 3, hold: 10 }).is_err());
    }
}
