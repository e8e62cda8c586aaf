//! Data from elsewhere and for elsewhere: NumPy archives (OGBench's and anyone's) and Minari.

mod archive;
mod arrow_file;
mod minari_read;
mod minari_write;
mod npz_read;
mod npz_write;
mod segments;
mod stage;

pub use minari_write::export_minari;
pub use npz_write::export_npz;

use super::atomic::folder_of;
use super::meta::{ContextEntry, IMPORTED, Plan, Provenance};
use super::partial::refuse_existing;
use super::writer::{Block, EpisodeInfo, Leftover, Writer};
use super::{ActionSlice, Episodes};
use crate::env::{Actions, ContextId, EnvSpec};
use crate::error::WorldError;
use serde::Serialize;
use serde_json::json;
use stage::{Stage, Staged};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What makes episodes one group, that is, episodes of the same (unknown) dynamics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// The groups that the source itself carries; else one for each source if there are several; else each episode alone.
    #[default]
    Auto,
    /// Every episode alone.
    Episode,
    /// All episodes of one source.
    File,
    /// Equal values of an array (npz: one value for each episode or row) or of a key of the episode's options (Minari).
    Column(String),
}

/// How to read actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// Whole-number scalars are moves, everything else is a vector.
    #[default]
    Auto,
    /// Moves, whatever the type.
    Discrete,
    /// Vectors, whatever the type.
    Continuous,
}

/// How to import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportConfig {
    /// Name of the environment; by default the source's.
    pub name: Option<String>,
    /// Names of the observation's dimensions; by default the source's, or `obs_0`, `obs_1`, ..
    pub dims: Option<Vec<String>>,
    /// What makes a group.
    pub group_by: GroupBy,
    /// How to read actions.
    pub actions: ActionKind,
}

/// What one source says about itself, besides its episodes.
#[derive(Debug, Default)]
struct About {
    /// Its name.
    name: String,
    /// Names of the dimensions, where it has them.
    dims: Option<Vec<String>>,
    /// Number of moves, where it says so.
    moves: Option<usize>,
    /// Bounds of the components of actions, where it says so.
    action_bounds: Option<(Vec<f32>, Vec<f32>)>,
    /// The plan of the data set that windvane exported.
    plan: Option<Plan>,
}

/// Reads sources (`.npz` files, Minari folders) into one new data set at `out`.
///
/// `generator` is recorded as the program that wrote it. Data that windvane itself exported comes back bit for bit,
/// metadata included.
pub fn import(
    sources: &[PathBuf],
    config: &ImportConfig,
    generator: &str,
    out: &Path,
) -> Result<Episodes, WorldError> {
    refuse_existing(out)?;
    if sources.is_empty() {
        return Err(WorldError::Invalid("nothing to import: no source given".into()));
    }
    let mut stage = Stage::new(folder_of(out)?, config)?;
    let mut abouts = Vec::new();
    for source in sources {
        stage.begin_source(source, sources.len() > 1);
        abouts.push(if source.is_dir() {
            minari_read::read(source, &mut stage)?
        } else {
            npz_read::read(source, &mut stage)?
        });
    }
    let staged = stage.finish()?;
    let plan = plan_of(sources, config, generator, &abouts, &staged)?;
    write(&staged, plan, out)
}

