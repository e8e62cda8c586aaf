//! Every kind of damage gives one clear error that names file and field.

use crate::synth::Shape;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};
use windvane_world::collect::{BehaviourPolicy, CollectConfig, collect};
use windvane_world::episodes::{Episodes, check};
use windvane_world::registry::{WorldConfig, make};
use windvane_world::{Split, Start};

/// Bytes before the data in our `.npy` files.
const HEADER: usize = 128;

fn data_set() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    Shape::plain().write(&path);
    (folder, path)
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

fn edit_meta(path: &Path, change: impl FnOnce(&mut Value)) {
    edit(&path.join("meta.json"), |bytes| {
        let mut meta = serde_json::from_slice(bytes).unwrap();
        change(&mut meta);
        *bytes = serde_json::to_vec(&meta).unwrap();
    });
}

/// Opening must fail and name all of `expected`.
fn open_fails(path: &Path, expected: &[&str]) {
    let error = Episodes::open(path).unwrap_err().to_string();
    assert!(expected.iter().all(|part| error.contains(part)), "expected {expected:?} in: {error}");
}

/// Opening must succeed, checking must fail and name all of `expected`.
fn check_fails(path: &Path, expected: &[&str]) {
    Episodes::open(path).unwrap();
    let error = check(path).unwrap_err().to_string();
    assert!(expected.iter().all(|part| error.contains(part)), "expected {expected:?} in: {error}");
}

/// Replaces data in a column and its checksum in the metadata, as a faulty program would have written it.
fn forge(path: &Path, column: &str, change: impl FnOnce(&mut [u8])) {
    let file = path.join(format!("{column}.npy"));
    edit(&file, |bytes| change(&mut bytes[HEADER..]));
    let bytes = std::fs::read(&file).unwrap();
    let hash = xxhash_rust::xxh3::xxh3_128(&bytes[HEADER..]);
    edit_meta(path, |meta| meta["columns"][column]["xxh3_128"] = json!(format!("{hash:032x}")));
}

const COLUMNS: [&str; 6] =
    ["observations", "actions", "episode_offsets", "group_ids", "terminated", "context_ids"];

#[test]
fn a_truncated_column_names_itself_and_both_sizes() {
    for column in COLUMNS {
        let (_folder, path) = data_set();
        let file = path.join(format!("{column}.npy"));
        edit(&file, |bytes| bytes.truncate(bytes.len() - 1));
        open_fails(&path, &[&format!("{column}.npy"), "bytes, its header promises"]);
        edit(&file, |bytes| bytes.truncate(20));
        open_fails(&path, &[&format!("{column}.npy"), "ends within its .npy header"]);
        edit(&file, Vec::clear);
        open_fails(&path, &[&format!("{column}.npy"), "ends within its .npy header"]);
    }
}

#[test]
fn a_flipped_bit_in_any_column_is_found() {
    for column in COLUMNS {
        let (_folder, path) = data_set();
        let file = path.join(format!("{column}.npy"));
        let length = std::fs::metadata(&file).unwrap().len() as usize;
        edit(&file, |bytes| bytes[length - 1] ^= 0x40);
        let error = check(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("{column}.npy")), "{error}");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    let (_folder, path) = data_set();
    for column in COLUMNS {
        let file = path.join(format!("{column}.npy"));
        let good = std::fs::read(&file).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            std::fs::write(&file, &bad).unwrap();
            // Python does not care which blank pads a header, nor do we.
            let blank = at < HEADER && bad[at].is_ascii_whitespace() && good[at].is_ascii_whitespace();
            assert!(blank || check(&path).is_err(), "{column} byte {at}");
        }
        std::fs::write(&file, &good).unwrap();
    }
    check(&path).unwrap();
}

#[test]
fn a_missing_column_is_named() {
    for column in COLUMNS {
        let (_folder, path) = data_set();
        std::fs::remove_file(path.join(format!("{column}.npy"))).unwrap();
        open_fails(&path, &[&format!("{column}.npy"), &format!("opening column {column}")]);
    }
    let (_folder, path) = data_set();
    std::fs::remove_file(path.join("meta.json")).unwrap();
    open_fails(&path, &["meta.json", "reading"]);
    open_fails(Path::new("no/such/folder"), &["no/such/folder/meta.json"]);
}

