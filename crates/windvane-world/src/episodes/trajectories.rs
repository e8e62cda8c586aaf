//! Trajectories out of files, for an agent that is to adapt to them.

use super::{ActionKind, ActionSlice, Episodes, ImportConfig, import};
use crate::env::{ActionSpace, Actions, EnvSpec};
use crate::error::WorldError;
use crate::trajectory::Trajectory;
use std::path::Path;

/// Reads the episodes of a file or folder (`.npz`, Minari, or a data set) as trajectories of a world that looks like `spec`.
pub fn read_trajectories(path: &Path, spec: &EnvSpec) -> Result<Vec<Trajectory>, WorldError> {
    if path.join(super::meta::META_FILE).is_file() {
        return trajectories(&Episodes::open(path)?, path, spec);
    }
    let kind = match spec.action {
        ActionSpace::Discrete { .. } => ActionKind::Discrete,
        ActionSpace::Continuous { .. } => ActionKind::Continuous,
    };
    let config = ImportConfig { actions: kind, ..ImportConfig::default() };
    let folder = tempfile::tempdir().map_err(|error| WorldError::io(path, "making room to unpack", error))?;
    let data = import(&[path.to_owned()], &config, "context", &folder.path().join("context"))?;
    trajectories(&data, path, spec)
}

fn trajectories(data: &Episodes, path: &Path, spec: &EnvSpec) -> Result<Vec<Trajectory>, WorldError> {
    let found = data.spec();
    if found.obs_dim() != spec.obs_dim() {
        let names: Vec<&str> = spec.observation.iter().map(|dim| dim.name.as_str()).collect();
        let problem =
            format!("{} numbers a row, expected {} ({})", found.obs_dim(), names.len(), names.join(", "));
        return Err(WorldError::data(path, super::OBSERVATIONS, problem));
    }
    (0..data.episodes())
        .map(|episode| {
            let actions = match data.actions(episode) {
                ActionSlice::Discrete(moves) => Actions::Discrete(moves.to_vec()),
                ActionSlice::Continuous { size, values } => {
                    Actions::Continuous { size, values: values.to_vec() }
                }
            };
            Trajectory::new(spec, data.observations(episode).to_vec(), actions)
                .map_err(|error| WorldError::data(path, format!("episode {episode}"), error.to_string()))
        })
        .collect()
}
