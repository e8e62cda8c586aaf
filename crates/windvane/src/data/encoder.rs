//! What networks see of an observation: coordinates between -1 and 1, whole-number coordinates one-hot, and random Fourier
//! features of the continuous ones, which tell places apart that raw coordinates blur.

use super::EncoderConfig;
use crate::nn::upload;
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f32::consts::TAU;
use windvane_world::EnvSpec;
use windvane_world::rng::stream;

/// A whole-number coordinate with more values than this is taken as a continuous one.
const MOST_VALUES: usize = 64;
/// A range beyond this says nothing about the values that occur.
const WIDEST: f32 = 1e4;
/// Nor does one whose half is more than so many standard deviations of them: a few outliers made it.
const LOOSE: f32 = 3.0;
/// Coordinates are cut off here: three half ranges, or six standard deviations. A network is not asked about what no data shows.
const FARTHEST: f32 = 3.0;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[LOOSE as f64, FARTHEST as f64];

/// From observations to network inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ObservationEncoder {
    dims: Vec<Coordinate>,
    /// Numbers before the Fourier features.
    plain: usize,
    /// Continuous coordinates.
    smooth: usize,
    /// For each Fourier feature a frequency per continuous coordinate, then its phase.
    waves: Vec<f32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Coordinate {
    /// One of so many values from `low`.
    Whole { low: f32, values: usize },
    /// `(x - middle) * scale`, cut off at [`FARTHEST`].
    Smooth { middle: f32, scale: f32 },
}

impl ObservationEncoder {
    /// The features of `spec`'s observations. A coordinate without a range that fits is scaled by what `sample`, rows of
    /// observations, holds.
    pub(crate) fn new(spec: &EnvSpec, config: &EncoderConfig, sample: &[f32], seed: u64) -> Self {
        let dims: Vec<Coordinate> = spec
            .observation
            .iter()
            .enumerate()
            .map(|(i, dim)| {
                if let Some(values) = dim.values().filter(|&values| values <= MOST_VALUES) {
                    return Coordinate::Whole { low: dim.low, values };
                }
                let (mean, deviation) = moments(sample.iter().skip(i).step_by(spec.obs_dim()).copied());
                let half = (dim.high - dim.low) / 2.0;
                let loose = deviation > 0.0 && half > LOOSE * deviation;
                if half.is_finite() && half < WIDEST && !loose {
                    let scale = 1.0 / half.max(f32::MIN_POSITIVE);
                    return Coordinate::Smooth { middle: f32::midpoint(dim.low, dim.high), scale };
                }
                Coordinate::Smooth { middle: mean, scale: 1.0 / (2.0 * deviation).max(1e-6) }
            })
            .collect();
        let smooth = dims.iter().filter(|dim| matches!(dim, Coordinate::Smooth { .. })).count();
        let plain = dims.iter().map(|dim| dim.width()).sum();
        let mut waves = Vec::new();
        for wave in 0..if smooth > 0 { config.fourier as u64 } else { 0 } {
            let mut rng = stream(seed, "waves", &[wave]);
            for _ in 0..smooth {
                let unit: f64 = StandardNormal.sample(&mut rng);
                waves.push((unit / config.length_scale) as f32);
            }
            waves.push(rng.random_range(0.0..TAU));
        }
        Self { dims, plain, smooth, waves }
    }

    /// Whether its parts fit each other and observations of so many numbers.
    pub(crate) fn fits(&self, dims: usize) -> bool {
        let smooth = self.dims.iter().filter(|dim| matches!(dim, Coordinate::Smooth { .. })).count();
        let whole = |dim: &Coordinate| !matches!(dim, Coordinate::Whole { values: 0, .. });
        self.dims.len() == dims
            && self.dims.iter().all(whole)
            && self.smooth == smooth
            && self.plain == self.dims.iter().map(|dim| dim.width()).sum::<usize>()
            && self.waves.len().is_multiple_of(smooth + 1)
    }

    /// Numbers in an input.
    pub(crate) fn width(&self) -> usize {
        self.plain + self.waves.len() / (self.smooth + 1)
    }

