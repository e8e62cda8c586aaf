//! `windvane train` and `windvane eval` on a tiny world.

use crate::{PROGRAM, failure, json, python_with, script, success};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windvane::methods::{METHODS, Method};

/// The smallest complete training, of `method` into `out`.
pub(crate) fn train<'a>(method: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut arguments =
        vec!["train", "--env", "doors", "--preset", "quick", "--method", method, "--out", out];
    let settings = [
        "data.train_contexts=4",
        "data.test_contexts=3",
        "data.episodes=4",
        "belief.steps=6",
        "belief.batch=8",
        "fb.steps=4",
        "fb.contexts=4",
        "belief.cached=16",
        "fb.net.width=16",
        "fb.net.head_width=16",
        "features.steps=3",
        "features.batch=16",
        "correction.steps=3",
        "eval.rounds=2",
        "eval.context_steps=50",
    ];
    settings.into_iter().for_each(|setting| arguments.extend(["--set", setting]));
    arguments
}

#[test]
fn every_method_trains_scores_and_is_evaluated_again_alike() {
    let folder = tempfile::tempdir().unwrap();
    let (cloning, others): (Vec<&Method>, Vec<&Method>) = METHODS.iter().partition(|method| method.clones);
    for method in cloning {
        let out = folder.path().join(method.name);
        let error = failure(&train(method.name, out.to_str().unwrap()));
        assert!(error.contains("expected a world whose actions are vectors"), "{error}");
    }
    for method in others.iter().map(|method| method.name) {
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
        let same = |row: &&serde_json::Value| {
            row["split"] == "test" && row["belief"] == "frozen" && row["planner"] == "none"
        };
        let before = trained["rows"].as_array().unwrap().iter().find(same).unwrap();
        assert_eq!(scored["success"], before["success"], "the same scores as after training");
        assert!(scored["random"].is_number(), "random actions are a row of every evaluation");
        assert!(scored["seconds_per_context"].as_f64().unwrap() > 0.0);
        assert_eq!(rows[0]["planner"], "none", "F alone acts unless the planner is asked for");
        let planned =
            json(&["eval", out, "--split", "train", "--planner", "sweeps", "--belief", "online", "--json"]);
        assert_eq!(planned["rows"].as_array().unwrap().len(), 4 * 3 * 2);
        assert_eq!(planned["rows"][0]["planner"], "sweeps");
    }
    let bfb = folder.path().join("bfb");
    let bfb = bfb.to_str().unwrap();
    for (planner, policy) in [("none", "greedy"), ("none", "gpi"), ("sweeps", "greedy")] {
        let policies = ["--planner", planner, "--task-policy", policy, "--json"];
        let scored = json(&[&["eval", bfb, "--tasks", "rewards"][..], &policies].concat());
        assert_eq!((&scored["planner"], &scored["task_policy"]), (&planner.into(), &policy.into()));
        let mean = scored["scores"]["mean"].as_f64().unwrap();
        assert!(mean < 1.0 && scored["scores"].as_object().unwrap().len() > 4, "{scored}");
        let rows = scored["rows"].as_array().unwrap();
        assert!(rows.iter().all(|r| r["gained"].as_f64() <= r["possible"].as_f64()), "nobody beats the best");
    }
    let error = failure(&["eval", bfb, "--tasks", "rewards", "--belief", "online"]);
    assert!(error.contains("scores a frozen belief"), "{error}");
    let out = folder.path().join("heads");
    let out = out.to_str().unwrap();
    let mut heads = train("hilp", out);
    heads.extend(["--set", "fb.forward=paper"]);
    success(&heads);
    assert_eq!(json(&["eval", out, "--json"])["planner"], "none");
}

