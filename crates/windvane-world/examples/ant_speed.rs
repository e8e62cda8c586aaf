//! Steps ants one after the other on one core, for `bench/worlds/ant.py` to time.
//!
//!     cargo run --release -p windvane-world --features mujoco --example ant_speed -- STEPS

use std::error::Error;
use windvane_world::registry::{WorldConfig, make};
use windvane_world::{ContextId, Start, rng};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let steps: usize = std::env::args().nth(1).ok_or("usage: ant_speed STEPS")?.parse()?;
    let world = make("ant-fault", &WorldConfig::default())?;
    let spec = world.spec();
    let mut ants = (0..8).map(|_| world.instantiate(ContextId(0))).collect::<Result<Vec<_>, _>>()?;
    let mut rng = rng::stream(0, "benchmark", &[]);
    let mut obs = vec![0.0; spec.obs_dim()];
    let mut action = spec.action.buffer();
    for ant in &mut ants {
        ant.reset(Start::Fixed, &mut rng, &mut obs)?;
    }
    let mut falls = 0;
    for step in 0..steps {
        let count = ants.len();
        let ant = &mut ants[step % count];
        spec.action.sample(&mut rng, &mut action);
        if ant.step(action.as_action(), &mut obs)?.terminated {
            falls += 1;
            ant.reset(Start::Fixed, &mut rng, &mut obs)?;
        }
    }
    println!("{{\"steps\": {steps}, \"falls\": {falls}}}");
    Ok(())
}
