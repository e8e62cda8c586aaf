//! The hot operations: one function each, on any device.

pub(crate) mod adam;
mod affine;
mod composed;
mod fb_loss;
pub(super) mod fused;
mod groups;
mod heads;
mod losses;
pub(crate) mod muon;
mod norm;
mod pairs;
mod sets;

use burn::tensor::{Int, Tensor};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What follows a linear map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Nothing.
    None,
    /// `max(x, 0)`.
    Relu,
    /// `x * Phi(x)`, the exact form with erf.
    #[default]
    Gelu,
    /// Hyperbolic tangent.
    Tanh,
}

/// Whose rows the items of a grouped operation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// One set of `items` rows that every group uses (all states of a grid): `[items, inputs]`.
    Shared,
    /// Each group has its own rows, group by group: `[groups * items, inputs]`.
    PerGroup,
}

/// The shortest vector [`sphere`] still divides by.
const SMALLEST_NORM: f64 = 1e-6;

/// `act(x w + b)`. Shapes: `x [rows, in]`, `w [in, out]`, `b [1, out]` -> `[rows, out]`.
pub fn linear(x: Tensor<2>, w: &Tensor<2>, b: &Tensor<2>, act: Act) -> Tensor<2> {
    if fused::applies(&x) {
        fused::run(affine::Linear(act), [x, w.clone(), b.clone()])
    } else {
        composed::linear(x, w.clone(), b.clone(), act)
    }
}

/// `onto + x w + b`: a linear map on top of the stream it came from. Shapes: as for [`linear`], `onto [rows, out]`.
pub fn linear_onto(x: Tensor<2>, w: &Tensor<2>, b: &Tensor<2>, onto: Tensor<2>) -> Tensor<2> {
    if fused::applies(&x) {
        fused::run(affine::LinearOnto, [x, w.clone(), b.clone(), onto])
    } else {
        onto + composed::linear(x, w.clone(), b.clone(), Act::None)
    }
}

/// `act(x1 w1 + x2 w2 + b)`: a linear map of two inputs without joining them. Shapes: `x1 [rows, in1]`, `x2 [rows, in2]`,
/// `w1 [in1, out]`, `w2 [in2, out]`, `b [1, out]` -> `[rows, out]`.
pub fn cat_linear(
    x1: Tensor<2>,
    w1: &Tensor<2>,
    x2: Tensor<2>,
    w2: &Tensor<2>,
    b: &Tensor<2>,
    act: Act,
) -> Tensor<2> {
    let (w1, w2, b) = (w1.clone(), w2.clone(), b.clone());
    if fused::applies(&x1) {
        fused::run(affine::CatLinear(act), [x1, w1, x2, w2, b])
    } else {
        composed::cat_linear([x1, x2], [w1, w2], b, act)
    }
}

/// A linear map of two inputs where the second belongs to a group of rows, so that its costly half is computed once per
/// group: `out[g * items + i] = act(x[..] wx + group[g] wc + b)`.
///
/// Shapes: `x [items, in]` ([`Items::Shared`]) or `[groups * items, in]` ([`Items::PerGroup`]), `group [groups, in2]`
/// -> `[groups * items, out]`.
pub fn grouped_linear(
    x: Tensor<2>,
    wx: &Tensor<2>,
    group: Tensor<2>,
    wc: &Tensor<2>,
    b: &Tensor<2>,
    items: Items,
    act: Act,
) -> Tensor<2> {
    let (wx, wc, b) = (wx.clone(), wc.clone(), b.clone());
    if fused::applies(&x) {
        fused::run(affine::GroupedLinear(act, items), [x, wx, group, wc, b])
    } else {
        composed::grouped_linear([x, group], [wx, wc], b, items, act)
    }
}

/// `act(normalised(x) * gain + shift)`, each row normalised to mean 0 and variance 1; with [`Act::Tanh`] after a linear map
/// it is the paper's first layer. Shapes: `x [rows, n]`, `gain` and `shift [1, n]` -> `[rows, n]`.
pub fn layer_norm(x: Tensor<2>, gain: &Tensor<2>, shift: &Tensor<2>, act: Act) -> Tensor<2> {
    if fused::applies(&x) {
        fused::run(norm::LayerNorm(act), [x, gain.clone(), shift.clone()])
    } else {
        composed::layer_norm(x, gain.clone(), shift.clone(), act)
    }
}

