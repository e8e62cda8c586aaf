//! Data sets from the outside: writing, reading, sampling, exchange, and every kind of damage.
#![allow(clippy::unwrap_used)] // helpers of tests may panic as tests may

mod collecting;
mod damage;
mod exchange;
mod pictures;
mod readers;
mod sampling;
mod synth;
mod writing;