#[test]
fn the_point_is_trained_by_networks_through_the_same_commands() {
    let folder = tempfile::tempdir().unwrap();
    for (method, more) in [
        ("fb", vec!["encoder.directions=0", "fb.forward=paper", "fb.ensemble=2"]),
        ("rfb", vec!["belief.dim=8"]),
        ("oracle-id", vec!["fb.forward=paper"]),
        ("hilp", vec!["encoder.directions=0", "fb.forward=paper"]),
        ("lap", vec![]),
        ("contextual-fb", vec![]),
    ] {
        let out = folder.path().join(method);
        let out = out.to_str().unwrap();
        let mut arguments = vec!["train", "--env", "pointmass", "--preset", "networks", "--method", method];
        arguments.extend(["--out", out, "--json"]);
        let settings = [
            "data.train_contexts=2",
            "data.test_contexts=2",
            "data.episodes=3",
            "encoder.fourier=8",
            "belief.steps=3",
            "belief.batch=4",
            "belief.cached=8",
            "fb.dim=8",
            "fb.steps=3",
            "fb.contexts=4",
            "fb.net.preprocessor=[16]",
            "fb.net.trunk=[16]",
            "fb.net.backward=[16]",
            "features.dim=6",
            "features.steps=3",
            "features.batch=16",
            "correction.steps=3",
            "eval.rounds=1",
        ];
        settings.into_iter().chain(more).for_each(|setting| arguments.extend(["--set", setting]));
        let trained = json(&arguments);
        let scored = json(&["eval", out, "--split", "test", "--json"]);
        assert_eq!(scored["rows"].as_array().unwrap().len(), 2, "maps");
        assert_eq!(scored["rows"][0]["context_policy"], "sticky:10");
        let same = |row: &&serde_json::Value| {
            row["split"] == "test" && row["belief"] == "frozen" && row["planner"] == "none"
        };
        let before = trained["rows"].as_array().unwrap().iter().find(same).unwrap();
        assert_eq!(scored["success"], before["success"], "the same scores as after training");
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
        "fb.gamma=1.5",
    ]);
    assert!(error.contains("\"fb.gamma\" is 1.5; expected between 0 and 1"), "{error}");
}

#[test]
fn the_point_is_trained_in_boxes_through_the_same_commands() {
    let folder = tempfile::tempdir().unwrap();
    for method in ["fb", "rfb", "hilp"] {
        let out = folder.path().join(method);
        let out = out.to_str().unwrap();
        let mut arguments = vec!["train", "--env", "pointmass", "--preset", "quick", "--method", method];
        arguments.extend(["--out", out, "--json"]);
        let settings = [
            "data.train_contexts=2",
            "data.test_contexts=2",
            "data.episodes=20",
            "belief.steps=3",
            "fb.steps=3",
            "features.steps=3",
            "eval.rounds=1",
        ];
        settings.into_iter().for_each(|setting| arguments.extend(["--set", setting]));
        let trained = json(&arguments);
        let scored = json(&["eval", out, "--split", "test", "--json"]);
        assert_eq!(scored["rows"].as_array().unwrap().len(), 2, "maps");
        let same = |row: &&serde_json::Value| {
            row["split"] == "test" && row["belief"] == "frozen" && row["planner"] == "none"
        };
        let before = trained["rows"].as_array().unwrap().iter().find(same).unwrap();
        assert_eq!(scored["success"], before["success"], "the same scores as after training");
    }
}

/// Runs the program where `folder` can only be read; nothing where such a place cannot be made.
fn read_only(folder: &Path, arguments: &[&str]) -> Option<std::process::Output> {
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, "sh"]).arg(folder).arg(PROGRAM).args(arguments);
        command.output().ok()
    };
    let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\"";
    let can = run(&format!("{mount} && ! touch \"$1\"/x")).is_some_and(|output| output.status.success());
    if can { run(&format!("{mount} && shift && exec \"$@\"")) } else { None }
}

#[test]
fn a_finished_run_is_read_where_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let run = place("run");
    success(&train("bfb", &run));
    let figure = place("q.svg");
    let (model, page) = (place("model"), place("report.html"));
    for arguments in [
        &["eval", &run][..],
        &["report", &run, "--out", &page],
        &["doctor", &run],
        &["export", &run, "--out", &model],
        &["figure", "qmap", &run, "--out", &figure],
        &["context", &run],
        &["adapt", &run, "--goal", "7,4"],
        &["runs", &run],
    ] {
        let Some(output) = read_only(Path::new(&run), arguments) else {
            eprintln!("SKIPPED: no user namespaces here, so no read-only mount");
            return;
        };
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
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
    assert!(with(&["--method", "bfb", "--set", "fb.kapa=3"]).contains("did you mean \"kappa\"?"));
    assert!(with(&["--method", "bfb", "--set", "fb.gamma=1.5"]).contains("expected between 0 and 1"));
    assert!(with(&["--method", "bfb", "--preset", "large"]).contains("known: standard, quick"));
    assert!(
        failure(&["train", "--env", "moon", "--method", "fb", "--out", out])
            .contains("known: doors, four-rooms")
    );
    assert!(failure(&["eval", out]).contains("windvane train"));
    success(&train("fb", out));
    let mut other = train("fb", out);
    other.extend(["--seed", "1"]);
    assert!(failure(&other).contains("holds a run with other settings (seed was 0, is 1)"));
    // A run that was recorded before a setting existed is the same run.
    let record = folder.path().join("run/run.json");
    let mut older: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    older["plan"]["fb"].as_object_mut().unwrap().remove("centred_goals").unwrap();
    std::fs::write(&record, older.to_string()).unwrap();
    success(&train("fb", out));
    let agent = folder.path().join("run/model/model.safetensors");
    let mut bytes = std::fs::read(&agent).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&agent, bytes).unwrap();
    let error = failure(&["eval", out]);
    assert!(error.contains("model.safetensors"), "{error}");
}

