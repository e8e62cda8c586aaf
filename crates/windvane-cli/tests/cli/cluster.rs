//! Sweeps as a cluster meets them: `windvane run --tries`, `status`, `simulate`, and `--launcher slurm` with commands of our own
//! in place of Slurm's. The real Slurm is in `tests/slurm`.

use crate::reproduce::{logs, rows, sweep};
use crate::{PROGRAM, failure, json, success, text, windvane};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The setting that makes the belief's training long enough to be met in the middle.
const LONG: [&str; 2] = ["--set", "belief.steps=1500"];
/// An agent's checkpoint in the folder of its run.
const CHECKPOINT: &str = "agent.safetensors";

/// A planned sweep of three units: the reference policies, Belief-FB, Rotation-FB.
fn planned(out: &Path, more: &[&str]) -> PathBuf {
    let mut arguments = vec!["--methods", "bfb,rfb", "--seeds", "1", "--plan-only"];
    arguments.extend(more);
    success(&sweep(out.to_str().unwrap(), &arguments));
    out.join("main.json")
}

fn task(manifest: &Path, units: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--manifest", manifest.to_str().unwrap(), "--index", units, "--tries", "2"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn status(out: &Path) -> Value {
    json(&["status", out.to_str().unwrap(), "--json"])
}

fn unit<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["units"].as_array().unwrap().iter().find(|unit| unit["unit"] == name).unwrap()
}

/// Rows without what no two runs share: times.
fn lasting(out: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for (_, text) in rows(out) {
        for line in text.lines() {
            let mut row: Value = serde_json::from_str(line).unwrap();
            for times in ["cpu_seconds", "wall_seconds"] {
                row.as_object_mut().unwrap().remove(times);
            }
            all.push(row);
        }
    }
    all
}

#[test]
fn a_killed_task_goes_on_with_the_same_bits_and_status_tells_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, out] = ["whole", "killed"].map(|name| folder.path().join(name));
    let manifest = planned(&whole, &LONG);
    assert!(task(&manifest, "0,1,2").output().unwrap().status.success());
    let manifest = planned(&out, &LONG);
    let before = status(&out);
    assert_eq!(before["waiting"], 3);
    assert!(before["seconds_left"].is_null() && before["cpu_hours_left"].is_null(), "nothing is known yet");
    let mut child = task(&manifest, "1").spawn().unwrap();
    let begun = Instant::now();
    let saved = |out: &Path| {
        let entries = fs::read_dir(out.join("beliefs")).into_iter().flatten();
        entries.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "safetensors")).count()
    };
    while saved(&out) == 0 && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let during = status(&out);
    assert_eq!(unit(&during, "quick/bfb-0")["standing"], "running");
    assert!(unit(&during, "quick/bfb-0")["progress"].as_f64().unwrap() > 0.0);
    child.kill().unwrap();
    child.wait().unwrap();
    let after = status(&out);
    let killed = unit(&after, "quick/bfb-0");
    assert_eq!(killed["standing"], "waiting");
    assert!(killed["last_words"].as_str().unwrap().starts_with("killed on "), "{killed}");
    let check = windvane(&["status", out.to_str().unwrap(), "--check"]);
    assert!(!check.status.success() && text(&check.stderr).contains("3 of 3 units are not done"));
    let output = task(&manifest, "0,1,2").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(lasting(&out), lasting(&whole), "other rows than without the kill");
    let end = status(&out);
    assert_eq!([&end["done"], &end["waiting"]], [3, 0]);
    assert_eq!([&end["seconds_left"], &end["cpu_hours_left"]], [0.0, 0.0]);
    assert!(end["cpu_hours_spent"].as_f64().unwrap() > 0.0);
    assert!(success(&["status", out.to_str().unwrap(), "--check", "--watch"]).contains("3 done"));
}

#[test]
fn two_tasks_with_the_same_units_do_each_once_and_both_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let manifest = planned(&out, &LONG);
    let tasks: Vec<_> = ["0,1,2", "1,2,0", "2"].map(|units| task(&manifest, units).spawn().unwrap()).into();
    let mut done = Vec::new();
    for task in tasks {
        let output = task.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        done.extend(text(&output.stderr).lines().filter(|l| l.ends_with(": done")).map(str::to_owned));
    }
    done.sort();
    // Whoever needs the reference policies lets them play, and says nothing of it.
    done.retain(|line| !line.contains("reference"));
    assert_eq!(done, ["quick/bfb-0: done", "quick/rfb-0: done"]);
    assert_eq!(logs(&out.join("beliefs")).len(), 1);
}

#[test]
fn a_poisoned_unit_is_given_up_after_its_tries_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let manifest = planned(&out, &[]);
    let all = || task(&manifest, "0,1,2").output().unwrap();
    assert!(all().status.success());
    let run = fs::read_dir(out.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let run = run.into_iter().find(|path| path.to_str().unwrap().contains("bfb-0")).unwrap();
    fs::write(run.join(CHECKPOINT), "poison").unwrap();
    fs::remove_file(out.join("main/quick/bfb-0/scores.jsonl")).unwrap();
    fs::remove_file(out.join("main/quick/rfb-0/scores.jsonl")).unwrap();
    let codes: Vec<Output> = (0..3).map(|_| all()).collect();
    assert_eq!(codes.iter().map(|o| o.status.code()).collect::<Vec<_>>(), [Some(75), Some(1), Some(1)]);
    assert!(text(&codes[0].stderr).contains("to be tried again: quick/bfb-0"));
    assert!(text(&codes[1].stderr).contains("error: given up: quick/bfb-0"));
    assert!(out.join("main/quick/rfb-0/scores.jsonl").exists(), "the others are done all the same");
    let standing = status(&out);
    assert_eq!([&standing["done"], &standing["failed"]], [2, 1]);
    let words = success(&["status", out.to_str().unwrap()]);
    assert!(words.contains("FAILED   main/quick/bfb-0") && words.contains("damaged checkpoint"), "{words}");
    let check = windvane(&["status", out.to_str().unwrap(), "--check"]);
    assert!(text(&check.stderr).contains("1 of 3 units are not done: quick/bfb-0"));
}

