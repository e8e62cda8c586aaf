//! The model card.

use super::export::Config;
use crate::nn::TensorFile;
use windvane_world::ActionSpace;

/// What the folder is, for people.
pub(super) fn text(config: &Config, file: &TensorFile, about_data: Option<&str>) -> String {
    let mut card = String::new();
    let mut line = |text: String| {
        card.push_str(&text);
        card.push('\n');
    };
    let (env, title) = (&config.env, config.method.title);
    line(format!("# {title} on {}\n", env.name));
    line(format!(
        "A behavioural foundation model, trained without rewards by {}: give it a few transitions of the dynamics it is \
         in and a task, and it acts. {title}: {}.\n",
        config.generator, config.method.about
    ));
    line("## Observations\n\n| name | smallest seen | largest seen |\n|---|---|---|".into());
    env.observation.iter().for_each(|dim| line(format!("| `{}` | {} | {} |", dim.name, dim.low, dim.high)));
    line(match &env.action {
        ActionSpace::Discrete { names } => {
            format!("\n## Actions\n\nOne of {}: {}.", names.len(), names.join(", "))
        }
        ActionSpace::Continuous { low, high } => format!("\n## Actions\n\nVectors from {low:?} to {high:?}."),
    });
    line("\n## Training\n".into());
    if let Some(about) = about_data {
        line(format!("{about} Seed {}.", config.seed));
    }
    let numbers: usize = file.names().filter_map(|name| file.values(name)).map(<[f32]>::len).sum();
    line(format!("{numbers} numbers in `model.safetensors`, by name; all settings in `config.json`."));
    line("\n## Use\n".into());
    line(
        "```sh\nwindvane adapt . --context context.npz --reward \"...\" --observations states.npz\n```\n"
            .into(),
    );
    line("```rust\nlet mut session = windvane::Agent::load(\".\")?.adapt(&context)?.task(&prompt)?;\nlet action = session.act(&obs)?;\n```".into());
    line("\n## Limits\n".into());
    line(
        "It knows the states that its data visited and dynamics like those it was trained on; it warns of a context \
         that looks like none of them. Rewards are functions of the observation."
            .into(),
    );
    card
}
