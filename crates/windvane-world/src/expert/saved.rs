//! Training of an expert on disk, between two sections of it: a killed one goes on from there to the same bytes.

use super::file::{self, Damage};
use super::pupil::Moments;
use super::{Config, Gait};
use crate::error::WorldError;
use crate::mujoco::{Air, POSTURE};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// First line of the file: what it is, and its version.
const MAGIC: &[u8] = b"windvane expert in training 2\n";

/// Training as it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Saved {
    /// Updates done.
    pub(super) update: usize,
    /// Parameters, then the optimiser's means and squares of their gradients.
    pub(super) parameters: [Vec<f32>; 3],
    /// Steps of the optimiser, and its rate.
    pub(super) steps: i32,
    pub(super) rate: f32,
    pub(super) moments: Moments,
    /// What else the learner remembers: SAC's target critics and replay buffer.
    pub(super) more: Vec<f32>,
    /// Policies at earlier stages of training.
    pub(super) checkpoints: Vec<Gait>,
}

/// A number that stands for a training and no other.
pub(super) fn key(airs: &[Air], config: &Config) -> u64 {
    let numbers = airs.iter().flat_map(|air| [air.wind[0], air.wind[1], air.viscosity].map(f64::to_bits));
    let numbers = [config.seed, config.updates as u64].into_iter().chain(numbers).flat_map(u64::to_le_bytes);
    xxh3_64(&numbers.chain(config.learner.name().bytes()).collect::<Vec<u8>>())
}

/// Writes the state of the training `key`, whole or not at all.
pub(super) fn save(path: &Path, key: u64, saved: &Saved) -> Result<(), WorldError> {
    let Saved { update, parameters, steps, rate, moments, more, checkpoints } = saved;
    let mut bytes = MAGIC.to_vec();
    let sizes = [parameters[0].len(), more.len()].map(|size| size as u64);
    for number in [key, *update as u64, u64::from(steps.unsigned_abs()), sizes[0], sizes[1]] {
        bytes.extend(number.to_le_bytes());
    }
    let (count, mean, variance) = moments;
    [*count].iter().chain(mean).chain(variance).for_each(|x| bytes.extend(x.to_le_bytes()));
    [*rate].iter().chain(parameters.iter().flatten()).chain(more).for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes.extend(file::bytes(checkpoints));
    file::write(path, &bytes)
}

/// The state of the training `key`; nothing where there is none, or that of another, or damage: training then begins anew.
pub(super) fn load(path: &Path, key: u64) -> Option<Saved> {
    let all = file::read(path).ok()?;
    let mut rest = Rest(all.strip_prefix(MAGIC)?);
    if rest.whole()? != key {
        return None;
    }
    let (update, steps) = (rest.whole()?, rest.whole()?);
    let sizes = [rest.whole()?, rest.whole()?];
    let many = rest.double()?;
    let mut posture = || -> Option<[f64; POSTURE]> {
        let mut all = [0.0; POSTURE];
        all.iter_mut().try_for_each(|x| rest.double().map(|read| *x = read))?;
        Some(all)
    };
    let moments = (many, posture()?, posture()?);
    let rate = rest.single()?;
    let mut part = |size: u64| (0..size).map(|_| rest.single()).collect::<Option<Vec<f32>>>();
    let parameters = [part(sizes[0])?, part(sizes[0])?, part(sizes[0])?];
    let more = part(sizes[1])?;
    let checkpoints = file::gaits(rest.0)
        .or_else(|damage| if damage == Damage::Empty { Ok(Vec::new()) } else { Err(damage) });
    Some(Saved {
        update: update as usize,
        parameters,
        steps: i32::try_from(steps).ok()?,
        rate,
        moments,
        more,
        checkpoints: checkpoints.ok()?,
    })
}

/// Bytes that are still to be read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn whole(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn double(&mut self) -> Option<f64> {
        self.take().map(f64::from_le_bytes)
    }

    fn single(&mut self) -> Option<f32> {
        self.take().map(f32::from_le_bytes)
    }
}
