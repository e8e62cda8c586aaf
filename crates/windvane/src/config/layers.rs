//! Settings in layers: defaults, a preset, a file, single `key=value` pairs; each layer is checked when it is laid on,
//! so that an error names where the setting came from.

use crate::error::LearnError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A configuration being put together. Its keys are those of `T`; there are no others.
#[derive(Clone, Debug)]
pub struct Layers<T> {
    table: Table,
    value: T,
    /// Where each setting that was laid on came from, by its full name.
    origins: BTreeMap<String, String>,
}

/// A single setting, and where its value comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// Its full name, for instance `agent.kappa`.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The layer that set it last: "default", a preset, a file, or `--set`.
    pub origin: String,
}

impl<T: Serialize + DeserializeOwned> Layers<T> {
    /// Starts from `base`, which must mention every key.
    pub fn new(base: T) -> Result<Self, LearnError> {
        let table = Table::try_from(&base)
            .map_err(|e| LearnError::Config { origin: "defaults".into(), problem: e.to_string() })?;
        Ok(Self { table, value: base, origins: BTreeMap::new() })
    }

    /// Lays a TOML document on top; `origin` is its file name.
    pub fn toml(self, origin: &str, text: &str) -> Result<Self, LearnError> {
        let table = text.parse::<Table>().map_err(|e| error(origin, e.to_string().trim_end()))?;
        self.lay(origin, table)
    }

    /// Lays one `section.key=value` on top. A value that is no TOML (a bare word) is taken as a string.
    pub fn set(self, assignment: &str) -> Result<Self, LearnError> {
        let origin = format!("--set {assignment}");
        let (path, text) = assignment
            .split_once('=')
            .ok_or_else(|| error(&origin, "expected key=value, for instance agent.kappa=50"))?;
        let value = format!("v = {}", text.trim())
            .parse::<Table>()
            .ok()
            .and_then(|mut table| table.remove("v"))
            .unwrap_or_else(|| Value::String(text.trim().into()));
        let mut keys = path.trim().rsplit('.').map(str::trim);
        let mut table = Table::new();
        table.insert(keys.next().unwrap_or_default().to_owned(), value);
        for key in keys {
            table = Table::from_iter([(key.to_owned(), Value::Table(table))]);
        }
        self.lay(&origin, table)
    }

    /// The configuration as it stands.
    pub fn value(self) -> T {
        self.value
    }

    /// Every setting as it stands, with its origin.
    pub fn settings(&self) -> Vec<Setting> {
        let mut all = Vec::new();
        self.add_settings("", &self.table, &mut all);
        all
    }

    fn add_settings(&self, path: &str, table: &Table, all: &mut Vec<Setting>) {
        for (key, value) in table {
            let key = full_name(path, key);
            match value {
                Value::Table(inner) => self.add_settings(&key, inner, all),
                value => {
                    let origin = self.origins.get(&key).map_or("default", String::as_str).to_owned();
                    all.push(Setting { key, value: shortest(value), origin });
                }
            }
        }
    }

    fn lay(mut self, origin: &str, layer: Table) -> Result<Self, LearnError> {
        merge(&mut self.table, layer, "", origin, &mut self.origins)?;
        self.value = self
            .table
            .clone()
            .try_into()
            .map_err(|e: toml::de::Error| error(origin, e.to_string().trim_end()))?;
        Ok(self)
    }
}

/// A number as a person would write it: one that came from single precision is short there, and long in double.
fn shortest(value: &Value) -> Value {
    match value {
        Value::Float(x) if f64::from(*x as f32) == *x => {
            Value::Float((*x as f32).to_string().parse().unwrap_or(*x))
        }
        other => other.clone(),
    }
}

/// A setting's name within a section.
fn full_name(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn merge(
    base: &mut Table,
    layer: Table,
    path: &str,
    origin: &str,
    origins: &mut BTreeMap<String, String>,
) -> Result<(), LearnError> {
    for (key, value) in layer {
        let full = full_name(path, &key);
        let Some(slot) = base.get_mut(&key) else {
            let known: Vec<&str> = base.keys().map(String::as_str).collect();
            let old = leaf(&full, &value);
            // Within a table that there is, only a whole name can be an old one.
            if let Some(now) =
                renamed(&old).filter(|_| path.is_empty() || RENAMED.iter().any(|(name, _)| *name == old))
            {
                return Err(error(origin, &format!("\"{old}\" is \"{now}\" now")));
            }
            let hint = match closest(&key, &known) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("known here: {}", known.join(", ")),
            };
            return Err(error(origin, &format!("unknown field \"{full}\"; {hint}")));
        };
        match (slot, value) {
            (Value::Table(inner), Value::Table(layer)) => merge(inner, layer, &full, origin, origins)?,
            (slot, value) => {
                // A whole number is a fine value for a real setting; nothing else changes its type.
                let value = match (&*slot, value) {
                    (Value::Float(_), Value::Integer(i)) => Value::Float(i as f64),
                    (_, value) => value,
                };
                if slot.type_str() != value.type_str() {
                    let problem = format!(
                        "\"{full}\" is {} {value}; expected {}, for instance {slot}",
                        value.type_str(),
                        slot.type_str()
                    );
                    return Err(error(origin, &problem));
                }
                *slot = value;
                origins.insert(full, origin.to_owned());
            }
        }
    }
    Ok(())
}

fn error(origin: &str, problem: &str) -> LearnError {
    LearnError::Config { origin: origin.to_owned(), problem: problem.to_owned() }
}

