//! Collecting from real worlds.

use crate::synth::files;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::tempdir;
use windvane_world::collect::{BehaviourPolicy, CollectConfig, collect};
use windvane_world::episodes::{Episodes, check};
use windvane_world::registry::{WORLDS, WorldConfig, make};
use windvane_world::{Cmdp, Split, Start, WorldError};

fn config(world: &dyn Cmdp, seed: u64) -> CollectConfig {
    CollectConfig {
        contexts: world.contexts(Split::Train)[..3].to_vec(),
        episodes: 40,
        length: 30,
        start: Start::Random,
        seed,
    }
}

fn run(
    world: &dyn Cmdp,
    policy: BehaviourPolicy,
    config: &CollectConfig,
    threads: usize,
    out: &Path,
) -> Result<Episodes, WorldError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| collect(world, &policy, config, "tests", out, &|_| {}))
}

#[test]
fn every_world_and_policy_gives_sound_data_with_a_group_for_each_context() {
    for entry in WORLDS {
        let world = make(entry.name, &WorldConfig::default()).unwrap();
        let mut policies = vec![BehaviourPolicy::Uniform, BehaviourPolicy::Sticky { repeat: 10 }];
        policies.push(match world.grid() {
            Some(_) => BehaviourPolicy::Walker { epsilon: 0.2 },
            None => BehaviourPolicy::Held { steps: 2 },
        });
        for policy in policies {
            let folder = tempdir().unwrap();
            let path = folder.path().join("data");
            let config = config(&*world, 0);
            run(&*world, policy, &config, 2, &path).unwrap();
            let data = check(&path).unwrap();
            assert_eq!((data.groups(), data.episodes()), (3, 120));
            // Ants that fall are done earlier.
            let falls = entry.name.starts_with("ant-") && data.transitions() < 3600;
            assert!(falls || data.transitions() == 3600, "{}: {}", entry.name, data.transitions());
            let labels = data.privileged_context_labels().unwrap();
            assert!(
                (0..data.episodes())
                    .all(|episode| labels.of(episode) == config.contexts[data.group(episode)])
            );
            assert_eq!(data.meta().plan.provenance.policy, policy.to_string());
        }
    }
}

#[test]
fn threads_do_not_change_a_byte_and_seeds_do() {
    let world = make("pointmass", &WorldConfig::default()).unwrap();
    let folder = tempdir().unwrap();
    let collected = |name: &str, seed, threads| {
        let path = folder.path().join(name);
        run(&*world, BehaviourPolicy::Sticky { repeat: 10 }, &config(&*world, seed), threads, &path).unwrap();
        files(&path)
    };
    let one = collected("one", 0, 1);
    assert!(one == collected("two", 0, 2) && one == collected("five", 0, 5));
    assert!(one != collected("other", 1, 2));
}

#[test]
fn an_episode_does_not_depend_on_how_many_are_collected() {
    let world = make("four-rooms", &WorldConfig::default()).unwrap();
    let folder = tempdir().unwrap();
    let few =
        run(&*world, BehaviourPolicy::Uniform, &config(&*world, 0), 2, &folder.path().join("few")).unwrap();
    let more = CollectConfig { episodes: 77, ..config(&*world, 0) };
    let many = run(&*world, BehaviourPolicy::Uniform, &more, 2, &folder.path().join("many")).unwrap();
    for group in 0..3 {
        let (few_start, many_start) = (few.group_episodes(group).start, many.group_episodes(group).start);
        for number in 0..40 {
            assert_eq!(few.observations(few_start + number), many.observations(many_start + number));
        }
    }
}

#[test]
fn progress_counts_every_transition_once_also_after_a_restart() {
    let world = make("doors", &WorldConfig::default()).unwrap();
    let folder = tempdir().unwrap();
    let done = AtomicUsize::new(0);
    let count = |more: usize| {
        done.fetch_add(more, Ordering::Relaxed);
    };
    collect(
        &*world,
        &BehaviourPolicy::Uniform,
        &config(&*world, 0),
        "tests",
        &folder.path().join("data"),
        &count,
    )
    .unwrap();
    assert_eq!(done.into_inner(), 3600);
}

#[test]
fn requests_that_cannot_be_met_say_why() {
    let world = make("pointmass", &WorldConfig::default()).unwrap();
    let folder = tempdir().unwrap();
    let out = folder.path().join("data");
    let refused =
        |policy, config: &CollectConfig| run(&*world, policy, config, 1, &out).unwrap_err().to_string();
    let good = config(&*world, 0);
    let error = refused(BehaviourPolicy::Walker { epsilon: 0.1 }, &good);
    assert!(error.contains("\"walker\" needs a grid"), "{error}");
    let doors = make("doors", &WorldConfig::default()).unwrap();
    let held = run(&*doors, BehaviourPolicy::Held { steps: 2 }, &config(&*doors, 0), 1, &out)
        .unwrap_err()
        .to_string();
    assert!(held.contains("\"held\" needs continuous actions"), "{held}");
    let error = refused(BehaviourPolicy::Uniform, &CollectConfig { episodes: 0, ..good.clone() });
    assert!(error.contains("episodes is 0"), "{error}");
    let error = refused(BehaviourPolicy::Uniform, &CollectConfig { length: usize::MAX, ..good.clone() });
    assert!(error.contains("more than 2^40"), "{error}");
    let twice = vec![good.contexts[0]; 2];
    let error = refused(BehaviourPolicy::Uniform, &CollectConfig { contexts: twice, ..good });
    assert!(error.contains("is listed twice"), "{error}");
    assert!(!folder.path().join("data.partial").exists());
}
