//! The model card.

use super::export::Config;
use crate::nn::TensorFile;
use windvane_world::ActionSpace;

/// What the folder is, for people.
pub(super) fn text(config: &Config, file: &TensorFile, about_data: Option<&str>) -> String {
    let Config { env, method, generator, seed, .. } = config;
    let dims = env.observation.iter().map(|dim| format!("| `{}` | {} | {} |\n", dim.name, dim.low, dim.high));
    let actions = match &env.action {
        ActionSpace::Discrete { names } => format!("One of {}: {}.", names.len(), names.join(", ")),
        ActionSpace::Continuous { low, high } => format!("Vectors from {low:?} to {high:?}."),
    };
    format!(
        include_str!("card.md"),
        title = method.title,
        name = env.name,
        generator = generator,
        about = method.about,
        dims = dims.collect::<String>(),
        actions = actions,
        data = about_data.map(|about| format!("{about} Seed {seed}.\n")).unwrap_or_default(),
        numbers = file.names().filter_map(|name| file.values(name)).map(<[f32]>::len).sum::<usize>(),
    )
}
