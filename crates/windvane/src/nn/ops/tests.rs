//! Every fused operation against the composed one in double precision: values, gradients, and central differences.
#![allow(clippy::disallowed_methods)] // double precision is for tests alone

use super::{Act, Items};
use crate::nn::{ops, read, upload_indices};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use proptest::prelude::*;
use windvane_world::rng;

/// An input: its shape, and whether it is a constant.
#[derive(Clone, Copy)]
struct In([usize; 2], bool);

/// Draws inputs in [-1, 1].
fn draw(seed: u64, shapes: &[In]) -> Vec<Vec<f64>> {
    let mut rng = rng::stream(seed, "ops", &[]);
    let one = |shape: [usize; 2], rng: &mut rng::Rng| {
        // Rounded to single precision, so that both precisions see the same numbers.
        (0..shape[0] * shape[1]).map(|_| f64::from(rng.random_range(-1.0_f32..1.0))).collect()
    };
    shapes.iter().map(|&In(shape, _)| one(shape, &mut rng)).collect()
}

fn tensors(values: &[Vec<f64>], shapes: &[In], dtype: DType, track: bool) -> Vec<Tensor<2>> {
    let one = |(values, &In(shape, constant)): (&Vec<f64>, &In)| {
        let tensor = Tensor::<2>::from_data(TensorData::new(values.clone(), shape), (&Device::flex(), dtype));
        if track && !constant { tensor.autodiff().require_grad() } else { tensor }
    };
    values.iter().zip(shapes).map(one).collect()
}

fn wide(tensor: Tensor<2>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// `sum(out * mix)` with a fixed odd mix, so that every output counts differently.
fn mixed(out: Tensor<2>) -> Tensor<1> {
    let shape = out.dims();
    let mix: Vec<f64> = (0..shape[0] * shape[1]).map(|i| ((i * 7 + 3) % 11) as f64 / 5.0 - 1.0).collect();
    let mix = Tensor::<2>::from_data(TensorData::new(mix, shape), (&out.device(), out.dtype()));
    (out * mix).sum()
}

fn close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(got.len(), expected.len(), "{}", what);
    let scale = expected.iter().fold(1.0_f64, |top, x| top.max(x.abs()));
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        prop_assert!((got - expected).abs() <= tolerance * scale, "{what}[{i}]: {got}, expected {expected}");
    }
    Ok(())
}

/// Checks an operation on drawn inputs: fused in single precision against composed in double.
fn check(seed: u64, shapes: &[In], op: impl Fn(&[Tensor<2>]) -> Tensor<2>) -> Result<(), TestCaseError> {
    let values = draw(seed, shapes);
    let fused = tensors(&values, shapes, DType::F32, true);
    let exact = tensors(&values, shapes, DType::F64, true);
    let (out, expected) = (op(&fused), op(&exact));
    prop_assert_eq!(out.dims(), expected.dims());
    close("output", &wide(out.clone()), &wide(expected.clone()), 1e-5)?;
    let plain = op(&tensors(&values, shapes, DType::F32, false));
    prop_assert_eq!(wide(plain), wide(out.clone()), "a tracked pass and a plain one differ");
    let mut grads = mixed(out).backward();
    // Without rows the composed form may not even touch an input.
    let mut expected = expected.is_tracked().then(|| mixed(expected).backward());
    for (i, (fused, exact)) in fused.iter().zip(&exact).enumerate().filter(|(i, _)| !shapes[*i].1) {
        let grad = wide(fused.grad_remove(&mut grads).expect("a gradient"));
        let exact = expected.as_mut().and_then(|expected| exact.grad_remove(expected));
        let exact = exact.map_or_else(|| vec![0.0; grad.len()], wide);
        close(&format!("gradient {i}"), &grad, &exact, 4e-5)?;
        central(i, &values, shapes, &grad, &op)?;
    }
    Ok(())
}

