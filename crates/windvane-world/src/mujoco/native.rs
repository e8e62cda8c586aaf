//! The one place of the worlds that needs `unsafe`: MuJoCo's own data, behind slices.
#![allow(unsafe_code)]

use crate::error::WorldError;
use mujoco_rs::logging::set_log_handler;
use mujoco_rs::mujoco_c::{
    mj_deleteData, mj_forward, mj_makeData, mj_resetData, mj_rnePostConstraint, mj_step, mjData, mjModel,
    mjtWarning,
};
use mujoco_rs::wrappers::MjModel;
use mujoco_rs::wrappers::mj_logging::{MjLogMessage, MjtLogLevel};
use mujoco_rs::wrappers::mj_option::MjOption;
use std::path::Path;
use std::ptr::NonNull;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::{Arc, Once};

/// A compiled model, shared by all simulations of it.
#[derive(Clone)]
pub(super) struct Model(Arc<MjModel>);

impl Model {
    /// Compiles `xml`, which was read from `path`.
    pub(super) fn compile(path: &Path, xml: &str) -> Result<Self, WorldError> {
        static QUIET: Once = Once::new();
        // SAFETY: nothing has used MuJoCo before the first model, and `Once` holds back every other thread until this is done.
        QUIET.call_once(|| unsafe { set_log_handler(only_errors) });
        let model = MjModel::from_xml_string(xml)
            .map_err(|error| WorldError::data(path, "model", error.to_string()))?;
        Ok(Self(Arc::new(model)))
    }

    /// The model as compiled.
    #[cfg(feature = "render")]
    pub(super) fn shared(&self) -> Arc<MjModel> {
        self.0.clone()
    }

    /// A simulation with options of its own.
    pub(super) fn simulation(&self) -> Result<Simulation, WorldError> {
        // A copy of the header alone: its options are its own, its arrays are the shared model's, which nobody writes to.
        let header = Box::new(self.0.ffi().clone());
        // SAFETY: the header describes a valid model.
        let data = unsafe { mj_makeData(&raw const *header) };
        let data = NonNull::new(data)
            .ok_or_else(|| WorldError::Invalid("MuJoCo has no memory for another simulation".into()))?;
        Ok(Simulation { data, header, _arrays: self.0.clone() })
    }
}

/// Warnings are counted in the data and reported by [`Simulation::step`]; an error ends the process, so its
/// reason must be seen.
fn only_errors(message: &MjLogMessage) {
    if matches!(message.level(), MjtLogLevel::mjLOG_ERROR) {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("MuJoCo: {}", message.subject());
        }
    }
}

/// A model in motion.
pub(super) struct Simulation {
    data: NonNull<mjData>,
    header: Box<mjModel>,
    /// What the pointers of `header` point to.
    _arrays: Arc<MjModel>,
}

// SAFETY: the data belong to this value alone, and the shared arrays are only read.
unsafe impl Send for Simulation {}

/// What went wrong in a step, in MuJoCo's words.
const DIVERGED: [(mjtWarning, &str); 3] = [
    (mjtWarning::mjWARN_BADQPOS, "positions"),
    (mjtWarning::mjWARN_BADQVEL, "velocities"),
    (mjtWarning::mjWARN_BADQACC, "accelerations"),
];

impl Simulation {
    /// Physics options: wind, viscosity, integrator.
    pub(super) fn options(&mut self) -> &mut MjOption {
        &mut self.header.opt
    }

    /// Generalised positions.
    pub(super) fn qpos(&self) -> &[f64] {
        // SAFETY: MuJoCo allocates `nq` numbers there, alive and unaliased as long as `self` is.
        unsafe { from_raw_parts(self.data.as_ref().qpos, self.header.nq as usize) }
    }

    /// Generalised velocities.
    pub(super) fn qvel(&self) -> &[f64] {
        // SAFETY: as for `qpos`, with `nv` numbers.
        unsafe { from_raw_parts(self.data.as_ref().qvel, self.header.nv as usize) }
    }

    /// Positions of the bodies, three numbers each, as of the last forward pass.
    pub(super) fn xpos(&self) -> &[f64] {
        // SAFETY: as for `qpos`, with three numbers for each body.
        unsafe { from_raw_parts(self.data.as_ref().xpos, 3 * self.header.nbody as usize) }
    }

    /// External forces on the bodies, six numbers each (torque, force), as of [`Self::measure_contacts`].
    pub(super) fn contacts(&self) -> &[f64] {
        // SAFETY: as for `qpos`, with six numbers for each body.
        unsafe { from_raw_parts(self.data.as_ref().cfrc_ext, 6 * self.header.nbody as usize) }
    }

    /// Controls, to be written.
    pub(super) fn ctrl_mut(&mut self) -> &mut [f64] {
        // SAFETY: as for `qpos`, with `nu` numbers.
        unsafe { from_raw_parts_mut(self.data.as_mut().ctrl, self.header.nu as usize) }
    }

    /// Puts everything back to the model's reference state, then to `qpos` and `qvel`.
    ///
    /// # Panics
    /// If they are not as many as the model has.
    pub(super) fn restart(&mut self, qpos: &[f64], qvel: &[f64]) {
        let (model, data) = (&raw const *self.header, self.data.as_ptr());
        // SAFETY: model and data belong together and to this value; the two slices are as `qpos` and `qvel` say.
        unsafe {
            mj_resetData(model, data);
            from_raw_parts_mut((*data).qpos, self.header.nq as usize).copy_from_slice(qpos);
            from_raw_parts_mut((*data).qvel, self.header.nv as usize).copy_from_slice(qvel);
            mj_forward(model, data);
        }
    }

    /// Takes `count` steps of physics. An error names what was no number or beyond all bounds.
    pub(super) fn step(&mut self, count: usize) -> Result<(), &'static str> {
        for _ in 0..count {
            // SAFETY: model and data belong together and to this value.
            unsafe { mj_step(&raw const *self.header, self.data.as_ptr()) };
        }
        // SAFETY: the data are alive and nobody else's.
        let warnings = unsafe { &self.data.as_ref().warning };
        match DIVERGED.iter().find(|(kind, _)| warnings[*kind as usize].number > 0) {
            Some((_, what)) => Err(what),
            None => Ok(()),
        }
    }

    /// Computes the external forces of [`Self::contacts`], which a step leaves as they were.
    pub(super) fn measure_contacts(&mut self) {
        // SAFETY: model and data belong together and to this value.
        unsafe { mj_rnePostConstraint(&raw const *self.header, self.data.as_ptr()) };
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // SAFETY: made by `mj_makeData`, and deleted once.
        unsafe { mj_deleteData(self.data.as_ptr()) };
    }
}
