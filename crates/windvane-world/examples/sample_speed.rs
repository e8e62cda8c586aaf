//! Draws batches and windows from a data set, for `bench/data/speed.py` to time.
//!
//! `cargo run --release -p windvane-world --example sample_speed -- data/four-rooms transitions 1024 100000`

use std::path::Path;
use std::process::ExitCode;
use windvane_world::episodes::Episodes;
use windvane_world::{WorldError, rng};

/// Transitions of each window.
const WINDOW: usize = 100;

/// Draws `batches` batches of `rows` transitions or windows; the sum of what was drawn shows that it was.
fn run(data: &Path, what: &str, rows: usize, batches: usize) -> Result<f64, WorldError> {
    let data = Episodes::open(data)?;
    let mut rng = rng::stream(0, "benchmark", &[]);
    let mut batch = data.batch(rows);
    let mut sum = 0.0;
    for _ in 0..batches {
        if what == "windows" {
            let windows: Option<Vec<_>> = (0..rows).map(|_| data.sample_window(&mut rng, WINDOW)).collect();
            let windows =
                windows.ok_or_else(|| WorldError::Invalid(format!("no episode has {WINDOW} steps")))?;
            data.fill_windows(&windows, WINDOW, &mut batch);
        } else {
            data.sample_batch(&mut rng, rows, &mut batch);
        }
        sum += f64::from(batch.observations[0] + batch.next_observations[batch.next_observations.len() - 1]);
    }
    Ok(sum)
}

/// Memory of our own, in KiB: what is mapped from files is the system's to keep or drop.
fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

// An example has nothing but the terminal to talk to.
#[allow(clippy::print_stdout, clippy::print_stderr)]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &arguments[..] {
        [data, what, rows, batches] => {
            rows.parse().ok().zip(batches.parse().ok()).map(|sizes| (data, what, sizes))
        }
        _ => None,
    };
    let Some((data, what, (rows, batches))) = parsed else {
        eprintln!("usage: sample_speed DATA transitions|windows ROWS BATCHES");
        return ExitCode::FAILURE;
    };
    match run(Path::new(data), what, rows, batches) {
        Ok(sum) => {
            println!("{{\"sum\": {sum}, \"own_kib\": {}}}", own_memory().unwrap_or(0));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
