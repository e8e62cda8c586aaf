//! `windvane reproduce`, `run`, `report` and `figure`, on sweeps of a second.

use crate::{PROGRAM, failure, files, json, python_with, script, success, text, windvane};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The smallest complete sweep.
pub(crate) fn sweep<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["reproduce", "doors", "--preset", "quick", "--out", out];
    let settings = [
        "data.train_contexts=3",
        "data.test_contexts=3",
        "data.episodes=6",
        "belief.steps=6",
        "belief.batch=8",
        "fb.steps=5",
        "fb.contexts=4",
        "belief.cached=16",
        "fb.net.width=16",
        "fb.net.head_width=16",
        "eval.rounds=2",
        "eval.context_steps=50",
    ];
    settings.into_iter().for_each(|setting| arguments.extend(["--set", setting]));
    arguments.extend(more);
    arguments
}

/// Rows of units: where they are, and what they say.
pub(crate) fn rows(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for setting in fs::read_dir(folder.join("main")).unwrap() {
        for unit in fs::read_dir(setting.unwrap().path()).unwrap() {
            let path = unit.unwrap().path().join("scores.jsonl");
            all.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
    all.sort();
    all
}

/// The training logs in a folder, which may not be there yet.
pub(crate) fn logs(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|x| x == "jsonl")).collect()
}

#[test]
fn a_sweep_is_done_once_added_to_repaired_and_reported_from_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let path = out.to_str().unwrap();
    let first = success(&sweep(path, &["--methods", "fb,bfb", "--seeds", "1"]));
    assert!(first.contains("Belief-FB") && first.contains("exact Bayes planner (ceiling)"), "{first}");
    let before = rows(&out);
    assert_eq!(before.len(), 3, "two methods and the reference policies");
    for (path, text) in &before {
        let row: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        for field in ["env", "method", "seed", "split", "context", "task", "success", "steps"] {
            assert!(!row[field].is_null(), "{field} in {}", path.display());
        }
        for field in ["optimal_steps", "ceiling", "config", "revision"] {
            assert!(!row[field].is_null() || row["method"] == "random", "{field} in {}", path.display());
        }
        let trained = ["gradient_steps", "cpu_seconds", "wall_seconds"];
        assert!(
            trained.iter().all(|field| row[field].is_number())
                || path.to_str().unwrap().contains("reference")
        );
    }

    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for slip in ["1 seeds", "interval", ">-0.0<", ">-0.00<", ">\u{2212}0.0<"] {
        assert!(!page.contains(slip), "\"{slip}\" on a page of one seed");
    }

    // Once more: nothing is done and no figure drawn again.
    let drawn = || fs::metadata(out.join("figures/layouts.svg")).unwrap().modified().unwrap();
    let at = drawn();
    assert_eq!(success(&sweep(path, &["--methods", "fb,bfb", "--seeds", "1"])), first);
    assert_eq!(drawn(), at);

    // More seeds join; what is there stays. The belief is shared, so Rotation-FB trains none.
    success(&sweep(path, &["--methods", "fb,rfb", "--seeds", "1"]));
    let after = rows(&out);
    assert_eq!(after.len(), 4);
    assert!(before.iter().all(|row| after.contains(row)), "finished units were touched");
    assert_eq!(
        fs::read_dir(out.join("beliefs"))
            .unwrap()
            .filter(|e| { e.as_ref().unwrap().path().extension().is_some_and(|x| x == "safetensors") })
            .count(),
        1
    );

    // A half-written row is skipped with a warning, and redone.
    let (broken, whole) = &after[1];
    fs::write(broken, &whole[..whole.len() - 40]).unwrap();
    let output = windvane(&["report", path]);
    assert!(output.status.success() && text(&output.stderr).contains("is no row and is skipped"));
    success(&sweep(path, &["--methods", "fb,bfb,rfb", "--seeds", "1"]));
    assert_eq!(rows(&out), after, "the same rows again");

    // No run does worse than the theorem allows.
    let numbers =
        json(&["figure", "theory", path, "--out", out.join("theory.svg").to_str().unwrap(), "--json"]);
    let regrets = numbers["numbers"]["regrets"].as_array().unwrap();
    assert_eq!(regrets.len(), 3 * (3 + 3) * 3, "methods, contexts, goals");
    for row in regrets {
        let [regret, bound] = ["regret", "bound"].map(|name| row[name].as_f64().unwrap());
        assert!((-1e-6..=bound).contains(&regret), "{row}");
    }

    // Rows alone give the same page: nothing that was trained is needed.
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["data", "beliefs", "runs"] {
        fs::remove_dir_all(out.join(part)).unwrap();
    }
    fs::remove_file(out.join("report.html")).unwrap();
    success(&["report", path]);
    assert!(fs::read_to_string(out.join("report.html")).unwrap() == page, "another page");
    for figure in ["Interference", "Beliefs about hidden dynamics", "Theorem 1, computed", "Layouts"] {
        assert!(page.contains(figure), "{figure}");
    }
    let picture = folder.path().join("summary.svg");
    success(&["figure", "summary", path, "--out", picture.to_str().unwrap()]);
    assert!(picture.exists());
}

