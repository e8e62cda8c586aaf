//! The ant of Gymnasium's `Ant-v5`: four legs, eight motors, steps of 0.05 s.

use super::native::{Model, Simulation};
use crate::collect::bell;
use crate::env::Dim;
use crate::error::WorldError;
use crate::rng::Rng;
use rand::RngExt as _;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// The release of MuJoCo that the bindings are made for.
const VERSION: &str = "3.17.0";
/// Checksum of Gymnasium 1.4.0's `ant.xml`.
const MODEL: u128 = 0x1a19_a683_080a_9fec_e9cf_f428_8e80_b475;
/// How to get what is missing.
const FETCH: &str = "run tools/mujoco/fetch";

/// Motors: hip and ankle of the legs at (+x, -y), (+x, +y), (-x, +y), (-x, -y).
pub const MOTORS: usize = 8;
/// Positions that the model has; the first two, where it is, are not observed.
const POSITIONS: usize = 15;
/// Velocities that the model has.
const VELOCITIES: usize = 14;
/// Observations without contact forces: `qpos[2..]`, then `qvel`.
pub const POSTURE: usize = POSITIONS - 2 + VELOCITIES;
/// Bodies on which contact forces are observed.
const BODIES: usize = 13;
/// All observations of `Ant-v5`: posture, then torques and forces on each body, each cut to -1..1.
pub const FULL: usize = POSTURE + 6 * BODIES;
/// Place of vx and vy, the torso's velocity in m/s, among the observations; z is the first of them.
pub const VELOCITY: usize = POSITIONS - 2;
/// Physics steps in a step.
const FRAMES: usize = 5;
/// Seconds in a step.
pub const STEP: f64 = 0.05;
/// Heights of the torso, in m, outside of which the ant has fallen or flown.
const HEALTHY: std::ops::RangeInclusive<f64> = 0.2..=1.0;
/// What a squared torque costs.
const CONTROL_COST: f64 = 0.5;
/// What a squared contact force costs.
const CONTACT_COST: f64 = 5e-4;
/// Deviation of the start: uniform for positions, bell-shaped for velocities.
const START_NOISE: f64 = 0.1;
/// Observations beyond this are a simulation gone wrong; nothing that moves on legs comes near.
pub const BOUND: f32 = 1000.0;

/// The ant's compiled model, one for all instances.
#[derive(Clone)]
pub struct AntModel(Model);

/// The air around the ant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Air {
    /// Wind along x and y, in m/s.
    pub wind: [f64; 2],
    /// Viscosity, through which the wind acts, in Pa s.
    pub viscosity: f64,
}

impl Air {
    /// As in `Ant-v5`: none that could be felt.
    pub const STILL: Self = Self { wind: [0.0; 2], viscosity: 0.0 };
}

/// How the equations of motion are integrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrator {
    /// Semi-implicit Euler: about three times as fast.
    Euler,
    /// Runge-Kutta of fourth order, as in `Ant-v5`.
    RungeKutta,
}

/// What a step brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean velocity of the torso over the step along x and y, in m/s.
    pub velocity: [f64; 2],
    /// Whether the torso is at a healthy height.
    pub healthy: bool,
    /// 0.5 |a|^2.
    pub control_cost: f64,
    /// 5e-4 |contact forces, each cut to -1..1|^2.
    pub contact_cost: f64,
}

impl Measured {
    /// The reward of `Ant-v5`: vx + 1 while healthy, less the costs.
    pub fn reward(&self) -> f64 {
        self.velocity[0] + f64::from(u8::from(self.healthy)) - self.control_cost - self.contact_cost
    }
}

impl AntModel {
    /// Loads the model from the folder `WINDVANE_MUJOCO`, else from where `tools/mujoco/fetch` put it.
    pub fn load() -> Result<Self, WorldError> {
        let folder =
            std::env::var_os("WINDVANE_MUJOCO").unwrap_or_else(|| env!("WINDVANE_MUJOCO_DIR").into());
        Self::load_from(&PathBuf::from(folder).join("ant.xml"))
    }

    /// Loads the model from the file `path`, which must be Gymnasium's to the letter.
    pub fn load_from(path: &Path) -> Result<Self, WorldError> {
        check_version(mujoco_rs::mujoco_version())?;
        let text = std::fs::read_to_string(path)
            .map_err(|error| WorldError::io(path, format!("reading the ant's model ({FETCH})"), error))?;
        let found = xxh3_128(text.as_bytes());
        if found != MODEL {
            let problem =
                format!("is {found:032x}, that of Gymnasium 1.4.0 is {MODEL:032x}: it was edited; {FETCH}");
            return Err(WorldError::data(path, "checksum", problem));
        }
        Model::compile(path, &text).map(Self)
    }

    /// The model as compiled.
    #[cfg(feature = "render")]
    pub(super) fn model(&self) -> &Model {
        &self.0
    }
}

/// Bindings of one release read the data of another wrongly.
fn check_version(found: &str) -> Result<(), WorldError> {
    if found == VERSION {
        return Ok(());
    }
    Err(WorldError::Invalid(format!("the MuJoCo library is version {found}, expected {VERSION}: {FETCH}")))
}

/// One ant.
pub struct Ant {
    simulation: Simulation,
}

