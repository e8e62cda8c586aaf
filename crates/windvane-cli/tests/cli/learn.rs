//! `windvane train` and `windvane eval` on a tiny world.

use crate::{failure, json, success};

/// The smallest training worth its name, of `method` into `out`.
fn train<'a>(method: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut arguments =
        vec!["train", "--env", "doors", "--preset", "quick", "--method", method, "--out", out];
    let settings = [
        "world.train=4",
        "world.test=3",
        "data.episodes=4",
        "belief.steps=6",
        "belief.batch=8",
        "agent.steps=4",
        "agent.groups=4",
        "agent.beliefs=16",
        "agent.nets.width=32",
        "agent.nets.context_width=32",
        "eval.rounds=2",
        "eval.context_steps=50",
    ];
    settings.into_iter().for_each(|setting| arguments.extend(["--set", setting]));
    arguments
}

#[test]
fn every_method_trains_scores_and_is_evaluated_again_alike() {
    let folder = tempfile::tempdir().unwrap();
    for method in ["fb", "bfb", "rfb"] {
        let out = folder.path().join(method);
        let out = out.to_str().unwrap();
        let mut arguments = train(method, out);
        arguments.push("--json");
        let trained = json(&arguments);
        let scored = json(&["eval", out, "--split", "test", "--json"]);
        assert_eq!(scored["run"]["method"], method);
        let rows = scored["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3 * 3 * 2, "layouts x goals x rounds");
        for field in ["context", "task", "success", "return", "steps", "optimal_steps"] {
            assert!(!rows[0][field].is_null(), "{field}");
        }
        assert_eq!(scored["success"], trained["rows"][1]["success"], "the same scores as after training");
        let deeper =
            json(&["eval", out, "--split", "train", "--lookahead", "0", "--belief", "online", "--json"]);
        assert_eq!(deeper["rows"].as_array().unwrap().len(), 4 * 3 * 2);
    }
}

#[test]
fn the_point_is_trained_by_networks_through_the_same_commands() {
    let folder = tempfile::tempdir().unwrap();
    for (method, more) in [
        ("fb", vec!["neural.compass=0", "neural.fb.forward=paper", "neural.fb.ensemble=2"]),
        ("rfb", vec!["neural.belief.dim=8"]),
        ("oracle-id", vec!["neural.fb.forward=paper"]),
    ] {
        let out = folder.path().join(method);
        let out = out.to_str().unwrap();
        let mut arguments = vec!["train", "--env", "pointmass", "--method", method, "--out", out, "--json"];
        let settings = [
            "world.train=2",
            "world.test=2",
            "data.episodes=3",
            "neural.features.fourier=8",
            "neural.belief.steps=3",
            "neural.belief.batch=4",
            "neural.belief.cached=8",
            "neural.fb.dim=8",
            "neural.fb.steps=3",
            "neural.fb.groups=4",
            "neural.fb.preprocessor=[16]",
            "neural.fb.trunk=[16]",
            "neural.fb.backward=[16]",
            "eval.rounds=1",
            "eval.lookahead=2",
        ];
        settings.into_iter().chain(more).for_each(|setting| arguments.extend(["--set", setting]));
        let trained = json(&arguments);
        let scored = json(&["eval", out, "--split", "test", "--json"]);
        assert_eq!(scored["rows"].as_array().unwrap().len(), 2, "maps");
        assert_eq!(scored["rows"][0]["context_policy"], "sticky:10");
        assert_eq!(scored["success"], trained["rows"][1]["success"], "the same scores as after training");
    }
    let out = folder.path().join("bad");
    let error = failure(&[
        "train",
        "--env",
        "pointmass",
        "--method",
        "rfb",
        "--out",
        out.to_str().unwrap(),
        "--set",
        "neural.fb.gamma=1.5",
    ]);
    assert!(error.contains("\"neural.fb.gamma\" is 1.5; expected between 0 and 1"), "{error}");
}

#[test]
fn a_finished_training_given_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    let first = success(&train("bfb", out));
    let bytes = std::fs::read(folder.path().join("run/agent.safetensors")).unwrap();
    assert_eq!(success(&train("bfb", out)), first);
    assert_eq!(std::fs::read(folder.path().join("run/agent.safetensors")).unwrap(), bytes);
}

#[test]
fn what_cannot_be_trained_or_evaluated_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    let start = ["train", "--env", "doors", "--out", out];
    let with = |more: &[&'static str]| failure(&[&start[..], more].concat());
    assert!(with(&["--method", "bfbb"]).contains("did you mean \"bfb\"?"));
    assert!(with(&["--method", "bfb", "--set", "agent.kapa=3"]).contains("did you mean \"kappa\"?"));
    assert!(with(&["--method", "bfb", "--set", "agent.gamma=1.5"]).contains("expected between 0 and 1"));
    assert!(with(&["--method", "bfb", "--preset", "large"]).contains("known: standard, quick"));
    assert!(
        failure(&["train", "--env", "moon", "--method", "fb", "--out", out])
            .contains("known: doors, four-rooms")
    );
    assert!(failure(&["eval", out]).contains("windvane train"));
    success(&train("fb", out));
    let mut other = train("fb", out);
    other.extend(["--seed", "1"]);
    assert!(failure(&other).contains("holds a run with other settings"));
    let agent = folder.path().join("run/agent.safetensors");
    let mut bytes = std::fs::read(&agent).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&agent, bytes).unwrap();
    let error = failure(&["eval", out]);
    assert!(error.contains("agent.safetensors") && error.contains("damaged"), "{error}");
}