/// Commands in place of Slurm's: `sbatch` counts jobs and keeps what it was given, `squeue` prints the file `queue`.
fn pretend_slurm(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let scripts = [
        (
            "sbatch",
            "n=$(($(cat count 2>/dev/null || echo 100) + 1)); echo $n > count; echo \"$@\" >> calls; echo $n",
        ),
        ("squeue", "cat queue 2>/dev/null; true"),
        ("scancel", "echo \"scancel $@\" >> calls"),
    ];
    for (name, body) in scripts {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\ncd '{}'\n{body}\n", folder.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    bin
}

#[test]
fn slurm_gets_only_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (out, bin) = (folder.path().join("sweep"), pretend_slurm(folder.path()));
    let launch = |more: &[&str]| {
        let mut arguments = vec!["--methods", "bfb,rfb", "--seeds", "1", "--launcher", "slurm"];
        arguments.extend(more);
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        Command::new(PROGRAM)
            .args(sweep(out.to_str().unwrap(), &arguments))
            .env("PATH", path)
            .output()
            .unwrap()
    };
    let file = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();

    let dry = launch(&["--dry-run", "--partition", "short", "--sbatch", "--account=lab"]);
    assert!(dry.status.success(), "{}", text(&dry.stderr));
    assert!(text(&dry.stdout).contains("#SBATCH --partition=short\n#SBATCH --account=lab\n"));
    assert!(!out.exists() && file("calls").is_empty(), "a dry run did something");

    let first = launch(&[]);
    let said = text(&first.stdout).to_owned();
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(text(&first.stderr).contains("0 units done, 0 in the queue, 3 to submit"));
    assert!(
        said.contains("jobs 101") && said.contains("job 102") && said.contains("cancel: scancel 101 102"),
        "{said}"
    );
    assert!(file("calls").contains("--dependency=afterany:101"));

    // The second task is over, the first is still there: its units are not submitted again.
    fs::write(folder.path().join("queue"), "101 0\n").unwrap();
    let second = launch(&[]);
    assert!(
        text(&second.stderr).contains("0 units done, 2 in the queue, 1 to submit"),
        "{}",
        text(&second.stderr)
    );
    assert!(
        file("calls").contains("--dependency=afterany:101:103")
            && file("calls").contains("scancel --state=PENDING 102")
    );
    fs::write(folder.path().join("queue"), "101 0\n103 0\n").unwrap();
    let calls = file("calls");
    let third = launch(&[]);
    assert!(text(&third.stderr).contains("0 units done, 3 in the queue, 0 to submit"));
    assert_eq!(file("calls"), calls, "nothing was missing");

    // All done elsewhere: nothing but the report is missing.
    fs::write(folder.path().join("queue"), "").unwrap();
    assert!(task(&out.join("main.json"), "0,1,2").output().unwrap().status.success());
    assert!(text(&launch(&[]).stderr).contains("3 units done, 0 in the queue, 0 to submit"));
    success(&["report", out.to_str().unwrap(), "--figures"]);
    assert!(text(&launch(&[]).stdout).contains("all units are done"));
}

#[test]
fn what_slurm_cannot_be_asked_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let with = |more: &[&'static str]| failure(&sweep(out.to_str().unwrap(), more));
    assert!(with(&["--dry-run"]).contains("expected --launcher slurm"));
    assert!(
        with(&["--launcher", "slurm", "--dry-run", "--time", "soon"]).contains("\"soon\" is no time limit")
    );
    assert!(with(&["--launcher", "slurm", "--dry-run", "--max-running", "0"]).contains("at least 1"));
    assert!(failure(&["status", out.to_str().unwrap()]).contains("windvane reproduce"));
    fs::create_dir_all(&out).unwrap();
    assert!(failure(&["status", out.to_str().unwrap()]).contains("no manifest"));
    let manifest = planned(&out, &[]);
    let manifest = manifest.to_str().unwrap();
    assert!(failure(&["run", "--manifest", manifest, "--index", "0,1"]).contains("expected one, or --tries"));
    assert!(
        failure(&["run", "--manifest", manifest, "--index", "0,9", "--tries", "1"]).contains("no unit 9")
    );
}

#[test]
fn a_simulation_of_measured_costs_says_what_more_cores_give() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/four-rooms");
    let results = results.to_str().unwrap();
    let said = json(&["simulate", results, "--seeds", "2", "--cores", "1,10,1000", "--json"]);
    let spans: Vec<f64> = said["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["makespan_seconds"].as_f64().unwrap())
        .collect();
    let hours = said["cpu_hours"].as_f64().unwrap();
    assert!((spans[0] / 3600.0 / hours - 1.0).abs() < 1e-6, "one core takes the sum: {spans:?}, {hours} h");
    assert!(spans[1] < spans[0] / 8.0 && spans[2] <= spans[1], "{spans:?}");
    assert!(success(&["simulate", results]).contains("makespan"));
}