#[test]
fn an_ablation_shares_what_is_trained_and_varies_the_context() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let path = out.to_str().unwrap();
    success(&sweep(path, &["--methods", "bfb", "--seeds", "1"]));
    let trained = files(
        &fs::read_dir(out.join("runs")).unwrap().next().unwrap().unwrap().path().join("agent.tensorboard"),
    );
    let page = json(&sweep(path, &["--methods", "bfb", "--seeds", "1", "--ablation", "context", "--json"]));
    assert_eq!(fs::read_dir(out.join("runs")).unwrap().count(), 1, "nothing is trained twice");
    let again = files(
        &fs::read_dir(out.join("runs")).unwrap().next().unwrap().unwrap().path().join("agent.tensorboard"),
    );
    assert!(trained == again);
    let lines = page["ablations"][0][1].as_array().unwrap();
    let lengths: Vec<u64> = lines
        .iter()
        .filter(|line| line["method"] == "bfb")
        .map(|line| line["context_steps"].as_u64().unwrap())
        .collect();
    assert_eq!(lengths, [0, 50, 75, 100, 150, 200, 500]);
    let picture = folder.path().join("context.png");
    success(&["figure", "ablation-context", path, "--out", picture.to_str().unwrap()]);
    assert!(failure(&["figure", "ablation-kappa", path, "--out", "x.svg"]).contains("there are summary"));
}

#[test]
fn a_unit_survives_a_kill_and_is_never_done_twice_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let path = out.to_str().unwrap();
    let plan =
        sweep(path, &["--methods", "bfb,rfb", "--seeds", "1", "--plan-only", "--set", "belief.steps=1500"]);
    assert!(success(&plan).contains("quick/reference-0"));
    let manifest = out.join("main.json");
    let unit = |index: &'static str| {
        let mut command = Command::new(PROGRAM);
        command.args(["run", "--manifest", manifest.to_str().unwrap(), "--index", index]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut killed = unit("1").spawn().unwrap();
    // In the middle of the belief's training: its log has begun.
    let begun = Instant::now();
    while logs(&out.join("beliefs")).is_empty() && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(2));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!out.join("main/quick/bfb-0/scores.jsonl").exists(), "it was killed in time");
    // All at once, one of them twice: the belief is trained by one of them, the others wait for it.
    let children: Vec<_> = ["1", "2", "1"].into_iter().map(|index| unit(index).spawn().unwrap()).collect();
    let said: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            text(&output.stdout).to_owned()
        })
        .collect();
    let done = said.iter().filter(|words| words.contains(": done")).count();
    assert_eq!(done, 2, "{said:?}");
    assert!(said.iter().any(|words| words.contains("elsewhere") || words.contains("before")), "{said:?}");
    assert_eq!(rows(&out).len(), 3, "the reference policies, too");
    let log = logs(&out.join("beliefs"));
    let steps: Vec<u64> = fs::read_to_string(&log[0])
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|row| row["kind"] == "train")
        .map(|row| row["step"].as_u64().unwrap())
        .collect();
    assert!(log.len() == 1 && steps.is_sorted_by(|a, b| a < b), "the belief was trained once: {steps:?}");
}

#[test]
fn what_cannot_be_reproduced_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let path = out.to_str().unwrap();
    let with = |more: &[&'static str]| failure(&sweep(path, more));
    assert!(with(&["--methods", "bfbb"]).contains("unknown method \"bfbb\" (did you mean \"bfb\"?)"));
    assert!(with(&["--methods", ","]).contains("nothing is selected"));
    assert!(with(&["--seeds", "0"]).contains("is not in 1..=1000"));
    assert!(
        with(&["--ablation", "width"])
            .contains("known: context, layouts, kappa, forward, episode, parts, rotation")
    );
    assert!(failure(&["reproduce", "moon", "--out", path]).contains("known: doors, four-rooms, pointmass"));
    assert!(
        failure(&["reproduce", "doors", "--preset", "large", "--out", path])
            .contains("known: standard, quick")
    );
    assert!(failure(&["figure", "spheres", path, "--out", "x.svg"]).contains("known: summary"));
    assert!(failure(&["report", path]).contains("windvane reproduce"));
    fs::create_dir_all(&out).unwrap();
    assert!(failure(&["report", path]).contains("no score rows"));
    success(&sweep(path, &["--plan-only"]));
    assert!(failure(&sweep(path, &["--plan-only", "--set", "fb.steps=6"])).contains("holds another sweep"));
    let manifest = out.join("main.json");
    let manifest = manifest.to_str().unwrap();
    assert!(failure(&["run", "--manifest", manifest, "--index", "99"]).contains("there is no unit 99"));
    fs::write(manifest, "{}").unwrap();
    assert!(failure(&["run", "--manifest", manifest, "--index", "0"]).contains("not a manifest"));
}

