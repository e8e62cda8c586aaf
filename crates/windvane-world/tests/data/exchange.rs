//! Data from elsewhere and for elsewhere. That NumPy and Minari themselves agree is proven in `tests/python`.

use crate::synth::{Shape, files};
use proptest::prelude::*;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::tempdir;
use windvane_world::episodes::{
    ActionKind, ActionSlice, Episodes, GroupBy, ImportConfig, check, export_minari, export_npz, import,
};
use windvane_world::{ActionSpace, WorldError};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn a_data_set_comes_back_from_npz_bit_for_bit(shape in Shape::any()) {
        let folder = tempdir().unwrap();
        let (there, back) = (folder.path().join("there"), folder.path().join("back"));
        let archive = folder.path().join("data.npz");
        export_npz(&shape.write(&there), &archive).unwrap();
        import(&[archive], &ImportConfig::default(), "tests", &back).unwrap();
        prop_assert!(files(&there) == files(&back));
    }

    #[test]
    fn a_data_set_comes_back_from_minari_bit_for_bit(shape in Shape::any()) {
        let folder = tempdir().unwrap();
        let (there, back) = (folder.path().join("there"), folder.path().join("back"));
        let exported = export_minari(&shape.write(&there), folder.path(), "tests/any-shape-v0").unwrap();
        import(&[exported], &ImportConfig::default(), "tests", &back).unwrap();
        prop_assert!(files(&there) == files(&back));
    }
}

/// An array as NumPy would save it.
struct Npy {
    name: &'static str,
    descr: &'static str,
    shape: String,
    fortran: bool,
    data: Vec<u8>,
}

/// An array of f64: rows of `width`, or plain numbers if that is 0.
fn f64s(name: &'static str, width: usize, values: &[f64]) -> Npy {
    let shape = match values.len().checked_div(width) {
        Some(rows) => format!("({rows}, {width})"),
        None => format!("({},)", values.len()),
    };
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Npy { name, descr: "<f8", shape, fortran: false, data }
}

fn i64s(name: &'static str, values: &[i64]) -> Npy {
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Npy { name, descr: "<i8", shape: format!("({},)", values.len()), fortran: false, data }
}

fn bools(name: &'static str, values: &[u8]) -> Npy {
    Npy { name, descr: "|b1", shape: format!("({},)", values.len()), fortran: false, data: values.to_vec() }
}

fn save(path: &Path, arrays: &[Npy]) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for array in arrays {
        zip.start_file(format!("{}.npy", array.name), zip::write::SimpleFileOptions::default()).unwrap();
        let order = if array.fortran { "True" } else { "False" };
        let Npy { descr, shape, .. } = array;
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(text.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
        zip.write_all(&array.data).unwrap();
    }
    zip.finish().unwrap();
}

/// Imports archives made of arrays.
fn imported(
    sources: &[Vec<Npy>],
    config: &ImportConfig,
) -> (tempfile::TempDir, Result<Episodes, WorldError>) {
    let folder = tempdir().unwrap();
    let paths: Vec<PathBuf> =
        (0..sources.len()).map(|number| folder.path().join(format!("log{number}.npz"))).collect();
    for (path, arrays) in paths.iter().zip(sources) {
        save(path, arrays);
    }
    let out = folder.path().join("data");
    let result = import(&paths, config, "tests", &out);
    if result.is_ok() {
        check(&out).unwrap();
    } else {
        assert!(!out.exists(), "a failed import leaves no data set");
    }
    (folder, result)
}

fn refused(sources: &[Vec<Npy>], config: &ImportConfig, expected: &[&str]) {
    let error = imported(sources, config).1.unwrap_err().to_string();
    assert!(expected.iter().all(|part| error.contains(part)), "expected {expected:?} in: {error}");
}

/// Two episodes of a robot, of two and one transitions, as OGBench would lay them out.
fn log() -> Vec<Npy> {
    vec![
        f64s("observations", 3, &[0., 1., 2., 3., 4., 5., 6., 7., 8., 10., 11., 12., 13., 14., 15.]),
        i64s("actions", &[1, 0, 9, 2, 9]),
        f64s("terminals", 0, &[0., 0., 1., 0., 1.]),
    ]
}

