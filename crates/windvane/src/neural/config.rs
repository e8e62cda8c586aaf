//! The settings of learning by networks, with the paper's values beside ours.

use crate::config::Aggregate;
use serde::{Deserialize, Serialize};

/// Everything that decides a run with `core = "neural"`, besides world, data, method and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeuralPlan {
    /// Steps that an action is held: transitions lead from a state to the one so many steps later, under the mean
    /// action. Paper: 1.
    pub repeat: usize,
    /// Continuous actions of two components as so many directions at full speed, each with a head of its own; 0 keeps
    /// them continuous and trains an actor, as in the paper.
    pub compass: usize,
    /// Share of the groups that is kept back from learning, to know how well unseen dynamics are told; paper: 0.
    #[serde(default)]
    pub held_out: f64,
    /// What networks see of an observation.
    pub features: FeatureConfig,
    /// The belief encoder and its training.
    pub belief: BeliefConfig,
    /// Where h comes from once the belief is trained.
    pub source: Source,
    /// The forward-backward core and its training.
    pub fb: FbConfig,
    /// The actor, for continuous actions.
    pub actor: ActorConfig,
    /// Concentration of Rotation-FB's cones; paper: 50, Pointmass 100.
    pub kappa: f64,
}

/// What networks see of an observation, besides its coordinates between -1 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureConfig {
    /// Random Fourier features of the continuous coordinates; 0 (paper) for none. Raw coordinates hide walls.
    pub fourier: usize,
    /// The distance over which they change, where a coordinate's whole range is 2.
    pub length: f64,
}

/// The belief encoder `f_dyn`, its predictor g and their training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeliefConfig {
    /// Numbers in h; paper: d. Rotation-FB needs d.
    pub dim: usize,
    /// Width of the transformer.
    pub width: usize,
    /// Its blocks.
    pub blocks: usize,
    /// Its heads.
    pub heads: usize,
    /// Hidden width of the predictor; paper: 256.
    pub predictor: usize,
    /// Longest context in steps of the environment; paper: 100.
    pub longest: usize,
    /// Shortest context in training.
    pub shortest: usize,
    /// Weight of the KL term toward a unit Gaussian; the paper names the prior but no weight, its code has none.
    pub kl: f64,
    /// Weight of the distance between h and a code that each group of the data has of its own, from which g learns to
    /// predict as well: the encoder is shown what there is to recognise. Only "same unknown dynamics" is used, no label.
    /// Paper: 0, and then there are no codes.
    pub codes: f64,
    /// Gradient steps.
    pub steps: u64,
    /// Contexts per step.
    pub batch: usize,
    /// Transitions of other episodes that each context predicts.
    pub queries: usize,
    /// Learning rate, warmed up over 100 steps and decayed by a cosine; paper: 1e-4 without decay.
    pub rate: f32,
    /// Contexts whose beliefs are computed once and drawn from while the agent is trained.
    pub cached: usize,
    /// Steps between two updates of a belief that goes on learning while it acts.
    pub refresh: usize,
}

/// Where h comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The transformer (paper).
    Encoder,
    /// The mean of the groups' codes, each weighted by how likely it makes what was seen: Bayes' rule through the
    /// predictor, over the dynamics that were met in training.
    Codes,
}

/// The form of the forward map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// F(s, a, \[h; z\]) is a network of its own.
    Paper,
    /// F(s, a, \[h; z\]) is U(s + delta(s, a, h), \[h; z\]), with the belief's predictor of what the action does.
    Predictor,
}

/// The forward-backward core and its training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FbConfig {
    /// d, the length of z, F and B; paper: 150 (100 for discrete actions).
    pub dim: usize,
    /// The form of F.
    pub forward: Form,
    /// Hidden widths of F's preprocessors; paper: 1024, 1024.
    pub preprocessor: Vec<usize>,
    /// Width they embed into; paper: 512.
    pub embedding: usize,
    /// Hidden widths of F's trunk; paper: 1024, 1024.
    pub trunk: Vec<usize>,
    /// Hidden widths of B; paper: 256, 256, 256.
    pub backward: Vec<usize>,
    /// Whether F is f + alpha z, with alpha begun near 0; paper: no.
    pub z_skip: bool,
    /// Forward networks; paper: 2.
    pub ensemble: usize,
    /// How they make one target.
    pub aggregate: Aggregate,
    /// Temperature of the target's policy over discrete actions, as a share of the values' spread; 0 (paper) is greedy.
    pub temperature: f32,
    /// Discount of one (held) action; paper: 0.99, mazes 0.98.
    pub gamma: f32,
    /// Share of task vectors drawn at random; the others are B(s) of visited states. Paper: 0.5.
    pub random_tasks: f64,
    /// Weight of the orthonormality of B; the paper does not write it, its code has 1.
    pub ortho: f64,
    /// Weight of the Bellman error of F z itself; paper: 0.
    pub value: f64,
    /// Gradient steps; paper: 1,000,000.
    pub steps: u64,
    /// Pairs of a condition and a task per step.
    pub groups: usize,
    /// Transitions that meet each of them; `groups * items` is the batch. Paper: 1024 x 1.
    pub items: usize,
    /// Learning rate, warmed up over 100 steps and decayed by a cosine; paper: 1e-4 without decay.
    pub rate: f32,
    /// Largest norm of the gradient; the authors' code: 1.
    pub clip: f32,
    /// The way target networks go toward the trained ones each step; paper: 0.05.
    pub tau: f32,
}

