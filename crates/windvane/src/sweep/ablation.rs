//! The sweeps there are: the main experiment and the paper's ablations, each as a list of settings.

use super::manifest::Setting;
use crate::config::Plan;
use crate::config::layers::{Layers, closest};
use crate::error::LearnError;
use crate::methods::{Draw, METHODS, Method};
use windvane_world::Start;
use windvane_world::registry::{WorldConfig, make};

/// A sweep by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ablation {
    /// As the command line spells it.
    pub name: &'static str,
    /// What its axis shows.
    pub axis: &'static str,
    /// What it asks, in a line.
    pub about: &'static str,
    /// Whether its values lie on an axis that a figure can show; else a table does.
    pub drawn: bool,
}

/// The main experiment's name.
pub const MAIN: &str = "main";

/// Every ablation.
pub const ABLATIONS: &[Ablation] = &[
    Ablation {
        name: "context",
        axis: "steps of context",
        about: "context length, by the agents of the main experiment",
        drawn: true,
    },
    Ablation { name: "layouts", axis: "training layouts", about: "number of training layouts", drawn: true },
    Ablation { name: "kappa", axis: "kappa", about: "width of Rotation-FB's cones", drawn: true },
    Ablation {
        name: "forward",
        axis: "form of F",
        about: "the paper's F against F through the predictor, at the same number of steps",
        drawn: true,
    },
    Ablation {
        name: "episode",
        axis: "context",
        about: "a context of one whole data episode from a random start, by the agents of the main experiment",
        drawn: false,
    },
    Ablation {
        name: "parts",
        axis: "without",
        about: "what carries the score of F alone: one part left out at a time, at the same number of steps",
        drawn: false,
    },
    Ablation {
        name: "rotation",
        axis: "regime",
        about: "Rotation-FB against Belief-FB where cones could matter, at the same number of steps",
        drawn: false,
    },
];

/// Parts of F's training on listed states, and the settings without each.
const PARTS: [(&str, &[&str]); 14] = [
    ("nothing", &[]),
    ("fb-loss", &["fb.fb_coef=0"]),
    ("log-loss", &["fb.log_value_coef=0"]),
    ("gap-loss", &["fb.gap_coef=0"]),
    ("log-and-gap-loss", &["fb.log_value_coef=0", "fb.gap_coef=0"]),
    ("learned-b", &["fb.backward=orthogonal"]),
    ("deep-targets", &["fb.target_depth=1"]),
    ("predictor", &["fb.forward=paper"]),
    ("muon", &["fb.muon_rate=0"]),
    ("reward-kernels", &["fb.net.reward_kernels=0"]),
    ("long-contexts", &["belief.context.single=1"]),
    ("unknown-contexts", &["fb.unknown_contexts=0"]),
    ("mixed-contexts", &["fb.context_mix=0"]),
    ("on-policy-contexts", &["fb.on_policy_contexts=0"]),
];

/// Regimes in which cones around h could matter, and their settings.
const REGIMES: [(&str, &[&str]); 7] = [
    ("preset", &[]),
    ("small-d", &["fb.dim=32"]),
    ("large-d", &["fb.dim=150"]),
    ("half-random-z", &["fb.random_tasks=0.5", "fb.mixture_tasks=0"]),
    ("all-random-z", &["fb.random_tasks=1", "fb.mixture_tasks=0"]),
    ("heads", &["fb.forward=paper"]),
    ("undertrained", &["fb.steps=300"]),
];

/// Lengths of the context; the paper's figure has 50 to 200, 0 and 500 show where it begins and where it leads.
const LENGTHS: [usize; 7] = [0, 50, 75, 100, 150, 200, 500];
/// Numbers of training layouts; the paper's figure has 5 to 50.
const LAYOUTS: [usize; 8] = [5, 10, 20, 30, 50, 100, 200, 1000];
/// Concentrations; the paper's figure does not name its values, the authors' code has 10 to 150.
const KAPPAS: [f64; 6] = [1.0, 10.0, 25.0, 50.0, 100.0, 200.0];
/// Fewest episodes of each layout, however many layouts there are.
const FEWEST_EPISODES: usize = 40;
/// From so many layouts on none is known by heart, as in the preset `many`, and not all are played.
const MANY: usize = 200;

/// The methods that a sweep compares by default: all that fit the world in the main experiment, in ablations
/// those that it is about.
pub fn usual_methods(sweep: &str, plan: &Plan) -> Vec<String> {
    let about = |method: &&Method| match sweep {
        MAIN => !method.clones || plan.has_experts(),
        "kappa" => method.draw == Draw::Cone,
        "parts" => method.name == "bfb",
        _ => method.believes() && !method.clones,
    };
    METHODS.iter().filter(about).map(|method| method.name.to_owned()).collect()
}

/// The ablation called `name`.
pub fn find(name: &str) -> Result<&'static Ablation, LearnError> {
    let known: Vec<&str> = ABLATIONS.iter().map(|a| a.name).collect();
    ABLATIONS.iter().find(|a| a.name == name).ok_or_else(|| {
        let hint =
            closest(name, &known).map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
        let problem = format!("unknown ablation \"{name}\"{hint}; known: {}", known.join(", "));
        LearnError::Config { origin: "--ablation".into(), problem }
    })
}

