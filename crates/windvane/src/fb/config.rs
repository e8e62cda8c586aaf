//! The settings of forward-backward learning, with the paper's values beside ours.

use serde::{Deserialize, Serialize};

/// F, B and their training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FbConfig {
    /// d, the length of z, F and B; paper: 150 (100 for discrete actions). On listed states at least their number, or rank
    /// alone limits F B.
    pub dim: usize,
    /// The form of F.
    pub forward: ForwardForm,
    /// How the part of F along z is parameterised.
    pub value_head: ValueHead,
    /// How B is parameterised.
    pub backward: BackwardForm,
    /// Sizes of the networks.
    pub net: NetConfig,
    /// Forward networks in the ensemble; paper: 2. Listed states: 1.
    pub ensemble: usize,
    /// How they make one target.
    pub aggregate: Aggregate,
    /// Discount of one (held) action; paper: 0.99, mazes 0.98.
    pub gamma: f32,
    /// Temperature of the target's policy over discrete actions, as a share of the spread of their values; 0 (paper) is greedy.
    pub temperature: f32,
    /// Bellman backups in each target: 1 is one step (paper), more go through the predictor.
    pub target_depth: usize,
    /// Share of task vectors drawn at random: from the sphere, or from a cone around h (Rotation-FB). Paper: 0.5.
    pub random_tasks: f64,
    /// Share of task vectors that are signed mixtures of B of a few states: rewards that are no goals. Listed states only;
    /// paper: 0. What is left are goals, z = B(s).
    pub mixture_tasks: f64,
    /// Observations: share of goals that are states met later in the same episode; paper: 0.
    pub hindsight: f64,
    /// Observations: states that such a task is the mean B of, at distances drawn from the discount, so that it stands for where
    /// the episode went (the successor features of the data, a sample of them) and not for one moment of it; 1: a goal.
    #[serde(default = "one")]
    pub hindsight_states: usize,
    /// Observations: whether z of a goal, or of a future, is what it has beyond its context: the mean B of as many states of the same
    /// context, drawn uniformly, is taken off, as `centred_rewards` takes off the mean of all. Paper: no.
    #[serde(default)]
    pub centred_goals: bool,
    /// Concentration of Rotation-FB's cones; paper: 50, Pointmass 100.
    pub kappa: f64,
    /// Weight of the FB loss itself; paper: 1. Without it F z is still learned by the losses below.
    pub fb_coef: f64,
    /// Weight of the orthonormality of B; the paper does not write it, its code has 1.
    pub ortho_coef: f64,
    /// Weight of the squared error of the value F z; paper: 0.
    pub value_coef: f64,
    /// Weight of the error of the value on a log scale, so that far goals count as much as near ones; paper: 0.
    pub log_value_coef: f64,
    /// Weight of the cross-entropy between softmaxes over actions of log-scale values and of their targets, so that small gaps
    /// count; discrete actions; paper: 0.
    pub gap_coef: f64,
    /// Whether the last two are taken on every task, or on goals only.
    pub log_losses_on_all_tasks: bool,
    /// Listed states: share of the cached contexts whose own group is hidden from the belief, as an unseen one's would be.
    pub unknown_contexts: f64,
    /// Listed states: `belief.context.mix` and `ways` of the contexts that F is trained in. F has to serve any dynamics that a
    /// belief may tell, so that more mixing costs it nothing.
    pub context_mix: f64,
    /// See `context_mix`.
    pub context_ways: usize,
    /// Listed states, F through the predictor: share of those contexts that go on with a trajectory of the greedy policy on the
    /// belief's own dynamics, so that F knows beliefs as an acting agent forms them.
    pub on_policy_contexts: f64,
    /// Observations: whether the mean over visited states is taken off a reward function before it becomes z. What experts
    /// visit pays nearly the same everywhere, and a constant says nothing of what is wanted. Paper: no.
    pub centred_rewards: bool,
    /// Observations: how much more the states that a reward function pays best for count for z: each by exp of this, times its
    /// reward in deviations from the mean over visited states; 0: by the reward itself (paper).
    #[serde(default)]
    pub reward_sharpness: f32,
    /// Gradient steps; paper: 1,000,000.
    pub steps: u64,
    /// Contexts per step.
    pub contexts: usize,
    /// Task vectors that each context is paired with; paper: 1 (1024 contexts).
    pub tasks: usize,
    /// Observations: transitions that meet each pair; paper: 1. Listed states: all of them.
    pub transitions: usize,
    /// Learning rate, warmed up over 100 steps and decayed by a cosine; paper: 1e-4 without decay.
    pub rate: f32,
    /// Learning rate of Muon for hidden matrices; 0 (paper): Adam for all.
    pub muon_rate: f32,
    /// Largest norm of the gradient; the authors' code: 1.
    pub clip: f32,
    /// Polyak coefficient of the target networks; paper: 0.05.
    pub tau: f32,
}

