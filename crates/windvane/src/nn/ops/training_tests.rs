//! Whole trainings: fused like composed, the same bits everywhere, and any device like the processor.

use super::fused::COMPOSED;
use crate::device::{DeviceName, Threads};
use crate::nn::kernels::simd::{Level, VARIABLE};
use crate::nn::{
    Adam, AdamConfig, Follow, Input, Items, Mlp, MlpConfig, Params, SetConfig, SetTransformer, Weights, ops,
    read, transfers, upload, upload_indices,
};
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use std::process::Command;
use windvane_world::rng;

const OBS: usize = 5;
const D: usize = 17;
const HEADS: usize = 2;

/// A small forward-backward model with every kind of layer, which knows a set of transitions before it judges each.
struct Model {
    belief: SetTransformer,
    forward: [Mlp; 2],
    backward: Mlp,
    /// Copies of seven sets of ten tokens.
    copies: usize,
}

impl Model {
    fn new(params: &mut Params, copies: usize) -> Self {
        let set = SetConfig { input: OBS, width: 12, heads: 3, blocks: 1, hidden: 24 };
        let config = MlpConfig::paper(&[OBS, 12], &[33 * copies, 20 * copies], HEADS * D);
        Self {
            belief: SetTransformer::new(params, "set", &set).unwrap(),
            forward: ["f0", "f1"].map(|name| Mlp::new(params, name, &config).unwrap()),
            backward: Mlp::new(params, "b", &MlpConfig::paper(&[OBS], &[20, 20], D)).unwrap(),
            copies,
        }
    }

    /// What F sees: states, and each set's belief.
    fn input(&self, weights: &Weights, x: &Tensor<2>) -> Input {
        let lengths = [10, 9, 8, 7, 3, 1, 0].repeat(self.copies);
        let group = self.belief.forward(weights, x.clone(), lengths.len(), Some(&lengths)); // [sets, 12]
        Input::Grouped { x: x.clone(), items: Items::PerGroup, group }
    }

    fn embed(&self, weights: &Weights, x: &Tensor<2>) -> Tensor<2> {
        ops::sphere(self.backward.forward(weights, Input::One(x.clone())), (D as f32).sqrt())
    }

    /// The loss of a step on states `x`, with every form of it there is.
    fn loss(&self, weights: &Weights, target: &Weights, x: &Tensor<2>) -> Tensor<1> {
        let [rows, _] = x.dims();
        let (input, b) = (self.input(target, x), self.embed(target, x));
        let [f0, f1] = self.forward.each_ref().map(|f| f.forward(target, input.clone()));
        let (target_f, target_b) = (ops::greedy_heads((f0 + f1) * 0.5, b.clone()), b);
        let choice: Vec<i64> = (0..rows).map(|row| (row / 3 % HEADS) as i64).collect();
        let choice = upload_indices(choice, &x.device());
        let (input, b) = (self.input(weights, x), self.embed(weights, x));
        let [f0, f1] =
            self.forward.each_ref().map(|f| f.select(weights, input.clone(), HEADS, choice.clone()));
        let product = ops::products(target_f.clone(), target_b.clone());
        ops::fb_loss([f0.clone(), f1], b.clone(), target_f, target_b, 0.9, 0.5)
            + ops::pair_loss(f0, b.clone(), product, 0.9)
            + ops::ortho_loss(b)
    }
}

/// Trains the model for some steps on batches of `70 * copies` states: the losses, and the weights at the end.
fn train(device: &Device, steps: usize, copies: usize) -> (Vec<f32>, Vec<f32>) {
    let mut params = Params::new(device, 11);
    let model = Model::new(&mut params, copies);
    let config = AdamConfig { rate: 5e-4, clip: Some(5.0), decay: 0.01, ..AdamConfig::default() };
    let mut adam = Adam::new(config, &params);
    let mut target = params.clone();
    let mut rng = rng::stream(5, "train", &[]);
    let mut losses = Vec::new();
    for _ in 0..steps {
        let shape = [70 * copies, OBS];
        let data: Vec<f32> = (0..shape[0] * OBS).map(|_| rng.random_range(-1.0..1.0)).collect();
        let x = upload(data, shape, device);
        let weights = params.track();
        let loss = model.loss(&weights, &target.weights(), &x);
        losses.extend(read(loss.clone()));
        let gradients = loss.backward();
        drop(loss);
        adam.step(&mut params, weights, gradients, 1.0, Some(Follow { target: &mut target, tau: 0.05 }));
    }
    (losses, params.iter().flat_map(|(_, id)| read(params.get(id).clone())).collect())
}

