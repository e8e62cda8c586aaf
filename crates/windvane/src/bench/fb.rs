//! The forward-backward steps.

use super::{ACTION, Batch, Dims, OBS, Step, number};
use crate::nn::{
    Adam, AdamConfig, Follow, Input, Mlp, MlpConfig, NnError, PairConfig, PairNet, Params, TensorFile,
    Weights, ops,
};
use burn::tensor::{Device, Int, Tensor};

const DISCOUNT: f32 = 0.98;
const TAU: f32 = 0.05;
const RATE: f32 = 1e-4;

fn pair_config(dims: Dims, left: &[usize], output: usize) -> PairConfig {
    let hidden = vec![dims.hidden; 2];
    PairConfig {
        left: left.to_vec(),
        right: vec![OBS, dims.d],
        preprocessor: hidden.clone(),
        embedding: dims.hidden / 2,
        trunk: hidden,
        output,
    }
}

/// Backward map B(s), of length sqrt(d).
#[derive(Debug)]
struct Backward {
    net: Mlp,
    radius: f32,
}

impl Backward {
    fn new(params: &mut Params, d: usize) -> Result<Self, NnError> {
        let net = Mlp::new(params, "b", &MlpConfig::paper(&[OBS], &[256; 3], d))?;
        Ok(Self { net, radius: (d as f32).sqrt() })
    }

    fn forward(&self, weights: &Weights, s: &Tensor<2>) -> Tensor<2> {
        ops::sphere(self.net.forward(weights, Input::One(s.clone())), self.radius)
    }
}

/// The step for discrete actions.
pub(super) struct Discrete {
    params: Params,
    target: Params,
    adam: Adam,
    /// F with one head per action: `[batch, actions * d]`.
    forward: [PairNet; 2],
    backward: Backward,
    s: Tensor<2>,
    a: Tensor<1, Int>,
    next: Tensor<2>,
    z: Tensor<2>,
}

impl Discrete {
    pub(super) fn new(dims: Dims, device: &Device) -> Result<(Self, TensorFile), NnError> {
        let mut params = Params::new(device, 1);
        let config = pair_config(dims, &[OBS], ACTION * dims.d);
        let forward = [PairNet::new(&mut params, "f0", &config)?, PairNet::new(&mut params, "f1", &config)?];
        let backward = Backward::new(&mut params, dims.d)?;
        let mut batch = Batch::new(device);
        let (s, next) = (batch.uniform("s", [dims.batch, OBS]), batch.uniform("next", [dims.batch, OBS]));
        let a = batch.choice("a", dims.batch, ACTION as u16);
        let z = ops::sphere(batch.uniform("z", [dims.batch, dims.d]), (dims.d as f32).sqrt());
        let mut file = batch.file;
        params.save(&mut file, "params/");
        let adam = Adam::new(AdamConfig { rate: RATE, ..AdamConfig::default() }, &params);
        Ok((Self { target: params.clone(), params, adam, forward, backward, s, a, next, z }, file))
    }

    /// The target's F at the greedy action, averaged over the ensemble: `[batch, d]`.
    fn target_forward(&self, weights: &Weights) -> Tensor<2> {
        let (left, right) = (Input::One(self.next.clone()), Input::Two(self.next.clone(), self.z.clone()));
        let [f0, f1] = self.forward.each_ref().map(|f| f.forward(weights, left.clone(), right.clone()));
        ops::greedy_heads((f0 + f1) * 0.5, self.z.clone())
    }
}

impl Step for Discrete {
    fn run(&mut self) -> f32 {
        let frozen = self.target.weights();
        let (target_f, target_b) = (self.target_forward(&frozen), self.backward.forward(&frozen, &self.next));
        drop(frozen);
        let weights = self.params.track();
        let (left, right) = (Input::One(self.s.clone()), Input::Two(self.s.clone(), self.z.clone()));
        let f = self
            .forward
            .each_ref()
            .map(|f| f.select(&weights, left.clone(), right.clone(), ACTION, self.a.clone()));
        let b = self.backward.forward(&weights, &self.next);
        let loss = ops::fb_loss(f, b, target_f, target_b, DISCOUNT, 1.0);
        let value = number(loss.clone());
        let gradients = loss.backward();
        drop(loss);
        self.adam.step(
            &mut self.params,
            weights,
            gradients,
            1.0,
            Some(Follow { target: &mut self.target, tau: TAU }),
        );
        value
    }
}