fn one() -> usize {
    1
}

/// Sizes of F's and B's networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetConfig {
    /// Observations: the paper's two preprocessors and a trunk, or a state network modulated by \[h; z\] (FiLM).
    pub kind: NetKind,
    /// Listed states: width of a state's token. FiLM: width of all layers.
    pub width: usize,
    /// Listed states: transformer blocks over the tokens of a context's states.
    pub blocks: usize,
    /// Listed states: width of the layers that join a state with a task.
    pub head_width: usize,
    /// Listed states, at most 256 of them: kernels by which each state sees where a task's reward lies; 0 for none.
    pub reward_kernels: usize,
    /// Pair: hidden widths of F's preprocessors; paper: 1024, 1024.
    pub preprocessor: Vec<usize>,
    /// Pair: width they embed into; paper: 512.
    pub embedding: usize,
    /// Pair: hidden widths of F's trunk; paper: 1024, 1024.
    pub trunk: Vec<usize>,
    /// Hidden widths of B; paper: 256, 256, 256.
    pub backward: Vec<usize>,
}

/// The form of the forward map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardForm {
    /// The paper's: a network with a head per action, or with the action as input where actions are continuous.
    Paper,
    /// F(s, a, \[h; z\]) = E over s' ~ g(s, a, h) of U(s', \[h; z\]), through the belief's own predictor g.
    Predictor,
}

/// How the part of F along z is parameterised; f is what the network gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueHead {
    /// F = f (paper).
    Linear,
    /// F = f + alpha z.
    Skip,
    /// F = f - (f z / d) z + beta z with `beta = exp(-softplus(a)) - exp(-softplus(b))`: the value F z / d is beta, learned on a
    /// log scale with either sign.
    Log,
}

/// How B is parameterised; it always has length sqrt(d).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackwardForm {
    /// A network (paper).
    Network,
    /// Listed states: a free vector for each.
    Table,
    /// Listed states, at most d of them: orthogonal vectors, drawn once and fixed.
    Orthogonal,
    /// Observations: random Fourier features of the encoded observation, fixed.
    Fourier,
    /// Observations of few coordinates: Gaussian bumps on a lattice over them, fixed. Unlike Fourier features, B of far states
    /// have no product: a goal is no reward elsewhere.
    Bumps,
}

/// The network of F on observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetKind {
    /// Two preprocessors and a trunk (paper).
    Pair,
    /// A state network modulated by \[h; z\].
    Film,
}

/// How several forward networks make one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Their mean (paper).
    #[default]
    Mean,
    /// The smallest of their densities (the authors' code).
    Min,
}

impl Default for FbConfig {
    fn default() -> Self {
        Self {
            dim: 84,
            forward: ForwardForm::Predictor,
            value_head: ValueHead::Log,
            backward: BackwardForm::Table,
            net: NetConfig {
                kind: NetKind::Pair,
                width: 64,
                blocks: 4,
                head_width: 128,
                reward_kernels: 16,
                preprocessor: vec![256],
                embedding: 128,
                trunk: vec![256, 256],
                backward: vec![256, 256, 256],
            },
            ensemble: 1,
            aggregate: Aggregate::Mean,
            gamma: 0.9,
            temperature: 0.0,
            target_depth: 32,
            random_tasks: 0.1,
            mixture_tasks: 0.0,
            hindsight: 0.0,
            hindsight_states: 1,
            centred_goals: false,
            kappa: 50.0,
            fb_coef: 1.0,
            ortho_coef: 1.0,
            value_coef: 0.0,
            log_value_coef: 1.0,
            gap_coef: 3.0,
            log_losses_on_all_tasks: false,
            unknown_contexts: 0.35,
            context_mix: 0.7,
            context_ways: 4,
            on_policy_contexts: 0.7,
            centred_rewards: false,
            reward_sharpness: 0.0,
            steps: 1900,
            contexts: 6,
            tasks: 12,
            transitions: 1,
            rate: 2e-3,
            muon_rate: 0.0,
            clip: 1.0,
            tau: 0.05,
        }
    }
}