/// What parts of names of earlier versions are called now.
const RENAMED: &[(&str, &str)] = &[
    ("core", "encoder.states"),
    ("world.train", "data.train_contexts"),
    ("world.test", "data.test_contexts"),
    ("world", "data"),
    ("boxes", "encoder.box_side"),
    ("belief.memory", "belief.known_contexts"),
    ("agent.nets.forward", "fb.forward"),
    ("agent.nets", "fb.net"),
    ("agent.nets.dim", "fb.dim"),
    ("agent.groups", "fb.contexts"),
    ("agent.target_sweeps", "fb.target_depth"),
    ("agent.beliefs", "belief.cached"),
    ("agent", "fb"),
    ("neural.repeat", "encoder.action_repeat"),
    ("neural.compass", "encoder.directions"),
    ("neural.features", "encoder"),
    ("neural.held_out", "data.held_out"),
    ("neural.belief", "belief"),
    ("neural.belief.predictor", "belief.predictor_width"),
    ("neural.belief.longest", "belief.max_context"),
    ("neural.belief.shortest", "belief.min_context"),
    ("neural.belief.codes", "belief.embeddings"),
    ("neural.fb.groups", "fb.contexts"),
    ("neural.fb.items", "fb.transitions"),
    ("neural.fb.ortho", "fb.ortho_coef"),
    ("neural.fb.value", "fb.value_coef"),
    ("neural.kappa", "fb.kappa"),
    ("neural.fb", "fb"),
    ("neural.actor", "actor"),
    ("boxes.side", "encoder.box_side"),
    ("phi", "features"),
    ("eval.lookahead", "eval.planner"),
    ("eval.retry", "belief.block_persistence"),
];

/// The full name of the first setting in a value.
fn leaf(path: &str, value: &Value) -> String {
    match value {
        Value::Table(table) => {
            table.iter().next().map_or(path.to_owned(), |(key, value)| leaf(&format!("{path}.{key}"), value))
        }
        _ => path.to_owned(),
    }
}

/// The new name of a setting of earlier versions: that of the longest part of its name that was renamed, and the rest.
fn renamed(key: &str) -> Option<String> {
    let fits = |(old, _): &&(&str, &str)| {
        key.strip_prefix(old).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let (old, new) = RENAMED.iter().filter(fits).max_by_key(|(old, _)| old.len())?;
    Some(format!("{new}{}", &key[old.len()..]))
}

/// The known name nearest to `name`, if it is near enough to be a slip.
pub fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|k| (edit_distance(name, k), *k))
        .filter(|(distance, k)| *distance <= 1 + k.len().min(name.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// Levenshtein distance by the usual single row.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Plan {
        seed: u64,
        agent: Agent,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Agent {
        kappa: f64,
        forward: Forward,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Forward {
        Paper,
        Predictor,
    }

    fn base() -> Layers<Plan> {
        Layers::new(Plan { seed: 0, agent: Agent { kappa: 50.0, forward: Forward::Predictor } }).unwrap()
    }

    fn message(result: Result<Layers<Plan>, LearnError>) -> String {
        result.err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn later_layers_win() {
        let plan = base().toml("a.toml", "seed = 3\n[agent]\nkappa = 10").unwrap();
        let plan = plan.set("agent.kappa=20").unwrap().set("agent.forward=paper").unwrap().value();
        assert_eq!(plan, Plan { seed: 3, agent: Agent { kappa: 20.0, forward: Forward::Paper } });
    }

    #[test]
    fn every_setting_knows_the_layer_that_set_it_last() {
        let plan =
            base().toml("a.toml", "seed = 3\n[agent]\nkappa = 10").unwrap().set("agent.kappa=20").unwrap();
        let lines: Vec<String> =
            plan.settings().iter().map(|s| format!("{}={} {}", s.key, s.value, s.origin)).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        for expected in
            ["seed=3 a.toml", "agent.kappa=20.0 --set agent.kappa=20", "agent.forward=\"predictor\" default"]
        {
            assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:?}");
        }
    }

    #[test]
    fn single_precision_is_shown_as_it_was_written() {
        assert_eq!(shortest(&Value::Float(f64::from(0.95_f32))), Value::Float(0.95));
        assert_eq!(shortest(&Value::Float(0.1)), Value::Float(0.1));
    }

    #[test]
    fn unknown_field_names_its_origin_and_the_closest_known_one() {
        let text = message(base().toml("my.toml", "[agent]\nkapa = 10"));
        assert_eq!(text, "my.toml: unknown field \"agent.kapa\"; did you mean \"kappa\"?");
        let text = message(base().set("agent.colour=3"));
        assert!(
            text.contains("known here: kappa, forward") || text.contains("known here: forward, kappa"),
            "{text}"
        );
    }

    #[test]
    fn a_setting_of_earlier_versions_is_told_its_new_name() {
        let plan = || Layers::new(crate::config::Plan::preset("doors", "quick").unwrap().value()).unwrap();
        let error = |setting: &str| plan().set(setting).err().unwrap().to_string();
        assert!(error("agent.kappa=3").contains("\"agent.kappa\" is \"fb.kappa\" now"));
        assert!(error("neural.fb.items=3").contains("\"fb.transitions\" now"));
        assert!(error("eval.lookahead=3").contains("\"eval.planner\" now"));
        let file = plan().toml("old.toml", "[world]\ntrain = 3\n").err().unwrap().to_string();
        assert_eq!(file, "old.toml: \"world.train\" is \"data.train_contexts\" now");
    }

    #[test]
    fn wrong_type_and_wrong_choice_say_what_was_expected() {
        let text = message(base().set("agent.kappa=wide"));
        assert!(text.contains("\"agent.kappa\" is string \"wide\"; expected float"), "{text}");
        let text = message(base().set("agent.forward=papr"));
        assert!(text.contains("paper") && text.contains("predictor"), "{text}");
        assert!(message(base().set("seed")).contains("expected key=value"));
        assert!(message(base().toml("x.toml", "seed = = 3")).starts_with("x.toml: "));
    }
}
