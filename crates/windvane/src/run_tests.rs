//! Whole tiny runs: every method on listed states, on observations with an actor, and through the predictor.

use super::*;
use crate::agent::task::Inference;
use crate::agent::{Acting, Known, Model};
use crate::config::Plan;
use crate::methods::{self, METHODS};
use crate::nn::{TensorFile, transfers};
use crate::train::observe::At;
use std::sync::atomic::{AtomicBool, Ordering};
use windvane_world::{Action, ActionBuf, Reward};

/// Tells nobody, and asks a training to stop after so many steps.
struct Stopper {
    until: u64,
    interrupt: &'static AtomicBool,
}

struct StopAt(u64, &'static AtomicBool);

impl Observer for StopAt {
    fn logged(&mut self, at: &At, _: &Scores) -> Result<(), LearnError> {
        if at.step >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn evaluated(&mut self, _: &At, _: &Scores) -> Result<(), LearnError> {
        Ok(())
    }
}

impl Progress for Stopper {
    fn collecting(&mut self, _: usize) -> Box<dyn Fn(usize) + Sync> {
        Box::new(|_| ())
    }

    fn training(&mut self, what: &str) -> Box<dyn Observer> {
        Box::new(StopAt(if what == "belief" { u64::MAX } else { self.until }, self.interrupt))
    }
}

/// Settings small enough for a test.
const TINY: &[&str] = &[
    "data.train_contexts=3",
    "data.test_contexts=2",
    "data.episodes=6",
    "belief.steps=4",
    "belief.batch=4",
    "belief.width=8",
    "belief.cached=8",
    "fb.steps=4",
    "fb.contexts=2",
    "fb.tasks=3",
    "features.steps=3",
    "features.dim=12",
    "correction.steps=3",
    "eval.rounds=1",
    "eval.contexts=2",
];
const LISTED: &[&str] =
    &["fb.net.width=16", "fb.net.blocks=1", "fb.net.head_width=16", "belief.context.mix=0.5"];
const OBSERVED: &[&str] = &[
    "encoder.action_repeat=5",
    "belief.dim=12",
    "belief.queries=4",
    "belief.predictor_width=16",
    "belief.min_context=10",
    "belief.max_context=40",
    "fb.dim=12",
    "fb.transitions=4",
    "fb.net.preprocessor=[16]",
    "fb.net.embedding=8",
    "fb.net.trunk=[16]",
    "fb.net.backward=[16]",
];

fn run_of(env: &str, preset: &str, method: &str, folder: &Path, set: &[&[&str]]) -> Run {
    let mut layers = Plan::preset(env, preset).unwrap();
    for setting in TINY.iter().chain(set.concat().iter()) {
        layers = layers.set(setting).unwrap();
    }
    let plan = layers.value().check().unwrap();
    Run::in_folder(plan, *methods::find(method).unwrap(), 1, folder)
}

/// Trains until `until` steps of the last stage; the agent if that is all.
fn trained(run: &Run, until: u64) -> Option<Agent> {
    let interrupt: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let world = run.world().unwrap();
    let mut progress = Stopper { until, interrupt };
    let device = Device::flex();
    let mut at = RunContext { world: &*world, device: &device, progress: &mut progress, interrupt };
    run.agent(&mut at).unwrap()
}

/// Every kind of run there is: environment, preset, settings.
fn kinds() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    vec![
        ("doors", "quick", vec![]),
        ("doors", "quick", vec!["fb.forward=paper", "fb.target_depth=1", "fb.backward=network"]),
        ("doors", "paper", vec!["encoder.action_repeat=1"]),
        ("pointmass", "networks", vec![]),
        ("pointmass", "paper", vec![]),
        (
            "pointmass",
            "networks",
            vec![
                "encoder.directions=0",
                "fb.net.kind=film",
                "fb.backward=fourier",
                "fb.value_head=log",
                "fb.log_value_coef=0.1",
                "fb.target_depth=3",
                "fb.hindsight=0.3",
                "fb.hindsight_states=3",
                "fb.centred_goals=true",
                "actor.normalize_q=true",
                "actor.bc=0.1",
                "actor.bc_hindsight=0.1",
            ],
        ),
        ("pointmass", "one-map", vec!["fb.dim=16", "fb.net.width=16", "fb.target_depth=3"]),
        ("pendulum", "standard", vec!["encoder.action_repeat=1", "belief.probe=3"]),
        ("pendulum", "standard", vec!["fb.forward=predictor", "encoder.action_repeat=2"]),
        (
            "pendulum",
            "standard",
            vec![
                "actor.kind=weighted",
                "actor.linear=true",
                "belief.posterior=encoder",
                "encoder.action_repeat=1",
            ],
        ),
    ]
}

fn shape(preset: &str, set: &[&str], env: &str) -> Vec<&'static str> {
    let listed = env == "doors" && preset == "quick";
    let _ = set;
    if listed { LISTED.to_vec() } else { OBSERVED.to_vec() }
}

