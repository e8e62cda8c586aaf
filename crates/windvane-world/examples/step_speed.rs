//! Steps environments on one core, for `bench/worlds/speed.py` to time.
//!
//! `cargo run --release -p windvane-world --example step_speed -- four-rooms 4096 100000000`

use std::process::ExitCode;
use windvane_world::registry::{WorldConfig, make};
use windvane_world::{Cmdp, ContextId, Reward, Split, Start, WorldError, rng};

/// Takes at least `steps` random steps with `count` environments in lockstep, restarts every episode at its goal or
/// horizon, and returns the steps taken and the goals reached.
fn run(name: &str, count: usize, steps: usize) -> Result<[usize; 2], WorldError> {
    let world = make(name, &WorldConfig::default())?;
    let spec = world.spec();
    let contexts: Vec<ContextId> = world.contexts(Split::Train).iter().copied().cycle().take(count).collect();
    let goals =
        contexts.iter().map(|&context| goal(world.as_ref(), context)).collect::<Result<Vec<_>, _>>()?;
    let mut batch = world.batch(&contexts)?;
    let mut rng = rng::stream(0, "benchmark", &[]);
    let mut obs = vec![0.0; count * spec.obs_dim()];
    let mut ages = vec![0; count];
    for (index, obs) in obs.chunks_exact_mut(spec.obs_dim()).enumerate() {
        batch.reset(index, Start::Random, &mut rng, obs);
    }
    // Drawn beforehand, as for every other contender: this measures stepping, not random numbers.
    let mut action = spec.action.buffer();
    let rounds: Vec<_> = (0..(1_usize << 18).div_ceil(count))
        .map(|_| {
            let mut actions = spec.action.actions(count);
            for _ in 0..count {
                spec.action.sample(&mut rng, &mut action);
                actions.push(action.as_action());
            }
            actions
        })
        .collect();
    let mut wins = 0;
    let mut taken = 0;
    for actions in rounds.iter().cycle() {
        if taken >= steps {
            break;
        }
        batch.step(actions, &mut obs)?;
        let (rows, _) = obs.as_chunks_mut::<2>();
        for (index, ((obs, age), (goal, tolerance2))) in
            rows.iter_mut().zip(&mut ages).zip(&goals).enumerate()
        {
            *age += 1;
            let apart = [obs[0] - goal[0], obs[1] - goal[1]];
            let reached = apart[0] * apart[0] + apart[1] * apart[1] <= *tolerance2;
            if reached || *age == spec.horizon {
                wins += usize::from(reached);
                *age = 0;
                batch.reset(index, Start::Random, &mut rng, obs);
            }
        }
        taken += count;
    }
    Ok([taken, wins])
}

/// The first goal of a context and the square of its tolerance.
fn goal(world: &dyn Cmdp, context: ContextId) -> Result<([f32; 2], f32), WorldError> {
    match world.tasks(context)?.swap_remove(0).reward {
        Reward::Goal { goal, tolerance } => Ok(([goal[0], goal[1]], tolerance * tolerance)),
        other => Err(WorldError::Invalid(format!("expected a goal, not {other:?}"))),
    }
}

// An example has nothing but the terminal to talk to.
#[allow(clippy::print_stdout, clippy::print_stderr)]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &arguments[..] {
        [name, count, steps] => count.parse().ok().zip(steps.parse().ok()).map(|sizes| (name, sizes)),
        _ => None,
    };
    let Some((name, (count, steps))) = parsed else {
        eprintln!("usage: step_speed ENV ENVIRONMENTS STEPS");
        return ExitCode::FAILURE;
    };
    match run(name, count, steps) {
        Ok([taken, wins]) => {
            println!("{{\"steps\": {taken}, \"goals\": {wins}}}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