#[test]
fn a_wrong_type_shape_or_order_is_named() {
    let replace = |path: &Path, from: &str, to: &str| {
        let file = path.join("observations.npy");
        edit(&file, |bytes| {
            let text = String::from_utf8_lossy(&bytes[10..HEADER]).replace(from, to);
            assert!(text.contains(to));
            // Keep the header's length whatever was put in.
            let text = format!("{:<width$}\n", text.trim_end(), width = HEADER - 11);
            bytes.splice(10..HEADER, text.into_bytes());
        });
    };
    for (from, to, expected) in [
        ("<f4", "<f8", "dtype is <f8, expected <f4"),
        ("<f4", ">f4", "is big endian"),
        ("(28, 2)", "(14, 4)", "shape is [14, 4], expected [28, 2]"),
        ("(28, 2)", "(56,)", "shape is [56], expected [28, 2]"),
        ("False", "True", "Fortran order"),
        ("(28, 2)", "(1152921504606846976, 2)", "shape is"),
        ("(28, 2)", "(99999999999999999999, 2)", "does not parse"),
    ] {
        let (_folder, path) = data_set();
        replace(&path, from, to);
        open_fails(&path, &["observations.npy: observations", expected]);
    }
    let (_folder, path) = data_set();
    edit(&path.join("actions.npy"), |bytes| bytes[0] = b'P');
    open_fails(&path, &["actions.npy: actions", "not a .npy array"]);
}

#[test]
fn offsets_that_do_not_add_up_are_named() {
    let set = |path: &Path, row: usize, value: i64| {
        forge(path, "episode_offsets", |data| {
            data[8 * row..8 * row + 8].copy_from_slice(&value.to_le_bytes());
        });
    };
    for (row, value, expected) in [
        (0, 1, "begin at 1, expected 0"),
        (2, 5, "episode 1 goes from 5 to 5"),
        (2, -3, "episode 1 goes from 5 to -3"),
        (3, i64::MAX, "goes from 9223372036854775807"),
        (6, 23, "end at 23, but there are 22 transitions"),
        (6, i64::MAX, "end at 9223372036854775807"),
    ] {
        let (_folder, path) = data_set();
        set(&path, row, value);
        open_fails(&path, &["episode_offsets.npy: episode_offsets", expected]);
    }
}

#[test]
fn groups_with_gaps_or_of_the_wrong_number_are_named() {
    for (row, value, expected) in [
        (0, 1_i64, "episode 0 is of group 1 after group -1"),
        (3, 7, "episode 3 is of group 7"),
        (5, 3, "there are 4 groups, but the metadata says 3"),
        (5, i64::MIN, "episode 5 is of group -9223372036854775808"),
    ] {
        let (_folder, path) = data_set();
        forge(&path, "group_ids", |data| data[8 * row..8 * row + 8].copy_from_slice(&value.to_le_bytes()));
        open_fails(&path, &["group_ids.npy: group_ids", expected]);
    }
}

#[test]
fn numbers_that_are_none_and_actions_out_of_range_are_named() {
    let float = |value: f32| move |data: &mut [u8]| data[4 * 5..4 * 6].copy_from_slice(&value.to_le_bytes());
    for (value, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (-1.0, "-1"), (2e6, "2000000")] {
        let (_folder, path) = data_set();
        forge(&path, "observations", float(value));
        check_fails(
            &path,
            &["observations.npy: observations: row 2, d1", shown, "expected a number from 0 to 1000000"],
        );
    }
    let (_folder, path) = data_set();
    forge(&path, "actions", |data| data[4 * 3..4 * 4].copy_from_slice(&4_u32.to_le_bytes()));
    check_fails(&path, &["actions.npy: actions: row 3: action 4 is outside the action space"]);

    let folder = tempdir().unwrap();
    let path = folder.path().join("continuous");
    Shape { continuous: true, ..Shape::plain() }.write(&path);
    forge(&path, "actions", float(1.5));
    check_fails(&path, &["actions.npy: actions: row 1", "1.5"]);
    forge(&path, "actions", float(f32::NAN));
    check_fails(&path, &["actions.npy: actions: row 1", "NaN"]);
}

#[test]
fn labels_and_flags_that_make_no_sense_are_named() {
    let (_folder, path) = data_set();
    forge(&path, "context_ids", |data| data[0] = 7);
    check_fails(&path, &["context_ids.npy: context_ids: row 0: context 7 is not in the table"]);
    forge(&path, "context_ids", |data| data[0] = 101);
    check_fails(&path, &["context_ids.npy", "group 0 holds more than one context"]);
    let (_folder, path) = data_set();
    forge(&path, "terminated", |data| data[2] = 3);
    check_fails(&path, &["terminated.npy: terminated: row 2: 3, expected 0 or 1"]);
    let (_folder, path) = data_set();
    edit_meta(&path, |meta| meta["contexts"][1]["id"] = json!(100));
    check_fails(&path, &["meta.json: contexts: context 100 stands in the table twice"]);
    let (_folder, path) = data_set();
    edit_meta(&path, |meta| drop(meta["columns"].as_object_mut().unwrap().remove("actions")));
    check_fails(&path, &["meta.json: actions: the metadata does not list this column"]);
}