/// Actions of F alone and Q along a random trajectory, for a goal.
fn behaviour(agent: &Agent, world: &dyn Cmdp, eval: &EvalConfig) -> Vec<ScoreRow> {
    let mut rows = Vec::new();
    for belief in [BeliefMode::Frozen, BeliefMode::Online] {
        rows.extend(evaluate(world, agent, Split::Test, belief, eval, 1).unwrap());
    }
    rows
}

/// Values and actions of many observations at once and one by one, under beliefs and tasks of their own.
fn a_batch_does_what_a_session_does(agent: Arc<Agent>, what: &str) {
    let dims = agent.spec().obs_dim();
    let rows = agent.visited()[..3 * dims].to_vec();
    let adapted = agent.adapt(&[]).unwrap();
    let codes: Vec<_> = rows
        .chunks_exact(dims)
        .map(|goal| agent.infer(&windvane_world::Prompt::goal(goal), Inference::Projection).unwrap())
        .collect();
    let tasks: Vec<&[f32]> = codes.iter().map(|code| &code.z[..]).collect();
    let each = agent.prepare(&[&adapted], &tasks).unwrap();
    let (q, actions) = (each.q(&rows, None).unwrap(), each.act(&rows).unwrap());
    for (i, (obs, code)) in rows.chunks_exact(dims).zip(&codes).enumerate() {
        let mut session = adapted.session(code.clone()).unwrap();
        let alone = agent.prepare(&[&adapted], &[&code.z]).unwrap();
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
        let width = q.len() / 3;
        let mine = &q[i * width..(i + 1) * width];
        assert!(close(mine, &alone.q(obs, None).unwrap()), "{what}");
        assert!(close(mine, &session.values(obs).unwrap()), "{what}");
        match (session.decide(obs).unwrap(), actions.get(i)) {
            (ActionBuf::Continuous(one), Action::Continuous(many)) => assert!(close(&one, many), "{what}"),
            (one, many) => assert_eq!(one.as_action(), many, "{what}"),
        }
    }
    assert!(each.act(&rows[..2 * dims]).is_err(), "two rows for three tasks");
    assert!(agent.prepare(&[&adapted], &[&tasks[0][1..]]).is_err(), "half a task");
}

#[test]
fn every_method_trains_acts_and_is_the_same_after_its_folder_was_moved() {
    for (env, preset, set) in kinds() {
        let fits =
            |method: &&Method| !method.clones || env == "pendulum" || set.contains(&"encoder.directions=0");
        for method in METHODS.iter().filter(fits) {
            let place = tempfile::tempdir().unwrap();
            let folder = place.path().join("run");
            let run = run_of(env, preset, method.name, &folder, &[&shape(preset, &set, env), &set]);
            RunFolder::open(&folder).unwrap();
            run.record(&RunFolder::open(&folder).unwrap()).unwrap();
            let agent =
                trained(&run, u64::MAX).unwrap_or_else(|| panic!("{} on {env}/{preset}", method.name));
            let world = run.world().unwrap();
            let before = behaviour(&agent, &*world, &run.plan.eval);
            // Elsewhere, without data, belief or checkpoints: only the agent itself is needed.
            let moved = place.path().join("elsewhere");
            std::fs::create_dir(&moved).unwrap();
            for name in ["run.json", "model"] {
                std::fs::rename(folder.join(name), moved.join(name)).unwrap();
            }
            let again = Run::read(&moved).unwrap();
            let loaded = again.load_agent().unwrap();
            let after = behaviour(&loaded, &*again.world().unwrap(), &again.plan.eval);
            assert_eq!(before, after, "{} on {env}/{preset} {set:?}", method.name);
            assert_eq!(loaded.method(), method);
            a_batch_does_what_a_session_does(
                Arc::new(loaded.clone()),
                &format!("{} on {env}/{preset}", method.name),
            );
            if agent.can_plan() {
                let eval = EvalConfig { planner: Planner::Sweeps, ..run.plan.eval };
                assert_eq!(behaviour(&agent, &*world, &eval), behaviour(&loaded, &*world, &eval));
            }
        }
    }
}