/// The distance of two vectors, relative to the length of the second.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
    norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied())
}

fn assert_alike(got: &(Vec<f32>, Vec<f32>), expected: &(Vec<f32>, Vec<f32>), tolerance: f32) {
    for (step, (got, expected)) in got.0.iter().zip(&expected.0).enumerate() {
        let limit = tolerance * expected.abs().max(1.0);
        assert!((got - expected).abs() < limit, "loss of step {step}: {got}, expected {expected}");
    }
    let apart = apart(&got.1, &expected.1);
    assert!(apart < tolerance, "weights are {apart} apart");
}

#[test]
fn sixty_steps_equal_the_composed_model() {
    let fused = train(&Device::flex(), 60, 1);
    COMPOSED.set(true);
    let composed = train(&Device::flex(), 60, 1);
    COMPOSED.set(false);
    assert!(fused.0[59] < fused.0[0] - 1.0, "it learns: {} -> {}", fused.0[0], fused.0[59]);
    assert_alike(&fused, &composed, 1e-5);
}

#[test]
fn a_step_reads_nothing_and_uploads_indices_only_with_kernels_and_composed() {
    for composed in [false, true] {
        COMPOSED.set(composed);
        let device = Device::flex();
        let mut params = Params::new(&device, 11);
        let model = Model::new(&mut params, 1);
        let config = AdamConfig { clip: Some(5.0), ..AdamConfig::default() };
        let mut adam = Adam::new(config, &params);
        let mut target = params.clone();
        let x = upload((0..70 * OBS).map(|i| (i % 13) as f32 / 13.0).collect(), [70, OBS], &device);
        let before = transfers();

        let weights = params.track();
        let b = model.embed(&weights, &x);
        let products = ops::products(b.clone(), b.clone()).detach();
        let loss = model.loss(&weights, &target.weights(), &x) + ops::pair_loss(b.clone(), b, products, 0.9);
        let measured = crate::train::measured(&loss);
        let gradients = loss.backward();
        drop(loss);
        let follow = Follow { target: &mut target, tau: 0.05 };
        let norm = adam.step(&mut params, weights, gradients, 1.0, Some(follow));

        let after = transfers();
        assert_eq!(after.reads, before.reads, "composed: {composed}");
        // Choices, and composed the lengths of seven sets wherever attention and means ask for them.
        let lengths = if composed { 4 * 7 } else { 0 };
        assert_eq!(after.uploaded - before.uploaded, 70 + lengths, "composed: {composed}");
        assert!(read(measured + norm)[0].is_finite());
    }
    COMPOSED.set(false);
}

/// All bits of a short training that is large enough for a second thread.
fn fingerprint() -> String {
    let (losses, weights) = train(&Device::flex(), 3, 4);
    let bits: Vec<u8> = losses.iter().chain(&weights).flat_map(|x| x.to_bits().to_le_bytes()).collect();
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bits))
}

#[test]
#[ignore = "called by the next test, in processes of its own"]
#[allow(clippy::print_stdout)] // it is the answer
fn tell_fingerprint() {
    println!("fingerprint {}", fingerprint());
}

#[test]
fn weights_are_the_same_bits_on_any_number_of_threads_and_any_instruction_set() {
    let one = Threads::new(1).unwrap().run(fingerprint);
    assert_eq!(Threads::new(2).unwrap().run(fingerprint), one);
    assert_eq!(Threads::new(3).unwrap().run(fingerprint), one);
    let name = "nn::ops::training_tests::tell_fingerprint";
    for level in Level::supported() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([name, "--exact", "--ignored", "--nocapture"]).env(VARIABLE, level.name());
        let output = child.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("fingerprint {one}")), "{}: {said}, expected {one}", level.name());
    }
}

/// Debian's packages `mesa-vulkan-drivers` and `libvulkan1` have a driver that needs no graphics card.
#[test]
#[allow(clippy::print_stderr)] // a skipped test should say so
fn training_on_wgpu_agrees_with_the_processor() {
    match DeviceName::Wgpu.open() {
        Ok(device) => assert_alike(&train(&device, 3, 1), &train(&Device::flex(), 3, 1), 1e-4),
        Err(error) => eprintln!("SKIPPED: {error}"),
    }
}