/// The chosen head of each row: `out[i] = x[i] w[choice[i]] + b[choice[i]]`, without computing the others. Shapes:
/// `x [rows, in]`, `w [in, heads * width]` (head by head), `b [1, heads * width]`, `choice [rows]` -> `[rows, width]`.
pub fn select_heads(
    x: Tensor<2>,
    w: &Tensor<2>,
    b: &Tensor<2>,
    heads: usize,
    choice: Tensor<1, Int>,
) -> Tensor<2> {
    if fused::applies(&x) {
        let op = heads::SelectHeads::new(heads, fused::indices(choice).into_iter());
        fused::run(op, [x, w.clone(), b.clone()])
    } else {
        composed::select_heads(x, w.clone(), b.clone(), heads, choice)
    }
}

/// The head that points most along `z`: of `f`, read as heads of `z`'s width side by side, the one with the largest
/// `head . z`, row by row; the first of equals. A constant: gradients do not pass. Shapes: `f [rows, heads * d]`,
/// `z [rows, d]` -> `[rows, d]`.
pub fn greedy_heads(f: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
    let (f, z) = (f.without_autodiff(), z.without_autodiff());
    if fused::applies(&f) { fused::run(heads::GreedyHeads, [f, z]) } else { composed::greedy_heads(f, z) }
}

/// `a b^T`. Shapes: `a [n, d]`, `b [m, d]` -> `[n, m]`.
pub fn products(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    if fused::applies(&a) { fused::run(losses::Products, [a, b]) } else { a.matmul(b.transpose()) }
}

/// `onto + a b` in every group, or `a b` alone. Constants: gradients do not pass. Shapes: `a [groups, n, m]`,
/// `b [groups, m, k]`, `onto [groups, n, k]` -> `[groups, n, k]`.
///
/// # Panics
/// If shapes do not fit each other.
pub fn group_products(a: Tensor<3>, b: Tensor<3>, onto: Option<Tensor<3>>) -> Tensor<3> {
    let (a, b) = (a.without_autodiff(), b.without_autodiff());
    let onto = onto.map(Tensor::without_autodiff);
    let ([groups, n, m], [others, inner, k]) = (a.dims(), b.dims());
    assert!(groups == others && m == inner, "{groups} of {n} x {m} times {others} of {inner} x {k}");
    assert!(onto.as_ref().is_none_or(|x| x.dims() == [groups, n, k]), "onto is not {groups} of {n} x {k}");
    if fused::applies(&a) {
        return groups::products(a, b, onto);
    }
    let product = a.matmul(b);
    match onto {
        Some(onto) => onto + product,
        None => product,
    }
}

/// Each row scaled to length `radius` (a zero row stays zero).
pub fn sphere(x: Tensor<2>, radius: f32) -> Tensor<2> {
    if fused::applies(&x) {
        fused::run(norm::Sphere(radius), [x])
    } else {
        composed::sphere(x, f64::from(radius))
    }
}

/// Self-attention within sets of tokens that have no order. `qkv [sets * tokens, 3 * width]` holds queries, keys and
/// values side by side; `lengths` gives the number of real tokens of each set (nobody attends to the rest, and its own
/// output is 0) -> `[sets * tokens, width]`.
pub fn set_attention(qkv: Tensor<2>, sets: usize, heads: usize, lengths: Option<&[usize]>) -> Tensor<2> {
    let lengths = all_lengths(&qkv, sets, lengths);
    if fused::applies(&qkv) {
        fused::run(sets::SetAttention { heads, lengths: Arc::new(lengths) }, [qkv])
    } else {
        composed::set_attention(qkv, heads, &lengths, None)
    }
}

/// The same for tokens that have places: scores get a bias of each head for each displacement between two tokens, `bias
/// [displacements, heads]`, and `of_pairs [tokens * tokens]` tells the displacement of each pair.
pub fn placed_set_attention(
    qkv: Tensor<2>,
    sets: usize,
    heads: usize,
    lengths: Option<&[usize]>,
    bias: Tensor<2>,
    of_pairs: &Tensor<1, Int>,
) -> Tensor<2> {
    let lengths = all_lengths(&qkv, sets, lengths);
    if fused::applies(&qkv) {
        let (lengths, of_pairs) = (Arc::new(lengths), Arc::new(fused::indices(of_pairs.clone())));
        return fused::run(sets::PlacedAttention { heads, lengths, of_pairs }, [qkv, bias]);
    }
    let tokens = qkv.dims()[0] / sets.max(1);
    let spread = || bias.select(0, of_pairs.clone()).transpose().reshape([1, heads, tokens, tokens]);
    composed::set_attention(qkv, heads, &lengths, (tokens > 0).then(spread))
}