#[test]
fn cloning_where_actions_are_chosen_from_a_list_is_refused() {
    let place = tempfile::tempdir().unwrap();
    for (env, preset) in [("doors", "quick"), ("doors", "paper")] {
        let folder = place.path().join(preset);
        let set = shape(preset, &[], env);
        let run = run_of(env, preset, "bc", &folder, &[&set, &["encoder.action_repeat=1"]]);
        let world = run.world().unwrap();
        let (device, interrupt) = (Device::flex(), AtomicBool::new(false));
        let mut at =
            RunContext { world: &*world, device: &device, progress: &mut Silent, interrupt: &interrupt };
        let error = run.agent(&mut at).unwrap_err().to_string();
        assert!(error.contains("expected a world whose actions are vectors"), "{error}");
    }
}

#[test]
fn a_run_taken_up_again_goes_on_bit_for_bit() {
    for (env, preset, set) in kinds() {
        for method in ["rfb", "hilp"] {
            let weights = |until: &[u64]| {
                let place = tempfile::tempdir().unwrap();
                let run = run_of(env, preset, method, place.path(), &[&shape(preset, &set, env), &set]);
                until.iter().for_each(|&until| drop(trained(&run, until)));
                let file = TensorFile::from_bytes(&std::fs::read(run.checkpoint()).unwrap()).unwrap();
                let names: Vec<String> = file.names().map(str::to_owned).collect();
                names.into_iter().map(|name| (file.values(&name).unwrap().to_vec(), name)).collect::<Vec<_>>()
            };
            assert!(weights(&[u64::MAX]) == weights(&[2, u64::MAX]), "{method} on {env}/{preset} {set:?}");
        }
    }
}

#[test]
fn a_training_step_reads_nothing_from_the_device() {
    fn reads<L: Learner>(mut learner: L) -> u64 {
        learner.train_step(0).unwrap();
        let before = transfers();
        let metrics = learner.train_step(1).unwrap();
        assert!(!metrics.is_empty());
        transfers().reads - before.reads
    }
    for (env, preset, set) in kinds() {
        let place = tempfile::tempdir().unwrap();
        let run = run_of(env, preset, "rfb", place.path(), &[&shape(preset, &set, env), &set]);
        let (device, world) = (Device::flex(), run.world().unwrap());
        let interrupt = AtomicBool::new(false);
        let mut progress =
            Stopper { until: u64::MAX, interrupt: Box::leak(Box::new(AtomicBool::new(false))) };
        let mut at =
            RunContext { world: &*world, device: &device, progress: &mut progress, interrupt: &interrupt };
        let data = run.data(&mut at).unwrap();
        let experience = run.experience(data, &device).unwrap();
        let Plan { belief: config, fb, actor, .. } = &run.plan;
        match experience {
            Experience::Listed(table) => {
                let objective = StateEvidenceObjective::new(table.clone(), config, 1, &device).unwrap();
                let belief = objective.model.clone();
                assert_eq!(reads(BeliefTrainer::new(objective, config)), 0, "belief on {env}/{preset}");
                let model = ListedModel::new(table.clone(), None, fb, 0.0, 1, &device).unwrap();
                let (_, contexts) = conditioning::listed(&run.method, &table, Some(&belief), (config, fb), 1);
                let tasks = TaskDistribution::new(run.method.draw, fb, belief.dim()).unwrap();
                let objective = ListedObjective::new(model, contexts, tasks, 1);
                assert_eq!(reads(trainer(objective, fb)), 0, "F on {env}/{preset}");
            }
            Experience::Observations(replay) => {
                let objective = TransitionSetObjective::new(replay.clone(), config, 1, &device).unwrap();
                let belief = Arc::new(objective.model.clone());
                assert_eq!(reads(BeliefTrainer::new(objective, config)), 0, "belief on {env}/{preset}");
                let (conditioner, contexts) =
                    conditioning::observations(&run.method, &replay, Some(&belief), (config, fb), 1);
                let width = conditioner.width();
                let model = ObservationModel::new(
                    replay.codec.clone(),
                    width,
                    Some(belief.clone()),
                    None,
                    (fb, actor),
                    1,
                    &device,
                );
                let model = model.unwrap();
                let tasks = TaskDistribution::new(run.method.draw, fb, belief.dim()).unwrap();
                let objective = ObservationObjective::new(model, replay, contexts, tasks, 1);
                assert_eq!(reads(trainer(objective, fb)), 0, "F on {env}/{preset} {set:?}");
            }
        }
    }
}

