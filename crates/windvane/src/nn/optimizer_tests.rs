use super::{Optimizer, OptimizerConfig};
use crate::device::{DeviceName, Threads};
use crate::linalg::eigen;
use crate::nn::ops::fused::COMPOSED;
use crate::nn::{
    Adam, AdamConfig, Follow, Init, MuonConfig, ParamId, Params, TensorFile, read, transfers, upload,
};
use burn::tensor::{Device, Tensor};
use rand::RngExt as _;
use windvane_world::rng;

/// Names and shapes: Muon's are `tall`, `square` and `wide`.
const SHAPES: [(&str, [usize; 2]); 6] = [
    ("bias", [1, 40]),
    ("code/table", [50, 40]),
    ("square", [130, 130]),
    ("tall", [96, 40]),
    ("thin", [96, 31]),
    ("wide", [40, 96]),
];

fn store(device: &Device) -> (Params, [ParamId; 6]) {
    let mut params = Params::new(device, 5);
    let ids = SHAPES.map(|(name, shape)| params.add(name, shape, Init::Normal { std: 0.1 }).unwrap());
    (params, ids)
}

/// The gradients of a step, by parameter.
fn pulls(step: u64) -> Vec<Vec<f32>> {
    let mut rng = rng::stream(3, "pulls", &[step]);
    SHAPES.map(|(_, [r, c])| (0..r * c).map(|_| rng.random_range(-1.0..1.0)).collect()).to_vec()
}

fn with_muon(muon: MuonConfig) -> OptimizerConfig {
    let adam = AdamConfig { rate: 0.01, decay: 0.1, clip: Some(20.0), ..AdamConfig::default() };
    OptimizerConfig { adam, muon: Some(muon) }
}

/// What a training leaves behind: norms, values, and the values of a target that followed.
type Left = (Vec<f32>, Vec<Vec<f32>>, Vec<Vec<f32>>);

/// Steps down given gradients.
fn train(
    optimizer: &mut Optimizer,
    params: &mut Params,
    target: &mut Params,
    steps: std::ops::Range<u64>,
) -> Left {
    let ids: Vec<ParamId> = params.iter().map(|(_, id)| id).collect();
    let mut norms = Vec::new();
    for step in steps {
        let pulls: Vec<Tensor<2>> = pulls(step)
            .into_iter()
            .zip(SHAPES)
            .map(|(p, (_, shape))| upload(p, shape, params.device()))
            .collect();
        let before = transfers();
        let weights = params.track();
        let parts = ids.iter().zip(pulls).map(|(&id, pull)| (weights[id].clone() * pull).sum());
        let loss = parts.reduce(|a, b| a + b).unwrap();
        let gradients = loss.backward();
        drop(loss);
        let follow = Follow { target, tau: 0.1 };
        let norm = optimizer.step(params, weights, gradients, 0.5, Some(follow));
        assert_eq!(transfers(), before, "a step moves nothing between host and device");
        norms.extend(read(norm));
    }
    let all = |params: &Params| ids.iter().map(|&id| read(params.get(id).clone())).collect();
    (norms, all(params), all(target))
}

fn trained(config: OptimizerConfig, device: &Device, steps: u64) -> Left {
    let (mut params, _) = store(device);
    let mut target = params.clone();
    let mut optimizer = Optimizer::new(config, &params, &["code/"]);
    train(&mut optimizer, &mut params, &mut target, 0..steps)
}

/// `a b`, plainly.
fn times(a: &[f64], b: &[f64], [n, k, m]: [usize; 3]) -> Vec<f64> {
    let mut c = vec![0.0; n * m];
    for i in 0..n {
        for p in 0..k {
            (0..m).for_each(|j| c[i * m + j] += a[i * k + p] * b[p * m + j]);
        }
    }
    c
}

fn turned(a: &[f64], [n, m]: [usize; 2]) -> Vec<f64> {
    (0..m).flat_map(|j| (0..n).map(move |i| a[i * m + j])).collect()
}