#[test]
fn a_run_killed_at_any_moment_goes_on_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (whole, killed) = (path("whole"), path("killed"));
    let arguments = |out: &'static str| {
        let mut arguments: Vec<String> = train("bfb", out).into_iter().map(str::to_owned).collect();
        for setting in ["belief.steps=40", "fb.steps=40"] {
            arguments.extend(["--set".to_owned(), setting.to_owned()]);
        }
        arguments
    };
    let run = |out: &str| {
        let arguments = arguments("OUT").into_iter().map(|a| if a == "OUT" { out.to_owned() } else { a });
        let mut command = Command::new(PROGRAM);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    assert!(run(whole.to_str().unwrap()).status().unwrap().success());
    // Killed outright again and again, a little later each time: while collecting, in either training, during a write.
    let begun = Instant::now();
    for try_number in 1_u64.. {
        let mut child = run(killed.to_str().unwrap()).spawn().unwrap();
        let patience = Duration::from_millis(40 * try_number);
        let started = Instant::now();
        let done = loop {
            match child.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if started.elapsed() > patience => break None,
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        if let Some(status) = done {
            assert!(status.success() && try_number > 1, "it was killed at least once");
            break;
        }
        child.kill().unwrap(); // SIGKILL on Unix
        child.wait().unwrap();
        assert!(begun.elapsed() < Duration::from_mins(2), "it never ends");
    }
    for name in ["belief.safetensors", "agent.safetensors"] {
        let [one, other] = [&whole, &killed].map(|run| std::fs::read(run.join(name)).unwrap());
        assert!(one == other, "{name} differs");
    }
    let lines = |run: &Path| std::fs::read_to_string(run.join("agent.jsonl")).unwrap().lines().count();
    assert_eq!(lines(&whole), lines(&killed), "no row is missing, none is there twice");
}

#[test]
fn two_trainers_in_one_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut long = train("bfb", out.to_str().unwrap());
    long.extend(["--set", "belief.steps=100000"]);
    let mut first =
        Command::new(PROGRAM).args(&long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !out.join("run.json").exists() && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let error = failure(&long);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(error.contains("another") || error.contains("in use"), "{error}");
}

#[test]
fn training_stops_early_once_it_is_good_enough() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut arguments = train("fb", out.to_str().unwrap());
    arguments.extend(["--set", "stop_at=0", "--set", "fb.steps=50"]);
    success(&arguments);
    let log = std::fs::read_to_string(out.join("agent.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(last["step"], 10, "the first of five evaluations is enough: {log}");
    for metric in ["train success", "optimal 1-4", "ortho error", "largest Q"] {
        assert!(last[metric].is_number(), "{metric}: {last}");
    }
    let findings = json(&["doctor", out.to_str().unwrap(), "--json"]);
    let findings = findings["findings"].as_array().unwrap();
    assert!(findings.len() > 5 && findings.iter().all(|finding| finding["value"].is_number()));
}

/// The log as the real TensorBoard reads it (`tests/python/requirements.txt`).
#[test]
fn tensorboard_agrees() {
    let Some(python) = python_with("tensorboard", "tensorboard_agrees") else { return };
    let folder = tempfile::tempdir().unwrap();
    success(&train("fb", folder.path().join("run").to_str().unwrap()));
    let logs = ["agent.jsonl", "agent.tensorboard"].map(|name| folder.path().join("run").join(name));
    script(&python, "tensorboard_log.py", &[&logs[0], &logs[1]]);
}
