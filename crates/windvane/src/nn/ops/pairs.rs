//! Kernels over pairs of tokens.

use super::fused::{Fused, dims, rows, tensor, values};
use super::sets::spread;
use crate::nn::kernels::pairs::{Grads, Inputs, Pairs, Seen};
use crate::nn::kernels::par;
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::simd::Level;
use burn_flex::FlexTensor;
use std::sync::Arc;

/// What tokens see of each other through kernels, inputs `[query, key, bias, r, log_r]`.
#[derive(Debug)]
pub(super) struct PairKernels {
    pub(super) contexts: usize,
    pub(super) averages: usize,
    pub(super) maxima: usize,
    /// The displacement between each pair of tokens.
    pub(super) of_pairs: Arc<Vec<usize>>,
}

/// Inputs, output and what else the way back needs, and the shape of the bias.
type Saved = ([FlexTensor; 5], FlexTensor, Arc<Vec<Seen>>, [usize; 2]);

impl PairKernels {
    /// The sizes of a context.
    fn pairs(&self, [query, _, _, r, _]: &[FlexTensor; 5]) -> Pairs {
        let (averages, maxima, contexts) = (self.averages, self.maxima, self.contexts.max(1));
        let ([all, width], [tasks, _]) = (dims(query), dims(r));
        let key = width / (averages + maxima);
        Pairs { tokens: all / contexts, tasks: tasks / contexts, averages, maxima, key }
    }

    /// The inputs of context `i`.
    fn inputs<'a>(i: usize, pairs: Pairs, [q, k, bias, r, log_r]: &'a [FlexTensor; 5]) -> Inputs<'a> {
        let Pairs { tokens, tasks, averages, maxima, key } = pairs;
        let own = |x: &'a FlexTensor, size: usize| &values(x)[i * size..(i + 1) * size];
        let (queries, numbers) = (tokens * (averages + maxima) * key, tasks * tokens);
        Inputs {
            q: own(q, queries),
            k: own(k, queries),
            bias: values(bias),
            r: own(r, numbers),
            log_r: own(log_r, numbers),
        }
    }
}

impl Fused<5> for PairKernels {
    type Saved = Saved;

    fn forward(&self, inputs: [FlexTensor; 5], _: [bool; 5]) -> (FlexTensor, Option<Saved>) {
        let [q, k, bias, r, log_r] = inputs.map(rows);
        let (shape, kernels) = (dims(&bias), self.averages + self.maxima);
        let root = ((dims(&q)[1] / kernels) as f32).sqrt();
        let inputs = [q, k, spread(&bias, &self.of_pairs, root), r, log_r];
        let pairs = self.pairs(&inputs);
        let size = pairs.tasks * pairs.tokens * kernels;
        let mut out = Buffer::new(self.contexts * size);
        let mut seen = vec![Seen::default(); self.contexts];
        par::chunks2(&mut out, &mut seen, [size, 1], |i, out, seen| {
            seen[0] = pairs.see(Level::current(), Self::inputs(i, pairs, &inputs), out);
        });
        let out = tensor(out, [self.contexts * pairs.tasks * pairs.tokens, kernels]);
        (out.clone(), Some((inputs, out, Arc::new(seen), shape)))
    }

    fn backward(
        self,
        (inputs, out, seen, shape): Saved,
        grad: FlexTensor,
        wanted: [bool; 5],
    ) -> [Option<FlexTensor>; 5] {
        let grad = rows(grad);
        let pairs = self.pairs(&inputs);
        let queries = dims(&inputs[0]);
        let (size, width) = (pairs.tasks * pairs.tokens * shape[1], pairs.tokens * queries[1]);
        let mut q_grad = Buffer::new(queries[0] * queries[1]);
        // Gradients of keys and of the bias, context by context.
        let new = |_| (Buffer::new(width), Buffer::zeros(shape[0] * shape[1]));
        let mut others: Vec<(Buffer, Buffer)> = (0..self.contexts).map(new).collect();
        let (out, grad) = (values(&out), values(&grad));
        par::chunks2(&mut q_grad, &mut others, [width, 1], |i, q, others| {
            let own = i * size..(i + 1) * size;
            let (k, bias) = &mut others[0];
            let to = Grads { q, k, bias };
            let input = Self::inputs(i, pairs, &inputs);
            let done = (&out[own.clone()], &seen[i]);
            pairs.see_backward(Level::current(), input, done, &grad[own], &self.of_pairs, to);
        });
        let mut k_grad = Buffer::new(queries[0] * queries[1]);
        let mut bias_grad = Buffer::zeros(shape[0] * shape[1]);
        for (to, (k, bias)) in k_grad.chunks_exact_mut(width.max(1)).zip(&others) {
            to.copy_from_slice(k);
            bias_grad.iter_mut().zip(bias.iter()).for_each(|(to, x)| *to += *x);
        }
        let bias_grad = wanted[2].then(|| tensor(bias_grad, shape));
        [Some(tensor(q_grad, queries)), Some(tensor(k_grad, queries)), bias_grad, None, None]
    }
}
