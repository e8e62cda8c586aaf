//! How far a long job is: a bar on stderr, nothing at all where nobody looks.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` things called `unit`; it hides itself when stderr is not a terminal.
pub(crate) fn bar(total: u64, unit: &str) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let template = format!("{{bar:32}} {{human_pos}}/{{human_len}} {unit}  {{per_sec:0}}  {{eta}} left");
    // A template that does not parse would be a slip of ours; the default style still shows progress.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
