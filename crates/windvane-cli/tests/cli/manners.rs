//! What every command keeps to: how it stops, where its words go, what it refuses to try.

use crate::learn::train;
use crate::{PROGRAM, failure, refusal, success, text};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Starts a command whose stdout and stderr are captured.
fn start(arguments: &[&str]) -> Child {
    Command::new(PROGRAM).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends a signal to a process once `ready` is there, and returns how the process ended and how soon.
#[cfg(unix)]
fn stopped(child: Child, signal: &str, ready: &Path) -> (Output, Duration) {
    let begun = Instant::now();
    while !ready.exists() && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let asked = Instant::now();
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    (child.wait_with_output().unwrap(), asked.elapsed())
}

#[cfg(unix)]
#[test]
fn a_training_that_is_asked_to_stop_saves_and_says_so_by_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    for (signal, code) in [("-TERM", 143), ("-INT", 130)] {
        let out = folder.path().join(code.to_string());
        let mut long = train("bfb", out.to_str().unwrap());
        long.extend(["--set", "belief.steps=100000"]);
        let (output, _) = stopped(start(&long), signal, &out.join("belief.jsonl"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("stopped and saved") && !said.contains("error"), "{said}");
        assert!(out.join("belief.safetensors").exists(), "what was learned is saved");
        assert!(output.stdout.is_empty());
    }
}

#[cfg(unix)]
#[test]
fn a_sweep_that_is_asked_to_stop_ends_with_its_units_in_a_few_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let mut arguments = vec!["reproduce", "doors", "--preset", "quick", "--methods", "bfb", "--seeds", "1"];
    arguments.extend(["--out", out.to_str().unwrap(), "--set", "belief.steps=100000"]);
    let log = out.join("main/quick/bfb-0/log.txt");
    let child = start(&arguments);
    let begun = Instant::now();
    while !out.join("beliefs").exists() && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (output, time) = stopped(child, "-TERM", &log);
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
    assert!(time < Duration::from_secs(10), "{time:?}");
    let said = std::fs::read_to_string(log).unwrap();
    assert!(said.contains("stopping") || said.contains("stopped"), "the unit was asked to stop: {said}");
}

#[test]
fn without_a_terminal_progress_is_told_in_plain_lines() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let output = Command::new(PROGRAM).args(train("bfb", out.to_str().unwrap())).output().unwrap();
    let said = text(&output.stderr);
    for line in ["transitions (100%)", "6 of 6 belief steps (100%)", "a second, done in"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains('\u{1b}') && !said.contains('\r'), "no control characters: {said:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (run, data) = (path("run"), path("data"));
    let collect = ["collect", "--env", "doors", "--contexts", "2", "--episodes", "2", "--out", &data];
    let npz = path("data.npz");
    let figure = path("data.svg");
    let commands: [&[&str]; 17] = [
        &["--help"],
        &["--version"],
        &["envs"],
        &["envs", "--json"],
        &["completions", "bash"],
        &["man"],
        &["ceilings", "--env", "doors", "--seeds", "1", "--split", "test", "--context-steps", "5"],
        &collect,
        &["data", "info", &data],
        &["data", "check", &data],
        &["data", "plot", &data, "--what", "occupancy", "--out", &figure],
        &["data", "export", &data, "--format", "npz", "--out", &npz],
        &["import", &npz, "--out", &path("imported")],
        &train("fb", &run),
        &["eval", &run, "--json"],
        &["runs", &path("")],
        &["compare", &run],
    ];
    for arguments in commands {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(PROGRAM).args(arguments).stdout(full).output().unwrap();
        let said = text(&output.stderr);
        let expected = "error: writing the result to stdout: No space left on device";
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

/// A number that no machine can follow is refused before anything happens, by the option's name.
#[test]
fn absurd_numbers_are_refused_by_name() {
    let most = u64::MAX.to_string();
    let most = most.as_str();
    let commands: [(&[&str], &str); 19] = [
        (&["collect", "--env", "pointmass", "--contexts", most, "--out", "x"], "--contexts"),
        (&["collect", "--env", "doors", "--episodes", most, "--out", "x"], "--episodes"),
        (&["collect", "--env", "doors", "--length", most, "--out", "x"], "--length"),
        (&["collect", "--env", "doors", "--held-out", most, "--out", "x"], "--held-out"),
        (&["collect", "--env", "doors", "--threads", "0", "--out", "x"], "--threads"),
        (&["collect", "--env", "doors", "--threads", "1000000", "--out", "x"], "--threads"),
        (&["ceilings", "--env", "doors", "--train", "0"], "--train"),
        (&["ceilings", "--env", "doors", "--test", "0"], "--test"),
        (&["ceilings", "--env", "pointmass", "--test", most], "--test"),
        (&["ceilings", "--env", "doors", "--seeds", most], "--seeds"),
        (&["ceilings", "--env", "doors", "--context-steps", most], "--context-steps"),
        (&["train", "--env", "doors", "--method", "fb", "--threads", "99999", "--out", "x"], "--threads"),
        (&["eval", "x", "--context-steps", most], "--context-steps"),
        (&["eval", "x", "--rounds", "0"], "--rounds"),
        (&["eval", "x", "--planner", "sweeps", "--sweeps", most], "--sweeps"),
        (&["context", "x", "--steps", most], "--steps"),
        (&["reproduce", "doors", "--seeds", most, "--out", "x"], "--seeds"),
        (&["reproduce", "doors", "--jobs", "0", "--out", "x"], "--jobs"),
        (&["bench", "--threads", "99999"], "--threads"),
    ];
    for (arguments, option) in commands {
        let error = failure(arguments);
        assert!(error.contains(option) && error.contains("is not in"), "{arguments:?}: {error}");
    }
    assert!(!Path::new("x").exists(), "nothing was made");
}

#[test]
fn more_context_than_memory_holds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    success(&train("fb", out));
    let error = refusal(
        &Command::new(PROGRAM)
            .args(["eval", out, "--context-steps", "100000", "--rounds", "1000"])
            .output()
            .unwrap(),
    );
    assert!(error.contains("expected at most 1000000"), "{error}");
}

#[test]
fn a_run_without_held_out_contexts_has_no_score_there() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    let mut arguments = train("fb", out);
    arguments.extend(["--set", "data.test_contexts=0"]);
    let table = success(&arguments);
    let unseen = table.lines().find(|line| line.starts_with("Test")).unwrap();
    assert!(unseen.trim_end().ends_with('-') && !table.contains("-0.0"), "{table}");
    assert!(failure(&["eval", out, "--split", "test"]).contains("no test contexts"));
}
