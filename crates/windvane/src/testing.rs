//! Tiny real data sets for tests.

use crate::data::{EncoderConfig, StateKind, StateTable};
use std::sync::Arc;
use windvane_world::collect::{BehaviourPolicy, CollectConfig, collect};
use windvane_world::episodes::Episodes;
use windvane_world::grid::ACTIONS;
use windvane_world::registry::{WorldConfig, make};
use windvane_world::{Cmdp, Split, Start};

/// An environment and random episodes of it.
pub(crate) fn collected(env: &str, contexts: usize, episodes: usize) -> (Box<dyn Cmdp>, Episodes) {
    let world = make(env, &WorldConfig { seed: 3, train: Some(contexts), test: Some(2) }).unwrap();
    let config = CollectConfig {
        contexts: world.contexts(Split::Train).to_vec(),
        episodes,
        length: world.spec().horizon.min(100),
        start: Start::Random,
        seed: 3,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let data = collect(&*world, &BehaviourPolicy::Uniform, &config, "test", &path, &|_| ()).unwrap();
    (world, data)
}

/// An environment and the table of its states.
pub(crate) fn tabled(env: &str, contexts: usize, episodes: usize) -> (Box<dyn Cmdp>, Arc<StateTable>) {
    let (world, data) = collected(env, contexts, episodes);
    let table = Arc::new(StateTable::of(&data, &EncoderConfig::default(), 0.0).unwrap());
    (world, table)
}

/// The cell of each state.
pub(crate) fn cells(world: &dyn Cmdp, table: &StateTable) -> Vec<usize> {
    let mut obs = vec![0.0; world.spec().obs_dim()];
    let cell = |state: usize| {
        table.write_state(state, &mut obs);
        world.spec().state_of(&obs).unwrap()
    };
    (0..table.states()).map(cell).collect()
}

/// The true dynamics of the first training context, as a belief that knows them would decode them.
pub(crate) fn truth(world: &dyn Cmdp, table: &StateTable) -> Vec<f32> {
    let layout = world.grid().unwrap().layout(world.contexts(Split::Train)[0]).unwrap();
    let cells = cells(world, table);
    let p = |token: usize| {
        let pair = token / table.width();
        let real = token % table.width() < table.outcomes(pair).len();
        let next = cells[table.successors()[token] as usize];
        f32::from(u8::from(real && layout.step(cells[pair / ACTIONS], pair % ACTIONS) == next))
    };
    (0..table.vocabulary()).map(p).collect()
}

/// The settings of encoded observations.
pub(crate) fn observed() -> EncoderConfig {
    EncoderConfig { states: StateKind::Observations, ..EncoderConfig::default() }
}
