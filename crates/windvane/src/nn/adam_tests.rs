use super::{Adam, AdamConfig, Follow};
use crate::nn::ops::fused::COMPOSED;
use crate::nn::{Init, ParamId, Params, TensorFile, read, transfers};
use burn::tensor::{Device, Tensor};

fn store() -> (Params, [ParamId; 2]) {
    let mut params = Params::new(&Device::flex(), 5);
    let a = params.add("a", [3, 5], Init::Normal { std: 1.0 }).unwrap();
    let b = params.add("b", [1, 5], Init::Normal { std: 1.0 }).unwrap();
    (params, [a, b])
}

/// A step on `sum(a^2 b) + sum(b)`.
fn step(adam: &mut Adam, params: &mut Params, ids: [ParamId; 2], follow: Option<Follow<'_>>) -> f32 {
    let weights = params.track();
    let [a, b] = ids.map(|id| weights[id].clone());
    let loss = (a.powi_scalar(2) * b.clone()).sum() + b.sum();
    let gradients = loss.backward();
    drop(loss);
    read(adam.step(params, weights, gradients, 1.0, follow))[0]
}

/// The textbook in f64: values, target.
fn reference(config: AdamConfig, rates: [f64; 2], tau: f64, steps: i32) -> (Vec<f64>, Vec<f64>) {
    let (params, ids) = store();
    let mut w: Vec<f64> = ids.iter().flat_map(|&id| read(params.get(id).clone())).map(f64::from).collect();
    let mut target = w.clone();
    let (mut mean, mut square) = (vec![0.0; w.len()], vec![0.0; w.len()]);
    let (beta1, beta2) = (f64::from(config.beta1), f64::from(config.beta2));
    for step in 1..=steps {
        let mut grad = vec![0.0; w.len()];
        for i in 0..15 {
            grad[i] = 2.0 * w[i] * w[15 + i % 5];
            grad[15 + i % 5] += w[i] * w[i];
        }
        grad[15..].iter_mut().for_each(|g| *g += 1.0);
        let norm = grad.iter().map(|g| g * g).sum::<f64>().sqrt();
        let shrink = config.clip.map_or(1.0, |limit| (f64::from(limit) / norm).min(1.0));
        for i in 0..w.len() {
            let g = grad[i] * shrink;
            mean[i] = beta1 * mean[i] + (1.0 - beta1) * g;
            square[i] = beta2 * square[i] + (1.0 - beta2) * g * g;
            let (m, v) = (mean[i] / (1.0 - beta1.powi(step)), square[i] / (1.0 - beta2.powi(step)));
            let (rate, decay) = if i < 15 { (rates[0], f64::from(config.decay)) } else { (rates[1], 0.0) };
            w[i] -= rate * (decay * w[i] + m / (v.sqrt() + f64::from(config.epsilon)));
            target[i] += tau * (w[i] - target[i]);
        }
    }
    (w, target)
}

fn close(params: &Params, ids: [ParamId; 2], expected: &[f64]) {
    let got = ids.iter().flat_map(|&id| read(params.get(id).clone()));
    for (got, expected) in got.zip(expected) {
        assert!((f64::from(got) - expected).abs() < 2e-5 * expected.abs().max(1.0), "{got} {expected}");
    }
}

#[test]
fn steps_follow_the_textbook_with_decay_clipping_own_rates_and_a_target() {
    for clip in [None, Some(0.5)] {
        let config = AdamConfig { rate: 0.02, decay: 0.1, clip, ..AdamConfig::default() };
        let (mut params, ids) = store();
        let mut target = params.clone();
        let mut adam = Adam::new(config, &params).with_rate("b", 0.01);
        for _ in 0..20 {
            step(&mut adam, &mut params, ids, Some(Follow { target: &mut target, tau: 0.05 }));
        }
        let (values, followed) = reference(config, [0.02, 0.01], 0.05, 20);
        close(&params, ids, &values);
        close(&target, ids, &followed);
        assert_eq!(adam.steps(), 20);
    }
}

