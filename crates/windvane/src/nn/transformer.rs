//! A transformer over sets: no positions, so the order of tokens cannot matter.

use super::error::NnError;
use super::init::Init;
use super::mlp::{self, Input, Linear};
use super::ops::{self, Act};
use super::params::{ParamId, Params, Weights};
use burn::tensor::{Int, Tensor};

/// The shape of a [`SetTransformer`].
#[derive(Clone, Debug, PartialEq)]
pub struct SetConfig {
    /// Width of a token.
    pub input: usize,
    /// Width of the stream; a multiple of `heads`.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Blocks of attention and perceptron.
    pub blocks: usize,
    /// Hidden width of each block's perceptron; usually `4 * width`.
    pub hidden: usize,
}

/// An encoder of sets of tokens into one vector each.
#[derive(Clone, Debug)]
pub struct SetTransformer {
    embed: Linear,
    blocks: Vec<Block>,
    norm: (ParamId, ParamId),
    heads: usize,
    displacements: Option<Displacements>,
}

/// How the tokens of every set lie to each other, where all sets have the same places.
#[derive(Clone, Debug)]
pub struct Displacements {
    /// The number of the displacement between tokens i and j, `[tokens * tokens]`.
    pub of_pairs: Tensor<1, Int>,
    /// How many different ones there are.
    pub count: usize,
}

/// One pre-norm block.
#[derive(Clone, Debug)]
struct Block {
    /// Bias of each head's scores for each displacement, `[count, heads]`.
    bias: Option<ParamId>,
    norm1: (ParamId, ParamId),
    qkv: Linear,
    mix: Linear,
    norm2: (ParamId, ParamId),
    up: Linear,
    down: Linear,
}

impl SetTransformer {
    /// Adds the network's parameters below `name`.
    pub fn new(params: &mut Params, name: &str, config: &SetConfig) -> Result<Self, NnError> {
        let SetConfig { input, width, heads, blocks, hidden } = *config;
        if heads == 0 || width % heads != 0 {
            let what = format!("{name}: heads");
            return Err(NnError::Size {
                what,
                size: heads,
                expected: format!("a divisor of the width {width}"),
            });
        }
        let embed = Linear::new(params, &format!("{name}/embed"), &[input], width)?;
        let blocks = (0..blocks).map(|i| {
            let name = format!("{name}/block{i}");
            Ok(Block {
                bias: None,
                norm1: mlp::norm(params, &format!("{name}/norm1"), width)?,
                qkv: Linear::new(params, &format!("{name}/qkv"), &[width], 3 * width)?,
                mix: Linear::new(params, &format!("{name}/mix"), &[width], width)?,
                norm2: mlp::norm(params, &format!("{name}/norm2"), width)?,
                up: Linear::new(params, &format!("{name}/up"), &[width], hidden)?,
                down: Linear::new(params, &format!("{name}/down"), &[hidden], width)?,
            })
        });
        let blocks = blocks.collect::<Result<_, NnError>>()?;
        let norm = mlp::norm(params, &format!("{name}/norm"), width)?;
        Ok(Self { embed, blocks, norm, heads, displacements: None })
    }

    /// The same for sets of tokens that have places: scores of attention get a bias for each displacement between two tokens,
    /// so that what is learned of neighbours in one place holds in all.
    pub fn with_places(
        mut self,
        params: &mut Params,
        name: &str,
        displacements: Displacements,
    ) -> Result<Self, NnError> {
        for (i, block) in self.blocks.iter_mut().enumerate() {
            let shape = [displacements.count, self.heads];
            block.bias = Some(params.add(&format!("{name}/block{i}/bias"), shape, Init::Constant(0.0))?);
        }
        self.displacements = Some(displacements);
        Ok(self)
    }

    /// Each set's mean over its real tokens: `tokens [sets * longest, input]` -> `[sets, width]`.
    ///
    /// `lengths` gives the number of real tokens of each set; `None` means that all are. An empty set gives 0.
    pub fn forward(
        &self,
        weights: &Weights,
        tokens: Tensor<2>,
        sets: usize,
        lengths: Option<&[usize]>,
    ) -> Tensor<2> {
        ops::set_mean(self.tokens(weights, tokens, sets, lengths), sets, lengths)
    }

    /// Each token seen in the light of its set, `[sets * longest, width]`; padding tokens hold meaningless values.
    pub fn tokens(
        &self,
        weights: &Weights,
        tokens: Tensor<2>,
        sets: usize,
        lengths: Option<&[usize]>,
    ) -> Tensor<2> {
        self.mixed(weights, self.embed.forward(weights, Input::One(tokens), Act::None), sets, lengths)
    }

    /// The same where a token's last numbers are those of its place in every set: `tokens [sets * places, own]` and
    /// `places [places, input - own]`, which are embedded once for all sets; `onto [sets * places, width]` is added to what they are
    /// embedded into.
    pub fn tokens_at(
        &self,
        weights: &Weights,
        tokens: Tensor<2>,
        places: &Tensor<2>,
        onto: Option<Tensor<2>>,
    ) -> Tensor<2> {
        let ([rows, own], [count, rest]) = (tokens.dims(), places.dims());
        let sets = rows / count.max(1);
        let (w, b) = self.embed.ids();
        let w = &weights[w[0]]; // [input, width]
        let (width, place) = (w.dims()[1], places.clone().matmul(w.clone().narrow(0, own, rest)));
        let place = place.reshape([1, count, width]).repeat(&[sets, 1, 1]).reshape([rows, width]);
        let place = match onto {
            Some(onto) => place + onto,
            None => place,
        };
        let x = ops::linear_onto(tokens, &w.clone().narrow(0, 0, own), &weights[b], place);
        self.mixed(weights, x, sets, None)
    }