/// The step for continuous actions, actor included.
pub(super) struct Continuous {
    params: Params,
    target: Params,
    adam: Adam,
    actor_params: Params,
    actor_adam: Adam,
    forward: [PairNet; 2],
    backward: Backward,
    actor: PairNet,
    s: Tensor<2>,
    a: Tensor<2>,
    next: Tensor<2>,
    z: Tensor<2>,
    /// Smoothing noise of the target's action, clipped.
    noise: Tensor<2>,
}

impl Continuous {
    pub(super) fn new(dims: Dims, device: &Device) -> Result<(Self, TensorFile), NnError> {
        let mut params = Params::new(device, 1);
        let config = pair_config(dims, &[OBS, ACTION], dims.d);
        let forward = [PairNet::new(&mut params, "f0", &config)?, PairNet::new(&mut params, "f1", &config)?];
        let backward = Backward::new(&mut params, dims.d)?;
        let mut actor_params = Params::new(device, 2);
        let actor = PairNet::new(&mut actor_params, "actor", &pair_config(dims, &[OBS], ACTION))?;
        let mut batch = Batch::new(device);
        let (s, next) = (batch.uniform("s", [dims.batch, OBS]), batch.uniform("next", [dims.batch, OBS]));
        let a = batch.uniform("a", [dims.batch, ACTION]);
        let noise = batch.uniform("noise", [dims.batch, ACTION]) * 0.3;
        let z = ops::sphere(batch.uniform("z", [dims.batch, dims.d]), (dims.d as f32).sqrt());
        let mut file = batch.file;
        params.save(&mut file, "params/");
        actor_params.save(&mut file, "params/");
        let config = AdamConfig { rate: RATE, ..AdamConfig::default() };
        let (adam, actor_adam) = (Adam::new(config, &params), Adam::new(config, &actor_params));
        let target = params.clone();
        let step = Self {
            params,
            target,
            adam,
            actor_params,
            actor_adam,
            forward,
            backward,
            actor,
            s,
            a,
            next,
            z,
            noise,
        };
        Ok((step, file))
    }

    fn act(&self, weights: &Weights, s: &Tensor<2>) -> Tensor<2> {
        self.actor.forward(weights, Input::One(s.clone()), Input::Two(s.clone(), self.z.clone())).tanh()
    }

    fn embed(&self, weights: &Weights, s: &Tensor<2>, a: &Tensor<2>) -> [Tensor<2>; 2] {
        let (left, right) = (Input::Two(s.clone(), a.clone()), Input::Two(s.clone(), self.z.clone()));
        self.forward.each_ref().map(|f| f.forward(weights, left.clone(), right.clone()))
    }

    fn fb_step(&mut self) -> f32 {
        let frozen = self.target.weights();
        let next_a =
            (self.act(&self.actor_params.weights(), &self.next) + self.noise.clone()).clamp(-1.0, 1.0);
        let [f0, f1] = self.embed(&frozen, &self.next, &next_a);
        let target_b = self.backward.forward(&frozen, &self.next);
        drop(frozen);
        let weights = self.params.track();
        let f = self.embed(&weights, &self.s, &self.a);
        let b = self.backward.forward(&weights, &self.next);
        let loss = ops::fb_loss(f, b, (f0 + f1) * 0.5, target_b, DISCOUNT, 1.0);
        let value = number(loss.clone());
        let gradients = loss.backward();
        drop(loss);
        self.adam.step(
            &mut self.params,
            weights,
            gradients,
            1.0,
            Some(Follow { target: &mut self.target, tau: TAU }),
        );
        value
    }

    fn actor_step(&mut self) -> f32 {
        let (frozen, weights) = (self.params.weights(), self.actor_params.track());
        let a = self.act(&weights, &self.s);
        let [f0, f1] = self.embed(&frozen, &self.s, &a);
        let batch = self.z.dims()[0] as f32;
        let loss = ((f0 + f1) * self.z.clone()).sum() * (-0.5 / batch);
        let value = number(loss.clone());
        let gradients = loss.backward();
        drop((loss, frozen, a));
        self.actor_adam.step(&mut self.actor_params, weights, gradients, 1.0, None);
        value
    }
}

impl Step for Continuous {
    fn run(&mut self) -> f32 {
        self.fb_step() + self.actor_step()
    }
}
