//! Behaviour policies: who acts while data are collected.

use super::Learner;
use crate::env::{ActionBuf, ActionSpace, Cmdp, ContextId, EnvSpec};
use crate::error::WorldError;
use crate::grid::{Layout, distances, optimal_moves};
use crate::rng::Rng;
use rand::{Rng as _, RngExt as _};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Anything that can act in a world, context by context: a policy below, or a trained expert.
pub trait Behaviour: Sync {
    /// Its name, for the record.
    fn name(&self) -> String;
    /// The behaviour after it has been learned, where it must be learned first, beside the data set `out`; nothing for one
    /// that is ready.
    fn prepare(
        &self,
        _world: &dyn Cmdp,
        _seed: u64,
        _out: &Path,
    ) -> Result<Option<Box<dyn Behaviour>>, WorldError> {
        Ok(None)
    }
    /// Someone who acts in one context; it may know the context, the data will not.
    fn actor(&self, world: &dyn Cmdp, context: ContextId) -> Result<Box<dyn Actor>, WorldError>;
}

/// Someone who acts, episode after episode, in one context.
pub trait Actor {
    /// An episode begins.
    fn begin(&mut self, rng: &mut Rng);
    /// Chooses the next action.
    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf);
}

/// The behaviour policies that need no training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum BehaviourPolicy {
    /// Every action is drawn uniformly.
    Uniform,
    /// One choice lasts for a few steps: a move, or a direction at full speed plus noise.
    Sticky {
        /// Steps that a choice lasts; paper: 10.
        repeat: usize,
    },
    /// Continuous actions: a uniform one (three times in ten one at its bounds) is held for a random while.
    Held {
        /// Mean steps that a choice lasts.
        steps: usize,
    },
    /// Ants only: an expert who knows the context, learned first; its earlier selves, and some who know nothing.
    Expert {
        /// How it learns.
        learner: Learner,
        /// Only the expert, without noise, as in the paper.
        pure: bool,
    },
    /// Grids only: goes to one random cell after another by shortest paths.
    Walker {
        /// Share of steps that are random moves instead.
        epsilon: f32,
    },
}

/// Deviation of the noise that is added to a sticky direction at every step, of a range of -1 to 1.
const NOISE: f32 = 0.2;

impl BehaviourPolicy {
    /// The names, with their parameters.
    pub const NAMES: &str =
        "uniform, sticky[:REPEAT], held[:STEPS], walker[:EPSILON], expert[:sac|:sac-targets][:pure]";

    /// The paper's choice: uniform moves on grids, sticky directions for the point.
    pub fn default_for(space: &ActionSpace) -> Self {
        match space {
            ActionSpace::Discrete { .. } => Self::Uniform,
            ActionSpace::Continuous { .. } => Self::Sticky { repeat: 10 },
        }
    }
}

impl fmt::Display for BehaviourPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Sticky { repeat } => write!(f, "sticky:{repeat}"),
            Self::Expert { learner, pure } => f.write_str(&learner.expert(*pure)),
            Self::Held { steps } => write!(f, "held:{steps}"),
            Self::Walker { epsilon } => write!(f, "walker:{epsilon}"),
        }
    }
}

impl From<BehaviourPolicy> for String {
    fn from(policy: BehaviourPolicy) -> Self {
        policy.to_string()
    }
}

impl TryFrom<String> for BehaviourPolicy {
    type Error = WorldError;

    fn try_from(text: String) -> Result<Self, WorldError> {
        text.parse()
    }
}

impl FromStr for BehaviourPolicy {
    type Err = WorldError;