    /// All blocks, on embedded tokens.
    fn mixed(
        &self,
        weights: &Weights,
        mut x: Tensor<2>,
        sets: usize,
        lengths: Option<&[usize]>,
    ) -> Tensor<2> {
        for block in &self.blocks {
            x = block.forward(weights, x, [sets, self.heads], lengths, self.displacements.as_ref());
        }
        norm(weights, x, self.norm)
    }
}

impl Block {
    fn forward(
        &self,
        w: &Weights,
        x: Tensor<2>,
        [sets, heads]: [usize; 2],
        lengths: Option<&[usize]>,
        displacements: Option<&Displacements>,
    ) -> Tensor<2> {
        let qkv = self.qkv.forward(w, Input::One(norm(w, x.clone(), self.norm1)), Act::None);
        let mixed = match displacements.zip(self.bias) {
            Some((Displacements { of_pairs, .. }, bias)) => {
                ops::placed_set_attention(qkv, sets, heads, lengths, w[bias].clone(), of_pairs)
            }
            None => ops::set_attention(qkv, sets, heads, lengths),
        };
        let x = self.mix.forward_onto(w, mixed, x);
        let up = self.up.forward(w, Input::One(norm(w, x.clone(), self.norm2)), Act::Gelu);
        self.down.forward_onto(w, up, x)
    }
}

fn norm(weights: &Weights, x: Tensor<2>, (gain, shift): (ParamId, ParamId)) -> Tensor<2> {
    ops::layer_norm(x, &weights[gain], &weights[shift], Act::None)
}

#[cfg(test)]
mod tests {
    use super::{SetConfig, SetTransformer};
    use crate::nn::{NnError, Params, read, upload};
    use burn::tensor::Device;

    const CONFIG: SetConfig = SetConfig { input: 3, width: 8, heads: 2, blocks: 2, hidden: 16 };

    fn encode(tokens: &[f32], sets: usize, lengths: Option<&[usize]>) -> Vec<f32> {
        let mut params = Params::new(&Device::flex(), 1);
        let net = SetTransformer::new(&mut params, "set", &CONFIG).unwrap();
        let tokens = upload(tokens.to_vec(), [tokens.len() / 3, 3], &Device::flex());
        read(net.forward(&params.weights(), tokens, sets, lengths))
    }

    fn close(a: &[f32], b: &[f32]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5)
    }

    #[test]
    fn order_of_tokens_and_content_of_padding_do_not_matter() {
        let a = encode(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -1.0, 2.0, 0.0], 1, None);
        let b = encode(&[-1.0, 2.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1, None);
        let padded = [0.4, 0.5, 0.6, -1.0, 2.0, 0.0, 0.1, 0.2, 0.3, 9.0, 9.0, 9.0];
        assert!(close(&a, &b));
        assert!(close(&a, &encode(&padded, 1, Some(&[3]))));
        assert!(!close(&a, &encode(&padded, 1, None)), "a fourth token must change the set");
    }

    #[test]
    fn numbers_of_places_may_be_told_once_for_all_sets() {
        let mut params = Params::new(&Device::flex(), 1);
        let net = SetTransformer::new(&mut params, "set", &CONFIG).unwrap();
        let own = upload(vec![0.1, -0.4, 0.7, 2.0], [4, 1], &Device::flex()); // two sets of two places
        let places = upload(vec![0.3, 0.9, -1.0, 0.2], [2, 2], &Device::flex());
        let at = read(net.tokens_at(&params.weights(), own, &places, None));
        let whole = vec![0.1, 0.3, 0.9, -0.4, -1.0, 0.2, 0.7, 0.3, 0.9, 2.0, -1.0, 0.2];
        let whole = read(net.tokens(&params.weights(), upload(whole, [4, 3], &Device::flex()), 2, None));
        assert!(close(&at, &whole), "{at:?}, expected {whole:?}");
    }

    #[test]
    fn sets_of_a_batch_do_not_see_each_other_and_an_empty_set_is_zero() {
        let both = encode(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0, 2.0, 3.0, 7.0, 7.0, 7.0], 2, Some(&[2, 1]));
        assert!(close(&both[..8], &encode(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1, None)));
        assert!(close(&both[8..], &encode(&[1.0, 2.0, 3.0], 1, None)));
        assert_eq!(encode(&[1.0, 2.0, 3.0], 1, Some(&[0])), [0.0; 8]);
    }

    #[test]
    fn heads_that_do_not_divide_the_width_are_refused() {
        let mut params = Params::new(&Device::flex(), 1);
        for heads in [0, 3] {
            let error = SetTransformer::new(&mut params, "set", &SetConfig { heads, ..CONFIG }).unwrap_err();
            assert!(matches!(error, NnError::Size { size, .. } if size == heads));
        }
    }
}
