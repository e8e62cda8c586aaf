//! F and the actor on one row of plain numbers or a few, whichever network they are.

use super::networks::{Backward, TwoInputNet};
use crate::nn::{Act, RowMlp, RowPair, Weights};

/// A [`TwoInputNet`] with its weights, for a few states at a time under one condition and task.
#[derive(Debug)]
pub(crate) enum RowNet {
    Pair(Box<RowPair>),
    Film(Box<RowFilm>),
}

/// The network that is modulated by \[h; z\].
#[derive(Debug)]
pub(crate) struct RowFilm {
    /// B before it is brought to its length; the same for all states: z, and what the task's part of the network says.
    backward: RowMlp,
    task: RowMlp,
    film: RowMlp,
    z: Vec<f32>,
    condition: Vec<f32>,
    state: RowMlp,
    rest: RowMlp,
    /// What goes into the two.
    input: Vec<f32>,
    modulated: Vec<f32>,
}

impl RowNet {
    /// Copies the weights of a network, and of `backward` with weights of its own, under the condition and task `condition`, of which
    /// the last `dim` numbers are z; nothing for a B without such a form.
    pub(crate) fn new(
        net: &TwoInputNet,
        weights: &Weights,
        (backward, backward_weights): (&Backward, &Weights),
        condition: &[f32],
        dim: usize,
    ) -> Option<Self> {
        match net {
            TwoInputNet::Pair(net) => Some(Self::Pair(Box::new(RowPair::new(net, weights, condition)))),
            TwoInputNet::Film { task, film, state, hidden, out } => {
                let Backward::Network(backward) = backward else { return None };
                let mut row = RowFilm {
                    backward: RowMlp::new(backward, backward_weights),
                    task: RowMlp::new(task, weights),
                    film: RowMlp::of_layers(&[(film.clone(), Act::None)], weights),
                    z: vec![0.0; dim],
                    condition: Vec::new(),
                    state: RowMlp::of_layers(&[(state.clone(), Act::None)], weights),
                    rest: RowMlp::of_layers(
                        &[(hidden.clone(), Act::Relu), (out.clone(), Act::None)],
                        weights,
                    ),
                    input: Vec::new(),
                    modulated: Vec::new(),
                };
                row.fix(condition);
                Some(Self::Film(Box::new(row)))
            }
        }
    }

    /// Another condition and task.
    pub(crate) fn fix(&mut self, condition: &[f32]) {
        match self {
            Self::Pair(net) => net.fix(condition),
            Self::Film(net) => net.fix(condition),
        }
    }

    /// The outputs at encoded states `[rows, features]` and actions `[rows, width]`; the actions are empty where the network
    /// takes none.
    pub(crate) fn forward(&mut self, s: &[f32], a: &[f32]) -> &[f32] {
        match self {
            Self::Pair(net) => net.forward(&[s, a][..=usize::from(!a.is_empty())], s),
            Self::Film(net) => net.forward(s, a),
        }
    }
}

/// The actor with its weights, for one state at a time under one condition and task.
#[derive(Debug)]
pub(crate) struct RowActor {
    pub(super) net: RowNet,
    /// The part of the conditioning input that actions are linear in; empty where the network sees it all.
    pub(super) condition: Vec<f32>,
    pub(super) unit_ball: bool,
    pub(super) action: Vec<f32>,
}

impl RowActor {
    /// Another condition and task.
    pub(crate) fn fix(&mut self, condition: &[f32]) {
        let (own, seen) = condition.split_at(self.condition.len());
        self.condition.copy_from_slice(own);
        self.net.fix(seen);
    }

    /// The action at an encoded state.
    pub(crate) fn act(&mut self, s: &[f32]) -> &[f32] {
        let out = self.net.forward(s, &[]);
        let linear = self.condition.len();
        let (offset, slopes) = out.split_at(out.len() / (1 + linear));
        self.action.clear();
        self.action.extend(offset.iter().enumerate().map(|(i, offset)| {
            let slopes = &slopes[i * linear..][..linear];
            offset + slopes.iter().zip(&self.condition).map(|(slope, c)| slope * c).sum::<f32>()
        }));
        super::actor::bound(&mut self.action, self.unit_ball);
        &self.action
    }
}

impl RowFilm {
    fn fix(&mut self, condition: &[f32]) {
        let dim = self.z.len();
        self.z.copy_from_slice(&condition[condition.len() - dim..]);
        self.condition = self.film.forward(&[self.task.forward(&[condition])]).to_vec();
    }

