//! Readers against bytes that nobody meant for them: an error is fine, a panic or a flood is not.
//!
//! `fuzz/` includes this file and feeds it bytes that a fuzzer evolved; here proptest feeds it random damage.

use std::fs;
use std::path::Path;
use windvane_world::episodes::{
    Block, ContextEntry, EpisodeInfo, Episodes, ImportConfig, Leftover, Plan, Provenance, Writer, check,
    export_minari, export_npz, import,
};
use windvane_world::rng::stream;
use windvane_world::{Action, ActionSpace, ContextId, Dim, EnvSpec};

/// The files of a data set, by number.
pub(crate) const FILES: [&str; 7] = [
    "meta.json",
    "observations.npy",
    "actions.npy",
    "episode_offsets.npy",
    "group_ids.npy",
    "terminated.npy",
    "context_ids.npy",
];

/// Writes a small sound data set: two groups, three episodes.
pub(crate) fn sound(out: &Path) -> Episodes {
    let dim = |name: &str| Dim { name: name.into(), low: 0.0, high: 100.0, integer: false };
    let plan = Plan {
        env: EnvSpec {
            name: "sound".into(),
            observation: vec![dim("x"), dim("y")],
            action: ActionSpace::Discrete { names: vec!["left".into(), "right".into()] },
            horizon: 4,
        },
        provenance: Provenance {
            generator: "readers".into(),
            policy: "none".into(),
            seed: None,
            config: serde_json::Value::Null,
        },
        contexts: [5, 6]
            .map(|id| ContextEntry { id: ContextId(id), about: serde_json::Value::Null })
            .to_vec(),
    };
    let mut block = Block::new(&plan.env);
    for (group, length) in [(0, 3), (0, 1), (1, 4)] {
        block.observations.extend((0..2 * (length + 1)).map(|number| number as f32));
        (0..length).for_each(|step| block.actions.push(Action::Discrete(step as u32 % 2)));
        let context = Some(ContextId(5 + group as u64));
        block.episodes.push(EpisodeInfo { length, terminated: false, group, context });
    }
    let mut writer = Writer::begin(out, plan, Leftover::Continue).expect("begin").expect("fresh");
    writer.append(&block).expect("append");
    writer.finish().expect("finish")
}

/// Opens, checks and samples a sound data set in which one file was replaced by `bytes`.
pub(crate) fn open_damaged(folder: &Path, file: usize, bytes: &[u8]) {
    let path = folder.join("damaged");
    if !path.exists() {
        sound(&path);
    }
    let file = path.join(FILES[file % FILES.len()]);
    let good = fs::read(&file).expect("read");
    fs::write(&file, bytes).expect("replace");
    if let Ok(data) = Episodes::open(&path) {
        // What opens must be usable without a panic, whatever its numbers say.
        let mut batch = data.batch(4);
        let mut rng = stream(0, "readers", &[]);
        data.sample_batch(&mut rng, 4, &mut batch);
        if let Some(window) = data.sample_window(&mut rng, 2) {
            data.fill_windows(&[window], 2, &mut batch);
        }
        let _ = data.sample_sibling_window(&mut rng, 0, 1);
        let _ = data.summary();
        let _ = check(&path);
    }
    fs::write(&file, good).expect("restore");
}

/// Imports `bytes` as an archive.
pub(crate) fn import_archive(folder: &Path, bytes: &[u8]) {
    let (archive, out) = (folder.join("log.npz"), folder.join("imported"));
    let _ = fs::remove_dir_all(&out);
    fs::write(&archive, bytes).expect("write");
    if import(&[archive], &ImportConfig::default(), "readers", &out).is_ok() {
        let _ = check(&out);
    }
    let _ = fs::remove_dir_all(folder.join("imported.partial"));
}