impl Ant {
    /// An ant in its air, at rest.
    pub fn new(model: &AntModel, air: Air, integrator: Integrator) -> Result<Self, WorldError> {
        let mut simulation = model.0.simulation()?;
        let options = simulation.options();
        options.wind = [air.wind[0], air.wind[1], 0.0];
        options.viscosity = air.viscosity;
        options.density = 0.0;
        let mut ant = Self { simulation };
        ant.integrate(integrator);
        ant.place(&REST, &[0.0; VELOCITIES]);
        Ok(ant)
    }

    /// Changes how the equations of motion are integrated.
    pub fn integrate(&mut self, integrator: Integrator) {
        use mujoco_rs::mujoco_c::mjtIntegrator::{mjINT_EULER, mjINT_RK4};
        self.simulation.options().integrator = match integrator {
            Integrator::Euler => mjINT_EULER,
            Integrator::RungeKutta => mjINT_RK4,
        } as i32;
    }

    /// Puts the ant at its start, with a little noise in every position and velocity.
    pub fn reset(&mut self, rng: &mut Rng) {
        let qpos = REST.map(|rest| rest + rng.random_range(-START_NOISE..=START_NOISE));
        let qvel: [f64; VELOCITIES] = std::array::from_fn(|_| START_NOISE * f64::from(bell(rng)));
        self.place(&qpos, &qvel);
    }

    /// Puts the ant anywhere. As in Gymnasium, contact forces are zero until the first step.
    pub fn place(&mut self, qpos: &[f64; POSITIONS], qvel: &[f64; VELOCITIES]) {
        self.simulation.restart(qpos, qvel);
    }

    /// Turns the motors with `torques`, each -1 to 1, for one step. An error says what of the simulation went wrong.
    pub fn step(&mut self, torques: [f64; MOTORS]) -> Result<Measured, String> {
        let before = self.torso();
        self.simulation.ctrl_mut().copy_from_slice(&torques);
        self.simulation.step(FRAMES).map_err(|what| format!("its {what} are no finite numbers any more"))?;
        self.simulation.measure_contacts();
        let after = self.torso();
        let state = self.simulation.qpos().iter().chain(self.simulation.qvel());
        if let Some(far) = state.skip(2).find(|x| x.abs() > f64::from(BOUND)) {
            return Err(format!("a position or velocity is {far:.0}, beyond {BOUND}"));
        }
        let contacts = self.simulation.contacts().iter().map(|force| force.clamp(-1.0, 1.0));
        Ok(Measured {
            velocity: [0, 1].map(|axis| (after[axis] - before[axis]) / STEP),
            healthy: HEALTHY.contains(&self.simulation.qpos()[2]),
            control_cost: CONTROL_COST * torques.iter().map(|torque| torque * torque).sum::<f64>(),
            contact_cost: CONTACT_COST * contacts.map(|force| force * force).sum::<f64>(),
        })
    }

    /// Writes what is seen of the ant: [`POSTURE`] or [`FULL`] numbers, as many as there is room for.
    pub fn observe(&self, obs: &mut [f32]) {
        self.observation().zip(obs).for_each(|(value, obs)| *obs = value as f32);
    }

    /// All that can be seen, at full precision.
    pub fn observation(&self) -> impl Iterator<Item = f64> {
        let posture = self.simulation.qpos()[2..].iter().chain(self.simulation.qvel());
        let contacts = self.simulation.contacts()[6..].iter().map(|force| force.clamp(-1.0, 1.0));
        posture.copied().chain(contacts)
    }

    /// Where the ant is and how it is bent, to be drawn or put elsewhere.
    pub fn positions(&self) -> &[f64] {
        self.simulation.qpos()
    }

    /// Where the torso was in the last forward pass, as Gymnasium measures it.
    fn torso(&self) -> [f64; 2] {
        let torso = &self.simulation.xpos()[3..];
        [torso[0], torso[1]]
    }
}

/// Standing at the model's reference: the torso at 0.75 m, all joints at zero.
const REST: [f64; POSITIONS] = {
    let mut rest = [0.0; POSITIONS];
    rest[2] = 0.75;
    rest[3] = 1.0;
    rest
};

/// The names and bounds of the first `count` observations.
pub(super) fn dims(count: usize) -> Vec<Dim> {
    let joints = (1..=4).flat_map(|leg| [format!("hip_{leg}"), format!("ankle_{leg}")]);
    let joints: Vec<String> = joints.collect();
    let torso = ["z", "qw", "qx", "qy", "qz"].map(str::to_owned);
    let moving = ["vx", "vy", "vz", "wx", "wy", "wz"].map(str::to_owned);
    let speeds = joints.iter().map(|joint| format!("{joint}_speed"));
    let names: Vec<String> = torso.into_iter().chain(joints.clone()).chain(moving).chain(speeds).collect();
    let axes = ["tx", "ty", "tz", "fx", "fy", "fz"];
    let contacts = (1..=BODIES).flat_map(|body| axes.map(|axis| format!("contact_{body}_{axis}")));
    let wide = names.into_iter().map(|name| (name, BOUND));
    let all = wide.chain(contacts.map(|name| (name, 1.0)));
    all.take(count).map(|(name, high)| Dim { name, low: -high, high, integer: false }).collect()
}

#[cfg(test)]
mod tests;