/// The slope along the gradient's own direction, by central differences in double precision.
fn central(
    input: usize,
    values: &[Vec<f64>],
    shapes: &[In],
    grad: &[f64],
    op: &impl Fn(&[Tensor<2>]) -> Tensor<2>,
) -> Result<(), TestCaseError> {
    let length = grad.iter().map(|g| g * g).sum::<f64>().sqrt();
    if length == 0.0 {
        return Ok(());
    }
    let at = |step: f64| {
        let mut values = values.to_vec();
        values[input].iter_mut().zip(grad).for_each(|(x, g)| *x += step * g / length);
        mixed(op(&tensors(&values, shapes, DType::F64, false))).into_data().iter::<f64>().sum::<f64>()
    };
    let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
    prop_assert!(
        (slope - length).abs() < 2e-4 * length.max(1.0),
        "slope {slope}, gradient's length {length}"
    );
    Ok(())
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1_usize), 2_usize..20, 20_usize..150]
}

/// A number of rows, which may be none.
fn rows() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(0_usize), 4 => size()]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![Just(Act::None), Just(Act::Relu), Just(Act::Gelu), Just(Act::Tanh)]
}

const fn var(rows: usize, cols: usize) -> In {
    In([rows, cols], false)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn linear_agrees_with_its_composition(seed: u64, n in rows(), [i, o] in [size(), size()], act in act()) {
        check(seed, &[var(n, i), var(i, o), var(1, o)], |x| ops::linear(x[0].clone(), &x[1], &x[2], act))?;
    }

    #[test]
    fn linear_onto_agrees_with_its_composition(seed: u64, n in rows(), [i, o] in [size(), size()]) {
        let shapes = [var(n, i), var(i, o), var(1, o), var(n, o)];
        check(seed, &shapes, |x| ops::linear_onto(x[0].clone(), &x[1], &x[2], x[3].clone()))?;
    }

    #[test]
    fn cat_linear_agrees_with_its_composition(
        seed: u64, n in rows(), [i, j, o] in [size(), size(), size()], act in act()
    ) {
        let shapes = [var(n, i), var(i, o), var(n, j), var(j, o), var(1, o)];
        check(seed, &shapes, |x| ops::cat_linear(x[0].clone(), &x[1], x[2].clone(), &x[3], &x[4], act))?;
    }

    #[test]
    fn grouped_linear_agrees_with_its_composition(
        seed: u64, n in rows(), [i, j, o] in [size(), size(), size()], groups in 1_usize..9, shared: bool, act in act()
    ) {
        let (items, rows) = if shared { (Items::Shared, n) } else { (Items::PerGroup, groups * n) };
        let shapes = [var(rows, i), var(i, o), var(groups, j), var(j, o), var(1, o)];
        check(seed, &shapes, |x| ops::grouped_linear(x[0].clone(), &x[1], x[2].clone(), &x[3], &x[4], items, act))?;
    }

    #[test]
    fn layer_norm_agrees_with_its_composition(seed: u64, n in rows(), width in size(), act in act()) {
        check(seed, &[var(n, width), var(1, width), var(1, width)], |x| ops::layer_norm(x[0].clone(), &x[1], &x[2], act))?;
    }

    #[test]
    fn select_heads_agrees_with_its_composition(
        seed: u64, n in rows(), i in size(), width in 1_usize..40, heads in 1_usize..6
    ) {
        let choice: Vec<i64> = (0..n).map(|row| ((row * 5 + seed as usize % 7) % heads) as i64).collect();
        let shapes = [var(n, i), var(i, heads * width), var(1, heads * width)];
        check(seed, &shapes, |x| {
            let choice = upload_indices(choice.clone(), &Device::flex());
            ops::select_heads(x[0].clone(), &x[1], &x[2], heads, choice)
        })?;
    }

    #[test]
    fn products_agree_with_their_composition(seed: u64, [n, m] in [rows(), rows()], d in size()) {
        check(seed, &[var(n, d), var(m, d)], |x| ops::products(x[0].clone(), x[1].clone()))?;
    }

    #[test]
    fn sphere_agrees_with_its_composition(seed: u64, n in rows(), d in 2_usize..150, radius in 0.5_f32..12.0) {
        check(seed, &[var(n, d)], |x| ops::sphere(x[0].clone(), radius))?;
    }

    #[test]
    fn set_attention_agrees_with_its_composition(
        seed: u64, lengths in prop::collection::vec(0_usize..30, 0..6), heads in 1_usize..5, depth in 1_usize..20
    ) {
        let (sets, tokens) = (lengths.len(), 30);
        check(seed, &[var(sets * tokens, 3 * heads * depth)], |x| {
            ops::set_attention(x[0].clone(), sets, heads, Some(&lengths))
        })?;
        check(seed, &[var(sets * tokens, 3 * heads * depth)], |x| ops::set_attention(x[0].clone(), sets, heads, None))?;
    }

    #[test]
    fn placed_attention_agrees_with_its_composition(
        seed: u64, lengths in prop::collection::vec(0_usize..12, 0..4), heads in 1_usize..4, depth in 1_usize..20
    ) {
        let (sets, tokens) = (lengths.len(), 12);
        let shapes = [var(sets * tokens, 3 * heads * depth), var(2 * tokens - 1, heads)];
        let of_pairs = (0..tokens * tokens).map(|pair| (tokens - 1 + pair / tokens - pair % tokens) as i64).collect();
        let of_pairs = upload_indices(of_pairs, &Device::flex()); // tokens in a line
        let attention = |x: &[Tensor<2>], lengths: Option<&[usize]>| {
            ops::placed_set_attention(x[0].clone(), sets, heads, lengths, x[1].clone(), &of_pairs)
        };
        check(seed, &shapes, |x| attention(x, Some(&lengths)))?;
        check(seed, &shapes, |x| attention(x, None))?;
    }

    #[test]
    fn pair_kernels_agree_with_their_composition(
        seed: u64, contexts in 1_usize..4, tasks in 1_usize..6, tokens in 1_usize..40, key in 1_usize..18,
        averages in 1_usize..4, maxima in 0_usize..3
    ) {
        let kernels = averages + maxima;
        let queries = var(contexts * tokens, kernels * key);
        let numbers = In([contexts * tasks, tokens], true);
        let shapes = [queries, queries, var(2 * tokens - 1, kernels), numbers, numbers];
        let of_pairs = (0..tokens * tokens).map(|pair| (tokens - 1 + pair / tokens - pair % tokens) as i64).collect();
        let of_pairs = upload_indices(of_pairs, &Device::flex()); // tokens in a line
        check(seed, &shapes, |x| {
            let [q, k, bias, r, log_r] = [0, 1, 2, 3, 4].map(|i| x[i].clone());
            ops::pair_kernels([q, k], bias, &of_pairs, [r, log_r], contexts, maxima)
        })?;
    }

    #[test]
    fn set_mean_agrees_with_its_composition(
        seed: u64, lengths in prop::collection::vec(0_usize..30, 0..6), width in size()
    ) {
        let sets = lengths.len();
        check(seed, &[var(sets * 30, width)], |x| ops::set_mean(x[0].clone(), sets, Some(&lengths)))?;
        check(seed, &[var(0, width)], |x| ops::set_mean(x[0].clone(), sets, None))?;
    }

    #[test]
    fn pair_loss_agrees_with_its_composition(seed: u64, n in rows(), d in size(), discount in 0.5_f32..1.0) {
        check(seed, &[var(n, d), var(n, d), In([n, n], true)], |x| {
            ops::pair_loss(x[0].clone(), x[1].clone(), x[2].clone(), discount).reshape([1, 1])
        })?;
    }

    #[test]
    fn fb_loss_agrees_with_its_composition(seed: u64, n in rows(), d in size(), discount in 0.5_f32..1.0) {
        let shapes = [var(n, d), var(n, d), var(n, d), In([n, d], true), In([n, d], true)];
        check(seed, &shapes, |x| {
            let f = [x[0].clone(), x[1].clone()];
            ops::fb_loss(f, x[2].clone(), x[3].clone(), x[4].clone(), discount, 0.7).reshape([1, 1])
        })?;
    }

    #[test]
    fn greedy_heads_agree_with_their_composition(seed: u64, n in rows(), d in size(), heads in 1_usize..7) {
        let shapes = [In([n, heads * d], true), In([n, d], true)];
        let values = draw(seed, &shapes);
        let [fused, exact] = [DType::F32, DType::F64].map(|dtype| {
            let x = tensors(&values, &shapes, dtype, false);
            wide(ops::greedy_heads(x[0].clone(), x[1].clone()))
        });
        prop_assert_eq!(fused, exact);
    }

    #[test]
    fn ortho_loss_agrees_with_its_composition(seed: u64, n in rows(), d in size()) {
        // Rows about as long as B's: the loss is a difference of sums, which longer rows leave few digits of.
        let scale = (d as f32).sqrt().recip();
        check(seed, &[var(n, d)], |x| ops::ortho_loss(x[0].clone() * scale).reshape([1, 1]))?;
    }
}

