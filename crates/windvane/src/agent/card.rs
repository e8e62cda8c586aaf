//! The model card.

use super::export::Config;
use crate::nn::TensorFile;
use windvane_world::ActionSpace;

/// What the folder is, for people.
pub(super) fn text(config: &Config, file: &TensorFile, about_data: Option<&str>) -> String {
    let (env, title, about, generator) =
        (&config.env, config.method.title, config.method.about, &config.generator);
    let dims = env.observation.iter().map(|dim| format!("| `{}` | {} | {} |\n", dim.name, dim.low, dim.high));
    let dims: String = dims.collect();
    let actions = match &env.action {
        ActionSpace::Discrete { names } => format!("One of {}: {}.", names.len(), names.join(", ")),
        ActionSpace::Continuous { low, high } => format!("Vectors from {low:?} to {high:?}."),
    };
    let data = about_data.map(|about| format!("{about} Seed {}.\n", config.seed)).unwrap_or_default();
    let numbers: usize = file.names().filter_map(|name| file.values(name)).map(<[f32]>::len).sum();
    format!(
        "# {title} on {name}

A behavioural foundation model, trained without rewards by {generator}: give it a few transitions of the dynamics it is in and a \
task, and it acts. {title}: {about}.

## Observations

| name | smallest seen | largest seen |
|---|---|---|
{dims}
## Actions

{actions}

## Training

{data}{numbers} numbers in `model.safetensors`, by name; all settings in `config.json`.

## Use

```sh
windvane adapt . --context context.npz --reward \"...\" --observations states.npz
```

```rust
let mut session = windvane::Agent::load(\".\")?.adapt(&context)?.task(&prompt)?;
let action = session.act(&obs)?;
```

## Limits

It knows the states that its data visited and dynamics like those it was trained on; it warns of a context that looks like none of \
them. Rewards are functions of the observation.
",
        name = env.name
    )
}
