//! `windvane train --data`, `export` and `adapt`: from a data set alone to actions.

use crate::{PROGRAM, failure, json, success, text, windvane};
use serde_json::{Value, json as value};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Settings of a training of a few steps.
const TINY: [&str; 13] = [
    "data.held_out=0",
    "belief.dim=8",
    "belief.width=16",
    "belief.predictor_width=16",
    "belief.steps=3",
    "belief.batch=4",
    "belief.cached=8",
    "fb.dim=8",
    "fb.steps=3",
    "fb.contexts=4",
    "fb.net.preprocessor=[16]",
    "fb.net.trunk=[16]",
    "fb.net.backward=[16]",
];

/// A folder with agents that were trained for a few steps, shared by all tests of this process: `grid` on a
/// data set of a grid that is treated as somebody's own, `listed` state by state, `point` with vectors as
/// actions.
fn models() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
            for (name, env, more) in [
                ("grid", "doors", &[][..]),
                ("point", "pointmass", &[][..]),
                ("listed", "doors", &["encoder.states=listed", "fb.backward=table", "fb.dim=90"]),
            ] {
                let (data, run) = (path(&format!("{name}-data")), path(&format!("{name}-run")));
                success(&["collect", "--env", env, "--contexts", "3", "--episodes", "3", "--out", &data]);
                let mut train = vec!["train", "--data", &data, "--method", "rfb", "--out", &run];
                TINY.iter().chain(more).for_each(|setting| train.extend(["--set", setting]));
                assert!(success(&train).contains("trained; go on with"));
                success(&["export", &run, "--out", &path(name)]);
                let npz = path(&format!("{name}.npz"));
                success(&["data", "export", &data, "--format", "npz", "--out", &npz]);
                assert!(failure(&["eval", &run]).contains("no world to play in"));
                // An agent needs neither its run nor its data.
                std::fs::remove_dir_all(&run).unwrap();
                std::fs::remove_dir_all(&data).unwrap();
            }
            folder
        })
        .path()
}

fn model(name: &str) -> PathBuf {
    models().join(name)
}

/// `windvane adapt MODEL ..` with its context.
fn adapt<'a>(name: &'a str, more: &[&'a str]) -> Vec<String> {
    let context = models().join(format!("{name}.npz"));
    let start = ["adapt".to_owned(), model(name).display().to_string()];
    let context = ["--context".to_owned(), context.display().to_string()];
    start.into_iter().chain(context).chain(more.iter().map(ToString::to_string)).collect()
}

fn refs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// A control loop.
struct Loop {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Loop {
    fn new(arguments: &[String]) -> (Self, Value) {
        let mut child = Command::new(PROGRAM)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut this = Self { child, to, from };
        let ready = this.answer();
        (this, ready)
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("an answer in a line, not \"{line}\""))
    }

    fn ask(&mut self, line: &str) -> Value {
        writeln!(self.to, "{line}").unwrap();
        self.answer()
    }