/// One layout of Four-Rooms, whose identity is given: the forward map alone knows the way from everywhere to
/// everywhere.
#[test]
fn f_alone_is_right_in_nearly_all_pairs_of_state_and_goal_of_one_layout() {
    let place = tempfile::tempdir().unwrap();
    let set = [
        "data.train_contexts=1",
        "data.episodes=60",
        "fb.steps=500",
        "fb.contexts=1",
        "fb.tasks=24",
        "fb.net.width=64",
        "fb.net.blocks=2",
        "fb.net.head_width=128",
        "eval.contexts=1",
    ];
    let run = run_of("four-rooms", "standard", "oracle-id", place.path(), &[&set]);
    let agent = trained(&run, u64::MAX).unwrap();
    let world = run.world().unwrap();
    let examiner = exact::Examiner::new(&agent, &*world, &run.plan.eval, 1).unwrap();
    let exactness = examiner.exactness(1, usize::MAX).unwrap();
    assert!(exactness.optimal_share() >= 0.995, "{exactness:?}");
}

#[test]
fn an_unseen_context_is_nothing_that_oracle_id_knows() {
    let place = tempfile::tempdir().unwrap();
    let run = run_of("doors", "quick", "oracle-id", place.path(), &[LISTED]);
    let (agent, world) = (trained(&run, u64::MAX).unwrap(), run.world().unwrap());
    let nothing = agent.evidence(&[]);
    let [known, unseen] = [Split::Train, Split::Test]
        .map(|split| agent.known(&[world.contexts(split)[0]], &[&nothing]).remove(0).dynamics);
    assert_ne!(known, unseen);
    assert_eq!(unseen, agent.table().unwrap().average(), "the average of all that it knows");
}

#[test]
fn a_goal_is_b_of_its_state_and_a_reward_the_mean_of_rewarded_features() {
    let place = tempfile::tempdir().unwrap();
    let run = run_of("doors", "quick", "fb", place.path(), &[LISTED]);
    let agent = trained(&run, u64::MAX).unwrap();
    let (dim, states) = (agent.dim(), agent.visited.states.clone());
    let goal = states[..2].to_vec();
    let z = agent.task(&Reward::Goal { goal: goal.clone(), tolerance: 0.0 });
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    assert!(cosine(&z, &agent.backward(&goal)) > 0.9999);
    assert!((z.iter().map(|x| x * x).sum::<f32>() - dim as f32).abs() < 1e-2);
    let acting = Acting::F_ALONE;
    assert_eq!(acting.planner, Planner::None, "F alone is what acts by default");
}

/// Pendulums whose motors may be reversed: the difference between the mean beliefs of the two kinds tells them apart, also
/// where mass and length were never met.
#[test]
fn twenty_transitions_tell_the_sign_of_unseen_pendulums_by_a_linear_decoder() {
    let place = tempfile::tempdir().unwrap();
    let set = [
        "data.train_contexts=20",
        "data.test_contexts=20",
        "belief.steps=300",
        "belief.batch=32",
        "fb.net.trunk=[16]",
        "eval.context_steps=20",
    ];
    let run = run_of("pendulum", "standard", "bfb", place.path(), &[&set]);
    let (agent, world) = (trained(&run, u64::MAX).unwrap(), run.world().unwrap());
    let beliefs = |split| -> Vec<(f32, Vec<f32>)> {
        let contexts = world.contexts(split).iter();
        let belief = |context: &windvane_world::ContextId| {
            let trajectory = crate::eval::explore(&*world, *context, &run.plan.eval, 1, 0).unwrap();
            (1.0 - 2.0 * (context.0 % 2) as f32, agent.beliefs(&[&trajectory]))
        };
        contexts.map(belief).collect()
    };
    let known = beliefs(Split::Train);
    let dim = known[0].1.len();
    let mean = |sign: f32, i: usize| {
        let of = known.iter().filter(|(s, _)| *s == sign).map(|(_, h)| h[i]);
        of.sum::<f32>() / (known.len() / 2) as f32
    };
    let right = |(sign, h): &(f32, Vec<f32>)| {
        let side = (0..dim).map(|i| {
            let [ahead, reversed] = [1.0, -1.0].map(|sign| mean(sign, i));
            (h[i] - f32::midpoint(ahead, reversed)) * (ahead - reversed)
        });
        side.sum::<f32>().signum() == *sign
    };
    let unseen = beliefs(Split::Test);
    let count = unseen.iter().filter(|pair| right(pair)).count();
    assert!(count >= 19, "{count} of {}", unseen.len());
}