/// Imports a Minari data set whose only episode has `bytes` for its Arrow file.
pub(crate) fn import_arrow(folder: &Path, bytes: &[u8]) {
    let (minari, out) = (folder.join("minari"), folder.join("imported"));
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(minari.join("0")).expect("create");
    let about = r#"{"data_format": "arrow", "total_episodes": 1, "dataset_id": "any-v0"}"#;
    fs::write(minari.join("metadata.json"), about).expect("write");
    fs::write(minari.join("0/metadata.json"), r#"{"id": 0}"#).expect("write");
    fs::write(minari.join("0/part-0.arrow"), bytes).expect("write");
    let _ = import(&[minari], &ImportConfig::default(), "readers", &out);
    let _ = fs::remove_dir_all(folder.join("imported.partial"));
}

/// Sound bytes of each kind: the files of a data set, an archive, an Arrow file.
pub(crate) fn seeds(folder: &Path) -> (Vec<Vec<u8>>, Vec<u8>, Vec<u8>) {
    let data = sound(&folder.join("seed"));
    let files = FILES.map(|file| fs::read(data.path().join(file)).expect("read")).to_vec();
    let archive = folder.join("seed.npz");
    export_npz(&data, &archive).expect("export");
    let minari = export_minari(&data, folder, "seed-v0").expect("export");
    let arrow = fs::read(minari.join("data/0/part-0.arrow")).expect("read");
    (files, fs::read(archive).expect("read"), arrow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    use tempfile::tempdir;

    /// Random edits: bytes changed, cut off, put in.
    fn damaged(mut bytes: Vec<u8>, edits: &[(u32, u8, u8)]) -> Vec<u8> {
        for &(at, kind, value) in edits {
            let at = at as usize % bytes.len().max(1);
            match kind % 8 {
                _ if bytes.is_empty() => bytes.push(value),
                0 => bytes.truncate(at),
                1 => bytes.insert(at, value),
                2 => drop(bytes.remove(at)),
                3 => bytes[at] = 0xff,
                _ => bytes[at] ^= value | 1,
            }
        }
        bytes
    }

    fn run(cases: u32, mut feed: impl FnMut(&[(u32, u8, u8)], u8, Vec<u8>)) {
        let edits = prop::collection::vec(any::<(u32, u8, u8)>(), 1..8);
        let strategy = (edits, any::<u8>(), prop::collection::vec(any::<u8>(), 0..200));
        let feed = std::cell::RefCell::new(&mut feed);
        TestRunner::new(Config::with_cases(cases))
            .run(&strategy, |(edits, number, noise)| {
                (feed.borrow_mut())(&edits, number, noise);
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn no_damage_to_a_data_set_panics() {
        let folder = tempdir().unwrap();
        let (files, ..) = seeds(folder.path());
        run(250, |edits, number, noise| {
            let file = number as usize % FILES.len();
            open_damaged(folder.path(), file, &damaged(files[file].clone(), edits));
            open_damaged(folder.path(), file, &noise);
        });
    }

    #[test]
    fn no_damage_to_an_archive_panics() {
        let folder = tempdir().unwrap();
        let (_, archive, _) = seeds(folder.path());
        run(250, |edits, _, noise| {
            import_archive(folder.path(), &damaged(archive.clone(), edits));
            import_archive(folder.path(), &noise);
        });
    }

    #[test]
    fn no_damage_to_an_arrow_file_panics() {
        let folder = tempdir().unwrap();
        let (.., arrow) = seeds(folder.path());
        run(300, |edits, _, noise| {
            import_arrow(folder.path(), &damaged(arrow.clone(), edits));
            import_arrow(folder.path(), &noise);
        });
    }

    #[test]
    fn what_is_not_damaged_is_read() {
        let folder = tempdir().unwrap();
        let (files, archive, arrow) = seeds(folder.path());
        open_damaged(folder.path(), 1, &files[1]);
        assert!(check(folder.path().join("damaged")).is_ok());
        import_archive(folder.path(), &archive);
        assert_eq!(Episodes::open(folder.path().join("imported")).unwrap().episodes(), 3);
        import_arrow(folder.path(), &arrow);
        assert_eq!(Episodes::open(folder.path().join("imported")).unwrap().episodes(), 1);
    }
}