    fn forward(&mut self, s: &[f32], a: &[f32]) -> &[f32] {
        let (dim, all) = (self.z.len(), self.backward.forward(&[s]));
        let rows = all.len() / dim;
        let [s_width, a_width] = [s.len() / rows, a.len() / rows];
        self.input.clear();
        for (row, b) in all.chunks_exact(dim).enumerate() {
            let length = (dim as f32 / b.iter().map(|x| x * x).sum::<f32>().max(f32::MIN_POSITIVE)).sqrt();
            self.input.extend_from_slice(&s[row * s_width..][..s_width]);
            self.input.extend_from_slice(&a[row * a_width..][..a_width]);
            let product = self.input.len();
            self.input.extend(b.iter().zip(&self.z).map(|(b, z)| 0.5 * length * b * z));
            let along: f32 = self.input[product..].iter().sum();
            self.input.push(2.0 * along * 3.0 / dim as f32);
        }
        let (gain, shift) = self.condition.split_at(self.condition.len() / 2);
        self.modulated.clear();
        for x in self.state.forward(&[&self.input]).chunks_exact(gain.len()) {
            let x = x.iter().zip(gain).zip(shift);
            self.modulated.extend(x.map(|((x, gain), shift)| (x * (gain + 1.0) + shift).max(0.0)));
        }
        self.rest.forward(&[&self.modulated])
    }
}

#[cfg(test)]
mod tests {
    use super::RowNet;
    use crate::fb::actor::{Actor, ActorConfig};
    use crate::fb::config::{BackwardForm, FbConfig, NetKind};
    use crate::fb::networks::{Backward, NetInput, TwoInputNet};
    use crate::nn::{Params, read, upload};
    use burn::tensor::Device;

    #[test]
    fn a_row_of_either_network_gives_what_the_tensor_path_gives() {
        for (kind, a) in
            [NetKind::Pair, NetKind::Film].into_iter().flat_map(|kind| [(kind, &[][..]), (kind, &[0.6])])
        {
            let device = Device::flex();
            let mut config = FbConfig { dim: 6, backward: BackwardForm::Network, ..FbConfig::default() };
            config.net.kind = kind;
            let mut params = Params::new(&device, 4);
            let backward = Backward::new(&mut params, [3, 3], &config).unwrap();
            let net = TwoInputNet::new(&mut params, "f", [3, a.len(), 2], 5, &config).unwrap();
            let weights = params.weights();
            let condition =
                [[0.3, -0.2, 1.0, 0.5, -2.0, 0.1, 0.9, -0.4], [1.0, 0.0, -1.0, 0.2, 0.3, 2.0, -0.9, 0.4]];
            let mut row = RowNet::new(&net, &weights, (&backward, &weights), &condition[0], 6).unwrap();
            for condition in condition {
                row.fix(&condition);
                let s = [0.3, -0.7, 0.2];
                let states = upload(s.to_vec(), [1, 3], &device);
                let b = Some(backward.forward(&weights, &states, 6));
                let task = upload(condition.to_vec(), [1, 8], &device);
                let action = (!a.is_empty()).then(|| upload(a.to_vec(), [1, a.len()], &device));
                let expected = read(net.forward(&weights, NetInput { s: states, a: action, task, b }));
                for (got, expected) in row.forward(&s, a).iter().zip(expected) {
                    assert!((got - expected).abs() < 1e-5, "{kind:?}: {got} {expected}");
                }
            }
        }
    }

    #[test]
    fn an_actor_that_is_linear_in_its_condition_is_so_on_rows_and_tensors_alike() {
        let device = Device::flex();
        let fb = FbConfig { dim: 4, backward: BackwardForm::Network, ..FbConfig::default() };
        let actor =
            Actor::new([3, 2, 2], (&fb, &ActorConfig { linear: true, ..ActorConfig::default() }), 5, &device);
        let actor = actor.unwrap();
        let weights = actor.params.weights();
        let (s, z) = ([0.3, -0.7, 0.2], [1.0, 0.5, -2.0, 0.1]);
        let unused = Backward::Fourier(upload(vec![0.0; 2], [1, 2], &device));
        let mut row = actor.row((&unused, &weights), &[0.0; 6], 4).unwrap();
        let mut before_tanh = |c: [f32; 2]| {
            let condition = [&c[..], &z].concat();
            row.fix(&condition);
            let got = row.act(&s).to_vec();
            let states = upload(s.to_vec(), [1, 3], &device);
            let input = NetInput { s: states, a: None, task: upload(condition, [1, 6], &device), b: None };
            for (got, expected) in got.iter().zip(read(actor.act(&weights, input))) {
                assert!((got - expected).abs() < 1e-5, "{got} {expected}");
            }
            got.iter().map(|x| x.atanh()).collect::<Vec<f32>>()
        };
        let [zero, left, right, both] =
            [[0.0, 0.0], [1.0, 0.0], [0.0, -2.0], [1.0, -2.0]].map(&mut before_tanh);
        for i in 0..2 {
            assert!((left[i] + right[i] - zero[i] - both[i]).abs() < 1e-5);
            assert!((left[i] - zero[i]).abs() > 1e-4, "the condition counts");
        }
    }
}
