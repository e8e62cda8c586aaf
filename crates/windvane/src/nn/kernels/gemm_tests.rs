use super::{Mat, MatMut, Start, gemm_act};
use crate::device::Threads;
use crate::nn::Act;
use crate::nn::kernels::simd::Level;
use proptest::prelude::*;
use windvane_world::rng;

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![0_usize..20, 20_usize..130]
}

fn draw(seed: u64, name: &str, len: usize) -> Vec<f32> {
    let mut rng = rng::stream(seed, name, &[]);
    (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// A drawn matrix of this shape, transposed in memory or not.
fn matrix(data: &[f32], rows: usize, cols: usize, transposed: bool) -> Mat<'_> {
    if transposed { Mat::new(data, cols, rows).t() } else { Mat::new(data, rows, cols) }
}

/// What is promised: every element is one chain of fused multiply-adds along the inner dimension, in order.
fn chains(a: Mat<'_>, b: Mat<'_>, bias: &[f32]) -> Vec<u32> {
    let element = |i: usize, j: usize| {
        (0..a.cols)
            .fold(bias[j], |sum, p| a.data[i * a.row + p * a.col].mul_add(b.data[p * b.row + j * b.col], sum))
    };
    (0..a.rows).flat_map(|i| (0..b.cols).map(move |j| element(i, j).to_bits())).collect()
}

fn product(level: Level, a: Mat<'_>, b: Mat<'_>, bias: &[f32], act: Act) -> Vec<u32> {
    let mut c = vec![f32::NAN; a.rows * b.cols];
    gemm_act(level, a, b, MatMut::new(&mut c, a.rows, b.cols), Start::Bias(bias), act, None);
    c.into_iter().map(f32::to_bits).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_instruction_set_forges_the_same_chains(
        seed: u64, [m, n, k] in [size(), size(), size()], [left, right]: [bool; 2]
    ) {
        let (a, b, bias) = (draw(seed, "a", m * k), draw(seed, "b", k * n), draw(seed, "bias", n));
        let (a, b) = (matrix(&a, m, k, left), matrix(&b, k, n, right));
        for level in Level::supported() {
            prop_assert_eq!(product(level, a, b, &bias, Act::None), chains(a, b, &bias), "{}", level.name());
        }
    }
}

#[test]
fn blocks_threads_and_activations_do_not_change_a_bit() {
    // More than one block of columns, several visits of the inner dimension, and rows that no tile divides.
    let (m, n, k) = (61, 1061, 601);
    let (a, b, bias) = (draw(1, "a", m * k), draw(1, "b", k * n), draw(1, "bias", n));
    let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, k, n));
    assert_eq!(product(Level::current(), a, b, &bias, Act::None), chains(a, b, &bias));
    for act in [Act::None, Act::Relu, Act::Gelu, Act::Tanh] {
        let run = |threads: usize, level: Level| {
            Threads::new(threads).unwrap().run(|| product(level, a, b, &bias, act))
        };
        let expected = run(1, Level::current());
        for level in Level::supported() {
            assert_eq!(run(3, level), expected, "{act:?} {}", level.name());
        }
    }
}

#[test]
#[should_panic(expected = "a matrix reaches beyond its memory")]
fn a_matrix_beyond_its_memory_is_refused() {
    Mat::new(&[0.0; 5], 2, 3);
}
