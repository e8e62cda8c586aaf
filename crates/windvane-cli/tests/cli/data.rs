//! `windvane data`.

use crate::{PROGRAM, failure, files, json, python_with, script, success};
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};

/// A small data set of a world.
fn collected(env: &str) -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let out = path.to_str().unwrap();
    success(&["collect", "--env", env, "--contexts", "3", "--episodes", "4", "--length", "20", "--out", out]);
    (folder, path)
}

fn show(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Runs a command that must fail with a message that holds `expected`.
fn fails(arguments: &[&str], expected: &str) {
    let error = failure(arguments);
    assert!(error.contains(expected), "expected {expected:?} in: {error}");
}

#[test]
fn info_and_check_describe_a_data_set() {
    let (_folder, path) = collected("pointmass");
    let info = json(&["data", "info", show(&path), "--json"]);
    assert_eq!(info["env"]["name"], "pointmass");
    assert_eq!(info["summary"]["transitions"], 240);
    assert_eq!(info["provenance"]["policy"], "sticky:10");
    assert!(info["provenance"]["generator"].as_str().unwrap().starts_with("windvane 0."));
    let check = json(&["data", "check", show(&path), "--json"]);
    assert_eq!((&check["ok"], &check["summary"]), (&true.into(), &info["summary"]));
    let words = success(&["data", "info", show(&path)]);
    assert!(words.contains("transitions  240") && words.contains("12 (20 steps each"), "{words}");
    assert!(success(&["data", "check", show(&path)]).contains("are sound"));
}

#[test]
fn exports_come_back_bit_for_bit() {
    for env in ["doors", "pointmass"] {
        let (folder, path) = collected(env);
        let archive = folder.path().join("data.npz");
        json(&["data", "export", show(&path), "--format", "npz", "--out", show(&archive), "--json"]);
        let root = folder.path().join("minari");
        let minari =
            json(&["data", "export", show(&path), "--format", "minari", "--out", show(&root), "--json"]);
        let minari = minari["path"].as_str().unwrap();
        assert_eq!(minari, show(&root.join(format!("windvane/{env}-v0"))));
        for (number, source) in [show(&archive), minari].into_iter().enumerate() {
            let back = folder.path().join(format!("back{number}"));
            json(&["data", "import", source, "--out", show(&back), "--json"]);
            assert!(files(&back) == files(&path), "{source}");
        }
    }
}

#[test]
fn pictures_are_drawn_to_svg_and_png() {
    let (folder, path) = collected("four-rooms");
    for what in ["layouts", "trajectories", "occupancy"] {
        for ending in ["svg", "png"] {
            let out = folder.path().join(format!("{what}.{ending}"));
            let arguments = ["data", "plot", show(&path), "--what", what, "--out", show(&out), "--json"];
            assert_eq!(json(&arguments)["path"], show(&out));
            assert!(std::fs::metadata(&out).unwrap().len() > 1000);
            fails(&arguments, "already exists");
        }
    }
    fails(
        &["data", "plot", show(&path), "--what", "layouts", "--dims", "x,z", "--out", "a.svg"],
        "unknown dimension \"z\"; known: x, y",
    );
    fails(
        &["data", "plot", show(&path), "--what", "layouts", "--dims", "x", "--out", "a.svg"],
        "--dims needs two names",
    );
}

#[test]
fn damage_gives_one_error_that_names_file_and_field() {
    let (_folder, path) = collected("doors");
    let column = path.join("observations.npy");
    let good = std::fs::read(&column).unwrap();
    let mut flipped = good.clone();
    flipped[200] ^= 8;
    std::fs::write(&column, &flipped).unwrap();
    fails(&["data", "check", show(&path)], "observations.npy: observations: the checksum is");
    std::fs::write(&column, &good[..good.len() - 4]).unwrap();
    for command in ["info", "check"] {
        fails(&["data", command, show(&path)], "observations.npy: observations: the file has");
    }
    std::fs::remove_file(&column).unwrap();
    fails(&["data", "info", show(&path)], "observations.npy: opening column observations: No such file");
    let meta = path.join("meta.json");
    let newer = std::fs::read_to_string(&meta).unwrap().replace("\"version\": 1", "\"version\": 2");
    std::fs::write(&meta, newer).unwrap();
    fails(&["data", "info", show(&path)], "meta.json: version: is 2, newer than 1");
    fails(&["data", "info", "no-such-folder"], "no-such-folder/meta.json: reading");
}

#[test]
fn bad_options_of_import_and_export_are_explained() {
    let (folder, path) = collected("doors");
    let out = folder.path().join("out");
    let (data, out) = (show(&path), show(&out));
    fails(
        &["data", "export", data, "--format", "npz", "--id", "a-v0", "--out", out],
        "--id is for --format minari",
    );
    fails(&["data", "export", data, "--format", "minari", "--id", "a b", "--out", out], "is no Minari id");
    fails(&["data", "import", "nowhere.npz", "--out", out], "nowhere.npz: opening the archive");
    fails(&["data", "import", data, "--out", out], "data/metadata.json: reading");
    fails(
        &["data", "import", "a.npz", "--group-by", "robot", "--out", out],
        "expected auto, episode, file or column:NAME",
    );
    assert!(!Path::new(out).exists());
}

#[test]
fn every_command_shows_an_example() {
    for command in [
        &["collect"][..],
        &["data", "info"],
        &["data", "check"],
        &["data", "export"],
        &["data", "import"],
        &["data", "plot"],
    ] {
        let help = success(&[command, &["--help"]].concat());
        let name = command.join(" ");
        assert!(help.contains("Example") && help.contains(&format!("windvane {name} ")), "{name}: {help}");
        assert!(help.contains("--json"), "{name}");
    }
}

/// NumPy, Minari and OGBench's layout, by the packages themselves (`tests/python/requirements.txt`).
#[test]
fn numpy_and_minari_agree() {
    let Some(python) = python_with("minari, numpy, pyarrow, xxhash", "numpy_and_minari_agree") else {
        return;
    };
    let folder = tempdir().unwrap();
    let said = script(&python, "exchange.py", &[Path::new(PROGRAM), folder.path()]);
    assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), 5);
}
