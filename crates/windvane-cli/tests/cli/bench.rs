//! `windvane bench`: that it measures, not how fast.

use crate::{PROGRAM, failure, json, text};
use std::process::Command;

const ACT: [&str; 6] = ["bench", "--step", "act", "--size", "small", "--json"];

#[test]
fn a_measured_row_has_a_time_and_no_ratio_without_peers() {
    let report = json(&[&ACT[..], &["--rounds", "1", "--threads", "1,2"]].concat());
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, threads) in rows.iter().zip([1, 2]) {
        assert_eq!((&row["step"], &row["size"]), (&"act".into(), &"small".into()));
        assert_eq!((&row["stack"], &row["threads"]), (&"windvane".into(), &threads.into()));
        let cpu_ms = row["cpu_ms"].as_f64().unwrap();
        assert!(cpu_ms > 0.0 && cpu_ms < 1e3, "{cpu_ms} ms");
        assert!(row["ratio"].is_null());
        assert!(row["product_share"].as_f64().unwrap() > 0.0);
    }
    assert!(report["product_gflops"].as_f64().unwrap() > 0.0);
}

#[test]
fn missing_peers_are_named_and_the_rest_goes_on() {
    let mut command = Command::new(PROGRAM);
    let command = command.args(ACT).args(["--rounds", "1", "--peers"]);
    let output = command.env("WINDVANE_PYTHON", "no-such-python").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    for library in ["torch", "jax"] {
        let said = format!("going on without {library}; bench/README.md says how to install it");
        assert!(text(&output.stderr).contains(&said), "{}", text(&output.stderr));
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn a_machine_without_vector_instructions_works_slower() {
    let output =
        Command::new(PROGRAM).args(ACT).args(["--rounds", "1"]).env("WINDVANE_SIMD", "baseline").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn what_cannot_be_measured_is_said_in_a_line() {
    let with = |more: &[&'static str]| failure(&[&ACT[..], more].concat());
    assert!(with(&["--threads", "0"]).contains("0 is not in 1..=1024"));
    assert!(with(&["--threads", "1,1000000"]).contains("1000000 is not in 1..=1024"));
    assert!(with(&["--rounds", "0"]).contains("0 is not in 1..=1000"));
    assert!(with(&["--device", "gpu"]).contains("known: cpu, vulkan, wgpu, cuda, metal"));
    if cfg!(not(feature = "cuda")) {
        assert!(with(&["--device", "cuda"]).contains("not compiled in; build with `--features cuda`"));
    }
    assert!(failure(&["bench", "--size", "0"]).contains("[possible values: small, paper]"));
    assert!(
        failure(&["bench", "--step", "fly"])
            .contains("belief-listed, belief-transitions, fb-listed, fb-heads, fb-actor, act")
    );
    let output = Command::new(PROGRAM).args(ACT).env("WINDVANE_SIMD", "mmx").output().unwrap();
    assert!(crate::refusal(&output).contains("WINDVANE_SIMD=mmx: expected avx512, avx2 or baseline"));
}
