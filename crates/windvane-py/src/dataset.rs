//! Data sets: opened, made out of arrays and other formats, looked at without a copy.

use crate::arrays::{Floats, actions, floats, integers};
use crate::columns::{view, view_flat};
use crate::errors::{Answer, guarded, wrong};
use crate::figures::Figure;
use crate::world::{World, spec_out};
use crate::{GENERATOR, json};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use windvane_world::ContextId;
use windvane_world::collect::{BehaviourPolicy, CollectConfig, collect};
use windvane_world::episodes::{
    ActionKind, ActionSlice, Block, ContextEntry, EpisodeInfo, Episodes, GroupBy, ImportConfig, Leftover,
    Plan, Provenance, Writer, check, export_minari, export_npz, import,
};
use windvane_world::picture::{self, Subject};
use windvane_world::trajectory::Trajectory;

/// Episodes in columns, memory-mapped. One that has no place of its own yet lives in a temporary folder.
#[pyclass(frozen, module = "windvane._core", weakref)]
pub(crate) struct Dataset {
    pub(crate) episodes: Episodes,
    temporary: Option<Arc<TempDir>>,
}

/// A folder to write a data set to: the one that was asked for, or a temporary one.
struct Place {
    path: PathBuf,
    temporary: Option<Arc<TempDir>>,
}

impl Place {
    fn new(out: Option<PathBuf>) -> Answer<Self> {
        let Some(path) = out else {
            let folder = tempfile::Builder::new().prefix("windvane-").tempdir().map_err(PyErr::from)?;
            return Ok(Self { path: folder.path().join("data"), temporary: Some(Arc::new(folder)) });
        };
        Ok(Self { path, temporary: None })
    }

    fn holding(self, episodes: Episodes) -> Dataset {
        Dataset { episodes, temporary: self.temporary }
    }
}

impl Dataset {
    /// The trajectories of all episodes.
    pub(crate) fn trajectories(&self) -> Answer<Vec<Trajectory>> {
        let data = &self.episodes;
        let trajectory = |episode: usize| {
            let mut actions = data.spec().action.actions(data.length(episode));
            let taken = data.actions(episode);
            (0..taken.len()).for_each(|step| actions.push(taken.get(step)));
            Ok(Trajectory::new(data.spec(), data.observations(episode).to_vec(), actions)?)
        };
        (0..data.episodes()).map(trajectory).collect()
    }
}

#[pymethods]
impl Dataset {
    /// Opens the data set in a folder.
    ///
    /// >>> windvane.Dataset.load("data/doors")
    /// Dataset(240 transitions in 4 episodes of 2 groups, doors)
    #[classmethod]
    fn load(_: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        guarded(|| Ok(Self { episodes: Episodes::open(path)?, temporary: None }))
    }

    /// A data set out of arrays: observations with one row more than actions for each episode and `episode_offsets`, or
    /// transitions with `next_observations` and flags, or any other layout that `windvane import` reads. `groups` says which
    /// episodes share their dynamics; `dims` names the numbers of an observation.
    ///
    /// >>> robots = windvane.Dataset.from_numpy(
    /// ...     np.zeros((22, 3)), np.zeros((20, 1)), episode_offsets=[0, 10, 20], groups=[0, 1]
    /// ... )
    /// >>> robots.episodes, robots.groups
    /// (2, 2)
    #[staticmethod]
    #[pyo3(signature = (observations, actions, **options))]
    fn from_numpy(
        py: Python<'_>,
        observations: &Bound<'_, PyAny>,
        actions: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        let made = helper(py)?.call_method("from_numpy", (observations, actions), options)?;
        Ok(made.extract()?)
    }

    /// Reads a data set of Minari's by its id, or from its folder.
    ///
    /// >>> data = windvane.Dataset.from_minari("D4RL/pointmaze/open-v2")  # doctest: +SKIP
    #[staticmethod]
    #[pyo3(signature = (id, **options))]
    fn from_minari(
        py: Python<'_>,
        id: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        Ok(helper(py)?.call_method("from_minari", (id,), options)?.extract()?)
    }

    /// Writes it as a data set of Minari's: below `root`, or where Minari keeps its own; says where.
    ///
    /// >>> folder = data.to_minari("windvane/doors-v0", root="minari")
    /// >>> windvane.Dataset.from_minari(folder).transitions == data.transitions
    /// True
    #[pyo3(signature = (id, root=None))]
    fn to_minari(&self, py: Python<'_>, id: &str, root: Option<PathBuf>) -> PyResult<PathBuf> {
        let root = match root {
            Some(root) => root,
            None => helper(py)?.call_method0("minari_folder")?.extract()?,
        };
        guarded(|| Ok(py.detach(|| export_minari(&self.episodes, &root, id))?))
    }