/// The actor for continuous actions (DDPG).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorConfig {
    /// Deviation of the noise that smooths the target's action; paper: 0.2.
    pub noise: f32,
    /// Where that noise is cut off; paper: 0.3.
    pub clip: f32,
    /// Learning rate; paper: 1e-4.
    pub rate: f32,
}

impl Default for NeuralPlan {
    fn default() -> Self {
        Self {
            repeat: 1,
            compass: 0,
            held_out: 0.0,
            features: FeatureConfig { fourier: 0, length: 0.2 },
            belief: BeliefConfig {
                dim: 100,
                width: 64,
                blocks: 2,
                heads: 4,
                predictor: 256,
                longest: 100,
                shortest: 20,
                kl: 1e-6,
                codes: 0.1,
                steps: 4000,
                batch: 48,
                queries: 32,
                rate: 1e-3,
                cached: 4096,
                refresh: 10,
            },
            source: Source::Encoder,
            fb: FbConfig {
                dim: 100,
                forward: Form::Paper,
                preprocessor: vec![256],
                embedding: 128,
                trunk: vec![256, 256],
                backward: vec![256, 256],
                z_skip: true,
                ensemble: 2,
                aggregate: Aggregate::Mean,
                temperature: 0.0,
                gamma: 0.95,
                random_tasks: 0.5,
                ortho: 1.0,
                value: 0.0,
                steps: 10_000,
                groups: 32,
                items: 16,
                rate: 1e-3,
                clip: 1.0,
                tau: 0.05,
            },
            actor: ActorConfig { noise: 0.2, clip: 0.3, rate: 3e-4 },
            kappa: 50.0,
        }
    }
}

impl NeuralPlan {
    /// Whether the agent needs the belief's predictor, whatever it is told.
    pub fn needs_predictor(&self) -> bool {
        self.fb.forward == Form::Predictor
    }

    /// What contradicts itself or means nothing.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { belief, fb, actor, features, .. } = self;
        let positive = [
            ("repeat", self.repeat as u64),
            ("belief.dim", belief.dim as u64),
            ("belief.blocks", belief.blocks as u64),
            ("belief.shortest", belief.shortest as u64),
            ("belief.steps", belief.steps),
            ("belief.batch", belief.batch as u64),
            ("belief.queries", belief.queries as u64),
            ("belief.cached", belief.cached as u64),
            ("belief.refresh", belief.refresh as u64),
            ("fb.ensemble", fb.ensemble as u64),
            ("fb.steps", fb.steps),
            ("fb.groups", fb.groups as u64),
            ("fb.items", fb.items as u64),
            ("fb.preprocessor", fb.preprocessor.len() as u64),
            ("fb.trunk", fb.trunk.len() as u64),
            ("fb.backward", fb.backward.len() as u64),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("\"neural.{name}\" is 0 or empty; expected at least 1"));
        }
        let shares = [
            ("fb.gamma", f64::from(fb.gamma)),
            ("fb.tau", f64::from(fb.tau)),
            ("fb.random_tasks", fb.random_tasks),
            ("held_out", self.held_out),
        ];
        if let Some((name, value)) = shares.iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return Err(format!("\"neural.{name}\" is {value}; expected between 0 and 1"));
        }
        let not_negative = [
            ("fb.temperature", f64::from(fb.temperature)),
            ("fb.ortho", fb.ortho),
            ("fb.value", fb.value),
            ("fb.rate", f64::from(fb.rate)),
            ("belief.rate", f64::from(belief.rate)),
            ("belief.kl", belief.kl),
            ("belief.codes", belief.codes),
            ("actor.noise", f64::from(actor.noise)),
            ("actor.clip", f64::from(actor.clip)),
            ("actor.rate", f64::from(actor.rate)),
            ("kappa", self.kappa),
        ];
        if let Some((name, value)) = not_negative.iter().find(|(_, v)| !v.is_finite() || *v < 0.0) {
            return Err(format!("\"neural.{name}\" is {value}; expected a number of at least 0"));
        }
        match () {
            () if self.held_out > 0.5 => {
                Err(format!("\"neural.held_out\" is {}; expected at most 0.5", self.held_out))
            }
            () if fb.gamma >= 1.0 => Err("\"neural.fb.gamma\" is 1; expected less".into()),
            () if fb.dim < 2 => Err(format!("\"neural.fb.dim\" is {}; expected at least 2", fb.dim)),
            () if !(fb.clip.is_finite() && fb.clip > 0.0) => {
                Err(format!("\"neural.fb.clip\" is {}; expected more than 0", fb.clip))
            }
            () if self.source == Source::Codes && belief.codes == 0.0 => {
                Err("\"neural.source\" is \"codes\"; expected \"neural.belief.codes\" above 0".into())
            }
            () if belief.shortest > belief.longest => Err(format!(
                "\"neural.belief.shortest\" is {}; expected at most \"longest\", {}",
                belief.shortest, belief.longest
            )),
            () if belief.shortest < self.repeat => Err(format!(
                "\"neural.belief.shortest\" is {}; expected at least \"neural.repeat\", {}",
                belief.shortest, self.repeat
            )),
            () if self.compass == 1 || self.compass == 2 => {
                Err(format!("\"neural.compass\" is {}; expected 0 or at least 3", self.compass))
            }
            () if features.fourier > 0 && !(features.length.is_finite() && features.length > 0.0) => {
                Err(format!("\"neural.features.length\" is {}; expected more than 0", features.length))
            }
            () => Ok(()),
        }
    }
}
