//! The trainers that `train` runs, on devices: what another one computes is what the processor computes.

use super::{Size, StepName, build, twin_file};
use crate::device::DeviceName;
use crate::nn::TensorFile;
use burn::tensor::Device;

const TRAININGS: [StepName; 5] = [
    StepName::BeliefListed,
    StepName::BeliefTransitions,
    StepName::FbListed,
    StepName::FbHeads,
    StepName::FbActor,
];

/// The losses of the first steps, and everything that the next one depends on.
fn trained(step: StepName, device: &Device, steps: usize) -> (Vec<f32>, TensorFile) {
    let mut step = build(step, Size::Tiny, device).unwrap();
    let losses = (0..steps).map(|_| step.run().unwrap()).collect();
    let mut file = TensorFile::default();
    step.save(&mut file);
    (losses, file)
}

/// The largest distance of two trainings, relative to the size of what is compared: of losses, and of weights, targets and
/// moments.
fn apart(got: &(Vec<f32>, TensorFile), expected: &(Vec<f32>, TensorFile)) -> [(f32, String); 2] {
    let losses = got.0.iter().zip(&expected.0).map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
    let worst = losses.fold(0.0, f32::max);
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
    let tensors = expected.1.names().map(|name| {
        let (got, expected) = (got.1.values(name).unwrap(), expected.1.values(name).unwrap());
        let off = norm(&mut got.iter().zip(expected).map(|(a, b)| a - b));
        (off / norm(&mut expected.iter().copied()).max(1e-3), name.to_owned())
    });
    let tensor = tensors.fold((0.0, String::new()), |worst, x| if x.0 > worst.0 { x } else { worst });
    [(worst, "losses".to_owned()), tensor]
}

#[test]
fn every_measured_training_learns_its_few_batches() {
    for step in TRAININGS {
        let (losses, _) = trained(step, &Device::flex(), 80);
        let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
        let (first, last) = (mean(&losses[..8]), mean(&losses[72..]));
        assert!(last < first, "{step:?}: {first} -> {last}");
    }
}

#[test]
fn twins_are_given_first_weights_and_what_every_batch_uploads() {
    for step in TRAININGS {
        let (file, again) = (
            twin_file(step, Size::Tiny, &Device::flex()).unwrap(),
            twin_file(step, Size::Tiny, &Device::flex()).unwrap(),
        );
        assert_eq!(file, again, "{step:?}");
        let first = |prefix: &str| file.names().filter(|name| name.starts_with(prefix)).count();
        assert!(first("params/") > 0 && first("batch/0/") > 2 && first("batch/7/") > 2, "{step:?}");
    }
}

/// Debian's packages `mesa-vulkan-drivers` and `libvulkan1` have a driver that needs no graphics card.
#[test]
#[allow(clippy::print_stderr)] // a skipped test should say so
fn real_trainers_on_wgpu_agree_with_the_processor() {
    let device = match DeviceName::Wgpu.open() {
        Ok(device) => device,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    for step in TRAININGS {
        let start = std::time::Instant::now();
        let (there, here) = (trained(step, &device, 4), trained(step, &Device::flex(), 4));
        let [losses, tensor] = apart(&there, &here);
        eprintln!(
            "{step:?}: losses {:e} apart, {} {:e}; {:?}",
            losses.0,
            tensor.1,
            tensor.0,
            start.elapsed()
        );
        assert!(losses.0 < 1e-4, "{step:?}: {:?}, expected {:?}", there.0, here.0);
        assert!(tensor.0 < 5e-3, "{step:?}: {} is {} apart", tensor.1, tensor.0);
        assert!(here.0.iter().any(|loss| *loss != here.0[0]), "{step:?}: nothing is trained");
    }
}