/// The plan of the new data set: the exported one if nothing was changed, else what the sources (at least one) and the
/// data say.
fn plan_of(
    sources: &[PathBuf],
    config: &ImportConfig,
    generator: &str,
    abouts: &[About],
    staged: &Staged,
) -> Result<Plan, WorldError> {
    if let ([About { plan: Some(plan), .. }], true) = (abouts, *config == ImportConfig::default()) {
        return Ok(plan.clone());
    }
    let first = &abouts[0];
    let exported = first.plan.as_ref().filter(|plan| {
        abouts.iter().all(|about| about.plan.as_ref().is_some_and(|other| other.env == plan.env))
    });
    let mut env = match exported {
        Some(plan) if config.actions == ActionKind::Auto => plan.env.clone(),
        _ => staged.infer_spec(first)?,
    };
    if let Some(name) = &config.name {
        env.name.clone_from(name);
    }
    if let Some(names) = &config.dims {
        rename_dims(&mut env, names)?;
    }
    let mut contexts: BTreeMap<ContextId, serde_json::Value> =
        staged.labels().map(|id| (id, serde_json::Value::Null)).collect();
    for entry in abouts.iter().filter_map(|about| about.plan.as_ref()).flat_map(|plan| &plan.contexts) {
        contexts.insert(entry.id, entry.about.clone());
    }
    // Labels help only if every episode has one.
    let contexts = if staged.all_labelled() { contexts } else { BTreeMap::new() };
    let file_name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Plan {
        env,
        provenance: Provenance {
            generator: generator.to_owned(),
            policy: IMPORTED.to_owned(),
            seed: None,
            config: json!({ "sources": sources.iter().map(file_name).collect::<Vec<_>>(), "import": config }),
        },
        contexts: contexts.into_iter().map(|(id, about)| ContextEntry { id, about }).collect(),
    })
}

/// Reads the array `observations` of an archive: rows that fit `spec`.
pub fn read_observations(path: &Path, spec: &EnvSpec) -> Result<Vec<f32>, WorldError> {
    let (rows, width) = read_rows(path, &[super::OBSERVATIONS])?;
    if width != spec.obs_dim() {
        let problem = format!("{width} numbers a row, expected {}", spec.obs_dim());
        return Err(WorldError::data(path, super::OBSERVATIONS, problem));
    }
    Ok(rows)
}

/// The rows of the first array that an archive has of `names`, and their width.
pub(crate) fn read_rows(path: &Path, names: &[&str]) -> Result<(Vec<f32>, usize), WorldError> {
    let mut archive = archive::Archive::open(path, &std::env::temp_dir())?;
    for name in names {
        if let Some(array) = archive.array(name)? {
            let mut rows = Vec::new();
            array.floats(0..array.rows(), &mut rows);
            return Ok((rows, array.width()));
        }
    }
    Err(WorldError::data(path, names[0], "is not in the archive"))
}

fn rename_dims(env: &mut EnvSpec, names: &[String]) -> Result<(), WorldError> {
    if names.len() != env.obs_dim() {
        return Err(WorldError::Invalid(format!(
            "{} names of dimensions given, but observations have {}",
            names.len(),
            env.obs_dim()
        )));
    }
    for (dim, name) in env.observation.iter_mut().zip(names) {
        dim.name.clone_from(name);
    }
    Ok(())
}

/// Writes staged episodes, those of a group together, in the order the groups appeared.
fn write(staged: &Staged, plan: Plan, out: &Path) -> Result<Episodes, WorldError> {
    let labelled = !plan.contexts.is_empty();
    let mut block = Block::new(&plan.env);
    let Some(mut writer) = Writer::begin(out, plan, Leftover::StartOver)? else { return Episodes::open(out) };
    let mut order: Vec<(usize, usize)> = staged.groups().zip(0..).collect();
    order.sort_unstable();
    for (group, episode) in order {
        let info = staged.info(episode);
        block.observations.extend_from_slice(staged.observations(episode));
        match (&mut block.actions, staged.actions(episode)) {
            (Actions::Discrete(to), ActionSlice::Discrete(from)) => to.extend_from_slice(from),
            (Actions::Continuous { values, .. }, ActionSlice::Continuous { values: from, .. }) => {
                values.extend_from_slice(from);
            }
            _ => {
                return Err(WorldError::data(
                    out,
                    super::ACTIONS,
                    "are not of the kind that the source's metadata says",
                ));
            }
        }
        block.episodes.push(EpisodeInfo {
            length: info.length,
            terminated: info.terminated,
            group,
            context: info.context.filter(|_| labelled),
        });
        if block.observations.len() > 1 << 20 {
            writer.append(&block)?;
            block.clear();
        }
    }
    writer.append(&block)?;
    writer.finish()
}
