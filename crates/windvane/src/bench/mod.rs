//! The training steps that speed is measured on, complete and self-contained: the forward-backward step for discrete and
//! for continuous actions, the belief encoder's step, and acting on one observation.
//!
//! Each comes with its weights and batch as a [`TensorFile`], so that a twin in another stack can be given the same numbers
//! and compared loss by loss before it is timed.

mod act;
mod belief;
mod fb;

use crate::nn::{NnError, TensorFile, read_scalar, upload};
use burn::tensor::{Device, Int, Tensor};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use windvane_world::rng;

pub use crate::nn::{multiply_adds, product_rate};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// Forward-backward step, one head per action, ensemble of 2.
    FbDiscrete,
    /// Forward-backward step with the action as input, ensemble of 2, and the actor's step.
    FbContinuous,
    /// Belief encoder and next-state predictor.
    Belief,
    /// The actor on one observation, belief and task given.
    Act,
}

/// How large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Hidden width 256, batch 512, d = 100.
    Small,
    /// The paper's: hidden width 1024, batch 1024, d = 150.
    Paper,
}

/// The numbers behind a [`Size`].
#[derive(Clone, Copy, Debug)]
struct Dims {
    hidden: usize,
    batch: usize,
    d: usize,
}

/// Width of an observation, of an action, and the number of discrete actions.
const OBS: usize = 16;
const ACTION: usize = 4;

impl Size {
    fn dims(self) -> Dims {
        match self {
            Self::Small => Dims { hidden: 256, batch: 512, d: 100 },
            Self::Paper => Dims { hidden: 1024, batch: 1024, d: 150 },
        }
    }
}

/// A step that can be taken again and again on the same batch.
pub trait Step {
    /// Takes one step; returns its loss, or what else shows that twins compute the same.
    fn run(&mut self) -> f32;
}

/// Builds a step; the file holds its first weights and its batch.
pub fn build(step: StepName, size: Size, device: &Device) -> Result<(Box<dyn Step>, TensorFile), NnError> {
    let dims = size.dims();
    Ok(match step {
        StepName::FbDiscrete => boxed(fb::Discrete::new(dims, device)?),
        StepName::FbContinuous => boxed(fb::Continuous::new(dims, device)?),
        StepName::Belief => boxed(belief::Belief::new(dims, device)?),
        StepName::Act => boxed(act::Act::new(dims, device)?),
    })
}

fn boxed<S: Step + 'static>((step, file): (S, TensorFile)) -> (Box<dyn Step>, TensorFile) {
    (Box::new(step), file)
}

/// The batch: named matrices of our own drawing, remembered for twins.
struct Batch<'a> {
    device: &'a Device,
    file: TensorFile,
}

impl Batch<'_> {
    fn new(device: &Device) -> Batch<'_> {
        Batch { device, file: TensorFile::default() }
    }

    /// A matrix uniform in [-1, 1].
    fn uniform(&mut self, name: &str, shape: [usize; 2]) -> Tensor<2> {
        self.draw(name, shape, |rng| rng.random_range(-1.0..1.0))
    }

    /// Whole numbers below `limit`.
    fn choice(&mut self, name: &str, rows: usize, limit: u16) -> Tensor<1, Int> {
        self.draw(name, [rows, 1], |rng| f32::from(rng.random_range(0..limit))).int().reshape([rows])
    }

    fn draw(&mut self, name: &str, shape: [usize; 2], draw: impl Fn(&mut rng::Rng) -> f32) -> Tensor<2> {
        let mut rng = rng::stream(1, &format!("bench/{name}"), &[]);
        let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| draw(&mut rng)).collect();
        let tensor = upload(values, shape, self.device);
        self.file.insert(format!("batch/{name}"), &tensor);
        tensor
    }
}

/// The single number of a loss.
fn number(loss: Tensor<1>) -> f32 {
    read_scalar(&loss) as f32
}
