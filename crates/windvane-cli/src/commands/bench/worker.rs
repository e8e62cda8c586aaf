//! Our own contender: the same conversation as the twins in bench/peers.

use crate::output;
use cpu_time::ProcessTime;
use serde_json::json;
use std::io::BufRead as _;
use std::time::Instant;
use windvane::bench::{self, Size, StepName};
use windvane::device::{DeviceName, Threads};

/// Reports the losses of the first three steps, then answers lines until there are no more.
pub(super) fn serve(step: StepName, size: Size, threads: usize, device: DeviceName) -> anyhow::Result<()> {
    Threads::new(threads)?.run(|| {
        let mut step = bench::build(step, size, &device.open()?)?;
        let losses = (0..3).map(|_| step.run()).collect::<Result<Vec<f32>, _>>()?;
        say(&json!({ "losses": losses }));
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            let answer = match line.split_once(' ').unwrap_or((&line, "")) {
                ("run", count) => {
                    let count: u32 = count.parse()?;
                    let products = bench::multiply_adds();
                    let (wall, cpu) = (Instant::now(), ProcessTime::now());
                    for _ in 0..count {
                        step.run()?;
                    }
                    let (cpu, wall) = (cpu.elapsed(), wall.elapsed());
                    let gflop = (bench::multiply_adds() - products) as f64 * 2e-9 / f64::from(count);
                    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3 / f64::from(count);
                    json!({ "cpu_ms": ms(cpu), "wall_ms": ms(wall), "gflop": gflop })
                }
                ("product", _) => {
                    let cpu = ProcessTime::now();
                    let products = bench::product_rate(100);
                    json!({ "product_gflops": products as f64 * 2e-9 / cpu.elapsed().as_secs_f64() })
                }
                _ => json!({ "peak_mb": peak_mb() }),
            };
            say(&answer);
        }
        Ok(())
    })
}

/// One line of the conversation.
fn say(answer: &serde_json::Value) {
    output::say(&answer.to_string());
}

/// The most memory this process ever held, where the system tells.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
