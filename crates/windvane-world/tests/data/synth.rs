//! Small data sets of any shape, made of numbers that say where they stand.

use proptest::prelude::*;
use std::path::Path;
use windvane_world::episodes::{
    Block, ContextEntry, EpisodeInfo, Episodes, Leftover, Plan, Provenance, Writer,
};
use windvane_world::{ActionSpace, Actions, ContextId, Dim, EnvSpec};

/// What a data set is to look like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) dims: usize,
    /// Number of moves, or of components if `continuous`.
    pub(crate) actions: usize,
    pub(crate) continuous: bool,
    pub(crate) labelled: bool,
    /// Length of each episode, group by group.
    pub(crate) groups: Vec<Vec<usize>>,
}

impl Shape {
    /// Two dimensions, four moves, labels, groups of unequal episodes.
    pub(crate) fn plain() -> Self {
        let groups = vec![vec![5, 3], vec![1], vec![7, 2, 4]];
        Self { dims: 2, actions: 4, continuous: false, labelled: true, groups }
    }

    /// Any shape.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let groups = prop::collection::vec(prop::collection::vec(1..12_usize, 1..5), 1..6);
        (1..5_usize, 1..4_usize, any::<bool>(), any::<bool>(), groups).prop_map(
            |(dims, actions, continuous, labelled, groups)| Self {
                dims,
                actions,
                continuous,
                labelled,
                groups,
            },
        )
    }

    pub(crate) fn episodes(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    fn spec(&self) -> EnvSpec {
        let dim = |place: usize| Dim { name: format!("d{place}"), low: 0.0, high: 1e6, integer: false };
        EnvSpec {
            name: "synthetic".into(),
            observation: (0..self.dims).map(dim).collect(),
            action: if self.continuous {
                ActionSpace::Continuous { low: vec![-1.0; self.actions], high: vec![1.0; self.actions] }
            } else {
                ActionSpace::Discrete {
                    names: (0..self.actions).map(|index| format!("move {index}")).collect(),
                }
            },
            horizon: 100,
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        let entry = |id| ContextEntry { id: ContextId(100 + id), about: serde_json::json!({ "number": id }) };
        Plan {
            env: self.spec(),
            provenance: Provenance {
                generator: "tests".into(),
                policy: "synthetic".into(),
                seed: Some(0),
                config: serde_json::json!({ "x": 0.1 }),
            },
            contexts: (0..if self.labelled { self.groups.len() as u64 } else { 0 }).map(entry).collect(),
        }
    }

    /// All episodes as blocks, one for each group. Observation `t` of episode `e` is `1000 e + t` (plus a quarter for each
    /// further dimension), so that every number says where it belongs.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut episode = 0;
        for (group, lengths) in self.groups.iter().enumerate() {
            let mut block = Block::new(&self.spec());
            for &length in lengths {
                for step in 0..=length {
                    let first = (1000 * episode + step) as f32;
                    block.observations.extend((0..self.dims).map(|dim| first + 0.25 * dim as f32));
                }
                for step in 0..length {
                    match &mut block.actions {
                        Actions::Discrete(moves) => moves.push(((episode + step) % self.actions) as u32),
                        Actions::Continuous { size, values } => {
                            values.extend((0..*size).map(|k| (step as f32 / 50.0) - 0.1 * k as f32));
                        }
                    }
                }
                let context = self.labelled.then_some(ContextId(100 + group as u64));
                block.episodes.push(EpisodeInfo { length, terminated: episode % 3 == 0, group, context });
                episode += 1;
            }
            blocks.push(block);
        }
        blocks
    }

    /// Writes the data set.
    pub(crate) fn write(&self, out: &Path) -> Episodes {
        let mut writer = Writer::begin(out, self.plan(), Leftover::Continue).unwrap().unwrap();
        for block in self.blocks() {
            writer.append(&block).unwrap();
        }
        writer.finish().unwrap()
    }
}

/// All files of a folder with their bytes, in order.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}