    /// Adds the features of one observation to `out`.
    pub(crate) fn push(&self, obs: &[f32], out: &mut Vec<f32>) {
        let mut smooth = Vec::with_capacity(self.smooth);
        for (dim, &x) in self.dims.iter().zip(obs) {
            match *dim {
                Coordinate::Whole { low, values } => {
                    let at = out.len() + ((x - low).max(0.0) as usize).min(values - 1);
                    out.resize(out.len() + values, 0.0);
                    out[at] = 1.0;
                }
                Coordinate::Smooth { middle, scale } => {
                    smooth.push(((x - middle) * scale).clamp(-FARTHEST, FARTHEST));
                    out.extend(smooth.last());
                }
            }
        }
        out.extend(self.waves.chunks_exact(self.smooth + 1).map(|wave| {
            let phase = wave.iter().zip(&smooth).map(|(w, x)| w * x).sum::<f32>() + wave[self.smooth];
            phase.cos() * std::f32::consts::SQRT_2
        }));
    }
}

/// An [`ObservationEncoder`] and the scale of changes, with their constants on a device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceCodec {
    /// Standard deviation of the change of each coordinate over a held action, `[1, dims]`.
    pub(crate) change_scale: Tensor<2>,
    dims: Vec<Coordinate>,
    /// `[1, values]` for each one-hot coordinate: 0, 1, 2, ...
    ramps: Vec<Option<Tensor<2>>>,
    /// Frequencies `[continuous, features]` and phases `[1, features]`.
    waves: Option<(Tensor<2>, Tensor<2>)>,
}

impl DeviceCodec {
    /// Puts the constants of `encoder` on `device`.
    pub(super) fn new(encoder: &ObservationEncoder, change_scale: &[f32], device: &Device) -> Self {
        let ramp = |dim: &Coordinate| match *dim {
            Coordinate::Whole { values, .. } => {
                Some(upload((0..values).map(|i| i as f32).collect(), [1, values], device))
            }
            Coordinate::Smooth { .. } => None,
        };
        let (smooth, count) = (encoder.smooth, encoder.waves.len() / (encoder.smooth + 1));
        let wave = |part: usize| encoder.waves.iter().skip(part).step_by(smooth + 1).copied();
        let waves = (count > 0).then(|| {
            let frequencies = (0..smooth).flat_map(wave).collect();
            (upload(frequencies, [smooth, count], device), upload(wave(smooth).collect(), [1, count], device))
        });
        let dims = encoder.dims.clone();
        let change_scale = upload(change_scale.to_vec(), [1, dims.len()], device);
        Self { ramps: dims.iter().map(ramp).collect(), change_scale, dims, waves }
    }

    /// Encodings of observations from the host, `[rows * dims]` -> `[rows, width]`.
    pub(crate) fn encode_host(&self, obs: &[f32]) -> Tensor<2> {
        let shape = [obs.len() / self.dims.len(), self.dims.len()];
        self.encode(upload(obs.to_vec(), shape, &self.change_scale.device()))
    }

    /// `[rows, dims]` -> `[rows, width]`; differentiable in the continuous coordinates.
    pub(crate) fn encode(&self, obs: Tensor<2>) -> Tensor<2> {
        let (mut parts, mut smooth) = (Vec::with_capacity(self.dims.len() + 1), Vec::new());
        for (i, (dim, ramp)) in self.dims.iter().zip(&self.ramps).enumerate() {
            let x = obs.clone().narrow(1, i, 1); // [rows, 1]
            match (*dim, ramp) {
                (Coordinate::Whole { low, values }, Some(ramp)) => {
                    // As on the host: cut down to a whole number within the range.
                    let x = (x - low).clamp(0.0, values as f32 - 1.0).floor();
                    parts.push((x - ramp.clone()).abs().lower_elem(0.5).float());
                }
                (Coordinate::Smooth { middle, scale }, _) => {
                    let x = ((x - middle) * scale).clamp(-FARTHEST, FARTHEST);
                    smooth.push(x.clone());
                    parts.push(x);
                }
                (Coordinate::Whole { .. }, None) => {}
            }
        }
        if let Some((frequencies, phases)) = &self.waves {
            let phase = Tensor::cat(smooth, 1).matmul(frequencies.clone()) + phases.clone();
            parts.push(phase.cos() * std::f32::consts::SQRT_2);
        }
        if parts.len() == 1 { parts.remove(0) } else { Tensor::cat(parts, 1) }
    }
}

impl Coordinate {
    fn width(self) -> usize {
        match self {
            Self::Whole { values, .. } => values,
            Self::Smooth { .. } => 1,
        }
    }
}

