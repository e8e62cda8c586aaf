//! How well an expert walks after how much training, and what it is worth to tell it the truth.
//!
//!     cargo run --release --features mujoco --example ant_expert -- [ENV] [UPDATES] [EPISODES]

use std::error::Error;
use std::time::Instant;
use windvane_world::expert::{Config, Expert, train};
use windvane_world::mujoco::Hidden;
use windvane_world::protocol::{Game, Player, rollout};
use windvane_world::registry::{WorldConfig, make};
use windvane_world::{Cmdp, ContextId, Split, rng};

/// Mean return of the paper's task in a context.
fn score(
    world: &dyn Cmdp,
    context: ContextId,
    player: &mut dyn Player,
    episodes: u64,
) -> Result<f32, Box<dyn Error>> {
    let mut sum = 0.0;
    for episode in 0..episodes {
        let task = world.tasks(context)?.remove(0);
        let game = Game { context, task, rng: rng::stream(123, "game", &[context.0, episode]) };
        sum += rollout(world, game, player)?.reward;
    }
    Ok(sum / episodes as f32)
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let env = arguments.next().unwrap_or_else(|| "ant-wind".to_owned());
    let updates = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let episodes = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let world = make(&env, &WorldConfig::default())?;
    let begun = Instant::now();
    let expert: Expert = train(&*world, &Config { seed: 0, updates }, &mut |at| {
        if at.update % 10 == 0 {
            println!(
                "update {:3}  {:4.0} s  reward {:.2}  length {:3.0}  noise {:.2}",
                at.update,
                begun.elapsed().as_secs_f64(),
                at.reward,
                at.length,
                at.noise
            );
        }
    })?;
    println!("trained in {:.0} s", begun.elapsed().as_secs_f64());
    let hidden =
        |context| -> Result<Hidden, Box<dyn Error>> { Ok(serde_json::from_value(world.describe(context)?)?) };
    for split in [Split::Train, Split::Test] {
        let contexts = world.contexts(split);
        let mut means = [0.0; 3];
        for (place, &context) in contexts.iter().enumerate() {
            // Wrong: what would be right half a list farther on.
            let other = contexts[(place + contexts.len() / 2) % contexts.len()];
            let scores = [
                score(&*world, context, &mut expert.player(&hidden(context)?), episodes)?,
                score(&*world, context, &mut expert.told_nothing(), episodes)?,
                score(&*world, context, &mut expert.player(&hidden(other)?), episodes)?,
            ];
            println!(
                "{split} context {:2}: told right {:5.0}, nothing {:5.0}, wrong {:5.0}",
                context.0, scores[0], scores[1], scores[2]
            );
            means.iter_mut().zip(scores).for_each(|(mean, score)| *mean += score / contexts.len() as f32);
        }
        println!("{split} mean: told right {:.0}, nothing {:.0}, wrong {:.0}", means[0], means[1], means[2]);
    }
    Ok(())
}
