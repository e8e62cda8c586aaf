//! Many runs as one experiment: a manifest of units, each done once, by whoever comes first.
//!
//! A sweep's folder holds
//!
//! ```text
//! main.json, kappa.json, ...    manifests: settings and units, one of each sweep
//! main/standard/rfb-0/          a unit's rows: scores.jsonl, curve.jsonl; who worked on it: attempts.json
//! data/, beliefs/, runs/        what was collected and trained, shared by all sweeps of the folder
//! slurm/                        scripts, job numbers and output of jobs on a cluster
//! figures/, report.html         what people look at
//! ```
//!
//! Tables and reports are made of the rows alone; `data`, `beliefs` and `runs` can be deleted once the figures that look
//! into agents are drawn.

pub mod ablation;
pub mod attempt;
pub mod cost;
pub mod costs;
pub mod launcher;
pub mod manifest;
pub mod measured;
pub mod paths;
pub mod reference;
pub mod row;
pub mod simulate;
pub mod status;
pub mod task;
pub mod unit;

pub use manifest::{Manifest, Setting, Unit};
pub use row::{Found, Row};
pub use unit::{Ended, Sweep};