/// The published algorithm in f64, on a matrix as PyTorch stores it: outputs x inputs.
fn orthogonal(u: &[f64], [outputs, inputs]: [usize; 2]) -> Vec<f64> {
    if outputs > inputs {
        return turned(&orthogonal(&turned(u, [outputs, inputs]), [inputs, outputs]), [inputs, outputs]);
    }
    let norm = u.iter().map(|x| x * x).sum::<f64>().sqrt() + 1e-7;
    let mut x: Vec<f64> = u.iter().map(|x| x / norm).collect();
    for _ in 0..5 {
        let a = times(&x, &turned(&x, [outputs, inputs]), [outputs, inputs, outputs]);
        let aa = times(&a, &a, [outputs; 3]);
        let b: Vec<f64> = a.iter().zip(&aa).map(|(a, aa)| -4.7750 * a + 2.0315 * aa).collect();
        let bx = times(&b, &x, [outputs, outputs, inputs]);
        x.iter_mut().zip(&bx).for_each(|(x, bx)| *x = 3.4445 * *x + bx);
    }
    x
}

#[test]
fn steps_follow_the_published_algorithm_with_decay_clipping_and_a_target() {
    let config = MuonConfig::default();
    let (norms, values, targets) = trained(with_muon(config), &Device::flex(), 4);
    let (params, ids) = store(&Device::flex());
    for (which, (name, shape)) in SHAPES.into_iter().enumerate() {
        if !["square", "tall", "wide"].contains(&name) {
            continue;
        }
        let [inputs, outputs] = shape;
        let ours = read(params.get(ids[which]).clone()).into_iter().map(f64::from).collect::<Vec<_>>();
        let mut value = turned(&ours, shape); // [outputs, inputs]
        let (mut target, mut memory) = (value.clone(), vec![0.0; value.len()]);
        let rate = f64::from(config.rate) * 0.5;
        for (step, norm) in norms.iter().enumerate() {
            let pull: Vec<f64> = pulls(step as u64)[which].iter().map(|&x| f64::from(x)).collect();
            let shrink = (20.0 / f64::from(*norm)).min(1.0);
            assert!(shrink < 0.5, "the gradient is clipped");
            let grad: Vec<f64> = turned(&pull, shape).iter().map(|g| g * shrink).collect();
            memory.iter_mut().zip(&grad).for_each(|(m, g)| *m = 0.95 * *m + g);
            let ahead: Vec<f64> = memory.iter().zip(&grad).map(|(m, g)| g + 0.95 * m).collect();
            let x = orthogonal(&ahead, [outputs, inputs]);
            let stretch = (outputs as f64 / inputs as f64).max(1.0).sqrt();
            for ((value, x), target) in value.iter_mut().zip(&x).zip(&mut target) {
                *value = *value * (1.0 - rate * 0.05) - rate * stretch * x;
                *target += 0.1 * (*value - *target);
            }
        }
        for (ours, reference) in [(&values[which], value), (&targets[which], target)] {
            let reference = turned(&reference, [outputs, inputs]);
            let apart =
                ours.iter().zip(&reference).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(apart < 1e-5, "{name}: {apart} apart");
        }
    }
}

#[test]
fn the_singular_values_of_an_update_are_near_one() {
    let muon = MuonConfig { rate: 2.0, momentum: 0.0, decay: 0.0, ..MuonConfig::default() };
    let (params, ids) = store(&Device::flex());
    let (_, values, _) = trained(with_muon(muon), &Device::flex(), 1);
    for (which, stretch) in [(2, 1.0), (3, 1.0), (5, (96.0_f64 / 40.0).sqrt())] {
        let [rows, cols] = SHAPES[which].1;
        let before = read(params.get(ids[which]).clone());
        let moved: Vec<f64> =
            before.iter().zip(&values[which]).map(|(a, b)| f64::from(a - b) / stretch).collect();
        let (x, side, long) =
            if rows > cols { (turned(&moved, [rows, cols]), cols, rows) } else { (moved, rows, cols) };
        let gram = times(&x, &turned(&x, [side, long]), [side, long, side]);
        // A drawn square matrix has directions without any size to speak of: those may lag behind.
        let mut sizes: Vec<f64> = eigen(gram, side).0.into_iter().map(f64::sqrt).collect();
        sizes.sort_by(f64::total_cmp);
        let lag = if rows == cols { side / 20 } else { 0 };
        let (least, most) = (sizes[lag], sizes[side - 1]);
        assert!(least > 0.6 && most < 1.25, "{}: singular values of {least} to {most}", SHAPES[which].0);
    }
}

