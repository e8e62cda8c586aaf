//! Adam over one vector of parameters.

/// Decay of the mean of gradients and of their squares.
const DECAY: [f32; 2] = [0.9, 0.999];

/// The optimiser's memory.
#[derive(Clone, Debug)]
pub(super) struct Adam {
    pub(super) mean: Vec<f32>,
    pub(super) square: Vec<f32>,
    pub(super) steps: i32,
}

impl Adam {
    /// For so many parameters.
    pub(super) fn new(parameters: usize) -> Self {
        Self { mean: vec![0.0; parameters], square: vec![0.0; parameters], steps: 0 }
    }

    /// One step down `gradient`, which is shortened to the length `longest` first.
    pub(super) fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32, longest: f32) {
        let length = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt() as f32;
        let shorten = (longest / (length + 1e-6)).min(1.0);
        self.steps += 1;
        let [first, second] = DECAY.map(|decay| 1.0 - decay.powi(self.steps));
        let memory = self.mean.iter_mut().zip(&mut self.square);
        for ((parameter, gradient), (mean, square)) in parameters.iter_mut().zip(gradient).zip(memory) {
            let gradient = gradient * shorten;
            *mean += (1.0 - DECAY[0]) * (gradient - *mean);
            *square += (1.0 - DECAY[1]) * (gradient * gradient - *square);
            *parameter -= rate * (*mean / first) / ((*square / second).sqrt() + 1e-8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adam_finds_the_bottom_of_a_bowl_and_its_first_step_has_the_length_of_its_rate() {
        let mut at = [3.0, -2.0];
        let mut adam = Adam::new(2);
        adam.step(&mut at, &[6.0, -40.0], 0.01, f32::INFINITY);
        assert!((at[0] - 2.99).abs() < 1e-5 && (at[1] + 1.99).abs() < 1e-5, "{at:?}");
        for _ in 0..3000 {
            let gradient = [2.0 * at[0], 20.0 * at[1]];
            adam.step(&mut at, &gradient, 0.01, 1.0);
        }
        assert!(at.iter().all(|x| x.abs() < 1e-2), "{at:?}");
    }
}
