//! Who runs the units of a sweep besides this machine.

pub mod slurm;
