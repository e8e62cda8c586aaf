//! Settings as the command line gives them.

use anyhow::Context as _;
use std::path::Path;
use windvane::config::Plan;
use windvane::config::layers::Layers;

/// A plan with a file and single settings laid on top.
pub(crate) fn laid(
    mut layers: Layers<Plan>,
    config: Option<&Path>,
    set: &[String],
) -> anyhow::Result<Layers<Plan>> {
    if let Some(path) = config {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        layers = layers.toml(&path.display().to_string(), &text)?;
    }
    for assignment in set {
        layers = layers.set(assignment)?;
    }
    Ok(layers)
}
