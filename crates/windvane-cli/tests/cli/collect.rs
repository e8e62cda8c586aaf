//! `windvane collect`.

use crate::{PROGRAM, failure, files, json, refusal, success};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::tempdir;

fn arguments<'a>(env: &'a str, episodes: &'a str, out: &'a Path) -> Vec<&'a str> {
    let out = out.to_str().expect("a plain path");
    vec!["collect", "--env", env, "--contexts", "3", "--episodes", episodes, "--seed", "5", "--out", out]
}

#[test]
fn the_same_command_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = tempdir().unwrap();
    for env in ["doors", "four-rooms", "pointmass"] {
        let paths = ["1", "2", "5"].map(|threads| {
            let path = folder.path().join(format!("{env}-{threads}"));
            let report =
                json(&[&arguments(env, "20", &path)[..], &["--threads", threads, "--json"]].concat());
            assert_eq!((&report["env"], &report["summary"]["episodes"]), (&env.into(), &60.into()));
            path
        });
        assert!(files(&paths[0]) == files(&paths[1]) && files(&paths[0]) == files(&paths[2]), "{env}");
    }
}

#[test]
fn a_killed_collection_goes_on_and_ends_with_the_same_bytes() {
    let folder = tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    success(&arguments("four-rooms", "10000", &whole));
    let mut kills = 0;
    // Again and again, so that different moments are hit, until a run comes through.
    while !killed.exists() && kills < 200 {
        let mut child = Command::new(PROGRAM)
            .args(arguments("four-rooms", "10000", &killed))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let journal = folder.path().join("killed.partial/journal.jsonl");
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let before = size(&journal);
        while size(&journal) == before
            && child.try_wait().unwrap().is_none()
            && begun.elapsed() < Duration::from_mins(1)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(kills % 7));
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 1, "the first run was killed in the middle");
    assert!(files(&whole) == files(&killed));
    assert!(!folder.path().join("killed.partial").exists());
}

/// A file-size limit stands in for a full disk: a write fails in the middle of a column.
#[cfg(unix)]
#[test]
fn a_full_disk_stops_with_one_error_and_loses_nothing() {
    let folder = tempdir().unwrap();
    let (whole, full) = (folder.path().join("whole"), folder.path().join("full"));
    success(&arguments("pointmass", "100", &whole));
    let before = files(&whole);
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\"", PROGRAM])
        .args(arguments("pointmass", "100", &full))
        .output()
        .unwrap();
    let error = refusal(&output);
    assert!(
        error.contains("full.partial/observations.npy: writing column observations: File too large"),
        "{error}"
    );
    assert!(!full.exists() && files(&whole) == before);
    // With room again, the same command goes on to the same bytes.
    success(&arguments("pointmass", "100", &full));
    assert!(files(&full) == before);
}

#[test]
fn an_existing_output_is_refused_and_left_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("precious"), "work").unwrap();
    let error = failure(&arguments("doors", "1", &path));
    assert!(error.contains("data: output: already exists"), "{error}");
    assert_eq!(files(&path).len(), 1);
}

#[test]
fn a_finished_collection_given_again_changes_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let first = success(&arguments("doors", "3", &path));
    let before = files(&path);
    assert_eq!(success(&arguments("doors", "3", &path)), first);
    assert!(files(&path) == before);
    // Another program's version makes no other data.
    let meta = path.join("meta.json");
    let text = std::fs::read_to_string(&meta).unwrap();
    std::fs::write(&meta, text.replace("\"generator\": \"windvane ", "\"generator\": \"older ")).unwrap();
    assert_eq!(success(&arguments("doors", "3", &path)), first);
    let error = failure(&arguments("doors", "4", &path));
    assert!(
        error.contains("was collected with other settings (provenance.config.episodes was 3, is 4)"),
        "{error}"
    );
    assert!(failure(&arguments("four-rooms", "3", &path)).contains("other settings (env.name was"));
}

#[test]
fn requests_that_cannot_be_met_say_why() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let with = |env, more: &[&str], expected: &str| {
        let error = failure(&[&arguments(env, "1", &path)[..], more].concat());
        assert!(error.contains(expected), "{error}");
    };
    with("atlantis", &[], "unknown environment \"atlantis\"; known: doors, four-rooms, pointmass, pendulum");
    with("doors", &["--held-out", "48"], "only 49 layouts exist");
    with("pointmass", &["--policy", "walker"], "needs a grid");
    with(
        "doors",
        &["--policy", "greedy"],
        "unknown policy \"greedy\"; known: uniform, sticky[:REPEAT], held[:STEPS], walker[:EPSILON], expert[:sac|:sac-targets][:pure]",
    );
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing was written");
}

#[test]
fn without_numbers_the_papers_are_used() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let out = path.to_str().unwrap();
    let report = json(&["collect", "--env", "doors", "--out", out, "--json"]);
    assert_eq!(report["summary"]["episodes"], 24 * 500);
    assert_eq!(report["summary"]["longest"], 100);
    assert_eq!(report["policy"], "uniform");
}
