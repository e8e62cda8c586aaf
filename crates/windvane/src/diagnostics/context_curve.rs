//! How much context is enough: success of a frozen belief against the steps that were explored before, at random and on
//! purpose.

use crate::agent::Agent;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, evaluate_after, explore, success, trajectory_of};
use serde::{Deserialize, Serialize};
use windvane_world::picture::{Axes, CATEGORIES, Margins, Mark, Picture, Sheet, Style, legend};
use windvane_world::rng::stream;
use windvane_world::{Cmdp, Split};

/// Who explores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Explore {
    /// The policy that the run takes its contexts by.
    Random,
    /// The agent's own explorer, who goes where the belief is least sure.
    Belief,
}

/// One point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Who explored.
    pub explore: Explore,
    /// For how many steps.
    pub steps: usize,
    /// The share of episodes that reached their goal afterwards, the belief being frozen.
    pub success: f64,
    /// Its standard error.
    pub error: f64,
    /// Number of episodes.
    pub episodes: usize,
}

/// Success after each of `steps` steps of exploration.
pub fn curve(
    world: &dyn Cmdp,
    agent: &Agent,
    split: Split,
    explorers: &[Explore],
    steps: &[usize],
    eval: &EvalConfig,
    seed: u64,
) -> Result<Vec<Point>, LearnError> {
    let mut points = Vec::new();
    for &who in explorers {
        for &steps in steps {
            let config = EvalConfig { context_steps: steps, ..*eval };
            let trajectory = |context, round| {
                if who == Explore::Random {
                    return explore(world, context, &config, seed, round);
                }
                let mut actor = agent.explorer().ok_or_else(|| LearnError::Config {
                    origin: "exploring by belief".into(),
                    problem:
                        "this agent has no belief; expected a method that conditions on one (bfb or rfb)"
                            .into(),
                })?;
                let mut rng = stream(seed, "context", &[context.0, round]);
                trajectory_of(&mut *actor, &mut *world.instantiate(context)?, world, &config, &mut rng)
            };
            let (rows, _) =
                evaluate_after(world, agent, split, BeliefMode::Frozen, &config, seed, trajectory)?;
            let (share, episodes) = (success(&rows), rows.len());
            let error = (share * (1.0 - share) / episodes.max(1) as f64).sqrt();
            points.push(Point { explore: who, steps, success: share, error, episodes });
        }
    }
    Ok(points)
}

/// The curves as a figure, with a band of one standard error.
pub fn figure(points: &[Point], title: &str, subtitle: &str) -> Picture {
    let margins = Margins { left: 56.0, bottom: 80.0, ..Margins::default() };
    let sheet = Sheet::new(1, 1, (460.0, 300.0), (0.0, 0.0), margins);
    let mut svg = sheet.begin(title, subtitle);
    let most = points.iter().map(|point| point.steps).max().unwrap_or(1).max(1);
    let axes = Axes::new(sheet.panel(0), (0.0, most as f64), (0.0, 1.0));
    axes.draw(&mut svg);
    let names = [(Explore::Random, "at random"), (Explore::Belief, "where the belief is least sure")];
    let mut entries = Vec::new();
    for ((who, name), colour) in names.into_iter().zip(CATEGORIES) {
        let of_this: Vec<&Point> = points.iter().filter(|point| point.explore == who).collect();
        if of_this.is_empty() {
            continue;
        }
        let at = |point: &Point, by: f64| {
            axes.at(point.steps as f64, (point.success + by * point.error).clamp(0.0, 1.0))
        };
        let above = of_this.iter().map(|point| at(point, 1.0));
        let below = of_this.iter().rev().map(|point| at(point, -1.0));
        svg.polygon(above.chain(below), &Style::fill(colour).opacity(0.15));
        svg.polyline(of_this.iter().map(|point| at(point, 0.0)), &Style::line(colour, 1.8));
        of_this.iter().for_each(|point| Mark::Dot(colour).draw(&mut svg, at(point, 0.0), 3.0));
        entries.push((Mark::Dot(colour), name));
    }
    axes.frame(&mut svg);
    axes.label(&mut svg, "steps of exploration", "success, belief frozen");
    let area = sheet.area();
    legend(&mut svg, (area.x, area.y + area.height + 62.0), &entries);
    svg.finish()
}