    /// Reads .npz files and Minari folders into one data set.
    #[staticmethod]
    #[pyo3(signature = (sources, out=None, name=None, dims=None, group_by="auto", actions="auto"))]
    fn _import(
        py: Python<'_>,
        sources: Vec<PathBuf>,
        out: Option<PathBuf>,
        name: Option<String>,
        dims: Option<Vec<String>>,
        group_by: &str,
        actions: &str,
    ) -> PyResult<Self> {
        guarded(|| {
            let group_by = match group_by.split_once(':') {
                Some(("column", name)) => GroupBy::Column(name.to_owned()),
                _ => match group_by {
                    "auto" => GroupBy::Auto,
                    "episode" => GroupBy::Episode,
                    "file" => GroupBy::File,
                    other => {
                        let known = "auto, episode, file, column:NAME";
                        return Err(wrong(format!("unknown group_by \"{other}\"; known: {known}")));
                    }
                },
            };
            let actions = match actions {
                "auto" => ActionKind::Auto,
                "discrete" => ActionKind::Discrete,
                "continuous" => ActionKind::Continuous,
                other => {
                    let known = "auto, discrete, continuous";
                    return Err(wrong(format!("unknown kind of actions \"{other}\"; known: {known}")));
                }
            };
            let config = ImportConfig { name, dims, group_by, actions };
            let place = Place::new(out)?;
            let data = py.detach(|| import(&sources, &config, GENERATOR, &place.path))?;
            Ok(place.holding(data))
        })
    }

    /// Lets a behaviour policy of windvane's own act; the same bytes as `windvane collect` writes.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)] // Python's, by position
    fn _collect(
        py: Python<'_>,
        world: &World,
        contexts: Vec<u64>,
        policy: Option<&str>,
        sizes: [usize; 2],
        start: &str,
        seed: u64,
        out: Option<PathBuf>,
    ) -> PyResult<Self> {
        guarded(|| {
            let start = serde_json::from_value(start.into())
                .map_err(|_| wrong(format!("unknown start \"{start}\"; known: fixed, random")))?;
            let contexts = contexts.into_iter().map(ContextId).collect();
            let [episodes, length] = sizes;
            let config = CollectConfig { contexts, episodes, length, start, seed };
            let policy: BehaviourPolicy = match policy {
                Some(name) => name.parse()?,
                None => world.inner.behaviour(),
            };
            let place = Place::new(out)?;
            let data =
                py.detach(|| collect(&*world.inner, &policy, &config, GENERATOR, &place.path, &|_| ()))?;
            Ok(place.holding(data))
        })
    }

    /// Writes episodes of a world that were played in Python. Those of one context stand together.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)] // Python's, by position
    fn _write(
        world: &World,
        observations: &Bound<'_, PyAny>,
        actions: &Bound<'_, PyAny>,
        lengths: &Bound<'_, PyAny>,
        terminated: Vec<bool>,
        contexts: Vec<u64>,
        policy: String,
        seed: u64,
        out: Option<PathBuf>,
    ) -> PyResult<Self> {
        guarded(|| {
            let spec = world.inner.spec();
            let Floats { values, .. } = floats("observations", observations)?;
            let (taken, _) = self::actions(actions, &spec.action)?;
            let (lengths, _) = integers("lengths", lengths)?;
            if lengths.len() != contexts.len() || lengths.len() != terminated.len() {
                return Err(wrong("lengths, contexts and terminated: expected one of each for an episode"));
            }
            let mut known: Vec<u64> = contexts.clone();
            known.dedup();
            let mut group = 0;
            let mut episodes = Vec::new();
            for (i, &length) in lengths.iter().enumerate() {
                if i > 0 && contexts[i] != contexts[i - 1] {
                    group += 1;
                }
                let length = usize::try_from(length).map_err(|_| wrong("lengths: below 0"))?;
                let context = Some(ContextId(contexts[i]));
                episodes.push(EpisodeInfo { length, terminated: terminated[i], group, context });
            }
            let entry = |&id: &u64| -> Answer<ContextEntry> {
                Ok(ContextEntry { id: ContextId(id), about: world.inner.describe(ContextId(id))? })
            };
            let plan = Plan {
                env: spec.clone(),
                provenance: Provenance {
                    generator: GENERATOR.to_owned(),
                    policy,
                    seed: Some(seed),
                    config: serde_json::Value::Null,
                },
                contexts: known.iter().map(entry).collect::<Answer<_>>()?,
            };
            let place = Place::new(out)?;
            let block = Block { observations: values, actions: taken, episodes };
            let writer = Writer::begin(&place.path, plan, Leftover::StartOver)?;
            let data = match writer {
                Some(mut writer) => {
                    writer.append(&block)?;
                    writer.finish()?
                }
                None => Episodes::open(&place.path)?,
            };
            Ok(place.holding(data))
        })
    }

    /// Copies it into a new folder and opens it there.
    ///
    /// >>> data.save("data/copy").temporary
    /// False
    fn save(&self, path: PathBuf) -> PyResult<Self> {
        guarded(|| {
            copy_folder(self.episodes.path(), &path)?;
            Ok(Self { episodes: Episodes::open(path)?, temporary: None })
        })
    }