/// Near its end, training works on small gaps between large products.
#[test]
fn the_gradient_of_fb_loss_holds_where_gaps_are_a_hundredth_of_the_products() {
    let shapes = [var(200, 30), var(200, 30), var(200, 30), In([200, 30], true), In([200, 30], true)];
    let mut values = draw(3, &shapes);
    let wiggle = draw(4, &shapes);
    let single = |x: f64| f64::from(x as f32);
    for i in 0..200 * 30 {
        values[1][i] = single(values[0][i] + 0.005 * wiggle[1][i]);
        values[3][i] = single(values[0][i] + 0.005 * wiggle[3][i]);
        values[4][i] = values[2][i];
    }
    let grads = [DType::F32, DType::F64].map(|dtype| {
        let x = tensors(&values, &shapes, dtype, true);
        let loss =
            ops::fb_loss([x[0].clone(), x[1].clone()], x[2].clone(), x[3].clone(), x[4].clone(), 1.0, 0.0);
        let mut grads = loss.backward();
        wide(x[0].grad_remove(&mut grads).unwrap())
    });
    let apart = grads[0].iter().zip(&grads[1]).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let size = grads[1].iter().map(|g| g * g).sum::<f64>().sqrt();
    assert!(apart < 1e-4 * size, "{apart} of {size}");
}

