//! Every operation written in plain tensor calls: what runs on devices without kernels of our own, what Burn's autodiff
//! differentiates there, and what the fast kernels are tested against.
//!
//! Burn's `reshape` reads a size of 0 as "as before", so a batch without rows takes a way of its own where there is one.

use super::{Act, Items};
use crate::nn::kernels::pairs::OFFSET;
use crate::nn::transfer::upload_indices;
use burn::tensor::{Int, Tensor, activation};

/// Variance floor of layer normalisation, as in PyTorch.
pub(super) const LAYER_NORM_EPSILON: f64 = 1e-5;

pub(super) fn act(x: Tensor<2>, act: Act) -> Tensor<2> {
    match act {
        Act::None => x,
        Act::Relu => activation::relu(x),
        Act::Gelu => activation::gelu(x),
        Act::Tanh => x.tanh(),
    }
}

pub(super) fn linear(x: Tensor<2>, w: Tensor<2>, b: Tensor<2>, f: Act) -> Tensor<2> {
    act(x.matmul(w) + b, f)
}

pub(super) fn cat_linear(x: [Tensor<2>; 2], w: [Tensor<2>; 2], b: Tensor<2>, f: Act) -> Tensor<2> {
    let ([x1, x2], [w1, w2]) = (x, w);
    act(x1.matmul(w1) + x2.matmul(w2) + b, f)
}

pub(super) fn grouped_linear(
    x: [Tensor<2>; 2],
    w: [Tensor<2>; 2],
    b: Tensor<2>,
    items: Items,
    f: Act,
) -> Tensor<2> {
    let ([x, group], [wx, wc]) = (x, w);
    let ([groups, _], [_, out]) = (group.dims(), wx.dims());
    let rows = match items {
        Items::Shared => 1,
        Items::PerGroup => groups,
    };
    let own = x.matmul(wx); // [items or groups * items, out]
    if own.dims()[0] == 0 {
        return own;
    }
    let count = own.dims()[0] / rows.max(1);
    let common = (group.matmul(wc) + b).reshape([groups, 1, out]);
    let sum = own.reshape([rows, count, out]) + common; // [groups, items, out]
    act(sum.reshape([groups * count, out]), f)
}

pub(super) fn layer_norm(x: Tensor<2>, gain: Tensor<2>, shift: Tensor<2>, f: Act) -> Tensor<2> {
    let centred = x.clone() - x.mean_dim(1);
    let variance = centred.clone().powi_scalar(2).mean_dim(1);
    act(centred / (variance + LAYER_NORM_EPSILON).sqrt() * gain + shift, f)
}

pub(super) fn select_heads(
    x: Tensor<2>,
    w: Tensor<2>,
    b: Tensor<2>,
    heads: usize,
    choice: Tensor<1, Int>,
) -> Tensor<2> {
    let ([rows, _], [_, out]) = (x.dims(), w.dims());
    let width = out / heads;
    if rows == 0 {
        return x.matmul(w).narrow(1, 0, width) + b.narrow(1, 0, width);
    }
    let all = (x.matmul(w) + b).reshape([rows, heads, width]);
    let index = choice.reshape([rows, 1, 1]).expand([rows, 1, width]);
    all.gather(1, index).reshape([rows, width])
}

pub(super) fn greedy_heads(f: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
    let ([rows, all], [_, width]) = (f.dims(), z.dims());
    if rows == 0 {
        return z;
    }
    let f = f.reshape([rows, all / width, width]);
    let along = (f.clone() * z.reshape([rows, 1, width])).sum_dim(2); // [rows, heads, 1]
    let best = along.argmax(1).expand([rows, 1, width]);
    f.gather(1, best).reshape([rows, width])
}

pub(super) fn sphere(x: Tensor<2>, radius: f64) -> Tensor<2> {
    let norm = x.clone().powi_scalar(2).sum_dim(1).sqrt().clamp_min(super::SMALLEST_NORM);
    x / norm * radius
}

pub(super) fn set_attention(
    qkv: Tensor<2>,
    heads: usize,
    lengths: &[usize],
    bias: Option<Tensor<4>>,
) -> Tensor<2> {
    let ([rows, triple], sets) = (qkv.dims(), lengths.len());
    let (width, depth) = (triple / 3, triple / 3 / heads);
    if rows == 0 {
        return qkv.narrow(1, 0, width);
    }
    let tokens = rows / sets;
    let part = |i: usize| {
        let part = qkv.clone().slice([0..rows, i * width..(i + 1) * width]);
        part.reshape([sets, tokens, heads, depth]).swap_dims(1, 2) // [sets, heads, tokens, depth]
    };
    let scores = part(0).matmul(part(1).swap_dims(2, 3)) / (depth as f64).sqrt(); // [sets, heads, tokens, tokens]
    let scores = match bias {
        Some(bias) => scores + bias,
        None => scores,
    };
    if lengths.iter().all(|&n| n == tokens) {
        let mixed = activation::softmax(scores, 3).matmul(part(2));
        return mixed.swap_dims(1, 2).reshape([rows, width]);
    }
    let padding = padding(lengths, tokens, &qkv); // [sets, tokens]
    let scores = scores + padding.clone().reshape([sets, 1, 1, tokens]) * -1e30;
    let mixed = activation::softmax(scores, 3).matmul(part(2)); // [sets, heads, tokens, depth]
    mixed.swap_dims(1, 2).reshape([rows, width]) * (padding.neg() + 1.0).reshape([rows, 1])
}

