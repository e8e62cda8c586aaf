//! Writing data sets: what is written is read, nothing is overwritten, a kill loses little.

use crate::synth::{Shape, files};
use proptest::prelude::*;
use tempfile::tempdir;
use windvane_world::episodes::{Episodes, Leftover, Writer, check};
use windvane_world::{Action, ContextId};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read_back(shape in Shape::any()) {
        let folder = tempdir().unwrap();
        let path = folder.path().join("data");
        shape.write(&path);
        let data = check(&path).unwrap();
        prop_assert_eq!(&data.meta().plan, &shape.plan());
        prop_assert_eq!(data.episodes(), shape.episodes());
        prop_assert_eq!(data.groups(), shape.groups.len());
        let mut episode = 0;
        for (block, lengths) in shape.blocks().iter().zip(&shape.groups) {
            let (mut row, mut step) = (0, 0);
            for (info, &length) in block.episodes.iter().zip(lengths) {
                prop_assert_eq!(data.length(episode), length);
                let numbers = (length + 1) * shape.dims;
                prop_assert_eq!(data.observations(episode), &block.observations[row..row + numbers]);
                for t in 0..length {
                    prop_assert_eq!(data.actions(episode).get(t), block.actions.get(step + t));
                }
                prop_assert_eq!(data.terminated(episode), info.terminated);
                prop_assert_eq!(data.group(episode), info.group);
                let label = data.privileged_context_labels().map(|labels| labels.of(episode));
                prop_assert_eq!(label, info.context);
                for t in data.span(episode) {
                    prop_assert_eq!(data.episode_of(t), episode);
                }
                row += numbers;
                step += length;
                episode += 1;
            }
        }
    }

    #[test]
    fn a_kill_between_commits_leaves_no_trace(shape in Shape::any(), committed in 0..6_usize, more in 0..3_usize) {
        let folder = tempdir().unwrap();
        let (whole, resumed) = (folder.path().join("whole"), folder.path().join("resumed"));
        shape.write(&whole);
        let blocks = shape.blocks();
        let committed = committed.min(blocks.len());
        {
            let mut writer = Writer::begin(&resumed, shape.plan(), Leftover::Continue).unwrap().unwrap();
            for block in &blocks[..committed] {
                writer.append(block).unwrap();
                writer.commit().unwrap();
            }
            for block in blocks[committed..].iter().take(more) {
                writer.append(block).unwrap();
            }
            // Dropped without a word, as a killed process drops it.
        }
        prop_assert!(!resumed.exists());
        let mut writer = Writer::begin(&resumed, shape.plan(), Leftover::Continue).unwrap().unwrap();
        let done: usize = shape.groups[..committed].iter().map(Vec::len).sum();
        prop_assert_eq!(writer.episodes(), done);
        for block in &blocks[committed..] {
            writer.append(block).unwrap();
        }
        writer.finish().unwrap();
        prop_assert!(files(&whole) == files(&resumed), "identical bytes");
        prop_assert!(!folder.path().join("resumed.partial").exists());
    }
}

fn refused(result: Result<Option<Writer>, windvane_world::WorldError>) -> String {
    match result {
        Ok(_) => panic!("should be refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_existing_folder_is_never_touched() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let shape = Shape::plain();
    shape.write(&path);
    let before = files(&path);
    let error = refused(Writer::begin(&path, shape.plan(), Leftover::Continue));
    assert!(error.contains("already exists"), "{error}");
    assert!(files(&path) == before && !folder.path().join("data.partial").exists());
}

#[test]
fn an_unfinished_folder_of_another_plan_or_owner_is_not_touched() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let shape = Shape::plain();
    let mut writer = Writer::begin(&path, shape.plan(), Leftover::Continue).unwrap().unwrap();
    writer.append(&shape.blocks()[0]).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let partial = folder.path().join("data.partial");
    let before = files(&partial);
    let mut other = shape.plan();
    other.provenance.seed = Some(7);
    let error = refused(Writer::begin(&path, other, Leftover::Continue));
    assert!(error.contains("provenance.seed was 0, is 7"), "{error}");
    assert!(files(&partial) == before);

    let foreign = folder.path().join("theirs.partial");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("thesis.tex"), "years of work").unwrap();
    let error = refused(Writer::begin(&folder.path().join("theirs"), shape.plan(), Leftover::StartOver));
    assert!(error.contains("thesis.tex"), "{error}");
    assert_eq!(files(&foreign).len(), 1);
}