    fn from_str(text: &str) -> Result<Self, WorldError> {
        let (name, parameter) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let policy = match (name, parameter) {
            ("uniform", None) => Some(Self::Uniform),
            ("sticky", None) => Some(Self::Sticky { repeat: 10 }),
            ("sticky", Some(repeat)) => {
                repeat.parse().ok().filter(|&repeat| repeat > 0).map(|repeat| Self::Sticky { repeat })
            }
            ("expert", rest) => Learner::read(rest).map(|(learner, pure)| Self::Expert { learner, pure }),
            ("held", None) => Some(Self::Held { steps: 2 }),
            ("held", Some(steps)) => {
                steps.parse().ok().filter(|&steps| steps > 0).map(|steps| Self::Held { steps })
            }
            ("walker", None) => Some(Self::Walker { epsilon: 0.2 }),
            ("walker", Some(epsilon)) => epsilon
                .parse()
                .ok()
                .filter(|e| (0.0..=1.0).contains(e))
                .map(|epsilon| Self::Walker { epsilon }),
            _ => None,
        };
        policy.ok_or_else(|| WorldError::Unknown {
            kind: "policy",
            name: text.into(),
            known: Self::NAMES.into(),
        })
    }
}

impl Behaviour for BehaviourPolicy {
    fn name(&self) -> String {
        self.to_string()
    }

    fn prepare(
        &self,
        world: &dyn Cmdp,
        seed: u64,
        out: &Path,
    ) -> Result<Option<Box<dyn Behaviour>>, WorldError> {
        match *self {
            #[cfg(feature = "mujoco")]
            Self::Expert { learner, pure } => {
                let expert = crate::expert::prepare(world, seed, (learner, pure), out)?;
                Ok(Some(Box::new(expert)))
            }
            #[cfg(not(feature = "mujoco"))]
            Self::Expert { .. } => {
                let _ = (seed, out);
                Err(WorldError::Invalid(format!("{}: there are experts for ants alone", world.spec().name)))
            }
            _ => Ok(None),
        }
    }

    fn actor(&self, world: &dyn Cmdp, context: ContextId) -> Result<Box<dyn Actor>, WorldError> {
        let spec = world.spec().clone();
        Ok(match *self {
            Self::Uniform => Box::new(Uniform { space: spec.action }),
            Self::Sticky { repeat } => {
                let choice = spec.action.buffer();
                Box::new(Sticky { space: spec.action, repeat, left: 0, choice })
            }
            Self::Expert { .. } => {
                return Err(WorldError::Invalid(format!(
                    "{}: an expert has to be learned before it can act",
                    spec.name
                )));
            }
            Self::Held { .. } if matches!(spec.action, ActionSpace::Discrete { .. }) => {
                return Err(WorldError::Invalid(format!(
                    "{}: the policy \"held\" needs continuous actions",
                    spec.name
                )));
            }
            Self::Held { steps } => {
                Box::new(Held { choice: spec.action.buffer(), space: spec.action, steps })
            }
            Self::Walker { epsilon } => {
                let grid = world.grid().ok_or_else(|| {
                    WorldError::Invalid(format!("{}: the policy \"walker\" needs a grid", spec.name))
                })?;
                let layout = *grid.layout(context)?;
                let cells = layout.free_cells().collect();
                Box::new(Walker { spec, layout, cells, epsilon, way: Vec::new() })
            }
        })
    }
}

struct Uniform {
    space: ActionSpace,
}

impl Actor for Uniform {
    fn begin(&mut self, _: &mut Rng) {}

    fn act(&mut self, _: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        self.space.sample(rng, action);
    }
}

struct Sticky {
    space: ActionSpace,
    repeat: usize,
    left: usize,
    choice: ActionBuf,
}

impl Actor for Sticky {
    fn begin(&mut self, _: &mut Rng) {
        self.left = 0;
    }

    fn act(&mut self, _: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        let fresh = self.left == 0;
        self.left = if fresh { self.repeat } else { self.left } - 1;
        match (&self.space, &mut self.choice, action) {
            (
                ActionSpace::Continuous { low, high },
                ActionBuf::Continuous(direction),
                ActionBuf::Continuous(values),
            ) => {
                if fresh {
                    draw_direction(direction, rng);
                }
                for (place, value) in values.iter_mut().enumerate() {
                    let (low, high) = (low[place], high[place]);
                    let unit = (direction[place] + NOISE * bell(rng)).clamp(-1.0, 1.0);
                    *value = (low + (high - low) * (unit + 1.0) / 2.0).clamp(low, high);
                }
            }
            (space, choice, action) => {
                if fresh {
                    space.sample(rng, choice);
                }
                action.clone_from(choice);
            }
        }
    }
}

