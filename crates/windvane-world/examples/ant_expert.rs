//! How well an expert walks after how much training, and how much it gains from knowing the context.
//!
//!     cargo run --release --features mujoco --example ant_expert -- [ENV] [UPDATES] [EPISODES] [LEARNER] [FILE]
//!
//! LEARNER is ppo, sac (on torques) or sac-targets (on joint targets). The expert is saved in FILE, and
//! loaded from there if it exists.

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use windvane_world::collect::Learner;
use windvane_world::expert::{Config, Expert, train};
use windvane_world::mujoco::{Ant, AntModel, Hidden, Integrator, MOTORS, POSTURE};
use windvane_world::protocol::{EvalEpisode, Policy, rollout};
use windvane_world::registry::{WorldConfig, make};
use windvane_world::{ActionBuf, Cmdp, ContextId, Split, rng};

/// Mean return of the paper's task in a context.
fn score(
    world: &dyn Cmdp,
    context: ContextId,
    policy: &mut dyn Policy,
    episodes: u64,
) -> Result<f32, Box<dyn Error>> {
    let mut sum = 0.0;
    for episode in 0..episodes {
        let task = world.tasks(context)?.remove(0);
        let episode = EvalEpisode { context, task, rng: rng::stream(123, "episode", &[context.0, episode]) };
        sum += rollout(world, episode, policy)?.reward;
    }
    Ok(sum / episodes as f32)
}

/// Mean return in a context as `Ant-v5` counts it: by the mean velocity over a step, not that at its end.
fn ant_v5(
    model: &AntModel,
    hidden: &Hidden,
    policy: &mut dyn Policy,
    episodes: u64,
) -> Result<f64, Box<dyn Error>> {
    let mut ant = Ant::new(model, hidden.air(), Integrator::RungeKutta)?;
    let mut obs = [0.0; POSTURE];
    let mut action = ActionBuf::Continuous(vec![0.0; MOTORS]);
    let mut sum = 0.0;
    for episode in 0..episodes {
        let mut rng = rng::stream(123, "walk", &[episode]);
        ant.reset(&mut rng);
        for _ in 0..256 {
            ant.observe(&mut obs);
            policy.act(&obs, &mut rng, &mut action);
            let ActionBuf::Continuous(commands) = &action else { unreachable!("ants have motors") };
            let commands = std::array::from_fn(|motor| f64::from(commands[motor]));
            let measured = ant.step(hidden.gears.torques(commands))?;
            sum += measured.reward();
            if !measured.healthy {
                break;
            }
        }
    }
    Ok(sum / episodes as f64)
}

/// CPU-seconds of this thread, where the system tells; else seconds since `begun`.
fn cpu_seconds(begun: Instant) -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = schedstat.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or(begun.elapsed().as_secs_f64(), |n| n * 1e-9)
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let env = arguments.next().unwrap_or_else(|| "ant-wind".to_owned());
    let updates = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let episodes = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let learner = arguments.next().map_or(Ok(Learner::Ppo), |text| text.parse())?;
    let world = make(&env, &WorldConfig::default())?;
    let model = AntModel::load()?;
    let begun = Instant::now();
    let mut times = vec![0.0; updates + 1];
    let mut learn = || {
        train(&*world, &Config { seed: 0, updates, learner }, &mut |at| {
            times[at.update] = cpu_seconds(begun);
            if at.update % 10 == 0 {
                println!(
                    "update {:3}  {:4.0} CPU-s  reward {:.2}  length {:3.0}  noise {:.2}",
                    at.update, times[at.update], at.reward, at.length, at.noise
                );
            }
        })
    };
    let expert = match arguments.next() {
        Some(file) if Path::new(&file).exists() => Expert::load(Path::new(&file))?,
        Some(file) => {
            let expert = learn()?;
            expert.save(Path::new(&file))?;
            expert
        }
        None => learn()?,
    };
    println!("trained in {:.0} s", begun.elapsed().as_secs_f64());
    let hidden =
        |context| -> Result<Hidden, Box<dyn Error>> { Ok(serde_json::from_value(world.describe(context)?)?) };
    for (share, stage) in expert.stages() {
        let contexts = world.contexts(Split::Train);
        let mut mean = 0.0;
        for &context in contexts {
            mean += score(&*world, context, &mut stage.policy(&hidden(context)?), episodes)?;
        }
        let time = times[(share * updates as f32).ceil() as usize];
        println!("after {time:.0} CPU-s: mean return {:.0}", mean / contexts.len() as f32);
    }
    for split in [Split::Train, Split::Test] {
        let contexts = world.contexts(split);
        let mut means = [0.0; 3];
        let mut counted = 0.0;
        for (place, &context) in contexts.iter().enumerate() {
            // Wrong: what would be right half a list farther on.
            let other = contexts[(place + contexts.len() / 2) % contexts.len()];
            let scores = [
                score(&*world, context, &mut expert.policy(&hidden(context)?), episodes)?,
                score(&*world, context, &mut expert.told_nothing(), episodes)?,
                score(&*world, context, &mut expert.policy(&hidden(other)?), episodes)?,
            ];
            println!(
                "{split} context {:2}: given the context {:5.0}, nothing {:5.0}, wrong {:5.0}",
                context.0, scores[0], scores[1], scores[2]
            );
            counted += ant_v5(&model, &hidden(context)?, &mut expert.policy(&hidden(context)?), episodes)?;
            means.iter_mut().zip(scores).for_each(|(mean, score)| *mean += score / contexts.len() as f32);
        }
        let counted = counted / contexts.len() as f64;
        println!(
            "{split} mean: given the context {:.0} (as Ant-v5 counts: {counted:.0}), nothing {:.0}, wrong {:.0}",
            means[0], means[1], means[2]
        );
    }
    Ok(())
}
