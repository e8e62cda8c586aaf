//! Named tasks, saved in a file.

use super::Prompt;
use crate::episodes::read_json;
use crate::error::WorldError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Tasks by name, in a JSON file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedTasks {
    #[serde(skip)]
    path: PathBuf,
    tasks: BTreeMap<String, Prompt>,
}

impl SavedTasks {
    /// Reads a file of tasks; none if there is no such file yet.
    pub fn open(path: &Path) -> Result<Self, WorldError> {
        let saved = if path.exists() { read_json(path)? } else { Self::default() };
        Ok(Self { path: path.to_owned(), ..saved })
    }

    /// The task called `name`.
    pub fn get(&self, name: &str) -> Result<&Prompt, WorldError> {
        if self.tasks.is_empty() {
            let problem = "no task is saved there yet; adapt --save-task NAME saves one";
            return Err(WorldError::data(&self.path, name, problem));
        }
        self.tasks.get(name).ok_or_else(|| WorldError::Unknown {
            kind: "task",
            name: name.to_owned(),
            known: self.names().collect::<Vec<_>>().join(", "),
        })
    }

    /// The names there are.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tasks.keys().map(String::as_str)
    }

    /// Keeps a task under a name; one that had it before is replaced.
    pub fn save(&mut self, name: &str, prompt: &Prompt) -> Result<(), WorldError> {
        self.tasks.insert(name.to_owned(), prompt.clone());
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| WorldError::data(&self.path, "tasks", error.to_string()))?;
        // Complete or not at all: somebody else's tasks may be in the file.
        let new = self.path.with_extension("new");
        let writing = |error| WorldError::io(&self.path, "saving a task", error);
        std::fs::write(&new, text).map_err(writing)?;
        std::fs::rename(&new, &self.path).map_err(writing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Part;

    #[test]
    fn a_task_survives_its_file_and_an_unknown_one_lists_the_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.json");
        let task = Prompt::goal(&[1.0, 2.5]).and(-0.5, Part::Labels(vec![(vec![0.0, 0.0], 1.0)]));
        let mut saved = SavedTasks::open(&path).unwrap();
        assert!(saved.get("home").unwrap_err().to_string().contains("no task is saved there yet"));
        saved.save("home", &task).unwrap();
        saved.save("away", &Prompt::formula("x > 3")).unwrap();
        let again = SavedTasks::open(&path).unwrap();
        assert_eq!(again, saved);
        assert_eq!(again.get("home").unwrap(), &task);
        let error = again.get("hom").unwrap_err().to_string();
        assert_eq!(error, "unknown task \"hom\"; known: away, home");
        std::fs::write(&path, "{\"tasks\": 3}").unwrap();
        assert!(SavedTasks::open(&path).unwrap_err().to_string().contains("tasks.json"));
    }
}