#[test]
fn two_writers_cannot_share_a_folder() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let shape = Shape::plain();
    let _first = Writer::begin(&path, shape.plan(), Leftover::Continue).unwrap().unwrap();
    let error = refused(Writer::begin(&path, shape.plan(), Leftover::Continue));
    assert!(error.contains("another process is writing"), "{error}");
}

#[test]
fn a_folder_that_only_lacks_its_name_gets_it() {
    let folder = tempdir().unwrap();
    let (path, partial) = (folder.path().join("data"), folder.path().join("data.partial"));
    let shape = Shape::plain();
    shape.write(&path);
    let before = files(&path);
    std::fs::rename(&path, &partial).unwrap();
    assert!(Writer::begin(&path, shape.plan(), Leftover::Continue).unwrap().is_none());
    assert!(files(&path) == before && !partial.exists());
}

#[test]
fn a_partial_file_damaged_after_its_commit_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let shape = Shape::plain();
    let mut writer = Writer::begin(&path, shape.plan(), Leftover::Continue).unwrap().unwrap();
    writer.append(&shape.blocks()[0]).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let column = folder.path().join("data.partial/observations.npy");
    let mut bytes = std::fs::read(&column).unwrap();
    bytes[140] ^= 1;
    std::fs::write(&column, &bytes).unwrap();
    let error = refused(Writer::begin(&path, shape.plan(), Leftover::Continue));
    assert!(error.contains("observations.npy") && error.contains("checksum"), "{error}");
    std::fs::write(&column, &bytes[..150]).unwrap();
    let error = refused(Writer::begin(&path, shape.plan(), Leftover::Continue));
    assert!(error.contains("observations.npy") && error.contains("shorter"), "{error}");
}

type Spoil = fn(&mut windvane_world::episodes::Block);

#[test]
fn a_block_that_does_not_fit_is_refused_and_says_why() {
    let folder = tempdir().unwrap();
    let shape = Shape::plain();
    let mut writer =
        Writer::begin(&folder.path().join("data"), shape.plan(), Leftover::Continue).unwrap().unwrap();
    let good = &shape.blocks()[0];
    let cases: [(Spoil, &str); 9] = [
        (|block| block.observations[5] = f32::NAN, "row 2, d1: NaN, expected a number from 0 to 1000000"),
        (|block| block.observations[0] = f32::INFINITY, "row 0, d0: inf, expected a number"),
        (|block| block.observations.truncate(3), "observations"),
        (|block| block.actions.push(Action::Discrete(0)), "9 actions for 8 transitions"),
        (
            |block| {
                if let windvane_world::Actions::Discrete(moves) = &mut block.actions {
                    moves[3] = 4;
                }
            },
            "row 3: action 4 is outside the action space",
        ),
        (|block| block.episodes[1].group = 5, "group 5 follows"),
        (|block| block.episodes[0].context = Some(ContextId(9)), "not in the table of contexts"),
        (|block| block.episodes[0].context = None, "not in the table of contexts"),
        (|block| block.episodes[1].context = Some(ContextId(101)), "group 0 holds more than one context"),
    ];
    for (spoil, expected) in cases {
        let mut bad = good.clone();
        spoil(&mut bad);
        let error = writer.append(&bad).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    writer.append(good).unwrap();
    assert_eq!(writer.finish().unwrap().episodes(), 2);
}

#[test]
fn a_data_set_without_episodes_is_no_data_set() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    let writer = Writer::begin(&path, Shape::plain().plan(), Leftover::Continue).unwrap().unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("there is none to write"));
    assert!(Episodes::open(&path).is_err());
}

#[test]
fn starting_over_forgets_what_an_earlier_run_wrote() {
    let folder = tempdir().unwrap();
    let (whole, again) = (folder.path().join("whole"), folder.path().join("again"));
    let shape = Shape::plain();
    shape.write(&whole);
    for _ in 0..2 {
        let mut writer = Writer::begin(&again, shape.plan(), Leftover::StartOver).unwrap().unwrap();
        assert_eq!(writer.episodes(), 0);
        writer.append(&shape.blocks()[0]).unwrap();
        writer.commit().unwrap();
    }
    let mut writer = Writer::begin(&again, shape.plan(), Leftover::StartOver).unwrap().unwrap();
    shape.blocks().iter().for_each(|block| writer.append(block).unwrap());
    writer.finish().unwrap();
    assert!(files(&whole) == files(&again));
}
