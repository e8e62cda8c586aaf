//! `windvane envs` and `windvane ceilings`.

use super::{failure, json, windvane};

/// The worlds that this build has.
fn world_names() -> Vec<&'static str> {
    let ants =
        ["ant-wind", "ant-wind-contacts", "ant-wind-6", "ant-fault", "ant-fault-more", "ant-fault-rotated"];
    let ants = if cfg!(feature = "mujoco") { &ants[..] } else { &[] };
    [&["doors", "four-rooms", "pointmass", "pendulum"], ants].concat()
}

#[test]
fn envs_lists_every_world_with_its_spaces_contexts_and_tasks() {
    let document = json(&["envs", "--json"]);
    let envs = document["envs"].as_array().unwrap();
    let names: Vec<&str> = envs.iter().map(|env| env["name"].as_str().unwrap()).collect();
    assert_eq!(names, world_names());
    for env in envs {
        let seen = match env["name"].as_str().unwrap() {
            "pendulum" => 3,
            "ant-wind-contacts" => 105,
            name if name.starts_with("ant-") => 27,
            _ => 2,
        };
        assert_eq!(env["observation"].as_array().unwrap().len(), seen, "never the context");
        assert!(env["action"].is_object() && env["horizon"].as_u64() > Some(0));
        assert!(env["contexts"]["train"].as_u64() > Some(0) && env["contexts"]["test"].as_u64() > Some(0));
        assert!(!env["tasks"].as_array().unwrap().is_empty());
    }
    let table = String::from_utf8(windvane(&["envs"]).stdout).unwrap();
    assert!(names.iter().all(|name| table.contains(name)));
}

#[test]
fn ceilings_gives_a_row_for_each_player_split_and_context_length() {
    let document =
        json(&["ceilings", "--env", "doors", "--seeds", "1", "--context-steps", "20,80", "--json"]);
    let rows = document["rows"].as_array().unwrap();
    for policy in ["random", "shortest-path", "bayes-frozen", "bayes-online"] {
        for split in ["train", "test"] {
            let of = |row: &&serde_json::Value| row["policy"] == policy && row["split"] == split;
            let steps: Vec<u64> =
                rows.iter().filter(of).map(|row| row["context_steps"].as_u64().unwrap()).collect();
            assert_eq!(steps, if policy.starts_with("bayes") { vec![20, 80] } else { vec![0] });
            let mut success = rows.iter().filter(of).map(|row| row["success"].as_f64().unwrap());
            assert!(success.all(|share| (0.0..=1.0).contains(&share)));
        }
    }
    let test = json(&["ceilings", "--env", "pointmass", "--seeds", "1", "--split", "test", "--json"]);
    let rows = test["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["split"] == "test"));
    assert!(rows.iter().any(|row| row["policy"] == "shortest-path" && row["success"] == 1.0));
}

#[test]
fn bad_requests_are_refused_with_what_would_be_right() {
    let unknown = failure(&["ceilings", "--env", "five-rooms"]);
    let known = world_names().join(", ");
    assert_eq!(unknown, format!("error: unknown environment \"five-rooms\"; known: {known}\n"));
    if !cfg!(feature = "mujoco") {
        let ant = failure(&["collect", "--env", "ant-fault", "--out", "nowhere"]);
        assert!(ant.contains("run tools/mujoco/fetch, then build with --features mujoco"), "{ant}");
    }
    let too_many = failure(&["ceilings", "--env", "doors", "--train", "40"]);
    assert!(too_many.contains("only 49 layouts exist"), "{too_many}");
    let no_seed = failure(&["ceilings", "--env", "doors", "--seeds", "0"]);
    assert!(no_seed.contains("--seeds"), "{no_seed}");
}

#[test]
fn help_shows_an_example() {
    for command in ["envs", "ceilings"] {
        let help = String::from_utf8(windvane(&[command, "--help"]).stdout).unwrap();
        assert!(help.contains(&format!("Examples:\n  windvane {command}")), "{help}");
    }
}
