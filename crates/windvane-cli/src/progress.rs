//! How far a long job is, on stderr: a bar on a terminal, elsewhere a plain line now and then.

use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time until the first plain line.
const FIRST: Duration = Duration::from_secs(5);
/// Time between two plain lines.
const BETWEEN: Duration = Duration::from_secs(30);

/// How far a job is; it ends when this is dropped.
pub(crate) struct Progress(Shown);

enum Shown {
    Bar(ProgressBar),
    Lines(Mutex<Lines>),
}

/// A job over `total` things called `unit`, for instance "belief steps", of which `done` were done before.
pub(crate) fn start(total: u64, unit: &str, done: u64) -> Progress {
    if !std::io::stderr().is_terminal() {
        return Progress(Shown::Lines(Mutex::new(Lines::new(total, unit, done, Instant::now()))));
    }
    let bar = ProgressBar::new(total);
    let template =
        format!("{{bar:32}} {{human_pos}}/{{human_len}} {unit}  {{msg}}  {{per_sec:0}}  {{eta}} left");
    // A template that does not parse would be a slip of ours; the default style still shows progress.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar.set_position(done);
    bar.reset_eta();
    Progress(Shown::Bar(bar))
}

impl Progress {
    /// So many more are done.
    pub(crate) fn add(&self, more: u64) {
        match &self.0 {
            Shown::Bar(bar) => bar.inc(more),
            Shown::Lines(lines) => {
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                let done = lines.done + more;
                lines.tell(done, "", Instant::now());
            }
        }
    }

    /// So many are done in all; `words` say how it goes.
    pub(crate) fn at(&self, done: u64, words: &str) {
        match &self.0 {
            Shown::Bar(bar) => {
                bar.set_position(done);
                bar.set_message(words.to_owned());
            }
            Shown::Lines(lines) => {
                lines.lock().unwrap_or_else(PoisonError::into_inner).tell(done, words, Instant::now());
            }
        }
    }

    /// Writes a line of its own.
    pub(crate) fn note(&self, text: &str) {
        match &self.0 {
            Shown::Bar(bar) => bar.suspend(|| output::note(text)),
            Shown::Lines(_) => output::note(text),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        match &self.0 {
            Shown::Bar(bar) => bar.finish_and_clear(),
            Shown::Lines(lines) => {
                let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                // What ends early says itself why.
                if lines.done > lines.before && lines.done >= lines.total {
                    output::note(&lines.line(Instant::now()));
                }
            }
        }
    }
}

/// Progress as plain lines.
struct Lines {
    total: u64,
    unit: String,
    /// What was done before this process began.
    before: u64,
    done: u64,
    words: String,
    begun: Instant,
    next: Instant,
}

impl Lines {
    fn new(total: u64, unit: &str, done: u64, now: Instant) -> Self {
        let (unit, words) = (unit.to_owned(), String::new());
        Self { total, unit, before: done, done, words, begun: now, next: now + FIRST }
    }

    fn tell(&mut self, done: u64, words: &str, now: Instant) {
        self.done = done;
        words.clone_into(&mut self.words);
        if self.is_due(now) {
            output::note(&self.line(now));
        }
    }

    /// Whether a line is due; then the next one is due later.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next && self.done < self.total;
        if due {
            self.next = now + BETWEEN;
        }
        due
    }

    /// The line of this moment: how far, how fast, how long still.
    fn line(&self, now: Instant) -> String {
        let Self { total, unit, before, done, words, begun, .. } = self;
        let spent = now.duration_since(*begun).as_secs_f64();
        let speed = (done - before) as f64 / spent.max(1e-3);
        let percent = 100 * done / total.max(&1);
        let time = match total.saturating_sub(*done) {
            0 => format!("done in {}", duration(spent)),
            left if speed > 0.0 => format!("{} left", duration(left as f64 / speed)),
            _ => "time left unknown".to_owned(),
        };
        let words = if words.is_empty() { String::new() } else { format!("; {words}") };
        format!("{done} of {total} {unit} ({percent}%), {} a second, {time}{words}", rate(speed))
    }
}

fn rate(speed: f64) -> String {
    if speed < 10.0 { format!("{speed:.1}") } else { format!("{speed:.0}") }
}

/// Seconds in words.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_come_now_and_then_and_say_step_speed_and_time_left() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut lines = Lines::new(1000, "belief steps", 100, begun);
        let due: Vec<u64> = (0..120)
            .filter(|&second| {
                lines.done = 100 + second * 5;
                lines.is_due(at(second))
            })
            .collect();
        assert_eq!(due, [5, 35, 65, 95], "a line now and then, none at once");
        lines.done = 300;
        lines.words = "loss 0.123".to_owned();
        let expected = "300 of 1000 belief steps (30%), 5.0 a second, 2 min left; loss 0.123";
        assert_eq!(lines.line(at(40)), expected);
        lines.done = 1000;
        lines.words.clear();
        assert_eq!(lines.line(at(60)), "1000 of 1000 belief steps (100%), 15 a second, done in 60 s");
        assert!(!lines.is_due(at(9999)), "the last line is written when the job ends");
    }
}
