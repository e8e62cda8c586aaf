//! The model card.

use super::folder::Folder;
use crate::methods;
use crate::nn::TensorFile;
use crate::run::Run;
use windvane_world::ActionSpace;
use windvane_world::episodes::Episodes;

/// What the folder is, for people.
pub(super) fn text(run: &Run, folder: &Folder, file: &TensorFile) -> String {
    let mut card = String::new();
    let mut line = |text: String| {
        card.push_str(&text);
        card.push('\n');
    };
    let (env, method) = (&folder.env, methods::find(&folder.method).ok());
    let title = method.map_or(folder.method.as_str(), |m| m.title);
    line(format!("# {title} on {}\n", env.name));
    line(format!(
        "A behavioural foundation model, trained without rewards by {}: give it a few transitions of the dynamics it is \
         in and a task, and it acts. {title}: {}.\n",
        folder.generator,
        method.map_or("a method of its own", |m| m.about)
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
    if let Ok(data) = Episodes::open(&run.data) {
        line(format!(
            "{} transitions in {} episodes of {} groups that share their dynamics; who acted: {}. Seed {}.",
            data.transitions(),
            data.episodes(),
            data.groups(),
            data.meta().plan.provenance.policy,
            folder.seed
        ));
    }
    let numbers: usize = file.names().filter_map(|name| file.values(name)).map(<[f32]>::len).sum();
    line(format!("{numbers} numbers in `model.safetensors`, by name; all settings in `config.json`."));
    line("\n## Use\n".into());
    line(
        "```sh\nwindvane adapt . --context context.npz --reward \"...\" --observations states.npz\n```\n"
            .into(),
    );
    line("```rust\nlet mut pilot = windvane::Agent::load(\".\")?.adapt(&context)?.task(&prompt)?;\nlet action = pilot.act(&obs)?;\n```".into());
    line("\n## Limits\n".into());
    line(
        "It knows the states that its data visited and dynamics like those it was trained on; it warns of a context \
         that looks like none of them. Rewards are functions of the observation."
            .into(),
    );
    card
}