/// The same log as [`log`], whatever types and orders NumPy was given.
#[test]
fn every_type_of_number_and_order_is_read_alike() {
    let values: Vec<f64> = vec![0., 1., 2., 3., 4., 5., 6., 7., 8., 10., 11., 12., 13., 14., 15.];
    let transposed: Vec<f64> = (0..15).map(|place| values[place % 5 * 3 + place / 5]).collect();
    // IEEE half precision of these whole numbers, by hand: exponent and leading bits.
    let half = |x: f64| match x as u16 {
        0 => 0,
        whole => {
            let exponent = whole.ilog2() as u16;
            (exponent + 15) << 10 | (whole << (10 - exponent)) & 0x3ff
        }
    };
    let npy =
        |descr, fortran, data| Npy { name: "observations", descr, shape: "(5, 3)".into(), fortran, data };
    let variants = [
        npy(">f8", false, values.iter().flat_map(|v| v.to_be_bytes()).collect()),
        npy("<f2", false, values.iter().flat_map(|v| half(*v).to_le_bytes()).collect()),
        npy(">f2", true, transposed.iter().flat_map(|v| half(*v).to_be_bytes()).collect()),
        npy("<f4", true, transposed.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect()),
        npy(">i2", true, transposed.iter().flat_map(|v| (*v as i16).to_be_bytes()).collect()),
        npy("|u1", false, values.iter().map(|v| *v as u8).collect()),
    ];
    for observations in variants {
        let words = format!("{} {}", observations.descr, observations.fortran);
        let mut arrays = log();
        arrays[0] = observations;
        arrays[1] = Npy {
            descr: ">i8",
            data: [1_i64, 0, 9, 2, 9].map(i64::to_be_bytes).concat(),
            ..i64s("actions", &[0; 5])
        };
        let (_folder, data) = imported(&[arrays], &ImportConfig::default());
        let data = data.unwrap();
        assert_eq!(data.observations(0), [0., 1., 2., 3., 4., 5., 6., 7., 8.], "{words}");
        assert_eq!(data.observations(1), [10., 11., 12., 13., 14., 15.], "{words}");
        assert_eq!(data.actions(0), ActionSlice::Discrete(&[1, 0]), "{words}");
    }
}

/// As `np.asfortranarray(np.arange(12).reshape(2, 2, 3))` is saved.
#[test]
fn fortran_order_of_more_axes_is_read_as_python_indexes_it() {
    let data: Vec<u8> = [0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11].map(i32::to_le_bytes).concat();
    let observations =
        Npy { name: "observations", descr: "<i4", shape: "(2, 2, 3)".into(), fortran: true, data };
    let (_folder, data) = imported(&[vec![observations, i64s("actions", &[0])]], &ImportConfig::default());
    let expected: Vec<f32> = (0..12_u8).map(f32::from).collect();
    assert_eq!(data.unwrap().observations(0), expected);
}

#[test]
fn own_logs_need_no_labels_and_any_number_type_will_do() {
    let (_folder, data) = imported(&[log()], &ImportConfig::default());
    let data = data.unwrap();
    assert_eq!(
        (data.episodes(), data.transitions(), data.groups()),
        (2, 3, 2),
        "each episode is its own group"
    );
    assert_eq!(data.observations(1), [10., 11., 12., 13., 14., 15.]);
    assert_eq!(data.actions(0), ActionSlice::Discrete(&[1, 0]));
    assert!(data.privileged_context_labels().is_none());
    assert_eq!(data.spec().name, "log0");
    assert_eq!(data.spec().observation[2].name, "obs_2");
    assert_eq!((data.spec().observation[0].low, data.spec().observation[0].high), (0.0, 13.0));
    assert_eq!(data.spec().action.size(), 3, "moves 0 to 2; the 9 that pads is not one");
    assert!(!data.terminated(0), "OGBench's terminals say nothing about the dynamics");
}

#[test]
fn files_can_be_groups_and_names_can_be_given() {
    let config = ImportConfig {
        name: Some("arm".into()),
        dims: Some(vec!["x".into(), "y".into(), "z".into()]),
        ..ImportConfig::default()
    };
    let (_folder, data) = imported(&[log(), log()], &config);
    let data = data.unwrap();
    assert_eq!((data.episodes(), data.groups()), (4, 2));
    assert_eq!(data.group_episodes(1), 2..4);
    assert_eq!((data.spec().name.as_str(), data.spec().observation[1].name.as_str()), ("arm", "y"));
    let dims = Some(vec!["x".into()]);
    refused(
        &[log()],
        &ImportConfig { dims, ..ImportConfig::default() },
        &["1 names of dimensions", "have 3"],
    );
}