    /// Ends the input; the program must end well.
    fn end(mut self) {
        drop(self.to);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn every_kind_of_task_is_told_and_every_core_answers() {
    for name in ["grid", "point", "listed"] {
        let labels = models().join(format!("{name}.csv"));
        std::fs::write(&labels, "x,y,reward\n1,1,1\n7,4,-1\n").unwrap();
        let label = labels.to_str().unwrap();
        for task in [
            &["--goal", "7,4"][..],
            &["--labels", label],
            &["--reward", "(x > 4) * (y < 5) - 0.1"],
            &["--goal", "0.5 @ 7,4", "--labels", label, "--reward", "-1 @ abs(y - 4)"],
        ] {
            for inference in ["projection", "least-squares"] {
                let more = [task, &["--inference", inference, "--json"]].concat();
                let answer = json(&refs(&adapt(name, &more)));
                assert_eq!(answer["inference"], inference);
                assert_eq!(answer["fit"].is_null(), !task.contains(&"--reward"), "{answer}");
                let z: Vec<f64> = serde_json::from_value(answer["z"].clone()).unwrap();
                let length = z.iter().map(|x| x * x).sum::<f64>();
                assert!((length / z.len() as f64 - 1.0).abs() < 1e-4, "on the sphere: {length}");
                assert!(answer["confidence"]["ood_score"].as_f64().unwrap() >= 0.0);
                assert!(answer["confidence"]["relative_std"].as_f64().unwrap() > 0.0);
            }
        }
        let nothing = json(&["adapt", model(name).to_str().unwrap(), "--goal", "7,4", "--json"]);
        assert_eq!((&nothing["confidence"]["transitions"], &nothing["warning"]), (&value!(0), &Value::Null));
        let observations = models().join(format!("{name}.npz"));
        let more = ["--goal", "7,4", "--observations", observations.to_str().unwrap()];
        let answer = json(&refs(&adapt(name, &more)));
        let actions = answer["actions"].as_array().unwrap();
        assert!(actions.len() > 100);
        assert!(actions.iter().all(|a| if name == "point" {
            a.as_array().unwrap().len() == 2
        } else {
            a.is_u64()
        }));
    }
}

#[test]
fn a_goal_outside_the_range_of_the_data_is_warned_of() {
    let far = adapt("grid", &["--goal", "7,400", "--json"]);
    let output = windvane(&refs(&far));
    assert!(output.status.success());
    let expected = "goal: \"y\" is 400, outside the range of the observation";
    assert!(text(&output.stderr).contains(&format!("warning: {expected}")), "{}", text(&output.stderr));
    assert!(json(&refs(&far))["task_warnings"][0].as_str().unwrap().starts_with(expected));
    assert_eq!(json(&refs(&adapt("grid", &["--goal", "7,4", "--json"])))["task_warnings"], value!([]));
}

#[test]
fn a_task_that_was_saved_is_the_same_task() {
    let tasks = models().join("tasks-of-a-test.json");
    let tasks = tasks.to_str().unwrap();
    let task = ["--goal", "7,4", "--reward", "x > 3", "--tasks", tasks, "--save-task", "home", "--json"];
    let first = json(&refs(&adapt("grid", &task)));
    let again = json(&refs(&adapt("grid", &["--task", "home", "--tasks", tasks, "--json"])));
    assert_eq!(first, again);
    let error = failure(&refs(&adapt("grid", &["--task", "hme", "--tasks", tasks])));
    assert!(error.contains("unknown task \"hme\"; known: home"), "{error}");
}

#[test]
fn a_control_loop_answers_survives_bad_lines_and_ends_with_its_input() {
    for name in ["grid", "point", "listed"] {
        for belief in ["frozen", "online"] {
            let (mut run, ready) = Loop::new(&adapt(name, &["--goal", "7,4", "--serve", "--belief", belief]));
            assert_eq!(ready["ready"]["method"], "rfb");
            let first = run.ask(r#"{"obs": [1, 4], "reset": true, "values": true}"#);
            assert!(!first["action"].is_null() && first["values"].is_array(), "{first}");
            for step in 0..30 {
                let x = 1 + step / 10;
                let answer = run.ask(&value!({"obs": [x, 4]}).to_string());
                assert!(!answer["action"].is_null(), "{answer}");
            }
            for (line, expected) in [
                ("nonsense", "expected"),
                ("{}", "expected {\"obs\": [2 numbers]}"),
                (r#"{"obs": [1, 2, 3]}"#, "3 numbers, expected 2"),
                (r#"{"obs": [1, "two"]}"#, "\"y\" is NaN, expected a finite number"),
                (r#"{"obs": [1, 4], "took": "left"}"#, "\"took\" is"),
                (r#"{"task": {"parts": [{"weight": 1, "formula": "speed > 1"}]}}"#, "no dimension \"speed\""),
            ] {
                // A transition must be under way for "took" to be read.
                run.ask(r#"{"obs": [1, 4]}"#);
                let answer = run.ask(line);
                assert!(answer["error"].as_str().unwrap().contains(expected), "{line}: {answer}");
            }
            let task = run.ask(r#"{"task": {"parts": [{"weight": 1, "formula": "x > 3"}]}}"#);
            assert_eq!(task["inference"], "projection");
            assert!(!run.ask(r#"{"obs": [1, 4]}"#)["action"].is_null());
            run.end();
        }
    }
}

#[test]
fn no_absurd_number_enters_a_belief_or_leaves_as_an_action() {
    let finite = |action: &Value| match action {
        Value::Array(numbers) => numbers.iter().all(|x| x.as_f64().is_some_and(f64::is_finite)),
        number => number.is_u64(),
    };
    for name in ["grid", "point", "listed"] {
        let (mut run, _) = Loop::new(&adapt(name, &["--goal", "7,4", "--serve", "--belief", "online"]));
        let before = run.ask(r#"{"obs": [1, 4], "reset": true}"#);
        for absurd in ["1e30", "-1e12", "3e38", "1e300"] {
            run.ask(r#"{"obs": [1, 4]}"#);
            let answer = run.ask(&format!(r#"{{"obs": [{absurd}, 4]}}"#));
            assert!(
                answer["error"].as_str().is_some_and(|e| e.contains("\"x\" is")),
                "{name} {absurd}: {answer}"
            );
            let next = run.ask(r#"{"obs": [1, 4]}"#);
            assert!(finite(&next["action"]), "{name} after {absurd}: {next}");
        }
        for (line, expected) in [
            (r#"{"obs": [1, 4], "rest": true}"#, "unknown key \"rest\"; known: obs, reset"),
            (r#"{"obs": [1, 4], "reset": 1}"#, "\"reset\" is 1; expected true or false"),
            (r#"{"obs": 4}"#, "\"obs\" is 4; expected numbers in brackets"),
            ("[1, 4]", "expected an object"),
        ] {
            let answer = run.ask(line);
            assert!(answer["error"].as_str().is_some_and(|e| e.contains(expected)), "{line}: {answer}");
        }
        let long = format!(r#"{{"obs": [{}1, 4]}}"#, " ".repeat(5 << 20));
        assert!(run.ask(&long)["error"].as_str().unwrap().contains("a line of more than"), "it is answered");
        // What was learned of the context stays; the answer is as good as the first one.
        let after = run.ask(r#"{"obs": [1, 4], "reset": true}"#);
        assert!(finite(&before["action"]) && finite(&after["action"]), "{before} {after}");
        run.end();
    }
}

#[test]
fn a_control_loop_whose_reader_is_gone_ends_quietly() {
    let (run, _) = Loop::new(&adapt("grid", &["--goal", "7,4", "--serve"]));
    let Loop { child, mut to, from } = run;
    drop(from);
    // Until the program is gone. A process that another test starts may hold its pipe for a moment.
    while writeln!(to, r#"{{"obs": [1, 4]}}"#).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    assert!(!text(&output.stderr).contains("panicked") && !text(&output.stderr).contains("error"));
}

#[test]
fn contexts_and_tasks_that_cannot_be_used_are_refused_in_a_line() {
    let error = |more: &[&str]| failure(&refs(&adapt("grid", more)));
    assert!(error(&[]).contains("no task; expected --goal"), "{}", error(&[]));
    assert!(error(&["--goal", "7"]).contains("goal: 1 numbers, expected 2 (x, y)"));
    assert!(error(&["--goal", "7,a"]).contains("expected numbers separated by commas"));
    assert!(error(&["--reward", "x > speed"]).contains("no dimension \"speed\"; known: x, y"));
    assert!(error(&["--reward", "1 / (x - x)"]).contains("a division by zero"));
    let nested = format!("{}x{}", "(".repeat(1000), ")".repeat(1000));
    assert!(error(&["--reward", &nested]).contains("more than 64 levels"));
    assert!(error(&["--reward", "x * 0"]).contains("0 wherever the data went"));
    assert!(error(&["--reward", "x > -99"]).contains("every policy earns the same"));
    assert!(error(&["--labels", "nowhere.csv"]).contains("nowhere.csv"));
    let grid = model("grid").display().to_string();
    // Vectors where moves were expected, and a file that is no archive.
    let point = models().join("point.npz").display().to_string();
    let error = failure(&["adapt", &grid, "--goal", "7,4", "--context", &point]);
    assert!(error.contains("point.npz"), "{error}");
    let error = failure(&["adapt", &grid, "--goal", "7,4", "--context", &format!("{grid}/config.json")]);
    assert!(error.contains("not a NumPy .npz file"), "{error}");
}

#[test]
fn a_damaged_or_foreign_folder_is_refused_in_a_line() {
    let good = model("grid");
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad");
    let copy = || {
        let _ = std::fs::remove_dir_all(&bad);
        std::fs::create_dir(&bad).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(good.join(file), bad.join(file)).unwrap();
        }
    };
    let error = || failure(&["adapt", bad.to_str().unwrap(), "--goal", "7,4"]);
    let config = |path: &str, to: Value| {
        copy();
        let text = std::fs::read_to_string(bad.join("config.json")).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        *config.pointer_mut(path).unwrap_or_else(|| panic!("{path} in {text}")) = to;
        std::fs::write(bad.join("config.json"), config.to_string()).unwrap();
        error()
    };
    assert!(
        failure(&["adapt", folder.path().to_str().unwrap(), "--goal", "7,4"])
            .contains("holds no config.json")
    );
    assert!(config("/version", value!(4)).contains("version is 4, newer than 3"));
    assert!(config("/version", value!(1)).contains("train and export it again"));
    assert!(config("/format", value!("somebody-else")).contains("format is \"somebody-else\""));
    let codec = "/states/observations/codec";
    for (field, to) in [("action_repeat", value!(3)), ("change_scale", value!([1.0]))] {
        let said = config(&format!("{codec}/{field}"), to);
        assert!(said.contains("does not fit its environment and settings"), "{said}");
    }
    assert!(config("/settings/fb/net/preprocessor", value!([17])).contains("in the file, expected"));
    assert!(config("/settings", value!({})).contains("config.json"));
    copy();
    std::fs::remove_file(bad.join("model.safetensors")).unwrap();
    assert!(error().contains("model.safetensors"));
    copy();
    let bytes = std::fs::read(bad.join("model.safetensors")).unwrap();
    std::fs::write(bad.join("model.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    assert!(error().contains("model.safetensors"));
    // The weights of another agent: tensors that are missing, or that do not belong.
    std::fs::copy(model("listed").join("model.safetensors"), bad.join("model.safetensors")).unwrap();
    let said = error();
    assert!(said.contains("parameter") && said.contains("in the file"), "{said}");
    let out = windvane(&["export", good.to_str().unwrap(), "--out", bad.to_str().unwrap()]);
    assert!(!out.status.success() && !text(&out.stderr).contains("panicked"));
}

#[test]
fn gymnasium_carts_are_balanced_and_numpy_computes_the_same_values() {
    let python = std::env::var("WINDVANE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import gymnasium, numpy"]).output();
    if !has.is_ok_and(|has| has.status.success()) {
        eprintln!(
            "SKIPPED gymnasium_carts_are_balanced: {python} lacks gymnasium or numpy (set WINDVANE_PYTHON)"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/python/own_data.py");
    let output = Command::new(python)
        .args([script, PROGRAM])
        .arg(folder.path())
        .args(["belief.steps=600", "fb.steps=1200"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn own_pendulums_are_swung_up_after_a_log_of_them_and_never_after_one_of_the_other_sign() {
    let python = std::env::var("WINDVANE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if !Command::new(&python).args(["-c", "import numpy"]).output().is_ok_and(|has| has.status.success()) {
        eprintln!("SKIPPED own_pendulums_are_swung_up: {python} lacks numpy (set WINDVANE_PYTHON)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/python/own_pendulum.py");
    // A fifth of the usual training: some pendulums stay down, but the context decides.
    let output = Command::new(python)
        .args([script, PROGRAM])
        .arg(folder.path())
        .args(["bfb", "3", "belief.steps=600", "fb.steps=2000"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let scores: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let upright = |log: &str| {
        let of =
            |sign| scores["share upright"][format!("told {log}, sign {sign}")]["upright"].as_f64().unwrap();
        f64::midpoint(of("+1"), of("-1"))
    };
    assert!(upright("right") >= 0.5, "{scores}");
    assert!(upright("wrong") <= 0.1, "{scores}");
}