    /// Writes it as one .npz file.
    fn to_npz(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guarded(|| Ok(py.detach(|| export_npz(&self.episodes, &path))?))
    }

    /// Checks every number of it; an error if one is not what it should be.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| Ok(py.detach(|| check(self.episodes.path()).map(drop))?))
    }

    /// A figure: "occupancy", "trajectories" or "layouts".
    ///
    /// >>> data.figure("occupancy").save("occupancy.svg")
    #[pyo3(signature = (what="occupancy"))]
    fn figure(&self, what: &str) -> PyResult<Figure> {
        guarded(|| {
            let subject = Subject::new(&self.episodes, 12, None)?;
            Ok(Figure::of(match what {
                "occupancy" => picture::occupancy(&subject),
                "trajectories" => picture::trajectories(&subject, 8),
                "layouts" => picture::layouts(&subject)?,
                other => {
                    let known = "occupancy, trajectories, layouts";
                    return Err(wrong(format!("unknown figure \"{other}\"; known: {known}")));
                }
            }))
        })
    }

    /// The folder.
    #[getter]
    fn path(&self) -> &Path {
        self.episodes.path()
    }

    /// Whether it lives in a temporary folder, until it is saved.
    #[getter]
    fn temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// The name of the environment.
    #[getter]
    fn env(&self) -> &str {
        &self.episodes.spec().name
    }

    /// The visible side of the environment: name, observation, action, horizon.
    #[getter]
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| spec_out(py, self.episodes.spec()))
    }

    /// What `meta.json` says.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            json::out(py, &serde_json::to_value(self.episodes.meta()).map_err(|e| wrong(e.to_string()))?)
        })
    }

    /// Number of episodes.
    #[getter]
    fn episodes(&self) -> usize {
        self.episodes.episodes()
    }

    /// Number of transitions of all episodes.
    #[getter]
    fn transitions(&self) -> usize {
        self.episodes.transitions()
    }

    /// Number of groups: episodes of one group share their dynamics.
    #[getter]
    fn groups(&self) -> usize {
        self.episodes.groups()
    }

    /// `[transitions + episodes, dims]`: one row more than transitions for each episode. A view, read only.
    ///
    /// >>> data.observations.shape, data.observations.flags.writeable
    /// ((244, 2), False)
    #[getter]
    fn observations<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let data = &slf.get().episodes;
        guarded(|| view(slf.as_any(), data.all_observations(), data.spec().obs_dim()))
    }

    /// `[transitions]` moves or `[transitions, k]` vectors. A view, read only.
    #[getter]
    fn actions<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| match slf.get().episodes.all_actions() {
            ActionSlice::Discrete(moves) => view_flat(slf.as_any(), moves),
            ActionSlice::Continuous { size, values } => view(slf.as_any(), values, size),
        })
    }

    /// `[episodes + 1]`: the first transition of each episode, and the total. A view, read only.
    #[getter]
    fn episode_offsets<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| view_flat(slf.as_any(), slf.get().episodes.offsets()))
    }

    /// `[episodes]`: the group of each. A view, read only.
    #[getter]
    fn group_ids<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| view_flat(slf.as_any(), slf.get().episodes.group_ids()))
    }

    /// `[episodes]`: whether the dynamics ended each. A view, read only.
    #[getter]
    fn terminated<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let bytes = view_flat(slf.as_any(), slf.get().episodes.terminated_flags())?;
            Ok(bytes.call_method1("view", ("bool",))?)
        })
    }

    /// `[episodes]`: the hidden context of each, where it was recorded. For evaluation; no agent may look.
    #[getter]
    fn privileged_context_ids<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guarded(|| {
            let labels = slf.get().episodes.privileged_context_labels();
            labels.map(|labels| view_flat(slf.as_any(), labels.all())).transpose()
        })
    }

    fn __len__(&self) -> usize {
        self.episodes.transitions()
    }

    fn __repr__(&self) -> String {
        let data = &self.episodes;
        format!(
            "Dataset({} transitions in {} episodes of {} groups, {})",
            data.transitions(),
            data.episodes(),
            data.groups(),
            data.spec().name
        )
    }
}

/// What is simpler in Python.
fn helper(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("windvane._data")
}

/// Copies a folder of files to a new name, which it gets only when it is whole.
fn copy_folder(from: &Path, to: &Path) -> Answer<()> {
    if to.exists() {
        return Err(wrong(format!("{}: is there already; choose another name", to.display())));
    }
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let copy = || -> std::io::Result<()> {
        std::fs::create_dir_all(parent)?;
        let whole = tempfile::Builder::new().prefix(".windvane-").tempdir_in(parent)?;
        let inside = whole.path().join("data");
        std::fs::create_dir(&inside)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            std::fs::copy(entry.path(), inside.join(entry.file_name()))?;
        }
        std::fs::rename(inside, to)
    };
    Ok(copy().map_err(PyErr::from)?)
}
