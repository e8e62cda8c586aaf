//! The plan of a run: everything that decides its result, besides the method and the seed.

use super::layers::Layers;
use crate::belief::{BeliefConfig, Decoder, Posterior};
use crate::data::{EncoderConfig, StateKind};
use crate::error::LearnError;
use crate::eval::EvalConfig;
use crate::fb::FbConfig;
use crate::fb::actor::ActorConfig;
use crate::fb::config::{BackwardForm, ForwardForm};
use crate::features::FeaturesConfig;
use crate::features::correction::CorrectionConfig;
use crate::planner::PlannerConfig;
use serde::{Deserialize, Serialize};
use windvane_world::Start;
use windvane_world::collect::BehaviourPolicy;

/// Everything that decides a run's result, besides the method and the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The environment's name.
    pub env: String,
    /// Success on training contexts at which the training of F stops early; above 1: never.
    pub stop_at: f64,
    /// Contexts and what is collected in them.
    pub data: DataPlan,
    /// How observations and actions look to networks.
    pub encoder: EncoderConfig,
    /// The belief encoder and its training.
    pub belief: BeliefConfig,
    /// F and B and their training.
    pub fb: FbConfig,
    /// The actor, for continuous actions.
    pub actor: ActorConfig,
    /// Value iteration before acting, where it is asked for.
    pub planner: PlannerConfig,
    /// Features that are learned beforehand, for HILP and LAP.
    pub features: FeaturesConfig,
    /// Contextual-FB's classifiers.
    pub correction: CorrectionConfig,
    /// How scores are taken.
    pub eval: EvalConfig,
}

/// Contexts, and what is collected in each training context.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPlan {
    /// Contexts to learn from.
    pub train_contexts: usize,
    /// Contexts to test on.
    pub test_contexts: usize,
    /// Episodes in each training context.
    pub episodes: usize,
    /// Where they begin.
    pub start: Start,
    /// The behaviour policy: `uniform`, `sticky:10`, ...; paper: uniform on grids, sticky actions on Pointmass.
    pub policy: BehaviourPolicy,
    /// Share of the groups that is not learned from, to know how well unseen dynamics are predicted; paper: 0.
    pub held_out: f64,
}

/// The presets for data sets that no world of ours is behind go by this name.
pub const RECORDED: &str = "recorded";

/// A preset that is part of the program.
struct Preset {
    env: &'static str,
    name: &'static str,
    text: &'static str,
}

/// One of `configs/`.
macro_rules! preset {
    ($env:literal, $name:literal, $file:literal) => {
        Preset { env: $env, name: $name, text: include_str!(concat!("../../../../configs/", $file)) }
    };
}

/// What variants of a world change in the presets that they share with it.
const VARIANTS: &[(&str, &[&str])] = &[
    ("ant-fault-more", &["data.train_contexts=11", "data.test_contexts=5"]),
    ("ant-fault-rotated", &["data.train_contexts=6", "data.test_contexts=2"]),
];

/// The presets; the first of an environment is its default.
const PRESETS: &[Preset] = &[
    preset!("doors", "standard", "doors.toml"),
    preset!("doors", "quick", "doors-quick.toml"),
    preset!("doors", "paper", "doors-paper.toml"),
    preset!("four-rooms", "standard", "four-rooms.toml"),
    preset!("four-rooms", "quick", "four-rooms-quick.toml"),
    preset!("four-rooms", "many", "four-rooms-many.toml"),
    preset!("four-rooms", "faithful", "four-rooms-faithful.toml"),
    preset!("four-rooms", "paper", "four-rooms-paper.toml"),
    preset!("pointmass", "standard", "pointmass.toml"),
    preset!("pointmass", "quick", "pointmass-quick.toml"),
    preset!("pointmass", "networks", "pointmass-networks.toml"),
    preset!("pointmass", "one-map", "pointmass-one-map.toml"),
    preset!("pointmass", "actor", "pointmass-actor.toml"),
    preset!("pointmass", "faithful", "pointmass-faithful.toml"),
    preset!("pointmass", "paper", "pointmass-paper.toml"),
    preset!("pendulum", "standard", "pendulum.toml"),
    preset!("pendulum", "quick", "pendulum-quick.toml"),
    preset!("ant-fault", "standard", "ant-fault.toml"),
    preset!("ant-fault-more", "standard", "ant-fault.toml"),
    preset!("ant-fault-rotated", "standard", "ant-fault.toml"),
    preset!("ant-wind", "standard", "ant-wind.toml"),
    preset!("ant-wind-6", "standard", "ant-wind.toml"),
    preset!("ant-wind-contacts", "standard", "ant-wind.toml"),
    Preset { env: RECORDED, name: "standard", text: include_str!("../../../../configs/recorded.toml") },
    Preset {
        env: RECORDED,
        name: "vectors",
        text: include_str!("../../../../configs/recorded-vectors.toml"),
    },
];