/// A sweep's rows as if three methods had been trained with five seeds.
fn invented(folder: &Path) {
    for (number, method) in ["fb", "bfb", "rfb"].into_iter().enumerate() {
        for seed in 0..5_u64 {
            let place = folder.join(format!("main/standard/{method}-{seed}"));
            fs::create_dir_all(&place).unwrap();
            let mut text = String::new();
            for (split, belief) in
                [("train", "frozen"), ("test", "frozen"), ("train", "online"), ("test", "online")]
            {
                for context in 0..5_u64 {
                    for task in 0..3_u64 {
                        let luck =
                            (seed * 7919 + context * 104_729 + task * 1_299_709 + number as u64 * 31) % 17;
                        let won = (luck + 3 * number as u64).min(20);
                        let row = json!({
                            "env": "four-rooms", "setting": "standard", "method": method, "seed": seed,
                            "split": split, "context": context + 100 * seed, "task": format!("goal-{task}"),
                            "belief": belief, "context_steps": 100, "planner": "none", "episodes": 20,
                            "success": won as f64 / 20.0, "return": won as f64 / 20.0, "steps": 40.0,
                            "optimal_steps": 12, "ceiling": 0.7, "config": "0123456789abcdef",
                            "revision": if seed == 4 && method == "fb" { "b" } else { "a" },
                            "gradient_steps": 10, "cpu_seconds": 1.5, "wall_seconds": 2.0,
                        });
                        text.push_str(&row.to_string());
                        text.push('\n');
                    }
                }
            }
            fs::write(place.join("scores.jsonl"), text).unwrap();
        }
    }
}

#[test]
fn impossible_scores_are_refused_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    invented(folder.path());
    let file = folder.path().join("main/standard/bfb-2/scores.jsonl");
    let good = fs::read_to_string(&file).unwrap();
    for (from, to, expected) in [
        ("\"success\":", "\"success\":7.5,\"was\":", "\"success\" is 7.5, expected 0 to 1"),
        ("\"success\":", "\"success\":-0.5,\"was\":", "\"success\" is -0.5, expected 0 to 1"),
        ("\"ceiling\":", "\"ceiling\":1.5,\"was\":", "\"ceiling\" is 1.5, expected 0 to 1"),
        ("\"steps\":", "\"steps\":-3.0,\"was\":", "\"steps\" is -3"),
        ("\"episodes\":", "\"episodes\":0,\"was\":", "\"episodes\" is 0, expected at least 1"),
    ] {
        fs::write(&file, good.replacen(from, to, 1)).unwrap();
        let error = failure(&["report", folder.path().to_str().unwrap()]);
        assert!(error.contains("bfb-2/scores.jsonl") && error.contains(expected), "{error}");
    }
}

/// The statistics as the real rliable computes them (`tests/python/requirements.txt`).
#[test]
fn rliable_agrees() {
    let Some(python) = python_with("rliable.library", "rliable_agrees") else { return };
    let folder = tempfile::tempdir().unwrap();
    invented(folder.path());
    let report = folder.path().join("report.json");
    fs::write(&report, success(&["report", folder.path().to_str().unwrap(), "--json"])).unwrap();
    script(&python, "rliable_stats.py", &[folder.path(), &report]);
}

/// What a real Chromium says while it shows a page, and the picture it takes of it.
fn shown(browser: &str, page: &Path, picture: &Path) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=420,900"])
        .args(["--enable-logging=stderr", "--disable-background-networking", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_page_opens_in_chromium_without_an_error_or_a_request() {
    let named = std::env::var("WINDVANE_CHROMIUM").ok();
    let known = ["chromium", "chromium-browser", "google-chrome"].map(str::to_owned);
    let works =
        |name: &String| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let Some(browser) = named.into_iter().chain(known).find(works) else {
        eprintln!("SKIPPED the_page_opens_in_chromium: no Chromium found (set WINDVANE_CHROMIUM)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    invented(folder.path());
    success(&["report", folder.path().to_str().unwrap()]);
    let page = folder.path().join("report.html");
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("FB\u{2020}") && html.contains("revision a of the program"),
        "mixed revisions are marked"
    );
    let picture = folder.path().join("page.png");
    let said = shown(&browser, &page, &picture);
    assert!(!said.contains("CONSOLE"), "{said}");
    assert!(fs::metadata(&picture).unwrap().len() > 10_000, "a page with something on it");
    // The same browser does complain about a page that asks for something.
    let curious = folder.path().join("curious.html");
    fs::write(&curious, html.replace("</body>", "<img src=\"http://127.0.0.1:9/x.png\"></body>")).unwrap();
    assert!(shown(&browser, &curious, &picture).contains("CONSOLE"), "the test cannot see requests");
}