/// `bias` is that of each pair of tokens, `[tokens^2, kernels]`.
pub(super) fn pair_kernels(
    keys: [Tensor<2>; 2],
    bias: Tensor<2>,
    [r, log_r]: [Tensor<2>; 2],
    contexts: usize,
    [averages, maxima]: [usize; 2],
) -> Tensor<2> {
    let ([all, tokens], [_, width]) = (r.dims(), keys[0].dims());
    let (tasks, kernels) = (all / contexts, averages + maxima);
    let depth = width / kernels;
    let [q, k] = keys.map(|x| x.reshape([contexts, tokens, kernels, depth]).swap_dims(1, 2)); // [contexts, kernels, tokens, key]
    let bias = bias.transpose().reshape([1, kernels, tokens, tokens]);
    let logits = q.matmul(k.swap_dims(2, 3)) / (depth as f64).sqrt() + bias;

    let averaging = activation::softmax(logits.clone().narrow(1, 0, averages), 3);
    let averaging = averaging.reshape([contexts, averages * tokens, tokens]);
    let y = averaging.matmul(r.reshape([contexts, tasks, tokens]).swap_dims(1, 2)); // [contexts, averages * tokens, tasks]
    let y = y.reshape([contexts, averages, tokens, tasks]).permute([0, 3, 2, 1]);
    if maxima == 0 {
        return y.reshape([all * tokens, kernels]);
    }
    let near = -activation::softplus(logits.narrow(1, averages, maxima) + f64::from(OFFSET), 1.0);
    let near = near.reshape([contexts, 1, maxima * tokens, tokens]);
    let best = (near + log_r.reshape([contexts, tasks, 1, tokens])).max_dim(3);
    let best = best.reshape([contexts, tasks, maxima, tokens]).swap_dims(2, 3);
    Tensor::cat(vec![y, best], 3).reshape([all * tokens, kernels])
}

pub(super) fn set_mean(x: Tensor<2>, lengths: &[usize]) -> Tensor<2> {
    let ([rows, width], sets) = (x.dims(), lengths.len());
    if rows == 0 {
        return if sets == 0 { x } else { x.sum_dim(0).repeat_dim(0, sets) };
    }
    let tokens = rows / sets;
    let seen = padding(lengths, tokens, &x).reshape([sets, tokens, 1]).neg() + 1.0;
    let counts = seen.clone().sum_dim(1).clamp_min(1.0); // [sets, 1, 1]
    ((x.reshape([sets, tokens, width]) * seen).sum_dim(1) / counts).reshape([sets, width])
}

/// 1 where a token is padding and 0 where it is not, as [sets, tokens].
fn padding(lengths: &[usize], tokens: usize, like: &Tensor<2>) -> Tensor<2> {
    let (device, sets) = (like.device().without_autodiff(), lengths.len());
    if lengths.iter().all(|&n| n == tokens) {
        return Tensor::zeros([sets, tokens], (&device, like.dtype()));
    }
    let lengths = upload_indices(lengths.iter().map(|&n| n as i64).collect(), &device).reshape([sets, 1]);
    let tokens = Tensor::<1, Int>::arange(0..tokens as i64, &device).reshape([1, tokens]);
    tokens.greater_equal(lengths).float().cast(like.dtype()) // [sets, tokens]
}

pub(super) fn pair_loss(f: Tensor<2>, b: Tensor<2>, target: Tensor<2>, discount: f64) -> Tensor<1> {
    let n = f.dims()[0].max(1) as f64;
    let diagonal = (f.clone() * b.clone()).sum() / n;
    let gap = f.clone().matmul(b.clone().transpose()) - target.clone() * discount; // [n, n]
    let own = (f * b).sum_dim(1) - diagonal_of(target) * discount; // [n, 1]
    let off = gap.powi_scalar(2).sum() - own.powi_scalar(2).sum();
    off / (n * (n - 1.0)).max(1.0) * 0.5 - diagonal
}

pub(super) fn ortho_loss(b: Tensor<2>) -> Tensor<1> {
    let n = b.dims()[0].max(1) as f64;
    let gram = b.clone().matmul(b.clone().transpose()); // [n, n]
    let own = b.powi_scalar(2).sum_dim(1); // [n, 1]
    let off = gram.powi_scalar(2).sum() - own.clone().powi_scalar(2).sum();
    off / (n * (n - 1.0)).max(1.0) * 0.5 - own.sum() / n
}

fn diagonal_of(m: Tensor<2>) -> Tensor<2> {
    let [n, _] = m.dims();
    let index = Tensor::<1, Int>::arange(0..n as i64, &m.device()).reshape([n, 1]);
    m.gather(1, index)
}