#[test]
fn a_column_groups_episodes_and_brings_them_together() {
    let by = |name: &str| ImportConfig { group_by: GroupBy::Column(name.into()), ..ImportConfig::default() };
    let mut first = log();
    first.push(i64s("robot", &[7, 8]));
    let mut second = log();
    second.push(i64s("robot", &[7, 7, 7, 9, 9]));
    let (_folder, data) = imported(&[first, second], &by("robot"));
    let data = data.unwrap();
    // Robots 7, 8, 7, 9 in the order of the logs; those of robot 7 stand together.
    assert_eq!((0..4).map(|episode| data.group(episode)).collect::<Vec<_>>(), [0, 0, 1, 2]);
    assert_eq!((0..4).map(|episode| data.length(episode)).collect::<Vec<_>>(), [2, 2, 1, 1]);

    refused(&[log()], &by("robot"), &["log0.npz: robot: the archive has no such array", "observations"]);
    let mut bad = log();
    bad.push(i64s("robot", &[7, 8, 8, 9, 9]));
    refused(&[bad], &by("robot"), &["robot: changes within episode 0"]);
    let mut bad = log();
    bad.push(i64s("robot", &[7]));
    refused(&[bad], &by("robot"), &["robot: 1 rows, expected one for each of 2 episodes or 5 observations"]);
}

#[test]
fn timeouts_tell_an_ending_from_a_cut_and_next_observations_are_understood() {
    let arrays = || {
        vec![
            f64s("observations", 1, &[0., 1., 5., 6.]),
            f64s("next_observations", 1, &[1., 2., 6., 7.]),
            f64s("actions", 2, &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, -0.8]),
            bools("terminals", &[0, 1, 0, 0]),
            bools("timeouts", &[0, 0, 0, 1]),
        ]
    };
    let (_folder, data) = imported(&[arrays()], &ImportConfig::default());
    let data = data.unwrap();
    assert_eq!((data.observations(0), data.observations(1)), (&[0., 1., 2.][..], &[5., 6., 7.][..]));
    assert!(data.terminated(0) && !data.terminated(1));
    let ActionSpace::Continuous { low, high } = &data.spec().action else {
        panic!("two components are no move")
    };
    assert_eq!((&low[..], &high[..]), (&[-1.0, -1.0][..], &[1.0, 1.0][..]));
    let mut torn = arrays();
    torn[1] = f64s("next_observations", 1, &[1.5, 2., 6., 7.]);
    refused(&[torn], &ImportConfig::default(), &["next_observations: row 0 is not the observation of row 1"]);
}

#[test]
fn offsets_or_nothing_can_say_where_episodes_end() {
    let observations = || f64s("observations", 1, &[0., 1., 2., 5., 6.]);
    let with = |arrays| {
        imported(&[arrays], &ImportConfig::default()).1.map(|data| (data.episodes(), data.transitions()))
    };
    let offsets =
        vec![observations(), f64s("actions", 0, &[1.5, 2., -3.]), i64s("episode_offsets", &[0, 2, 3])];
    assert_eq!(with(offsets).unwrap(), (2, 3));
    let alone = vec![observations(), f64s("actions", 0, &[0.; 4])];
    assert_eq!(with(alone).unwrap(), (1, 4));
    let negative = vec![observations(), f64s("actions", 0, &[0.; 3]), i64s("episode_offsets", &[0, -2, 3])];
    refused(&[negative], &ImportConfig::default(), &["episode_offsets: element 1: -2 is out of range"]);
    let short = vec![observations(), f64s("actions", 0, &[0.; 2]), i64s("episode_offsets", &[0, 2, 3])];
    refused(&[short], &ImportConfig::default(), &["observations: 5 observations and 2 actions do not fit"]);
}

