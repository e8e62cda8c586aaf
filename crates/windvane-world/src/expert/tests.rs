use super::*;
use crate::collect::{Behaviour, BehaviourPolicy, CollectConfig, collect};
use crate::env::{Cmdp, ContextId, Split, Start};
use crate::episodes::Episodes;
use crate::mujoco::Hidden;
use crate::protocol::{EvalEpisode, rollout};
use crate::registry::{WorldConfig, make};
use crate::rng::stream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An expert that has hardly learned: it stands.
fn novice(world: &dyn Cmdp, seed: u64) -> Expert {
    train(world, &Config { seed, updates: 1, learner: Learner::Ppo }, &mut |_| {}).unwrap()
}

#[test]
fn training_repeats_to_the_last_bit_and_seeds_differ() {
    let world = make("ant-wind", &WorldConfig::default()).unwrap();
    let one = novice(&*world, 0);
    assert_eq!(one, novice(&*world, 0));
    assert_ne!(one.name(), novice(&*world, 1).name());
}

#[test]
fn an_expert_comes_back_from_its_file_and_damage_is_named() {
    let world = make("ant-fault", &WorldConfig::default()).unwrap();
    let expert = novice(&*world, 0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ant.expert");
    expert.save(&path).unwrap();
    assert_eq!(Expert::load(&path).unwrap(), expert);
    let good = std::fs::read(&path).unwrap();
    let mut damaged = good.clone();
    damaged[1000] ^= 1;
    for (bytes, problem) in [
        (&damaged[..], "checksum: the file was changed or damaged"),
        (&good[..good.len() - 4], "checksum"),
        (&good[..20], "cut short"),
        (b"something else", "is not that of an expert"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = Expert::load(&path).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn training_that_was_killed_goes_on_to_the_same_expert() {
    let world = make("ant-fault", &WorldConfig::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("ant.expert.part");
    let config = Config { seed: 5, updates: 12, learner: Learner::Ppo };
    let whole = train(&*world, &config, &mut |_| {}).unwrap();
    let trained = |seed: u64, stop: usize| {
        let mut begun = None;
        let mut progress = |at: Progress| {
            begun.get_or_insert(at.update);
            assert!(at.update < stop, "killed");
        };
        let config = Config { seed, ..config.clone() };
        let ended = catch_unwind(AssertUnwindSafe(|| {
            behaviour::train_from(&*world, &config, Some(&part), &mut progress)
        }));
        (begun, ended.ok().map(Result::unwrap))
    };
    assert_eq!(trained(5, 11), (Some(1), None));
    assert!(part.exists());
    assert_eq!(trained(6, 2), (Some(1), None), "another training is not taken for this one");
    assert_eq!(trained(5, 100), (Some(11), Some(whole)));
    std::fs::write(&part, b"damage").unwrap();
    assert_eq!(trained(5, 2), (Some(1), None));
}

#[test]
fn told_the_fault_an_expert_does_as_if_there_were_none() {
    let world = make("ant-fault", &WorldConfig::default()).unwrap();
    let expert = novice(&*world, 0);
    let played = |context: u64, given: u64| {
        let given: Hidden = serde_json::from_value(world.describe(ContextId(given)).unwrap()).unwrap();
        let task = world.tasks(ContextId(context)).unwrap().remove(0);
        let episode = EvalEpisode { context: ContextId(context), task, rng: stream(0, "episode", &[]) };
        rollout(&*world, episode, &mut expert.policy(&given)).unwrap()
    };
    let healthy = played(0, 0);
    assert!(healthy.steps == 256 && healthy.reward > 200.0, "{healthy:?}");
    assert_eq!(played(0b0110, 0b0110), healthy);
    assert!(played(0b0110, 0b0000).reward < healthy.reward - 50.0);
}

#[test]
fn experts_leave_the_same_bytes_after_any_restart_and_data_hold_torques_and_no_context() {
    let world = make("ant-wind", &WorldConfig::default()).unwrap();
    let expert = novice(&*world, 0);
    let folder = tempfile::tempdir().unwrap();
    let collected = |name: &str, threads: usize| -> Episodes {
        let config = CollectConfig {
            contexts: world.contexts(Split::Train)[..2].to_vec(),
            episodes: 6,
            length: 20,
            start: Start::Fixed,
            seed: 3,
        };
        let path = folder.path().join(name);
        // The expert is beside the data before they are, as after a kill.
        expert.save(&folder.path().join(format!("{name}.expert"))).unwrap();
        let policy = BehaviourPolicy::Expert { learner: Learner::Ppo, pure: false };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| collect(&*world, &policy, &config, "tests", &path, &|_| {})).unwrap()
    };
    let (one, two) = (collected("one", 1), collected("two", 2));
    assert_eq!(one.meta().plan.provenance.policy, expert.name());
    assert_eq!((one.spec().obs_dim(), one.groups()), (27, 2));
    for episode in 0..one.episodes() {
        assert_eq!(one.observations(episode), two.observations(episode));
        assert_eq!(one.actions(episode), two.actions(episode));
    }
    assert_ne!(one.observations(0), one.observations(1), "qualities differ");
}

#[test]
fn an_expert_s_collection_that_was_killed_goes_on_to_the_same_bytes() {
    const COMMITTED: usize = 256 * 3;
    let world = make("ant-fault", &WorldConfig::default()).unwrap();
    let expert = novice(&*world, 0);
    let folder = tempfile::tempdir().unwrap();
    let config = CollectConfig {
        contexts: world.contexts(Split::Train)[..2].to_vec(),
        episodes: 200,
        length: 3,
        start: Start::Fixed,
        seed: 3,
    };
    let collected = |name: &str, progress: &(dyn Fn(usize) + Sync)| {
        expert.save(&folder.path().join(format!("{name}.expert"))).unwrap();
        let policy = BehaviourPolicy::Expert { learner: Learner::Ppo, pure: false };
        collect(&*world, &policy, &config, "tests", &folder.path().join(name), progress).unwrap()
    };
    let whole = collected("whole", &|_| {});
    let done = AtomicUsize::new(0);
    let kill = |steps: usize| assert!(done.fetch_add(steps, Ordering::SeqCst) < COMMITTED, "killed");
    let killed = catch_unwind(AssertUnwindSafe(|| collected("killed", &kill)));
    assert!(killed.is_err() && Episodes::open(folder.path().join("killed")).is_err());
    let again = AtomicUsize::new(0);
    let resumed = collected("killed", &|steps| {
        let _before = again.compare_exchange(0, steps, Ordering::SeqCst, Ordering::SeqCst);
    });
    assert_eq!(again.into_inner(), COMMITTED, "what was committed is not collected again");
    assert_eq!(resumed.transitions(), whole.transitions());
    for entry in std::fs::read_dir(folder.path().join("whole")).unwrap() {
        let name = entry.unwrap().file_name();
        let bytes = |which: &str| std::fs::read(folder.path().join(which).join(&name)).unwrap();
        assert_eq!(bytes("whole"), bytes("killed"), "{name:?}");
    }
}

#[test]
fn worlds_without_ants_have_no_experts() {
    let world = make("pendulum", &WorldConfig::default()).unwrap();
    let error = train(&*world, &Config { seed: 0, updates: 1, learner: Learner::Ppo }, &mut |_| {})
        .unwrap_err()
        .to_string();
    assert_eq!(error, "pendulum: there are experts for ants alone");
    let policy = BehaviourPolicy::Expert { learner: Learner::Ppo, pure: true };
    let error = policy.prepare(&*world, 0, Path::new("nowhere/data")).err().unwrap().to_string();
    assert_eq!(error, "pendulum: there are experts for ants alone");
}