#[test]
fn metadata_that_says_another_thing_than_the_columns_is_named() {
    let cases: [(Change, &str); 5] = [
        (
            |meta| meta["columns"]["observations"]["dtype"] = json!("<f8"),
            "observations: listed as <f8 of shape [28, 2]",
        ),
        (
            |meta| meta["columns"]["actions"]["shape"] = json!([21]),
            "actions: listed as <u4 of shape [21], but the column holds 22",
        ),
        (|meta| meta["columns"]["actions"]["shape"] = json!([u64::MAX, 9]), "actions: listed as"),
        (
            |meta| meta["contexts"] = json!([]),
            "contexts: the table is empty, but there is a column of context_ids",
        ),
        (
            |meta| meta["columns"]["rewards"] = meta["columns"]["actions"].clone(),
            "columns: \"rewards\" is no column",
        ),
    ];
    for (change, expected) in cases {
        let (_folder, path) = data_set();
        edit_meta(&path, change);
        check_fails(&path, &["meta.json", expected]);
    }
}

#[test]
fn metadata_that_says_another_thing_than_the_world_is_named() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("doors");
    let world = make("doors", &WorldConfig { train: Some(2), ..WorldConfig::default() }).unwrap();
    let contexts = world.contexts(Split::Train).to_vec();
    let config = CollectConfig { contexts, episodes: 2, length: 9, start: Start::Random, seed: 0 };
    collect(&*world, &BehaviourPolicy::Uniform, &config, "tests", &path, &|_| {}).unwrap();
    check(&path).unwrap();
    let good = std::fs::read(path.join("meta.json")).unwrap();
    let cases: [(Change, &str); 4] = [
        (
            |meta| meta["env"]["observation"][0]["high"] = json!(99.0),
            "env: is not the environment called doors",
        ),
        (
            |meta| meta["env"]["action"]["discrete"]["names"][0] = json!("jump"),
            "env: is not the environment called doors",
        ),
        (
            |meta| meta["contexts"][0]["about"]["start"] = json!([1.0, 1.0]),
            "is not described as doors describes it",
        ),
        (
            |meta| {
                let first = meta["contexts"][0]["about"].take();
                meta["contexts"][0]["about"] = meta["contexts"][1]["about"].take();
                meta["contexts"][1]["about"] = first;
            },
            "is not described as doors describes it",
        ),
    ];
    for (change, expected) in cases {
        std::fs::write(path.join("meta.json"), &good).unwrap();
        edit_meta(&path, change);
        check_fails(&path, &["meta.json", expected]);
    }
    // Somebody's own data may be called as they like.
    edit_meta(&path, |meta| meta["provenance"]["policy"] = json!("imported"));
    check(&path).unwrap();
}

type Change = fn(&mut Value);

#[test]
fn metadata_of_another_version_or_without_sense_is_named() {
    let cases: [(Change, &[&str]); 14] = [
        (|meta| meta["version"] = json!(2), &["version: is 2, newer than 1"]),
        (|meta| meta["version"] = json!(0), &["version: is 0, expected 1"]),
        (|meta| meta["version"] = json!("one"), &["version: is \"one\""]),
        (|meta| meta["format"] = json!("zarr"), &["format: is \"zarr\", expected \"windvane-episodes\""]),
        (|meta| *meta = json!([]), &["format: is null"]),
        (|meta| drop(meta.as_object_mut().unwrap().remove("env")), &["missing field `env`"]),
        (|meta| meta["episodes"] = json!(0), &["do not go together"]),
        (|meta| meta["groups"] = json!(0), &["do not go together"]),
        (|meta| meta["transitions"] = json!(u64::MAX), &["more than fit"]),
        (|meta| meta["episodes"] = json!(-1), &["metadata: invalid value"]),
        (|meta| meta["env"]["observation"] = json!([]), &["env: observations have no dimension"]),
        (
            |meta| meta["env"]["observation"][0]["high"] = json!(-5.0),
            &["env: dimension \"d0\" has bounds 0 and -5"],
        ),
        (|meta| meta["env"]["action"]["discrete"]["names"] = json!([]), &["env: 0 moves"]),
        (
            |meta| meta["env"]["action"] = json!({"continuous": {"low": [0.0], "high": []}}),
            &["env: action bounds of 1 and 0 components"],
        ),
    ];
    for (change, expected) in cases {
        let (_folder, path) = data_set();
        edit_meta(&path, change);
        open_fails(&path, &[&["meta.json"], expected].concat());
    }
    let (_folder, path) = data_set();
    edit(&path.join("meta.json"), |bytes| bytes.truncate(bytes.len() / 2));
    open_fails(&path, &["meta.json: JSON", "EOF"]);
    edit(&path.join("meta.json"), |bytes| *bytes = b"[".repeat(100_000));
    open_fails(&path, &["meta.json: JSON", "recursion limit"]);
}
