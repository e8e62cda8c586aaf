//! Drawing from data sets.

use crate::synth::Shape;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tempfile::tempdir;
use windvane_world::episodes::{Episodes, Window};
use windvane_world::rng::stream;
use windvane_world::{Action, Rng};

/// Whether row `row` of a batch is a true transition of the episode it names.
fn is_transition(data: &Episodes, batch: &windvane_world::episodes::Batch, row: usize) -> bool {
    let dims = data.spec().obs_dim();
    let state = &batch.observations[row * dims..(row + 1) * dims];
    let next = &batch.next_observations[row * dims..(row + 1) * dims];
    let episode = (state[0] / 1000.0) as usize;
    let step = (state[0] % 1000.0) as usize;
    let rows = data.observations(episode);
    let same_action = match (batch.actions.get(row), data.actions(episode).get(step)) {
        (Action::Discrete(a), Action::Discrete(b)) => a == b,
        (Action::Continuous(a), Action::Continuous(b)) => a == b,
        _ => false,
    };
    let last = step + 1 == data.length(episode);
    episode == batch.episodes[row] as usize
        && state == &rows[step * dims..(step + 1) * dims]
        && next == &rows[(step + 1) * dims..(step + 2) * dims]
        && same_action
        && batch.terminated[row] == (last && data.terminated(episode))
}

fn draw_windows(
    data: &Episodes,
    n: usize,
    draw: impl Fn(&mut Rng) -> Option<Window>,
) -> BTreeMap<(usize, usize), u32> {
    let mut rng = stream(1, "windows", &[]);
    let mut counts = BTreeMap::new();
    for _ in 0..20_000 {
        if let Some(window) = draw(&mut rng) {
            assert!(window.start + n <= data.length(window.episode));
            *counts.entry((window.episode, window.start)).or_default() += 1;
        }
    }
    counts
}

/// Whether all counts are what a uniform draw may give (six deviations).
fn is_uniform(counts: &BTreeMap<(usize, usize), u32>, places: usize) -> bool {
    let mean = f64::from(counts.values().sum::<u32>()) / places as f64;
    counts.len() == places
        && counts.values().all(|&count| (f64::from(count) - mean).abs() < 6.0 * mean.sqrt())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sampled_rows_are_transitions_and_windows_never_cross_an_episode(shape in Shape::any(), n in 1..13_usize, seed: u64) {
        let folder = tempdir().unwrap();
        let data = shape.write(&folder.path().join("data"));
        let mut rng = stream(seed, "test", &[]);
        let mut batch = data.batch(16);
        data.sample_batch(&mut rng, 16, &mut batch);
        prop_assert_eq!(batch.rows(), 16);
        for row in 0..batch.rows() {
            prop_assert!(is_transition(&data, &batch, row), "row {} of {:?}", row, batch);
        }
        let possible = (0..data.episodes()).any(|episode| data.length(episode) >= n);
        let window = data.sample_window(&mut rng, n);
        prop_assert_eq!(window.is_some(), possible);
        if let Some(window) = window {
            data.fill_windows(&[window, window], n, &mut batch);
            prop_assert_eq!(batch.rows(), 2 * n);
            for row in 0..batch.rows() {
                prop_assert!(is_transition(&data, &batch, row));
                prop_assert_eq!(batch.episodes[row] as usize, window.episode);
                let step = (batch.observations[row * shape.dims] % 1000.0) as usize;
                prop_assert_eq!(step, window.start + row % n, "consecutive steps");
            }
        }
    }

    #[test]
    fn siblings_are_other_episodes_of_the_same_group(shape in Shape::any(), n in 1..6_usize, seed: u64) {
        let folder = tempdir().unwrap();
        let data = shape.write(&folder.path().join("data"));
        let mut rng = stream(seed, "test", &[]);
        for episode in 0..data.episodes() {
            let siblings = data.group_episodes(data.group(episode));
            prop_assert!(siblings.contains(&episode));
            let possible = siblings.clone().any(|other| other != episode && data.length(other) >= n);
            let found = data.sample_sibling_window(&mut rng, episode, n);
            prop_assert_eq!(found.is_some(), possible);
            if let Some(window) = found {
                prop_assert!(window.episode != episode && siblings.contains(&window.episode));
            }
            let within = data.sample_group_window(&mut rng, data.group(episode), 1).unwrap();
            prop_assert!(siblings.contains(&within.episode));
        }
    }
}

#[test]
fn every_window_and_every_transition_is_equally_likely() {
    let folder = tempdir().unwrap();
    let data = Shape::plain().write(&folder.path().join("data"));
    // Lengths 5, 3, 1, 7, 2, 4: windows of 3 begin at 3 + 1 + 5 + 2 places.
    let counts = draw_windows(&data, 3, |rng| data.sample_window(rng, 3));
    assert!(is_uniform(&counts, 11), "{counts:?}");
    // Of the last group, without the episode of length 7: none of 2, and 2 of 4.
    let counts = draw_windows(&data, 3, |rng| data.sample_sibling_window(rng, 3, 3));
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [(5, 0), (5, 1)]);
    assert!(is_uniform(&counts, 2), "{counts:?}");

    let mut batch = data.batch(0);
    let mut counts = BTreeMap::new();
    data.sample_batch(&mut stream(0, "test", &[]), 22_000, &mut batch);
    for row in 0..batch.rows() {
        let state = batch.observations[2 * row];
        *counts.entry((batch.episodes[row] as usize, (state % 1000.0) as usize)).or_default() += 1;
    }
    assert!(is_uniform(&counts, 22), "{counts:?}");
}

#[test]
fn a_rare_window_among_many_short_episodes_is_found() {
    let folder = tempdir().unwrap();
    let mut lengths = vec![1; 900];
    lengths[234] = 9;
    let shape = Shape { groups: vec![lengths], ..Shape::plain() };
    let data = shape.write(&folder.path().join("data"));
    let counts = draw_windows(&data, 8, |rng| data.sample_window(rng, 8));
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [(234, 0), (234, 1)]);
    assert!(is_uniform(&counts, 2), "{counts:?}");
    assert_eq!(data.sample_window(&mut stream(0, "test", &[]), 10), None);
    assert_eq!(data.sample_window(&mut stream(0, "test", &[]), 0), None);
}

#[test]
fn the_same_stream_draws_the_same_batch() {
    let folder = tempdir().unwrap();
    let data = Shape::plain().write(&folder.path().join("data"));
    let draw = |seed| {
        let mut batch = data.batch(8);
        data.sample_batch(&mut stream(seed, "test", &[]), 8, &mut batch);
        batch
    };
    assert_eq!(draw(0), draw(0));
    assert_ne!(draw(0), draw(1));
}
