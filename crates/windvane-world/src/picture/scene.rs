//! A world as it looks at one moment.

use super::Picture;
use super::ant;
use super::colour::{CATEGORIES, Ink};
use super::legend::Mark;
use super::maze::Maze;
use super::svg::{Rect, Style, Svg};
use crate::env::{Cmdp, ContextId};
use crate::error::WorldError;

/// Length of a side.
const SIDE: f64 = 240.0;
/// The length of the longest pendulum, as a share of half a side.
const REACH: f64 = 0.8;
/// The longest pendulum there is, in metres.
const LONGEST: f64 = 1.3;

/// Draws the context of a world with its body at `obs`: for people, because it shows what is hidden from agents.
pub fn scene(world: &dyn Cmdp, context: ContextId, obs: &[f32]) -> Result<Picture, WorldError> {
    let about = world.describe(context)?;
    let mut svg = Svg::new(SIDE, SIDE);
    let all = Rect { x: 0.0, y: 0.0, width: SIDE, height: SIDE };
    svg.rect(all, &Style::fill(Ink::PAPER));
    match (Maze::from_description(&about), obs) {
        (Some(maze), &[x, y, ..]) => {
            maze.draw_grid(&mut svg, all);
            maze.draw_walls(&mut svg, all);
            maze.draw_marks(&mut svg, all);
            let radius = 0.32 * maze.unit(all);
            Mark::Dot(CATEGORIES[2]).draw(&mut svg, maze.at(all, f64::from(x), f64::from(y)), radius);
        }
        (None, &[cos, sin, _]) if about["kind"] == "pendulum" => {
            let length = about["length"].as_f64().unwrap_or(1.0) / LONGEST * REACH * SIDE / 2.0;
            let middle = (SIDE / 2.0, SIDE / 2.0);
            // Upright is up: the angle is counted from there.
            let tip = (middle.0 + length * f64::from(sin), middle.1 - length * f64::from(cos));
            svg.line(middle, tip, &Style::line(CATEGORIES[2], 9.0));
            Mark::Dot(Ink::WALL).draw(&mut svg, middle, 6.0);
        }
        (None, obs) if about["kind"] == "ant" && ant::draw(&mut svg, SIDE, &about, obs) => {}
        _ => {
            let name = &world.spec().name;
            return Err(WorldError::Invalid(format!("{name}: there is no picture of it")));
        }
    }
    Ok(svg.finish())
}

#[cfg(test)]
mod tests {
    use super::scene;
    use crate::registry::{WORLDS, WorldConfig, make};
    use crate::rng::stream;
    use crate::{Split, Start};

    #[test]
    fn a_scene_shows_where_the_body_is() {
        for entry in WORLDS {
            let (name, world) = (entry.name, make(entry.name, &WorldConfig::default()).unwrap());
            let context = world.contexts(Split::Test)[0];
            let mut env = world.instantiate(context).unwrap();
            let mut looks = [1, 2].map(|seed| {
                let mut obs = vec![0.0; world.spec().obs_dim()];
                env.reset(Start::Random, &mut stream(seed, "scene", &[]), &mut obs).unwrap();
                scene(&*world, context, &obs).unwrap().rgb(1.0).unwrap()
            });
            assert_eq!(looks[0].0, [240, 240], "{name}");
            assert_ne!(looks[0].1, looks[1].1, "{name}");
            looks.iter_mut().for_each(|(_, rgb)| assert_eq!(rgb.len(), 240 * 240 * 3));
        }
    }
}