#[test]
fn no_rows_give_no_rows_and_no_gradient() {
    let device = Device::flex().autodiff();
    let x = Tensor::<2>::empty([0, 3], &device).require_grad();
    let w = Tensor::<2>::ones([3, 5], &device).require_grad();
    let b = Tensor::<2>::ones([1, 5], &device).require_grad();
    let y = ops::linear(x.clone(), &w, &b, Act::Gelu);
    let y = ops::layer_norm(y, &b, &b, Act::Tanh);
    let y = ops::cat_linear(
        y.clone(),
        &w.clone().transpose(),
        y,
        &w.clone().transpose(),
        &Tensor::ones([1, 3], &device),
        Act::None,
    );
    assert_eq!(y.dims(), [0, 3]);
    let choice = Tensor::<1, Int>::empty([0], &device);
    let y = ops::select_heads(y, &w, &b, 5, choice);
    let mut grads = y.sum().backward();
    assert_eq!(read(w.grad_remove(&mut grads).unwrap()), [0.0; 15]);
    assert_eq!(x.grad_remove(&mut grads).unwrap().dims(), [0, 3]);
}

#[test]
fn products_of_groups_are_the_products_of_each() {
    let draw = |seed: u64, shape: [usize; 3]| {
        let mut rng = rng::stream(seed, "groups", &[]);
        let values = (0..shape.iter().product()).map(|_| rng.random_range(-1.0_f32..1.0)).collect();
        crate::nn::upload::<3>(values, shape, &Device::flex())
    };
    let (a, b, onto) = (draw(1, [5, 7, 30]), draw(2, [5, 30, 19]), draw(3, [5, 7, 19]));
    for onto in [None, Some(onto)] {
        let got = read(ops::group_products(a.clone(), b.clone(), onto.clone()));
        let plain = a.clone().matmul(b.clone());
        let expected = read(onto.map_or_else(|| plain.clone(), |onto| plain.clone() + onto));
        assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
    }
    // A transposed view is not in row order.
    let turned = draw(4, [5, 30, 7]).swap_dims(1, 2);
    let got = read(ops::group_products(turned.clone(), b.clone(), None));
    assert!(got.iter().zip(read(turned.matmul(b))).all(|(a, b)| (a - b).abs() < 1e-5));
}
