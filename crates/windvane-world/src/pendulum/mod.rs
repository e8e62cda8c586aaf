//! Pendulums whose mass, length and sign of the motor are hidden: the smallest world where an action's effect is not known.
//!
//! The physics are those of Gymnasium's `Pendulum-v1` (a rod, g = 10, torque up to 2 N m, frames of 0.05 s) with a decision
//! every three frames. With the wrong sign, what should lift the rod pushes it down.

mod body;
mod swing;

use crate::batch::{BatchEnv, reject};
use crate::collect::BehaviourPolicy;
use crate::env::{Action, ActionSpace, Actions, Cmdp, ContextId, Dim, Env, EnvSpec, Split, Start, Step};
use crate::error::WorldError;
use crate::protocol::Policy;
use crate::registry::WorldConfig;
use crate::reward::{Reward, Task};
use crate::rng::{self, Rng};
use body::{BODIES, Body, MAX_SPEED, State};
use rand::RngExt as _;
use serde_json::json;
use std::collections::HashSet;
use std::f64::consts::PI;
use std::sync::Arc;
use swing::Swing;

/// Decisions in an episode: 15 seconds.
const HORIZON: usize = 100;
/// The cosine of the angle from which on the rod counts as upright: 26 degrees.
const UPRIGHT: f32 = 0.9;

/// Pendulums, drawn by mass, length and sign. A context's number says all three.
pub struct Pendulum {
    spec: Arc<EnvSpec>,
    train: Vec<ContextId>,
    test: Vec<ContextId>,
}

impl Pendulum {
    /// Draws pendulums, every other one with its motor reversed; held-out ones differ from training ones in mass or length.
    pub(crate) fn new(config: &WorldConfig, [train, test]: [usize; 2]) -> Result<Self, WorldError> {
        if train.saturating_add(test) as u64 > BODIES {
            return Err(WorldError::Invalid(format!(
                "pendulum: {train} training and {test} test pendulums asked for, but only {BODIES} differ in mass or length"
            )));
        }
        let mut taken = HashSet::new();
        let mut draw = |purpose, count| {
            let mut rng = rng::stream(config.seed, purpose, &[]);
            let bodies = std::iter::repeat_with(|| rng.random_range(0..BODIES));
            let fresh = bodies.filter(|&body| taken.insert(body)).zip(0_u64..);
            fresh.take(count).map(|(body, place)| ContextId(2 * body + place % 2)).collect::<Vec<_>>()
        };
        let test = draw("test pendulums", test);
        let train = draw("training pendulums", train);
        let dim = |name: &str, most: f64| Dim {
            name: name.into(),
            low: -most as f32,
            high: most as f32,
            integer: false,
        };
        let spec = EnvSpec {
            name: "pendulum".to_owned(),
            observation: vec![dim("cos", 1.0), dim("sin", 1.0), dim("speed", MAX_SPEED)],
            action: ActionSpace::Continuous { low: vec![-1.0], high: vec![1.0] },
            horizon: HORIZON,
        };
        Ok(Self { spec: Arc::new(spec), train, test })
    }
}

/// The pendulum of a context.
fn body(context: ContextId) -> Result<Body, WorldError> {
    Body::of(context)
        .ok_or_else(|| WorldError::Invalid(format!("pendulum: {} is not the code of a pendulum", context.0)))
}

impl Cmdp for Pendulum {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn contexts(&self, split: Split) -> &[ContextId] {
        match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        }
    }

    fn instantiate(&self, context: ContextId) -> Result<Box<dyn Env>, WorldError> {
        Ok(Box::new(Rod {
            spec: self.spec.clone(),
            body: body(context)?,
            at: State { angle: PI, speed: 0.0 },
        }))
    }

    fn tasks(&self, _: ContextId) -> Result<Vec<Task>, WorldError> {
        let upright = Arc::new(|obs: &[f32]| f32::from(u8::from(obs[0] > UPRIGHT)));
        Ok(vec![Task { name: "upright".to_owned(), reward: Reward::Hold { reward: upright, least: 0.9 } }])
    }

    fn describe(&self, context: ContextId) -> Result<serde_json::Value, WorldError> {
        let Body { sign, mass, length } = body(context)?;
        Ok(json!({ "kind": "pendulum", "sign": sign, "mass": mass, "length": length }))
    }

    fn oracle(&self, context: ContextId) -> Result<Option<Box<dyn Policy + '_>>, WorldError> {
        Ok(Some(Box::new(Swing(body(context)?))))
    }

    fn behaviour(&self) -> BehaviourPolicy {
        BehaviourPolicy::Held { steps: 2 }
    }

    fn batch(&self, contexts: &[ContextId]) -> Result<Box<dyn BatchEnv>, WorldError> {
        let rod = |&context: &ContextId| {
            Ok(Rod { spec: self.spec.clone(), body: body(context)?, at: State { angle: PI, speed: 0.0 } })
        };
        let rods = contexts.iter().map(rod).collect::<Result<_, WorldError>>()?;
        Ok(Box::new(Rods { spec: self.spec.clone(), rods }))
    }
}

/// One pendulum.
struct Rod {
    spec: Arc<EnvSpec>,
    body: Body,
    at: State,
}

impl Rod {
    /// Begins hanging, or anywhere, with a little speed.
    fn begin(&mut self, start: Start, rng: &mut Rng, obs: &mut [f32]) {
        let (middle, [angle, speed]) = match start {
            Start::Fixed => (PI, [0.1, 0.1]),
            Start::Random => (0.0, [PI, 1.0]),
        };
        self.at = State {
            angle: middle + rng.random_range(-angle..=angle),
            speed: rng.random_range(-speed..=speed),
        };
        obs.copy_from_slice(&self.at.observation());
    }

    fn push(&mut self, action: f32, obs: &mut [f32]) {
        self.at = self.body.step(self.at, f64::from(action));
        obs.copy_from_slice(&self.at.observation());
    }
}

impl Env for Rod {
    fn reset(&mut self, start: Start, rng: &mut Rng, obs: &mut [f32]) -> Result<(), WorldError> {
        self.begin(start, rng, obs);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, obs: &mut [f32]) -> Result<Step, WorldError> {
        match action {
            Action::Continuous(&[torque]) if self.spec.action.contains(action) => self.push(torque, obs),
            _ => return Err(self.spec.action.reject(&self.spec.name, action)),
        }
        Ok(Step::default())
    }
}

/// Many pendulums in lockstep.
struct Rods {
    spec: Arc<EnvSpec>,
    rods: Vec<Rod>,
}

impl BatchEnv for Rods {
    fn len(&self) -> usize {
        self.rods.len()
    }

    fn reset(&mut self, index: usize, start: Start, rng: &mut Rng, obs: &mut [f32]) {
        self.rods[index].begin(start, rng, obs);
    }

    fn step(&mut self, actions: &Actions, obs: &mut [f32]) -> Result<(), WorldError> {
        let count = self.rods.len();
        match actions {
            Actions::Continuous { size: 1, values }
                if values.len() == count && values.iter().all(|torque| (-1.0..=1.0).contains(torque)) =>
            {
                let rows = obs.as_chunks_mut::<3>().0;
                for ((rod, &torque), obs) in self.rods.iter_mut().zip(values).zip(rows) {
                    rod.push(torque, obs);
                }
                Ok(())
            }
            _ => Err(reject(&self.spec.action, &self.spec.name, actions, count)),
        }
    }
}

#[cfg(test)]
mod tests;