struct Held {
    space: ActionSpace,
    steps: usize,
    choice: ActionBuf,
}

/// Share of held choices that lie at the bounds of the box.
const AT_BOUNDS: f32 = 0.3;

impl Actor for Held {
    fn begin(&mut self, rng: &mut Rng) {
        self.draw(rng);
    }

    fn act(&mut self, _: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        if rng.random_range(0..self.steps) == 0 {
            self.draw(rng);
        }
        action.clone_from(&self.choice);
    }
}

impl Held {
    fn draw(&mut self, rng: &mut Rng) {
        self.space.sample(rng, &mut self.choice);
        let at_bounds = rng.random::<f32>() < AT_BOUNDS;
        if let (true, ActionSpace::Continuous { low, high }, ActionBuf::Continuous(values)) =
            (at_bounds, &self.space, &mut self.choice)
        {
            for (value, (&low, &high)) in values.iter_mut().zip(low.iter().zip(high)) {
                *value = if *value < f32::midpoint(low, high) { low } else { high };
            }
        }
    }
}

/// A direction, uniform but for the roundness of [`bell`], of length one.
fn draw_direction(direction: &mut [f32], rng: &mut Rng) {
    loop {
        for value in &mut *direction {
            *value = bell(rng);
        }
        let length = direction.iter().map(|value| value * value).sum::<f32>().sqrt();
        if length > 1e-3 {
            for value in direction {
                *value /= length;
            }
            return;
        }
    }
}

/// A bell-shaped number of mean 0 and deviation 1, the sum of four uniform ones.
///
/// It is the same to the last bit on every machine, which a logarithm from the system's library is not.
pub(crate) fn bell(rng: &mut Rng) -> f32 {
    let bits = rng.next_u64();
    let sum: u64 = (0..4).map(|part| bits >> (16 * part) & 0xffff).sum();
    // Each of the four has variance 1/12 of its range squared; together 1/3.
    (sum as f32 / 65535.0 - 2.0) * 3.0_f32.sqrt()
}

struct Walker {
    spec: EnvSpec,
    layout: Layout,
    cells: Vec<usize>,
    epsilon: f32,
    /// Distances to the current target; empty when a new one is due.
    way: Vec<u16>,
}