/// What the doctor says of tiny runs, beside what it said when the files were written: a change that is to change no result
/// changes none here. Digits of libraries may differ between machines, so small differences pass. After a change that is meant
/// to change results, `WINDVANE_FREEZE=1 cargo test` writes the files anew.
#[test]
fn findings_of_tiny_runs_are_the_frozen_ones() {
    let steps: &[&str] = &["fb.steps=40", "belief.steps=40"];
    let held: &[&str] = &["encoder.action_repeat=2", "belief.probe=3"];
    let runs: [(&str, &str, &[&[&str]]); 3] = [
        ("doors", "quick", &[LISTED, steps]),
        ("four-rooms", "quick", &[LISTED, steps]),
        ("pendulum", "standard", &[OBSERVED, steps, held]),
    ];
    for (env, preset, settings) in runs {
        let file = format!("{}/src/fixtures/{env}-findings.json", env!("CARGO_MANIFEST_DIR"));
        let place = tempfile::tempdir().unwrap();
        let run = run_of(env, preset, "bfb", place.path(), settings);
        let (agent, world) = (trained(&run, u64::MAX).unwrap(), run.world().unwrap());
        let findings = crate::diagnostics::examine(&agent, Some(&*world), None, &run.plan.eval, 1).unwrap();
        let words = |what: &str| what.replace(|c: char| c.is_ascii_digit(), "#");
        let now: Vec<(String, String, f64)> =
            findings.iter().map(|f| (f.part.to_owned(), words(&f.what), f.value)).collect();
        if std::env::var_os("WINDVANE_FREEZE").is_some() {
            std::fs::write(&file, serde_json::to_string_pretty(&now).unwrap()).unwrap();
        }
        let frozen: Vec<(String, String, f64)> =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(now.len(), frozen.len(), "{env}");
        for (now, frozen) in now.iter().zip(&frozen) {
            assert_eq!((&now.0, &now.1), (&frozen.0, &frozen.1), "{env}");
            let near = (now.2 - frozen.2).abs() <= 0.005 * frozen.2.abs().max(1.0);
            assert!(near, "{env}: {now:?}, frozen {frozen:?}");
        }
    }
}

#[test]
fn an_actor_is_measured_against_the_best_candidate_on_its_own_f() {
    let more: &[&str] =
        &["fb.steps=20", "belief.steps=20", "actor.kind=ddpg", "encoder.action_repeat=2", "belief.probe=3"];
    let place = tempfile::tempdir().unwrap();
    let run = run_of("pendulum", "standard", "bfb", place.path(), &[OBSERVED, more]);
    let (agent, world) = (trained(&run, u64::MAX).unwrap(), run.world().unwrap());
    let Model::Observations(model) = &agent.model else { panic!("pendulums are not listed") };
    let known = Known::default();
    let known = Known { belief: vec![0.1; agent.belief().unwrap().dim()], ..known };
    let states = model.states(
        &agent.visited.states[..agent.spec().obs_dim()],
        &[(&known, &agent.visited.b[..agent.dim()])],
    );
    // The values that the swapped model chooses by are those of the candidates on the same F.
    let values = model.without_actor().action_values(&states);
    let candidates = model.codec.actions.candidates();
    assert_eq!(values.len(), candidates.len());
    for (value, candidate) in values.iter().zip(candidates) {
        let own = model.values_of(&states, candidate)[0];
        assert!((value - own).abs() <= 1e-4 * own.abs().max(1.0), "{value}, on the same F {own}");
    }
    let findings = crate::diagnostics::examine(&agent, Some(&*world), None, &run.plan.eval, 1).unwrap();
    let found = findings.iter().find(|f| f.what.starts_with("return gained by the actor")).unwrap();
    assert!(found.part == "actor" && (-1.0..=1.0).contains(&found.value), "{found:?}");
}
