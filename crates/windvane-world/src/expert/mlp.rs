//! A small network in plain numbers: linear, activation, linear, activation, linear; with its gradient.

use super::product::add_product;
use crate::rng::Rng;
use rand::RngExt as _;

/// The shape of a network. Its parameters are a slice of somebody's vector: for each layer the weights, one row for each
/// input, then the biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mlp {
    /// Numbers in, hidden, hidden, out.
    pub(super) sizes: [usize; 4],
    /// What follows the hidden layers.
    pub(super) activation: Activation,
}

/// What makes a network more than linear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Tanh,
    /// max(x, 0).
    Relu,
}

/// What a pass over many rows leaves behind for the way back.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    rows: usize,
    /// Input, then the output of each layer, [rows, size].
    values: [Vec<f32>; 4],
    /// Scratch for gradients and transposes.
    gradient: [Vec<f32>; 2],
    turned: Vec<f32>,
}

impl Pass {
    /// The outputs, [rows, out].
    pub(super) fn output(&self) -> &[f32] {
        &self.values[3]
    }
}

impl Mlp {
    /// Number of parameters.
    pub(super) fn parameters(self) -> usize {
        (0..3).map(|layer| self.layer(layer)).sum()
    }

    /// Parameters of a layer.
    fn layer(self, layer: usize) -> usize {
        (self.sizes[layer] + 1) * self.sizes[layer + 1]
    }

    /// Draws parameters: uniform within 1/sqrt(inputs), the last layer's weights times `last` and without biases.
    pub(super) fn init(self, parameters: &mut [f32], last: f32, rng: &mut Rng) {
        let mut rest = parameters;
        for layer in 0..3 {
            let (own, after) = rest.split_at_mut(self.layer(layer));
            let bound = 1.0 / (self.sizes[layer] as f32).sqrt();
            own.iter_mut().for_each(|w| *w = rng.random_range(-bound..=bound));
            if layer == 2 {
                let (weights, biases) = own.split_at_mut(self.sizes[2] * self.sizes[3]);
                weights.iter_mut().for_each(|w| *w *= last);
                biases.fill(0.0);
            }
            rest = after;
        }
    }

    /// Outputs for the rows of `input`, [rows, in].
    pub(super) fn forward(self, parameters: &[f32], input: &[f32], pass: &mut Pass) {
        pass.rows = input.len() / self.sizes[0];
        pass.values[0].clear();
        pass.values[0].extend_from_slice(input);
        let mut rest = parameters;
        for layer in 0..3 {
            let [inputs, outputs] = [self.sizes[layer], self.sizes[layer + 1]];
            let (own, after) = rest.split_at(self.layer(layer));
            let (weights, biases) = own.split_at(inputs * outputs);
            let (before, behind) = pass.values.split_at_mut(layer + 1);
            let (x, y) = (&before[layer], &mut behind[0]);
            y.clear();
            (0..pass.rows).for_each(|_| y.extend_from_slice(biases));
            add_product(x, weights, y, [pass.rows, inputs, outputs]);
            match self.activation {
                _ if layer == 2 => {}
                Activation::Tanh => y.iter_mut().for_each(|y| *y = tanh(*y)),
                Activation::Relu => y.iter_mut().for_each(|y| *y = y.max(0.0)),
            }
            rest = after;
        }
    }

    /// Adds to `gradient` that of the parameters, given that of the outputs of the last pass, [rows, out].
    pub(super) fn backward(self, parameters: &[f32], pass: &mut Pass, outputs: &[f32], gradient: &mut [f32]) {
        self.back(parameters, pass, outputs, Some(gradient));
    }

    /// The gradient of the inputs, [rows, in], given that of the outputs of the last pass, [rows, out].
    pub(super) fn inputs<'a>(self, parameters: &[f32], pass: &'a mut Pass, outputs: &[f32]) -> &'a [f32] {
        self.back(parameters, pass, outputs, None);
        &pass.gradient[0]
    }

    /// The way back: to the parameters where `gradient` is given, else to the inputs.
    fn back(self, parameters: &[f32], pass: &mut Pass, outputs: &[f32], mut gradient: Option<&mut [f32]>) {
        let Pass { rows, values, gradient: [here, next], turned } = pass;
        let rows = *rows;
        here.clear();
        here.extend_from_slice(outputs);
        let mut end = self.parameters();
        for layer in (0..3).rev() {
            let [inputs, outputs] = [self.sizes[layer], self.sizes[layer + 1]];
            let own = end - self.layer(layer)..end;
            end = own.start;
            if let Some(gradient) = gradient.as_deref_mut() {
                let (weights, biases) = gradient[own.clone()].split_at_mut(inputs * outputs);
                turn(&values[layer], [rows, inputs], turned);
                add_product(turned, here, weights, [inputs, rows, outputs]);
                for row in here.chunks_exact(outputs) {
                    biases.iter_mut().zip(row).for_each(|(b, g)| *b += g);
                }
                if layer == 0 {
                    return;
                }
            }
            turn(&parameters[own][..inputs * outputs], [inputs, outputs], turned);
            next.clear();
            next.resize(rows * inputs, 0.0);
            add_product(here, turned, next, [rows, outputs, inputs]);
            let slopes = next.iter_mut().zip(&values[layer]);
            match self.activation {
                _ if layer == 0 => {}
                // The slope of tanh is 1 - tanh^2.
                Activation::Tanh => slopes.for_each(|(g, y)| *g *= 1.0 - y * y),
                Activation::Relu => slopes.for_each(|(g, y)| *g = if *y > 0.0 { *g } else { 0.0 }),
            }
            std::mem::swap(here, next);
        }
    }
}

