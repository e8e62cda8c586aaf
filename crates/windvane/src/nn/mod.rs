//! Networks on Burn tensors.
//!
//! A model is a handful of layers that hold parameter *names*; the values live in a [`Params`] store and are handed in as
//! [`Weights`]. So one model serves the trained network, its target copy and evaluation:
//!
//! ```
//! use burn::tensor::Device;
//! use windvane::nn::{Adam, AdamConfig, Follow, Input, Mlp, MlpConfig, Params, ops, read, upload};
//!
//! let device = Device::flex();
//! let mut params = Params::new(&device, 7); // first values come from seed 7 and each parameter's name
//! let backward = Mlp::new(&mut params, "b", &MlpConfig::paper(&[3], &[16, 16], 8))?;
//! let mut adam = Adam::new(AdamConfig { rate: 1e-3, clip: Some(1.0), ..AdamConfig::default() }, &params);
//! let mut target = params.clone();
//!
//! let states = upload(vec![0.1, 0.2, 0.3, 0.9, 0.1, 0.4, 0.5, 0.5, 0.0], [3, 3], &device);
//! let frozen = backward.forward(&target.weights(), Input::One(states.clone())); // [3, 8], no gradient
//! for _ in 0..3 {
//!     let weights = params.track();
//!     let b = ops::sphere(backward.forward(&weights, Input::One(states.clone())), 8_f32.sqrt()); // [3, 8]
//!     let loss = ops::ortho_loss(b); // [1]
//!     let gradients = loss.backward();
//!     drop(loss); // nobody else holds the values now, so the step happens in place
//!     adam.step(&mut params, weights, gradients, 1.0, Some(Follow { target: &mut target, tau: 0.05 }));
//! }
//! let moved = backward.forward(&target.weights(), Input::One(states));
//! assert_ne!(read(moved), read(frozen));
//! # Ok::<(), windvane::nn::NnError>(())
//! ```
//!
//! Constants (batches, target matrices, another network's weights) are tensors without autodiff and mix freely with
//! tracked ones. Everything that folds over rows does so in a fixed order: results are the same bits on any number of
//! threads.

mod adam;
mod arrange;
mod conditioned;
mod error;
mod film;
mod init;
mod kernels;
mod mlp;
mod muon;
pub mod ops;
mod optimizer;
mod pair;
pub(crate) mod pair_kernels;
mod params;
mod row;
mod tensor_file;
mod transfer;
mod transformer;

pub use adam::{Adam, AdamConfig, Follow};
pub(crate) use arrange::{join_groups, mean_of, repeat_rows};
pub use conditioned::{ConditionedInput, ConditionedNet, RowNet};
pub use error::NnError;
pub use film::{FilmConfig, FilmNet, RowFilm};
pub use init::Init;
pub use kernels::gemm::{multiply_adds, product_rate};
pub(crate) use mlp::norm;
pub use mlp::{Input, Linear, Mlp, MlpConfig};
pub use muon::MuonConfig;
pub use ops::{Act, Items};
pub use optimizer::{Optimizer, OptimizerConfig};
pub use pair::{PairConfig, PairNet};
pub(crate) use pair_kernels::PairKernels;
pub use params::{ParamId, Params, Weights};
pub use row::{RowMlp, RowPair};
pub use tensor_file::TensorFile;
pub(crate) use transfer::recorded;
pub use transfer::{Transfers, read, read_scalar, transfers, upload, upload_indices};
pub use transformer::{Displacements, SetConfig, SetTransformer};

/// Refuses a value of `WINDVANE_SIMD` (`avx512`, `avx2` or `baseline`) that this machine cannot follow; without the variable
/// the best instructions there are get used.
pub(crate) fn check_instructions() -> Result<(), NnError> {
    kernels::simd::Level::check()
}

/// Lets freed memory stay with the process, ready for the next step.
pub(crate) fn keep_freed_memory() {
    kernels::pool::keep_freed_memory();
}

/// The name of the instructions that get used.
pub(crate) fn instructions() -> &'static str {
    kernels::simd::Level::current().name()
}