#[test]
fn kinds_of_actions_can_be_forced() {
    let kind = |actions| ImportConfig { actions, ..ImportConfig::default() };
    let (_folder, data) = imported(&[log()], &kind(ActionKind::Continuous));
    assert_eq!(data.unwrap().actions(0), ActionSlice::Continuous { size: 1, values: &[1., 0.] });
    let mut floats = log();
    floats[1] = f64s("actions", 1, &[1., 0., 9., 2., 9.]);
    let (_folder, data) = imported(&[floats], &kind(ActionKind::Discrete));
    assert_eq!(data.unwrap().actions(0), ActionSlice::Discrete(&[1, 0]));
    let mut half = log();
    half[1] = f64s("actions", 1, &[1., 0.5, 9., 2., 9.]);
    refused(&[half], &kind(ActionKind::Discrete), &["actions: element 1: 0.5, expected a whole number"]);
    refused(
        &[log(), {
            let mut other = log();
            other[1] = f64s("actions", 2, &[0.; 10]);
            other
        }],
        &ImportConfig::default(),
        &["log1.npz: actions: episode 0: are of another kind"],
    );
}

#[test]
fn bad_logs_are_refused_with_file_array_and_place() {
    let plain = ImportConfig::default();
    let with = |place: usize, array: Npy| {
        let mut arrays = log();
        arrays[place] = array;
        vec![arrays]
    };
    let mut numbers: Vec<f64> = (0..15).map(f64::from).collect();
    numbers[7] = f64::NAN;
    refused(
        &with(0, f64s("observations", 3, &numbers)),
        &plain,
        &["log0.npz: observations: episode 0: step 2, dimension 1: NaN"],
    );
    numbers[7] = 1e300;
    refused(&with(0, f64s("observations", 3, &numbers)), &plain, &["episode 0: step 2, dimension 1: inf"]);
    refused(
        &with(0, f64s("obs", 3, &[0.; 15])),
        &plain,
        &["log0.npz: observations: the archive has no such array; it has: obs, actions"],
    );
    refused(&with(0, f64s("observations", 3, &[])), &plain, &["observations: is empty"]);
    refused(
        &with(1, i64s("actions", &[1, -1, 0, 0, 0])),
        &plain,
        &["actions: element 1: -1 is out of range"],
    );
    refused(
        &with(1, i64s("actions", &[1, 1 << 20, 0, 0, 0])),
        &plain,
        &["actions: episode 0: move 1048576, expected less than 65536"],
    );
    refused(
        &with(2, f64s("terminals", 0, &[0., 1.])),
        &plain,
        &["terminals: 2 rows of 1, expected one flag for each of 5"],
    );
    refused(
        &with(2, f64s("terminals", 0, &[1., 0., 1., 0., 1.])),
        &plain,
        &["episode 0 has one observation and no transition"],
    );
    let wide = Npy {
        name: "observations",
        descr: "|u1",
        shape: "(5, 100000)".into(),
        fortran: false,
        data: vec![0; 500_000],
    };
    refused(&with(0, wide), &plain, &["observations: 100000 numbers a row, expected at most 65536"]);
}

#[test]
fn hostile_archives_cost_neither_memory_nor_disk() {
    let plain = ImportConfig::default();
    let claim = |shape: &str, data: Vec<u8>| {
        let mut arrays = log();
        arrays[0] = Npy { name: "observations", descr: "<f8", shape: shape.into(), fortran: false, data };
        vec![arrays]
    };
    refused(&claim("(1152921504606846976, 3)", vec![]), &plain, &["observations", "larger than any memory"]);
    refused(
        &claim("(36028797018963968, 3)", vec![]),
        &plain,
        &["observations", "are too many for an archive of"],
    );
    refused(
        &claim("(5, 3)", vec![0; 100]),
        &plain,
        &["observations: holds only 100 bytes, its header promises 120"],
    );
    refused(&claim("(5, 3)", vec![0; 121]), &plain, &["observations: holds more than 120 bytes"]);
    // 3 GB of zeros in 3 MB: within the letter of the format, beyond all measure.
    let folder = tempdir().unwrap();
    let bomb = folder.path().join("bomb.npz");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&bomb).unwrap());
    zip.start_file("observations.npy", zip::write::SimpleFileOptions::default()).unwrap();
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (400000000,), }\n";
    zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
    zip.write_all(&(text.len() as u16).to_le_bytes()).unwrap();
    zip.write_all(text.as_bytes()).unwrap();
    zip.write_all(&vec![0; 1 << 20]).unwrap();
    zip.finish().unwrap();
    let error = import(&[bomb], &plain, "tests", &folder.path().join("data")).unwrap_err().to_string();
    assert!(error.contains("3200000000 bytes are too many"), "{error}");
}