#[test]
fn the_reported_norm_is_the_gradients_before_clipping() {
    let (mut params, ids) = store();
    let [a, b] = ids.map(|id| read(params.get(id).clone()));
    let mut grad: Vec<f32> = (0..15).map(|i| 2.0 * a[i] * b[i % 5]).collect();
    grad.extend((0..5).map(|j| 1.0 + (0..3).map(|r| a[r * 5 + j].powi(2)).sum::<f32>()));
    let expected = grad.iter().map(|g| g * g).sum::<f32>().sqrt();
    let mut adam = Adam::new(AdamConfig { clip: Some(1e-3), ..AdamConfig::default() }, &params);
    let norm = step(&mut adam, &mut params, ids, None);
    assert!((norm - expected).abs() < 1e-4 * expected, "{norm} {expected}");
}

#[test]
fn a_step_reads_nothing_back_with_kernels_and_composed() {
    let (mut params, [a, b]) = store();
    let mut target = params.clone();
    for composed in [false, true] {
        COMPOSED.set(composed);
        let mut adam = Adam::new(AdamConfig { clip: Some(0.1), ..AdamConfig::default() }, &params);
        let before = transfers();
        let weights = params.track();
        let loss: Tensor<1> = (weights[a].clone() * weights[b].clone()).sum();
        let gradients = loss.backward();
        drop(loss);
        let follow = Follow { target: &mut target, tau: 0.1 };
        adam.step(&mut params, weights, gradients, 1.0, Some(follow));
        assert_eq!(transfers(), before, "composed: {composed}");
    }
    COMPOSED.set(false);
}

#[test]
fn a_saved_optimiser_goes_on_bit_for_bit() {
    let (mut params, ids) = store();
    let mut adam = Adam::new(AdamConfig { rate: 0.02, ..AdamConfig::default() }, &params);
    for _ in 0..3 {
        step(&mut adam, &mut params, ids, None);
    }
    let mut file = TensorFile::default();
    params.save(&mut file, "params/");
    adam.save(&mut file, "adam/");
    let file = TensorFile::from_bytes(&file.to_bytes().unwrap()).unwrap();
    let (mut again, _) = store();
    let mut resumed = Adam::new(AdamConfig { rate: 0.02, ..AdamConfig::default() }, &again);
    again.load(&file, "params/").unwrap();
    resumed.load(&file, "adam/").unwrap();
    for _ in 0..3 {
        step(&mut adam, &mut params, ids, None);
        step(&mut resumed, &mut again, ids, None);
    }
    for id in ids {
        assert_eq!(read(params.get(id).clone()), read(again.get(id).clone()));
    }
}

#[test]
fn a_parameter_without_a_gradient_stays() {
    let (mut params, [a, b]) = store();
    let before = read(params.get(b).clone());
    let mut adam = Adam::new(AdamConfig::default(), &params);
    let weights = params.track();
    let loss: Tensor<1> = weights[a].clone().sum();
    let gradients = loss.backward();
    drop(loss);
    adam.step(&mut params, weights, gradients, 1.0, None);
    assert_eq!(read(params.get(b).clone()), before);
}

#[test]
fn loading_another_network_names_the_parameter() {
    let (params, _) = store();
    let mut file = TensorFile::default();
    params.save(&mut file, "");
    let mut other = Params::new(&Device::flex(), 1);
    other.add("a", [3, 5], Init::Constant(0.0)).unwrap();
    let error = other.load(&file, "").unwrap_err().to_string();
    assert_eq!(error, "parameter \"b\": is in the file but not in this network");
    other.add("b", [1, 6], Init::Constant(0.0)).unwrap();
    let error = other.load(&file, "").unwrap_err().to_string();
    assert_eq!(error, "parameter \"b\": is [1, 5] in the file, expected [1, 6]");
}