impl Plan {
    /// The built-in plan `preset` for `env`, ready for more layers.
    pub fn preset(env: &str, preset: &str) -> Result<Layers<Self>, LearnError> {
        let of_env: Vec<&Preset> = PRESETS.iter().filter(|p| p.env == env).collect();
        let list = |items: Vec<&str>| items.join(", ");
        if of_env.is_empty() {
            let mut known: Vec<&str> = PRESETS.iter().map(|p| p.env).collect();
            known.dedup();
            let problem = format!("no plan for environment \"{env}\"; known: {}", list(known));
            return Err(LearnError::Config { origin: "--env".into(), problem });
        }
        let Some(found) = of_env.iter().find(|p| p.name == preset) else {
            let known = list(of_env.iter().map(|p| p.name).collect());
            let problem = format!("no preset \"{preset}\" for {env}; known: {known}");
            return Err(LearnError::Config { origin: "--preset".into(), problem });
        };
        let base = Self {
            env: env.to_owned(),
            stop_at: 2.0,
            data: DataPlan {
                train_contexts: 30,
                test_contexts: 20,
                episodes: 250,
                start: Start::Random,
                policy: BehaviourPolicy::Uniform,
                held_out: 0.0,
            },
            encoder: EncoderConfig::default(),
            belief: BeliefConfig::default(),
            fb: FbConfig::default(),
            actor: ActorConfig::default(),
            planner: PlannerConfig::default(),
            features: FeaturesConfig::default(),
            correction: CorrectionConfig::default(),
            eval: EvalConfig::default(),
        };
        let layers = Layers::new(base)?.toml(&format!("preset {env}/{preset}"), found.text)?;
        let changes = VARIANTS.iter().filter(|variant| variant.0 == env).flat_map(|variant| variant.1);
        changes.copied().try_fold(layers, Layers::set)
    }

    /// Whether F goes through the belief's predictor on observations, whatever it is conditioned on.
    pub fn needs_predictor(&self) -> bool {
        self.encoder.states == StateKind::Observations && self.fb.forward == ForwardForm::Predictor
    }

    /// Whether data come from experts, so that cloning them is a baseline.
    pub fn has_experts(&self) -> bool {
        matches!(self.data.policy, BehaviourPolicy::Expert { .. })
    }