#[test]
fn files_that_are_no_archives_are_refused() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("data");
    let path = folder.path().join("log.npz");
    save(&path, &log());
    let good = std::fs::read(&path).unwrap();
    for bad in [
        &good[..good.len() / 2],
        &good[..10],
        b"",
        b"not a zip file at all, but long enough to look for its end",
    ] {
        std::fs::write(&path, bad).unwrap();
        let error = import(std::slice::from_ref(&path), &ImportConfig::default(), "tests", &out)
            .unwrap_err()
            .to_string();
        assert!(error.contains("log.npz: archive: not a NumPy .npz file"), "{error}");
    }
    let error =
        import(&[folder.path().join("none.npz")], &ImportConfig::default(), "tests", &out).unwrap_err();
    assert!(error.to_string().contains("none.npz: opening the archive"), "{error}");
    let error = import(&[], &ImportConfig::default(), "tests", &out).unwrap_err();
    assert!(error.to_string().contains("no source given"), "{error}");
}

#[test]
fn outputs_that_exist_are_never_overwritten() {
    let folder = tempdir().unwrap();
    let data = Shape::plain().write(&folder.path().join("data"));
    let npz = folder.path().join("data.npz");
    std::fs::write(&npz, "precious").unwrap();
    let error = export_npz(&data, &npz).unwrap_err().to_string();
    assert!(error.contains("data.npz") && error.contains("already exists"), "{error}");
    assert_eq!(std::fs::read(&npz).unwrap(), b"precious");
    export_minari(&data, folder.path(), "a/b-v0").unwrap();
    let error = export_minari(&data, folder.path(), "a/b-v0").unwrap_err().to_string();
    assert!(error.contains("already exists"), "{error}");
    let error = import(&[npz], &ImportConfig::default(), "tests", data.path()).unwrap_err().to_string();
    assert!(error.contains("already exists"), "{error}");
    for id in ["b", "b-v", "../b-v0", "a//b-v0", "a b-v0", ""] {
        let error = export_minari(&data, folder.path(), id).unwrap_err().to_string();
        assert!(error.contains("is no Minari id"), "{error}");
    }
}

#[test]
fn damaged_minari_folders_are_refused_with_file_and_field() {
    let spoil = |change: fn(&Path), expected: &[&str]| {
        let folder = tempdir().unwrap();
        let data = Shape::plain().write(&folder.path().join("data"));
        let exported = export_minari(&data, folder.path(), "b-v0").unwrap();
        change(&exported.join("data"));
        let out = folder.path().join("back");
        let error = import(&[exported], &ImportConfig::default(), "tests", &out).unwrap_err().to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "expected {expected:?} in: {error}");
        assert!(!out.exists());
    };
    spoil(
        |data| std::fs::remove_file(data.join("metadata.json")).unwrap(),
        &["data/metadata.json", "reading"],
    );
    spoil(
        |data| std::fs::write(data.join("metadata.json"), "{}").unwrap(),
        &["metadata.json: data_format: is null"],
    );
    spoil(|data| std::fs::remove_dir_all(data.join("3")).unwrap(), &["data/3", "listing the episode"]);
    spoil(
        |data| std::fs::remove_file(data.join("3/part-0.arrow")).unwrap(),
        &["data/3: episode: there is no .arrow file"],
    );
    spoil(
        |data| {
            let path = data.join("2/part-0.arrow");
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
        },
        &["2/part-0.arrow: episode 2: not an Arrow file"],
    );
}

#[test]
fn labels_that_contradict_the_groups_asked_for_are_refused() {
    let folder = tempdir().unwrap();
    let archive = folder.path().join("data.npz");
    export_npz(&Shape::plain().write(&folder.path().join("data")), &archive).unwrap();
    let by = |group_by| ImportConfig { group_by, ..ImportConfig::default() };
    let sources = [archive];
    let error =
        import(&sources, &by(GroupBy::File), "tests", &folder.path().join("one")).unwrap_err().to_string();
    assert!(error.contains("context_ids: group 0 holds more than one context"), "{error}");
    let apart = import(&sources, &by(GroupBy::Episode), "tests", &folder.path().join("apart")).unwrap();
    assert_eq!((apart.groups(), apart.meta().plan.contexts.len()), (6, 3));
    assert_eq!(apart.meta().plan.contexts[2].about["number"], 2, "descriptions are retained");
}