/// Writes the transpose of `matrix`, [rows, columns].
fn turn(matrix: &[f32], [rows, columns]: [usize; 2], turned: &mut Vec<f32>) {
    turned.clear();
    turned.resize(rows * columns, 0.0);
    for (row, values) in matrix.chunks_exact(columns).enumerate() {
        values.iter().enumerate().for_each(|(column, value)| turned[column * rows + row] = *value);
    }
}

/// The hyperbolic tangent to a few units in the last place: a ratio of polynomials, the same bits everywhere, and fast.
pub(super) fn tanh(x: f32) -> f32 {
    let x = x.clamp(-7.9, 7.9);
    let square = x * x;
    let over = [-2.760_768_5e-16, 2.000_188e-13, -8.604_672e-11, 5.122_297e-8, 1.485_722_4e-5, 6.372_619e-4];
    let under = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3];
    let over = over.into_iter().fold(0.0, |sum, c| sum * square + c) * square + 4.893_524_6e-3;
    let under = under.into_iter().fold(0.0, |sum, c| sum * square + c) * square + 4.893_525e-3;
    x * over / under
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    #[test]
    fn tanh_is_tanh() {
        for step in -2000..=2000 {
            let x = step as f32 / 200.0;
            assert!((tanh(x) - x.tanh()).abs() < 1e-6, "{x}: {} {}", tanh(x), x.tanh());
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_output() {
        for activation in [Activation::Tanh, Activation::Relu] {
            check(Mlp { sizes: [5, 9, 7, 3], activation });
        }
    }

    fn check(net: Mlp) {
        let mut rng = stream(1, "test", &[]);
        let mut parameters = vec![0.0; net.parameters()];
        net.init(&mut parameters, 0.5, &mut rng);
        let input: Vec<f32> = (0..6 * 5).map(|_| rng.random_range(-1.0..1.0)).collect();
        let weights: Vec<f32> = (0..6 * 3).map(|_| rng.random_range(-1.0..1.0)).collect();
        let mut pass = Pass::default();
        let mut loss = |parameters: &[f32], input: &[f32]| -> f64 {
            net.forward(parameters, input, &mut pass);
            pass.output().iter().zip(&weights).map(|(y, w)| f64::from(y * w)).sum()
        };
        // Differences to both sides; with max(x, 0), one of them may go over a kink, the other is a straight line.
        let slope = |numbers: &[f32], place: usize, at: &mut dyn FnMut(&[f32]) -> f64| {
            let mut moved = |step: f32| {
                let mut moved = numbers.to_vec();
                moved[place] += step;
                at(&moved)
            };
            match net.activation {
                Activation::Tanh => [(moved(1e-2) - moved(-1e-2)) / 2e-2; 2],
                Activation::Relu => [1e-3, -1e-3].map(|step| (moved(step) - moved(0.0)) / f64::from(step)),
            }
        };
        let slopes: Vec<[f64; 2]> = (0..net.parameters())
            .map(|place| slope(&parameters, place, &mut |moved| loss(moved, &input)))
            .collect();
        let input_slopes: Vec<[f64; 2]> = (0..input.len())
            .map(|place| slope(&input, place, &mut |moved| loss(&parameters, moved)))
            .collect();
        let mut gradient = vec![0.0; net.parameters()];
        net.forward(&parameters, &input, &mut pass);
        net.backward(&parameters, &mut pass, &weights, &mut gradient);
        let inputs = net.inputs(&parameters, &mut pass, &weights);
        let both = slopes.iter().zip(&gradient).chain(input_slopes.iter().zip(inputs));
        for (place, (slopes, exact)) in both.enumerate() {
            let off = slopes.map(|slope| (slope - f64::from(*exact)).abs());
            assert!(off[0].min(off[1]) < 2e-3, "{:?} {place}: {slopes:?} {exact}", net.activation);
        }
    }
}
