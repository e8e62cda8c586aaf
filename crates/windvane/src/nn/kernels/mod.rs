//! The processor's own kernels. `unsafe` lives here and nowhere else, each block with its reason.

pub(crate) mod attention;
pub(crate) mod gemm;
mod lanes;
pub(crate) mod loss;
mod math;
pub(crate) mod muon;
pub(crate) mod pairs;
pub(crate) mod par;
pub(crate) mod pool;
pub(crate) mod rows;
pub(crate) mod simd;
mod tile;