/// What the tokens of each context see of each other through learned kernels `l(s, s') = q(s) k(s') / sqrt(key) + bias(s' - s)`:
/// the first kernels average, `sum over s' of softmax(l)(s, s') r(s')`, the others look for the best,
/// `max over s' of log_r(s') - softplus(l + 2)`.
///
/// Shapes: `query`, `key [contexts * tokens, kernels * key]`, `bias [displacements, kernels]`, `of_pairs [tokens * tokens]`,
/// `r`, `log_r [contexts * tasks, tokens]` (constants) -> `[contexts * tasks * tokens, kernels]`.
pub fn pair_kernels(
    [query, key]: [Tensor<2>; 2],
    bias: Tensor<2>,
    of_pairs: &Tensor<1, Int>,
    [r, log_r]: [Tensor<2>; 2],
    contexts: usize,
    maxima: usize,
) -> Tensor<2> {
    let averages = bias.dims()[1] - maxima;
    if fused::applies(&query) {
        let of_pairs = Arc::new(fused::indices(of_pairs.clone()));
        let op = pairs::PairKernels { contexts, averages, maxima, of_pairs };
        return fused::run(op, [query, key, bias, r, log_r]);
    }
    composed::pair_kernels(
        [query, key],
        bias.select(0, of_pairs.clone()),
        [r, log_r],
        contexts,
        [averages, maxima],
    )
}

/// The mean over the real tokens of each set; the mean of an empty set is 0. Shapes: `[sets * tokens, n]` -> `[sets, n]`.
pub fn set_mean(x: Tensor<2>, sets: usize, lengths: Option<&[usize]>) -> Tensor<2> {
    let lengths = all_lengths(&x, sets, lengths);
    if fused::applies(&x) {
        fused::run(sets::SetMean { lengths: Arc::new(lengths) }, [x])
    } else {
        composed::set_mean(x, &lengths)
    }
}

/// The forward-backward loss of one forward net on a batch of pairs: with `M = f b^T`,
/// `0.5 * mean_offdiag((M - discount * target)^2) - mean(diag M)`. Row `i` of `b` is the state that transition `i` led to.
///
/// Shapes: `f`, `b [n, d]`, `target [n, n]` (a constant) -> `[1]`.
pub fn pair_loss(f: Tensor<2>, b: Tensor<2>, target: Tensor<2>, discount: f32) -> Tensor<1> {
    if fused::applies(&f) {
        fused::run(losses::PairLoss { discount }, [f, b, target])
    } else {
        composed::pair_loss(f, b, target, f64::from(discount))
    }
}

/// The whole loss of a step with an ensemble of two and a target that is a product, `target_f target_b^T`: [`pair_loss`] of
/// both nets, and `ortho` times [`ortho_loss`]. Much cheaper than these, because no batch x batch matrix is formed; the
/// price is that the value (not the gradient) is a difference of large sums, right to about 1e-6 of them.
///
/// Shapes: all `[n, d]`; `target_f` and `target_b` are constants -> `[1]`.
pub fn fb_loss(
    f: [Tensor<2>; 2],
    b: Tensor<2>,
    target_f: Tensor<2>,
    target_b: Tensor<2>,
    discount: f32,
    ortho: f32,
) -> Tensor<1> {
    let [f0, f1] = f;
    if fused::applies(&b) {
        return fused::run(fb_loss::FbLoss { discount, ortho }, [f0, f1, b, target_f, target_b]);
    }
    let target = products(target_f, target_b);
    let [f0, f1] = [f0, f1].map(|f| pair_loss(f, b.clone(), target.clone(), discount));
    f0 + f1 + ortho_loss(b) * ortho
}

/// How far the rows of `b` are from orthonormal features: `0.5 * mean_offdiag((b b^T)^2) - mean(diag b b^T)`.
pub fn ortho_loss(b: Tensor<2>) -> Tensor<1> {
    if fused::applies(&b) { fused::run(losses::OrthoLoss, [b]) } else { composed::ortho_loss(b) }
}

/// asinh(x) = sign(x) ln(|x| + sqrt(x^2 + 1)).
pub(crate) fn asinh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let size = x.clone().abs();
    let magnitude = (size.clone() + (size.powf_scalar(2.0) + 1.0).sqrt()).log();
    magnitude * x.sign().detach()
}

/// The number of real tokens of each set, where `None` means all.
fn all_lengths(x: &Tensor<2>, sets: usize, lengths: Option<&[usize]>) -> Vec<usize> {
    let rows = x.dims()[0];
    let tokens = rows.checked_div(sets).unwrap_or(0);
    assert!(rows == sets * tokens, "{rows} tokens do not divide into {sets} sets");
    let lengths = lengths.map_or_else(|| vec![tokens; sets], <[usize]>::to_vec);
    assert!(
        lengths.len() == sets && lengths.iter().all(|&n| n <= tokens),
        "lengths {lengths:?} of {sets} sets of {tokens}"
    );
    lengths
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod training_tests;