/// Mean and standard deviation.
pub(crate) fn moments(values: impl Iterator<Item = f32>) -> (f32, f32) {
    let (mut count, mut sum, mut square) = (0.0_f64, 0.0_f64, 0.0_f64);
    for x in values.map(f64::from) {
        count += 1.0;
        sum += x;
        square += x * x;
    }
    let mean = sum / f64::max(count, 1.0);
    (mean as f32, (square / f64::max(count, 1.0) - mean * mean).max(0.0).sqrt() as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_world::{ActionSpace, Dim};

    fn spec(dims: Vec<Dim>) -> EnvSpec {
        let action = ActionSpace::Discrete { names: vec!["stay".into()] };
        EnvSpec { name: "toy".into(), observation: dims, action, horizon: 1 }
    }

    fn dim(low: f32, high: f32, integer: bool) -> Dim {
        Dim { name: "x".into(), low, high, integer }
    }

    fn features(features: &ObservationEncoder, obs: &[f32]) -> Vec<f32> {
        let mut out = Vec::new();
        features.push(obs, &mut out);
        out
    }

    #[test]
    fn whole_numbers_become_one_of_many_and_the_others_lie_between_minus_one_and_one() {
        let spec = spec(vec![dim(2.0, 4.0, true), dim(-1.0, 3.0, false), dim(f32::MIN, f32::MAX, false)]);
        let config = EncoderConfig::default();
        let sample = [2.0, -1.0, 10.0, 2.0, 2.0, 14.0];
        let map = ObservationEncoder::new(&spec, &config, &sample, 0);
        assert_eq!(features(&map, &[3.0, 2.0, 16.0]), [0.0, 1.0, 0.0, 0.5, 1.0]);
        assert_eq!(features(&map, &[2.0, -1.0, 12.0]), [1.0, 0.0, 0.0, -1.0, 0.0]);
    }

    #[test]
    fn the_device_sees_what_the_host_sees() {
        let spec = spec(vec![dim(2.0, 4.0, true), dim(-1.0, 3.0, false), dim(-2.0, 2.0, false)]);
        let map =
            ObservationEncoder::new(&spec, &EncoderConfig { fourier: 5, ..EncoderConfig::default() }, &[], 3);
        let obs = [2.0, 0.5, 1.0, 4.0, -1.0, 0.3, 3.0, 2.0, -2.0];
        let device = Device::flex();
        let there = crate::nn::read(DeviceCodec::new(&map, &[1.0; 3], &device).encode_host(&obs));
        let here: Vec<f32> = obs.chunks_exact(3).flat_map(|obs| features(&map, obs)).collect();
        assert_eq!(there.len(), here.len());
        assert!(there.iter().zip(&here).all(|(a, b)| (a - b).abs() < 1e-5), "{there:?} {here:?}");
    }

    #[test]
    fn outliers_do_not_squeeze_the_common_values_together() {
        let spec = spec(vec![dim(-100.0, 1000.0, false)]);
        let sample: Vec<f32> = (0..100).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
        let map = ObservationEncoder::new(&spec, &EncoderConfig::default(), &sample, 0);
        assert_eq!(features(&map, &[4.0]), [1.0]);
    }

    #[test]
    fn fourier_features_of_near_places_agree_and_of_far_ones_do_not() {
        let spec = spec(vec![dim(-1.0, 1.0, false), dim(-1.0, 1.0, false)]);
        let map = ObservationEncoder::new(
            &spec,
            &EncoderConfig { fourier: 512, ..EncoderConfig::default() },
            &[],
            3,
        );
        assert_eq!(map.width(), 2 + 512);
        let likeness = |a: &[f32], b: &[f32]| {
            let (a, b) = (features(&map, a), features(&map, b));
            a[2..].iter().zip(&b[2..]).map(|(a, b)| a * b).sum::<f32>() / 512.0
        };
        // The kernel of these features is exp(-distance^2 / (2 length^2)).
        for (distance, expected) in [(0.0, 1.0), (0.1, 0.882), (0.2, 0.607), (0.8, 0.0)] {
            let found = likeness(&[0.1, -0.3], &[0.1 + distance, -0.3]);
            assert!((found - expected).abs() < 0.15, "{distance}: {found}, expected {expected}");
        }
    }
}
