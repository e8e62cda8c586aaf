//! `windvane runs`, `compare`, `train --dry-run`, `completions`, `man` and `--version`.

use crate::learn::train;
use crate::{failure, json, success};

#[test]
fn runs_are_listed_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (fb, bfb) = (path("fb"), path("deep/er/bfb"));
    success(&train("fb", &fb));
    let mut other = train("bfb", &bfb);
    other.extend(["--seed", "3", "--set", "fb.kappa=70"]);
    success(&other);
    let list = json(&["runs", folder.path().to_str().unwrap(), "--json"]);
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let of = |method: &str| runs.iter().find(|run| run["method"] == method).unwrap();
    assert_eq!((&of("bfb")["env"], &of("bfb")["seed"]), (&"doors".into(), &3.into()));
    assert_eq!(of("fb")["state"], "finished");
    assert!(of("fb")["bytes"].as_u64().unwrap() > 1000 && of("fb")["age_seconds"].is_u64());
    let scored = json(&["eval", &fb, "--json"]);
    let listed = of("fb")["scores"]["test frozen none"].as_f64().unwrap();
    assert!((listed - scored["success"].as_f64().unwrap()).abs() < 1e-9, "the score of `eval`");
    let table = success(&["runs", folder.path().to_str().unwrap()]);
    assert!(table.starts_with("run ") && table.contains("finished"), "{table}");

    // A training that is not over says how far it is.
    std::fs::remove_dir_all(folder.path().join("fb/model")).unwrap();
    assert!(success(&["runs", &fb]).contains("agent step 4 of 4"));

    let compared = json(&["compare", &fb, &bfb, "--json"]);
    let settings = compared["settings"].as_object().unwrap();
    let names: Vec<&str> = settings.keys().map(String::as_str).collect();
    assert_eq!(names, ["method", "seed", "fb.kappa"], "what differs and nothing else");
    assert_eq!(settings["seed"], serde_json::json!(["0", "3"]));
    for kind in ["train frozen none", "test frozen sweeps"] {
        let score = &compared["scores"][kind][1];
        let [low, high] = [0, 1].map(|end| score["interval"][end].as_f64().unwrap());
        assert!((low..=high).contains(&score["success"].as_f64().unwrap()), "{kind}: {score}");
    }
    assert!(success(&["compare", &fb, &fb]).contains("no setting differs"));
    assert!(failure(&["compare", &path("none")]).contains("expected a folder that `windvane train` made"));
    assert!(failure(&["runs", &path("none")]).contains("none"));
}

#[test]
fn a_dry_run_tells_every_setting_with_its_origin_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, "[fb]\nkappa = 30\n").unwrap();
    let mut arguments = train("rfb", out.to_str().unwrap());
    arguments.extend(["--config", file.to_str().unwrap(), "--dry-run", "--json"]);
    let document = json(&arguments);
    let settings = document["settings"].as_array().unwrap();
    let origin = |key: &str| {
        let found = settings.iter().find(|setting| setting["key"] == key);
        found.unwrap_or_else(|| panic!("{key}"))["origin"].as_str().unwrap().to_owned()
    };
    assert_eq!(origin("fb.kappa"), file.to_str().unwrap());
    assert_eq!(origin("data.train_contexts"), "--set data.train_contexts=4");
    assert_eq!(origin("env"), "default");
    assert!(settings.iter().any(|setting| setting["origin"] == "preset doors/quick"));
    assert!(!out.exists(), "nothing is written");
    arguments.pop();
    assert!(success(&arguments).contains("--set data.train_contexts=4"));
}

#[test]
fn the_version_tells_what_was_built() {
    let long = success(&["--version"]);
    for part in ["windvane 0.", "revision: ", "devices compiled in: cpu", "instruction set: "] {
        assert!(long.contains(part), "{part}: {long}");
    }
    assert_eq!(success(&["-V"]).lines().count(), 1);
}

#[test]
fn shells_and_man_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = success(&["completions", shell]);
        assert!(
            ["reproduce", "context-steps", "compare"].iter().all(|word| script.contains(word)),
            "{shell}"
        );
    }
    let page = success(&["man"]);
    assert!(page.contains(".TH windvane 1") && page.contains("windvane\\-train"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    success(&["man", "--out", folder.path().to_str().unwrap()]);
    for page in ["windvane.1", "windvane-train.1", "windvane-data-import.1"] {
        assert!(folder.path().join(page).exists(), "{page}");
    }
}
