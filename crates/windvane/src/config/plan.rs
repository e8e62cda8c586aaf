//! The plan of a run: everything that decides its result, besides the method and the seed.

use super::layers::Layers;
use crate::correction::CorrectionConfig;
use crate::error::LearnError;
use crate::eval::EvalConfig;
use crate::finite::belief::BeliefConfig;
use crate::finite::fb::FbConfig;
use crate::finite::view::BoxConfig;
use crate::neural::config::NeuralPlan;
use crate::phi::PhiConfig;
use serde::{Deserialize, Serialize};
use windvane_world::Start;
use windvane_world::collect::Policy;

/// Everything that decides a run's result, besides the method and the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The environment's name.
    pub env: String,
    /// How states are learned about.
    pub core: Core,
    /// Which contexts there are.
    pub world: WorldPlan,
    /// What is collected in them.
    pub data: DataPlan,
    /// `core = "listed"`: how a continuous world is made finite.
    pub boxes: BoxConfig,
    /// `core = "listed"`: the belief encoder and its training.
    pub belief: BeliefConfig,
    /// `core = "listed"`: the forward-backward core and its training.
    pub agent: AgentPlan,
    /// `core = "neural"`: belief, forward-backward core and actor.
    pub neural: NeuralPlan,
    /// Features that are learned beforehand, for HILP and LAP.
    #[serde(default)]
    pub phi: PhiConfig,
    /// Contextual-FB's classifiers.
    #[serde(default)]
    pub correction: CorrectionConfig,
    /// How scores are taken.
    pub eval: EvalConfig,
    /// Success on training contexts at which an agent's training stops early; above 1: never.
    pub stop_at: f64,
}

/// How states are learned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Core {
    /// One by one: every expectation over states is exact. Grids only.
    Listed,
    /// By networks on observations.
    Neural,
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

/// How many contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldPlan {
    /// To learn from.
    pub train: usize,
    /// Held out.
    pub test: usize,
}

/// What is collected in each training context.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPlan {
    /// Episodes in each.
    pub episodes: usize,
    /// Where they begin.
    pub start: Start,
    /// Who acts: `uniform`, `sticky:10`, ...; paper: uniform on grids, sticky actions on Pointmass.
    pub policy: Policy,
}

/// The forward-backward core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentPlan {
    /// The core's settings.
    #[serde(flatten)]
    pub fb: FbConfig,
    /// Concentration of Rotation-FB's cones; paper: 50, Pointmass 100.
    pub kappa: f64,
    /// Contexts whose beliefs are computed once and drawn from during training.
    pub beliefs: usize,
}

impl Default for AgentPlan {
    fn default() -> Self {
        Self { fb: FbConfig::default(), kappa: 50.0, beliefs: 4096 }
    }
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

/// The presets; the first of an environment is its default.
const PRESETS: &[Preset] = &[
    preset!("doors", "standard", "doors.toml"),
    preset!("doors", "quick", "doors-quick.toml"),
    preset!("doors", "paper", "doors-paper.toml"),
    preset!("four-rooms", "standard", "four-rooms.toml"),
    preset!("four-rooms", "quick", "four-rooms-quick.toml"),
    preset!("four-rooms", "many", "four-rooms-many.toml"),
    preset!("four-rooms", "paper", "four-rooms-paper.toml"),
    preset!("pointmass", "standard", "pointmass.toml"),
    preset!("pointmass", "quick", "pointmass-quick.toml"),
    preset!("pointmass", "networks", "pointmass-networks.toml"),
    preset!("pointmass", "paper", "pointmass-paper.toml"),
    Preset { env: RECORDED, name: "standard", text: include_str!("../../../../configs/recorded.toml") },
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
            core: Core::Listed,
            world: WorldPlan { train: 30, test: 20 },
            data: DataPlan { episodes: 250, start: Start::Random, policy: Policy::Uniform },
            boxes: BoxConfig::default(),
            belief: BeliefConfig::default(),
            agent: AgentPlan::default(),
            neural: NeuralPlan::default(),
            phi: PhiConfig::default(),
            correction: CorrectionConfig::default(),
            eval: EvalConfig::default(),
            stop_at: 2.0,
        };
        Layers::new(base)?.toml(&format!("preset {env}/{preset}"), found.text)
    }

    /// Settings that contradict each other or mean nothing.
    pub fn check(self) -> Result<Self, LearnError> {
        let Self { world, data, belief, agent, eval, .. } = &self;
        let positive = [
            ("world.train", world.train as u64),
            ("data.episodes", data.episodes as u64),
            ("belief.steps", belief.steps),
            ("belief.batch", belief.batch as u64),
            ("agent.steps", agent.fb.steps),
            ("agent.groups", agent.fb.groups as u64),
            ("agent.ensemble", agent.fb.ensemble as u64),
            ("agent.target_sweeps", agent.fb.target_sweeps as u64),
            ("agent.beliefs", agent.beliefs as u64),
            ("eval.rounds", eval.rounds),
            ("eval.contexts", eval.contexts as u64),
        ];
        let bad = |problem: String| Err(LearnError::Config { origin: "plan".into(), problem });
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return bad(format!("\"{name}\" is 0; expected at least 1"));
        }
        let shares = [
            ("agent.gamma", f64::from(agent.fb.gamma)),
            ("agent.tau", f64::from(agent.fb.tau)),
            ("agent.random_tasks", agent.fb.random_tasks),
            ("belief.forget", belief.forget),
            ("eval.blend", f64::from(eval.blend)),
            ("eval.retry", f64::from(eval.retry)),
            ("belief.context.single", belief.context.single),
            ("belief.context.mix", belief.context.mix),
        ];
        if let Some((name, value)) = shares.iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return bad(format!("\"{name}\" is {value}; expected between 0 and 1"));
        }
        if agent.fb.gamma >= 1.0 {
            return bad("\"agent.gamma\" is 1; expected less, or values never settle".into());
        }
        if eval.blend > 0.0 && belief.joint {
            return bad(
                "\"eval.blend\" is above 0; expected 0 with \"belief.joint\", whose beliefs never settle"
                    .into(),
            );
        }
        if !agent.kappa.is_finite() || agent.kappa < 0.0 {
            return bad(format!("\"agent.kappa\" is {}; expected a number of at least 0", agent.kappa));
        }
        let parts = [self.neural.check(), self.phi.check(), self.correction.check()];
        parts
            .into_iter()
            .collect::<Result<(), String>>()
            .map_err(|problem| LearnError::Config { origin: "plan".into(), problem })?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_says_where_its_values_come_from() {
        for preset in PRESETS {
            let plan = Plan::preset(preset.env, preset.name).unwrap().value().check();
            assert_eq!(plan.unwrap().env, preset.env);
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