#[test]
fn without_muon_its_bits_are_adams_and_small_thin_and_excluded_ones_are_always() {
    let config = with_muon(MuonConfig::default());
    let (mut params, _) = store(&Device::flex());
    let mut target = params.clone();
    let mut adam = Adam::new(config.adam, &params);
    for step in 0..3 {
        let weights = params.track();
        let parts = params.iter().zip(pulls(step)).zip(SHAPES);
        let parts = parts
            .map(|(((_, id), pull), (_, shape))| weights[id].clone() * upload(pull, shape, params.device()));
        let loss = parts.map(Tensor::sum).reduce(|a: Tensor<1>, b| a + b).unwrap();
        let gradients = loss.backward();
        drop(loss);
        adam.step(&mut params, weights, gradients, 0.5, Some(Follow { target: &mut target, tau: 0.1 }));
    }
    let expected: Vec<Vec<f32>> = params.iter().map(|(_, id)| read(params.get(id).clone())).collect();
    assert_eq!(trained(config.adam.into(), &Device::flex(), 3).1, expected);
    let (_, values, _) = trained(config, &Device::flex(), 3);
    let same: Vec<bool> = values.iter().zip(&expected).map(|(a, b)| a == b).collect();
    assert_eq!(same, [true, true, false, false, true, false], "bias, table and thin are Adam's");
}

fn assert_alike(a: &Left, b: &Left, tolerance: f32) {
    let flat = |left: &Left| [left.0.clone(), left.1.concat(), left.2.concat()].concat();
    for (a, b) in flat(a).iter().zip(flat(b)) {
        assert!((a - b).abs() < tolerance * b.abs().max(1.0), "{a} {b}");
    }
}

#[test]
fn kernels_agree_with_plain_tensor_calls_on_any_device() {
    let config = with_muon(MuonConfig::default());
    let fused = trained(config, &Device::flex(), 3);
    COMPOSED.set(true);
    let composed = trained(config, &Device::flex(), 3);
    COMPOSED.set(false);
    assert_alike(&fused, &composed, 1e-5);
}

#[test]
#[allow(clippy::print_stderr)] // a skipped test should say so
fn muon_on_wgpu_agrees_with_the_processor() {
    let config = with_muon(MuonConfig::default());
    match DeviceName::Wgpu.open() {
        Ok(device) => assert_alike(&trained(config, &device, 2), &trained(config, &Device::flex(), 2), 1e-4),
        Err(error) => eprintln!("SKIPPED: {error}"),
    }
}

#[test]
fn steps_are_the_same_bits_on_any_number_of_threads() {
    let run = || trained(with_muon(MuonConfig::default()), &Device::flex(), 2);
    assert_eq!(Threads::new(1).unwrap().run(run), Threads::new(3).unwrap().run(run));
}

#[test]
fn a_saved_optimiser_goes_on_bit_for_bit_and_wants_its_own_file() {
    let config = with_muon(MuonConfig::default());
    let (mut params, _) = store(&Device::flex());
    let mut target = params.clone();
    let mut optimizer = Optimizer::new(config, &params, &["code/"]);
    train(&mut optimizer, &mut params, &mut target, 0..2);
    let mut file = TensorFile::default();
    params.save(&mut file, "params/");
    target.save(&mut file, "target/");
    optimizer.save(&mut file, "optimizer/");
    let whole = train(&mut optimizer, &mut params, &mut target, 2..4);

    let file = TensorFile::from_bytes(&file.to_bytes().unwrap()).unwrap();
    let (mut params, _) = store(&Device::flex());
    let mut target = params.clone();
    let mut resumed = Optimizer::new(config, &params, &["code/"]);
    params.load(&file, "params/").unwrap();
    target.load(&file, "target/").unwrap();
    resumed.load(&file, "optimizer/").unwrap();
    assert_eq!(resumed.steps(), 2);
    assert_eq!(train(&mut resumed, &mut params, &mut target, 2..4), whole);

    let error = Optimizer::new(config.adam, &params, &[]).load(&file, "optimizer/").unwrap_err().to_string();
    assert_eq!(error, "parameter \"optimizer/square/mean\": is not in the file");
    let error = Optimizer::new(config, &params, &[]).load(&file, "optimizer/").unwrap_err().to_string();
    assert_eq!(error, "parameter \"optimizer/code/table/memory\": is not in the file");
}