/// The settings of a sweep around `base`, which is called `preset`.
pub fn settings(sweep: &str, preset: &str, base: &Layers<Plan>) -> Result<Vec<Setting>, LearnError> {
    let plan = base.clone().value().check()?;
    let plain = |plan: Plan| Setting {
        name: preset.to_owned(),
        context_steps: vec![plan.eval.context_steps],
        context_start: None,
        plan,
    };
    let varied = |name: &str, assignments: &[String]| -> Result<Setting, LearnError> {
        let mut layers = base.clone();
        for assignment in assignments {
            layers = layers.set(assignment)?;
        }
        Ok(Setting { name: name.to_owned(), ..plain(layers.value().check()?) })
    };
    let several = |axis: &str, (name, assignments): &(&str, &[&str])| {
        let assignments: Vec<String> = assignments.iter().map(|&set| set.to_owned()).collect();
        varied(&format!("{axis}={name}"), &assignments)
    };
    match sweep {
        MAIN => Ok(vec![plain(plan)]),
        "context" => {
            let mut lengths = LENGTHS.to_vec();
            lengths.push(plan.eval.context_steps);
            lengths.sort_unstable();
            lengths.dedup();
            Ok(vec![Setting { context_steps: lengths, ..plain(plan) }])
        }
        "layouts" => {
            let total = plan.data.train_contexts * plan.data.episodes;
            let most = match plan.env.as_str() {
                "doors" => 49 - plan.data.test_contexts.min(48), // no more exist
                _ => usize::MAX,
            };
            let mut counts = LAYOUTS.to_vec();
            counts.push(plan.data.train_contexts);
            counts.retain(|count| *count <= most);
            counts.sort_unstable();
            counts.dedup();
            let setting = |count: usize| {
                let mut set = vec![
                    format!("data.train_contexts={count}"),
                    format!("data.episodes={}", (total / count).max(FEWEST_EPISODES)),
                ];
                if count >= MANY {
                    set.push("eval.contexts=50".to_owned());
                    set.push("belief.known_contexts=false".to_owned());
                }
                varied(&format!("layouts={count}"), &set)
            };
            counts.into_iter().map(setting).collect()
        }
        "kappa" => KAPPAS
            .iter()
            .map(|kappa| varied(&format!("kappa={kappa}"), &[format!("fb.kappa={kappa}")]))
            .collect(),
        "forward" => {
            let forms = ["paper", "predictor"];
            forms
                .iter()
                .map(|form| varied(&format!("forward={form}"), &[format!("fb.forward={form}")]))
                .collect()
        }
        "episode" => {
            let world = make(&plan.env, &WorldConfig::default())?;
            let context_steps = vec![world.spec().horizon];
            Ok(vec![Setting { context_steps, context_start: Some(Start::Random), ..plain(plan) }])
        }
        "parts" => PARTS.iter().map(|part| several("without", part)).collect(),
        "rotation" => REGIMES.iter().map(|regime| several("regime", regime)).collect(),
        other => find(other).map(|_| Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ablation_of_every_world_has_settings_that_differ_in_name_and_plan() {
        for env in ["doors", "four-rooms", "pointmass"] {
            let base = Plan::preset(env, "standard").unwrap();
            for ablation in ABLATIONS {
                let settings = settings(ablation.name, "standard", &base).unwrap();
                let mut names: Vec<&str> = settings.iter().map(|s| s.name.as_str()).collect();
                let mut hashes: Vec<String> = settings.iter().map(Setting::hash).collect();
                assert!(!settings.is_empty(), "{} on {env}", ablation.name);
                names.sort_unstable();
                names.dedup();
                hashes.sort_unstable();
                hashes.dedup();
                assert_eq!([names.len(), hashes.len()], [settings.len(); 2], "{} on {env}", ablation.name);
            }
        }
    }

    #[test]
    fn the_value_of_the_preset_is_the_preset_itself_so_that_its_runs_are_shared() {
        let base = Plan::preset("four-rooms", "standard").unwrap();
        let main = settings(MAIN, "standard", &base).unwrap()[0].hash();
        for (sweep, name) in [
            ("kappa", "kappa=50"),
            ("layouts", "layouts=30"),
            ("forward", "forward=predictor"),
            ("episode", "standard"),
            ("parts", "without=nothing"),
            ("rotation", "regime=preset"),
        ] {
            let settings = settings(sweep, "standard", &base).unwrap();
            let same = settings.iter().find(|s| s.name == name).unwrap();
            assert_eq!(same.hash(), main, "{name}");
        }
    }

    #[test]
    fn an_unknown_ablation_lists_the_known() {
        let error = find("kapa").unwrap_err().to_string();
        assert_eq!(
            error,
            "--ablation: unknown ablation \"kapa\" (did you mean \"kappa\"?); known: context, layouts, kappa, forward, episode, parts, rotation"
        );
    }
}
