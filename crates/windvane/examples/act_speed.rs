//! How long an exported agent takes for one action and for one refresh of its belief, on one core:
//!
//! ```sh
//! cargo run --release --example act_speed -- models/cart
//! ```
#![allow(clippy::print_stdout)] // it is here to print

use std::time::Instant;
use windvane::device::Threads;
use windvane::{Agent, LearnError};
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Prompt, Rng};

/// Repetitions of each measurement; the median counts.
const TIMES: usize = 2000;
/// Steps of the context.
const CONTEXT: usize = 100;

fn main() -> Result<(), LearnError> {
    let path = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    Threads::new(1)?.run(|| measure(&path))
}

fn measure(path: &str) -> Result<(), LearnError> {
    let agent = Agent::load(path)?;
    let spec = agent.spec().clone();
    let mut rng = stream(0, "speed", &[]);
    let observations = (0..=CONTEXT).flat_map(|_| anywhere(&spec, &mut rng)).collect();
    let (mut actions, mut action) = (spec.action.actions(CONTEXT), spec.action.buffer());
    for _ in 0..CONTEXT {
        spec.action.sample(&mut rng, &mut action);
        actions.push(action.as_action());
    }
    let context = Trajectory::new(&spec, observations, actions)?;
    let goal = anywhere(&spec, &mut rng);
    // On listed states a belief costs the same whatever was seen.
    let belief =
        median(&vec![Vec::new(); 200], |_| agent.adapt(&[]).map(|adapted| drop(adapted.confidence())))?;
    let mut session = agent.adapt(&[context])?.task(&Prompt::goal(&goal))?.online();
    let places: Vec<Vec<f32>> = (0..TIMES).map(|_| anywhere(&spec, &mut rng)).collect();
    let act = median(&places, |obs| {
        session.restart();
        session.act(obs).map(drop)
    })?;
    let refresh = median(&places[..200], |_| {
        session.refresh();
        Ok(())
    })?;
    println!("one action: {act:.1} us");
    println!("a belief of nothing: {belief:.0} us");
    println!("a refresh of the belief and all that follows from it: {refresh:.0} us");
    Ok(())
}

/// An observation drawn uniformly.
fn anywhere(spec: &windvane_world::EnvSpec, rng: &mut Rng) -> Vec<f32> {
    use rand::RngExt as _;
    let draw = |dim: &windvane_world::Dim| {
        let x = rng.random_range(dim.low..=dim.high);
        if dim.integer { x.round() } else { x }
    };
    spec.observation.iter().map(draw).collect()
}

/// The median time of `work`, in microseconds.
fn median(
    places: &[Vec<f32>],
    mut work: impl FnMut(&[f32]) -> Result<(), LearnError>,
) -> Result<f64, LearnError> {
    let mut times = Vec::with_capacity(places.len());
    for place in places {
        let start = Instant::now();
        work(place)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