    /// Settings that contradict each other, mean nothing, or are beyond what a machine can hold.
    pub fn check(self) -> Result<Self, LearnError> {
        let bad = |problem: String| Err(LearnError::Config { origin: "plan".into(), problem });
        for (name, value, low, high) in self.sizes() {
            if !(low..=high).contains(&value) {
                return bad(format!("\"{name}\" is {value}; expected {low} to {high}"));
            }
        }
        if let Some((name, value)) = self.shares().iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return bad(format!("\"{name}\" is {value}; expected between 0 and 1"));
        }
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        if let Some((name, value)) = self.positive().iter().find(|(_, value)| !is_positive(*value)) {
            return bad(format!("\"{name}\" is {value}; expected more than 0"));
        }
        if let Some((name, value)) = self.not_negative().iter().find(|(_, v)| !v.is_finite() || *v < 0.0) {
            return bad(format!("\"{name}\" is {value}; expected a number of at least 0"));
        }
        let Self { encoder, belief, fb, data, .. } = &self;
        let listed = encoder.states == StateKind::Listed;
        match () {
            () if fb.gamma >= 1.0 => {
                return bad("\"fb.gamma\" is 1; expected less, or values never settle".into());
            }
            () if self.features.hilp.future == 1.0 => {
                return bad("\"features.hilp.future\" is 1; expected less".into());
            }
            () if self.features.batch < 2 => {
                return bad(format!("\"features.batch\" is {}; expected at least 2", self.features.batch));
            }
            () if data.held_out > 0.5 => {
                return bad(format!("\"data.held_out\" is {}; expected at most 0.5", data.held_out));
            }
            () if fb.random_tasks + fb.mixture_tasks > 1.0 => {
                return bad("\"fb.random_tasks\" and \"fb.mixture_tasks\" are more than 1 together".into());
            }
            () if fb.clip <= 0.0 => return bad(format!("\"fb.clip\" is {}; expected more than 0", fb.clip)),
            () if belief.min_context > belief.max_context => {
                return bad(format!(
                    "\"belief.min_context\" is {}; expected at most \"belief.max_context\", {}",
                    belief.min_context, belief.max_context
                ));
            }
            () if !listed && belief.min_context < encoder.action_repeat => {
                return bad(format!(
                    "\"belief.min_context\" is {}; expected at least \"encoder.action_repeat\", {}",
                    belief.min_context, encoder.action_repeat
                ));
            }
            () if encoder.directions == 1 || encoder.directions == 2 => {
                return bad(format!(
                    "\"encoder.directions\" is {}; expected 0 or at least 3",
                    encoder.directions
                ));
            }
            () if encoder.fourier > 0 && encoder.length_scale <= 0.0 => {
                return bad(format!(
                    "\"encoder.length_scale\" is {}; expected more than 0",
                    encoder.length_scale
                ));
            }
            () if listed && matches!(fb.backward, BackwardForm::Fourier | BackwardForm::Bumps) => {
                let problem = "\"fb.backward\" is for observations; listed states take \"network\", \"table\" or \"orthogonal\"";
                return bad(problem.into());
            }
            () if !listed && matches!(fb.backward, BackwardForm::Table | BackwardForm::Orthogonal) => {
                let problem = "\"fb.backward\" is for listed states; observations take \"network\", \"fourier\" or \"bumps\"";
                return bad(problem.into());
            }
            () if !listed && (fb.gap_coef > 0.0 || fb.mixture_tasks > 0.0) => {
                return bad(
                    "\"fb.gap_coef\" and \"fb.mixture_tasks\" are for listed states; expected 0".into()
                );
            }
            () if belief.posterior == Posterior::Regression && belief.decoder != Decoder::Linear => {
                return bad(
                    "\"belief.posterior\" is \"regression\"; expected \"belief.decoder\" to be \"linear\""
                        .into(),
                );
            }
            () => {}
        }
        Ok(self)
    }

    /// Whole numbers with the least and the most that they may be.
    fn sizes(&self) -> Vec<(&'static str, u64, u64, u64)> {
        const MANY: u64 = 1 << 20;
        const WIDTH: u64 = 1 << 14;
        const STEPS: u64 = 1 << 40;
        let Self { data, encoder, belief, fb, planner, eval, .. } = self;
        let mut sizes = vec![
            ("data.train_contexts", data.train_contexts as u64, 1, MANY),
            ("data.test_contexts", data.test_contexts as u64, 0, MANY),
            ("data.episodes", data.episodes as u64, 1, MANY),
            ("encoder.fourier", encoder.fourier as u64, 0, WIDTH),
            ("encoder.action_repeat", encoder.action_repeat as u64, 1, 1000),
            ("encoder.directions", encoder.directions as u64, 0, 360),
            ("belief.dim", belief.dim as u64, 1, WIDTH),
            ("belief.width", belief.width as u64, 1, WIDTH),
            ("belief.blocks", belief.blocks as u64, 0, 64),
            ("belief.heads", belief.heads as u64, 1, 64),
            ("belief.predictor_width", belief.predictor_width as u64, 1, WIDTH),
            ("belief.steps", belief.steps, 1, STEPS),
            ("belief.batch", belief.batch as u64, 1, WIDTH),
            ("belief.queries", belief.queries as u64, 1, WIDTH),
            ("belief.context.episodes", belief.context.episodes as u64, 1, 1000),
            ("belief.context.ways", belief.context.ways as u64, 1, 16),
            ("belief.max_context", belief.max_context as u64, 1, MANY),
            ("belief.min_context", belief.min_context as u64, 1, MANY),
            ("belief.cached", belief.cached as u64, 1, MANY),
            ("belief.refresh", belief.refresh as u64, 1, MANY),
            ("belief.probe", belief.probe as u64, 0, MANY),
            ("fb.dim", fb.dim as u64, 2, WIDTH),
            ("fb.net.width", fb.net.width as u64, 4, WIDTH),
            ("fb.net.blocks", fb.net.blocks as u64, 0, 64),
            ("fb.net.head_width", fb.net.head_width as u64, 1, WIDTH),
            ("fb.net.embedding", fb.net.embedding as u64, 1, WIDTH),
            ("fb.net.preprocessor", fb.net.preprocessor.len() as u64, 1, 16),
            ("fb.net.trunk", fb.net.trunk.len() as u64, 1, 16),
            ("fb.net.backward", fb.net.backward.len() as u64, 1, 16),
            ("fb.ensemble", fb.ensemble as u64, 1, 16),
            ("fb.target_depth", fb.target_depth as u64, 1, 1024),
            ("fb.steps", fb.steps, 1, STEPS),
            ("fb.contexts", fb.contexts as u64, 1, WIDTH),
            ("fb.tasks", fb.tasks as u64, 1, WIDTH),
            ("fb.transitions", fb.transitions as u64, 1, WIDTH),
            ("fb.hindsight_states", fb.hindsight_states as u64, 1, 1024),
            ("planner.sweeps", planner.sweeps as u64, 1, 100_000),
            ("eval.rounds", eval.rounds, 1, MANY),
            ("eval.contexts", eval.contexts as u64, 1, MANY),
            ("eval.context_steps", eval.context_steps as u64, 0, MANY),
        ];
        sizes.push((
            "fb.contexts * fb.tasks * fb.transitions",
            (fb.contexts * fb.tasks * fb.transitions) as u64,
            1,
            MANY,
        ));
        sizes
    }

    /// Numbers between 0 and 1.
    fn shares(&self) -> [(&'static str, f64); 22] {
        let Self { data, belief, fb, eval, features, .. } = self;
        [
            ("data.held_out", data.held_out),
            ("belief.forget", belief.forget),
            ("belief.context.single", belief.context.single),
            ("belief.context.thin", belief.context.thin),
            ("belief.context.mix", belief.context.mix),
            ("belief.block_persistence", f64::from(belief.block_persistence)),
            ("fb.gamma", f64::from(fb.gamma)),
            ("fb.tau", f64::from(fb.tau)),
            ("fb.random_tasks", fb.random_tasks),
            ("fb.mixture_tasks", fb.mixture_tasks),
            ("fb.hindsight", fb.hindsight),
            ("fb.unknown_contexts", fb.unknown_contexts),
            ("fb.context_mix", fb.context_mix),
            ("fb.on_policy_contexts", fb.on_policy_contexts),
            ("actor.noise_clip", f64::from(self.actor.noise_clip)),
            ("actor.noise", f64::from(self.actor.noise)),
            ("eval.blend", f64::from(eval.blend)),
            ("features.tau", f64::from(features.tau)),
            ("features.hilp.discount", f64::from(features.hilp.discount)),
            ("features.hilp.expectile", f64::from(features.hilp.expectile)),
            ("features.hilp.random_goals", features.hilp.random_goals),
            ("features.hilp.future", features.hilp.future),
        ]
    }

    /// Numbers of more than 0.
    fn positive(&self) -> [(&'static str, f64); 8] {
        let Self { features, correction, .. } = self;
        [
            ("features.dim", features.dim as f64),
            ("features.steps", features.steps as f64),
            ("features.rate", f64::from(features.rate)),
            ("correction.width", correction.width as f64),
            ("correction.steps", correction.steps as f64),
            ("correction.batch", correction.batch as f64),
            ("correction.rate", f64::from(correction.rate)),
            ("correction.clip", f64::from(correction.clip)),
        ]
    }

    /// Numbers of at least 0.
    fn not_negative(&self) -> [(&'static str, f64); 21] {
        let Self { encoder, belief, fb, actor, features, correction, .. } = self;
        [
            ("encoder.box_side", encoder.box_side),
            ("encoder.length_scale", encoder.length_scale),
            ("belief.rate", f64::from(belief.rate)),
            ("belief.kl", belief.kl),
            ("belief.embeddings", belief.embeddings),
            ("fb.temperature", f64::from(fb.temperature)),
            ("fb.kappa", fb.kappa),
            ("fb.reward_sharpness", f64::from(fb.reward_sharpness)),
            ("fb.fb_coef", fb.fb_coef),
            ("fb.ortho_coef", fb.ortho_coef),
            ("fb.value_coef", fb.value_coef + fb.log_value_coef + fb.gap_coef),
            ("fb.rate", f64::from(fb.rate)),
            ("fb.muon_rate", f64::from(fb.muon_rate)),
            ("fb.clip", f64::from(fb.clip)),
            ("actor.rate", f64::from(actor.rate)),
            ("actor.bc", actor.bc),
            ("actor.bc_hindsight", actor.bc_hindsight),
            ("actor.temperature", actor.temperature),
            ("features.ridge", features.ridge),
            ("features.lap.ortho", features.lap.ortho),
            ("correction.weight", f64::from(correction.weight)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::METHODS;

    #[test]
    fn every_preset_is_sound_for_every_method_and_says_where_its_values_come_from() {
        for preset in PRESETS {
            let plan = Plan::preset(preset.env, preset.name).unwrap().value().check();
            let plan = plan.unwrap();
            assert_eq!(plan.env, preset.env);
            METHODS.iter().for_each(|method| method.check(&plan).unwrap());
            let values = preset.text.lines().filter(|line| line.contains('=') && !line.starts_with('#'));
            for line in values {
                assert!(line.contains('#'), "{}/{}: {line}", preset.env, preset.name);
            }
        }
        for env in ["doors", "four-rooms", "pointmass"] {
            for name in ["quick", "standard", "paper"] {
                assert!(Plan::preset(env, name).is_ok(), "{env}/{name}");
            }
        }
    }
}