impl Actor for Walker {
    fn begin(&mut self, _: &mut Rng) {
        self.way.clear();
    }

    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        let cell = self.spec.state_of(obs).unwrap_or(self.cells[0]);
        while self.way.get(cell).is_none_or(|&steps| steps == 0) && self.cells.len() > 1 {
            self.way = distances(&self.layout, self.cells[rng.random_range(0..self.cells.len())]);
        }
        let shortest = optimal_moves(&self.layout, &self.way, cell);
        if rng.random::<f32>() < self.epsilon || shortest == 0 {
            self.spec.action.sample(rng, action);
            return;
        }
        let choices = shortest.count_ones();
        let skip = rng.random_range(0..choices);
        // Clears the lowest set bits until the chosen one is the lowest.
        let chosen = (0..skip).fold(shortest, |moves, _| moves & (moves - 1));
        *action = ActionBuf::Discrete(chosen.trailing_zeros());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Split, Start};
    use crate::registry::{WorldConfig, make};
    use crate::rng::stream;

    #[test]
    fn policies_are_read_back_as_they_are_written() {
        for policy in [
            BehaviourPolicy::Uniform,
            BehaviourPolicy::Sticky { repeat: 3 },
            BehaviourPolicy::Held { steps: 4 },
            BehaviourPolicy::Walker { epsilon: 0.25 },
            BehaviourPolicy::Expert { learner: Learner::Ppo, pure: false },
            BehaviourPolicy::Expert { learner: Learner::Ppo, pure: true },
            BehaviourPolicy::Expert { learner: Learner::Sac, pure: false },
            BehaviourPolicy::Expert { learner: Learner::SacTargets, pure: true },
        ] {
            assert_eq!(policy.to_string().parse::<BehaviourPolicy>().unwrap(), policy);
        }
        for bad in [
            "sticky:0",
            "held:0",
            "expert:0",
            "expert:pure:sac",
            "walker:2",
            "walker:x",
            "uniform:1",
            "greedy",
            "",
        ] {
            let error = bad.parse::<BehaviourPolicy>().unwrap_err().to_string();
            assert!(error.contains("unknown policy"), "{error}");
        }
    }

    #[test]
    fn bell_has_mean_zero_and_deviation_one() {
        let mut rng = stream(0, "test", &[]);
        let draws: Vec<f64> = (0..100_000).map(|_| f64::from(bell(&mut rng))).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let deviation =
            (draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64).sqrt();
        assert!(mean.abs() < 0.01 && (deviation - 1.0).abs() < 0.01, "{mean} {deviation}");
    }

    #[test]
    fn sticky_keeps_a_direction_for_its_steps_and_stays_in_bounds() {
        let space = ActionSpace::Continuous { low: vec![-2.0, 0.0], high: vec![2.0, 1.0] };
        let mut sticky = Sticky { choice: space.buffer(), space: space.clone(), repeat: 10, left: 0 };
        let mut rng = stream(0, "test", &[]);
        let mut action = space.buffer();
        let mut directions = Vec::new();
        for _ in 0..100 {
            sticky.act(&[], &mut rng, &mut action);
            assert!(space.contains(action.as_action()), "{action:?}");
            let ActionBuf::Continuous(direction) = &sticky.choice else { unreachable!() };
            directions.push(direction.clone());
        }
        assert!(directions.chunks(10).all(|chunk| chunk.iter().all(|d| *d == chunk[0])));
        assert!(
            directions.chunks(10).map(|chunk| &chunk[0]).is_sorted_by(|a, b| a != b),
            "directions change"
        );
    }

    #[test]
    fn held_keeps_choices_for_a_while_and_likes_the_bounds() {
        let space = ActionSpace::Continuous { low: vec![-2.0], high: vec![2.0] };
        let mut held = Held { choice: space.buffer(), space: space.clone(), steps: 4 };
        let mut rng = stream(0, "test", &[]);
        let mut action = space.buffer();
        held.begin(&mut rng);
        let actions: Vec<f32> = (0..10_000)
            .map(|_| {
                held.act(&[], &mut rng, &mut action);
                let ActionBuf::Continuous(values) = &action else { unreachable!() };
                values[0]
            })
            .collect();
        let share = |count: usize| count as f64 / actions.len() as f64;
        let changes = share(actions.windows(2).filter(|pair| pair[0] != pair[1]).count());
        let at_bounds = share(actions.iter().filter(|a| a.abs() == 2.0).count());
        // One choice in 22 repeats the bound that was held.
        assert!((changes - 0.25 * (1.0 - 0.3 * 0.3 / 2.0)).abs() < 0.02, "{changes}");
        assert!((at_bounds - 0.3).abs() < 0.04, "{at_bounds}");
    }

    #[test]
    fn walker_without_randomness_reaches_cell_after_cell_by_shortest_paths() {
        let world = make("four-rooms", &WorldConfig::default()).unwrap();
        let context = world.contexts(Split::Train)[0];
        let layout = *world.grid().unwrap().layout(context).unwrap();
        let mut env = world.instantiate(context).unwrap();
        let mut walker = Walker {
            spec: world.spec().clone(),
            layout,
            cells: layout.free_cells().collect(),
            epsilon: 0.0,
            way: Vec::new(),
        };
        let mut rng = stream(0, "test", &[]);
        let mut obs = [0.0; 2];
        env.reset(Start::Fixed, &mut rng, &mut obs).unwrap();
        let mut action = world.spec().action.buffer();
        for _ in 0..500 {
            let before = world.spec().state_of(&obs).unwrap();
            walker.act(&obs, &mut rng, &mut action);
            env.step(action.as_action(), &mut obs).unwrap();
            let after = world.spec().state_of(&obs).unwrap();
            assert_eq!(walker.way[after] + 1, walker.way[before], "every step comes closer");
        }
    }
}
