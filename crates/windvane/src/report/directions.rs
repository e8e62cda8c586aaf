//! The interference figure: task vectors at one state, coloured by the greedy move, in one layout, in another, and where both
//! are taken for one.
//!
//! The first row is exact: for every reward the best move is computed in the first layout, in the second, and on the mean of
//! both, which is what a model that cannot tell them apart learns from. The other rows are trained agents after a trajectory in the
//! first layout, after one in the second, and after none.

use super::cones::arrow;
use super::plane::Plane;
use crate::agent::Agent;
use crate::error::LearnError;
use crate::eval::{EvalConfig, explore};
use crate::latent;
use crate::planner::Planner;
use crate::planner::graph::argmax;
use crate::run::Run;
use windvane_world::grid::{
    ACTIONS, Dynamics, GridWorld, Layout, MOVES, Objective, Plan, distances, optimal_moves,
};
use windvane_world::picture::{
    Anchor, CATEGORIES, Ink, Margins, Mark, Picture, Sheet, Style, Svg, TextStyle, legend,
};
use windvane_world::rng::stream;
use windvane_world::{Cmdp, ContextId, Reward, Split};

/// Discount of the exact rows, that of the grids' presets.
const GAMMA: f64 = 0.95;
/// Steps of a trajectory that shows nearly everything.
const LONG: usize = 2000;
/// Other training contexts that are searched for the one that contradicts the first most.
const CANDIDATES: usize = 24;

/// Two layouts and a state whose best moves contradict each other.
struct Conflict {
    contexts: [ContextId; 2],
    layouts: [Layout; 2],
    cell: usize,
    /// Goals free in both, besides the state itself.
    goals: Vec<usize>,
}

/// Greedy moves of task vectors in one panel.
struct Panel {
    title: String,
    /// The move of each task vector; goals come first, in the order of [`Conflict::goals`].
    moves: Vec<usize>,
}

/// Draws the figure.
pub fn draw(
    world: &dyn Cmdp,
    grid: &GridWorld,
    run: &Run,
    agents: &[(&'static str, &Agent)],
) -> Result<Picture, LearnError> {
    let conflict = conflict(world, grid)?;
    let mut rows = vec![exact(&conflict, run.seed)];
    for (title, agent) in agents {
        rows.push(learned(world, &conflict, run, title, agent)?);
    }
    let sheet = Sheet::new(
        rows.len() * 3,
        3,
        (200.0, 200.0),
        (30.0, 34.0),
        Margins { bottom: 56.0, ..Margins::default() },
    );
    let [x, y] =
        [conflict.cell % conflict.layouts[0].side() + 1, conflict.cell / conflict.layouts[0].side() + 1];
    let about = format!(
        "{}, state ({x}, {y}): goals and as many random task vectors, coloured by the greedy move there",
        run.plan.env
    );
    let mut svg = sheet.begin("Interference among task vectors", &about);
    for (row, (vectors, panels)) in rows.iter().enumerate() {
        let plane = Plane::of(&class_means(vectors, panels));
        for (column, panel) in panels.iter().enumerate() {
            let index = row * 3 + column;
            sheet.panel_title(&mut svg, index, &panel.title);
            draw_panel(&mut svg, &sheet, index, &plane, vectors, panel, &conflict);
        }
    }
    let area = sheet.area();
    let entries: Vec<(Mark, &str)> =
        MOVES.iter().enumerate().map(|(a, name)| (Mark::Dot(CATEGORIES[a]), *name)).collect();
    legend(&mut svg, (area.x, area.y + area.height + 52.0), &entries);
    Ok(svg.finish())
}

/// The second layout and the state for which shortest ways to most goals begin with one move here and another there.
fn conflict(world: &dyn Cmdp, grid: &GridWorld) -> Result<Conflict, LearnError> {
    let contexts = world.contexts(Split::Train);
    let mut best: Option<(usize, Conflict)> = None;
    for &other in contexts.iter().skip(1).take(CANDIDATES) {
        let layouts = [*grid.layout(contexts[0])?, *grid.layout(other)?];
        let free = |cell: &usize| layouts.iter().all(|layout| layout.is_free(*cell));
        let both: Vec<usize> = layouts[0].free_cells().filter(free).collect();
        let far: Vec<[Vec<u16>; 2]> =
            both.iter().map(|&goal| [distances(&layouts[0], goal), distances(&layouts[1], goal)]).collect();
        for &cell in &both {
            // Goals whose best moves have nothing in common.
            let split = both.iter().zip(&far).filter(|(goal, far)| {
                **goal != cell
                    && optimal_moves(&layouts[0], &far[0], cell) & optimal_moves(&layouts[1], &far[1], cell)
                        == 0
            });
            let count = split.count();
            if best.as_ref().is_none_or(|(most, _)| count > *most) {
                let goals = both.iter().copied().filter(|&goal| goal != cell).collect();
                best = Some((count, Conflict { contexts: [contexts[0], other], layouts, cell, goals }));
            }
        }
    }
    best.map(|(_, conflict)| conflict).ok_or_else(|| LearnError::Config {
        origin: "figure directions".into(),
        problem: "needs at least two training layouts".into(),
    })
}

/// Task vectors (goals, then random ones) and three panels of moves.
type RowOf = (Vec<Vec<f32>>, [Panel; 3]);

/// The exact row: a task vector is the reward of every cell.
fn exact(conflict: &Conflict, seed: u64) -> RowOf {
    let cells = conflict.layouts[0].cells();
    let mut vectors: Vec<Vec<f32>> = Vec::new();
    for &goal in &conflict.goals {
        let mut z = vec![0.0; cells];
        z[goal] = (cells as f32).sqrt();
        vectors.push(z);
    }
    let mut rng = stream(seed, "directions", &[]);
    for _ in 0..conflict.goals.len() {
        let mut z = vec![0.0; cells];
        latent::uniform(&mut rng, &mut z);
        vectors.push(z);
    }
    let [one, other] = conflict.layouts.map(|layout| Dynamics::of(&layout));
    let mean = one.success().iter().zip(other.success()).map(|(a, b)| f64::midpoint(*a, *b)).collect();
    // Both sides have the outer wall, so the mean has it too.
    let mixed = Dynamics::new(one.side(), mean).unwrap_or_else(|_| one.clone());
    let panel = |title: &str, dynamics: &Dynamics| {
        let best = |z: &Vec<f32>| {
            let reward = z.iter().map(|x| f64::from(*x)).collect();
            Plan::solve(dynamics, &Objective::Collect(reward), GAMMA).best(conflict.cell)
        };
        Panel { title: title.to_owned(), moves: vectors.iter().map(best).collect() }
    };
    let panels = [
        panel("exact: layout 1", &one),
        panel("exact: layout 2", &other),
        panel("exact: both as one", &mixed),
    ];
    (vectors, panels)
}

/// The row of a trained agent.
fn learned(
    world: &dyn Cmdp,
    conflict: &Conflict,
    run: &Run,
    title: &str,
    agent: &Agent,
) -> Result<RowOf, LearnError> {
    let dim = agent.dim();
    let obs = |cell: usize| {
        let mut obs = vec![0.0; world.spec().obs_dim()];
        world.spec().write_state(cell, &mut obs);
        obs
    };
    let goal = |&cell: &usize| agent.task(&Reward::Goal { goal: obs(cell), tolerance: 0.5 });
    let mut vectors: Vec<Vec<f32>> = conflict.goals.iter().map(goal).collect();
    let mut rng = stream(run.seed, "directions", &[]);
    for _ in 0..conflict.goals.len() {
        let mut z = vec![0.0; dim];
        latent::uniform(&mut rng, &mut z);
        vectors.push(z);
    }
    let state = agent.table().map_or(0, |table| table.nearest(&obs(conflict.cell)));
    let panel = |title: String, context: ContextId, steps: usize| -> Result<Panel, LearnError> {
        let config = EvalConfig { context_steps: steps, ..run.plan.eval };
        let trajectory = explore(world, context, &config, run.seed, 0)?;
        let moves = vectors.iter().map(|z| {
            let q = agent.q_table(context, &trajectory, z, Planner::None).unwrap_or_default();
            q.get(state * ACTIONS..(state + 1) * ACTIONS).map_or(0, argmax)
        });
        Ok(Panel { title, moves: moves.collect() })
    };
    let [one, other] = conflict.contexts;
    let panels = [
        panel(format!("{title}: after a trajectory in layout 1"), one, LONG)?,
        panel(format!("{title}: after a trajectory in layout 2"), other, LONG)?,
        panel(format!("{title}: after no trajectory"), one, 0)?,
    ];
    Ok((vectors, panels))
}

/// The mean task vector of every move in each of the first two panels: the plane through them tells moves apart.
fn class_means(vectors: &[Vec<f32>], panels: &[Panel; 3]) -> Vec<Vec<f32>> {
    let mut means = Vec::new();
    for panel in &panels[..2] {
        for action in 0..ACTIONS {
            let own: Vec<&Vec<f32>> =
                vectors.iter().zip(&panel.moves).filter(|(_, m)| **m == action).map(|(v, _)| v).collect();
            if !own.is_empty() {
                let mean = |k: usize| own.iter().map(|v| v[k]).sum::<f32>() / own.len() as f32;
                means.push((0..own[0].len()).map(mean).collect());
            }
        }
    }
    means
}

fn draw_panel(
    svg: &mut Svg,
    sheet: &Sheet,
    index: usize,
    plane: &Plane,
    vectors: &[Vec<f32>],
    panel: &Panel,
    conflict: &Conflict,
) {
    let rect = sheet.panel(index);
    let centre = (rect.x + rect.width / 2.0, rect.y + rect.height / 2.0);
    let radius = rect.width / 2.0 - 4.0;
    svg.circle(centre, radius, &Style::fill(Ink::PAPER).outlined(Ink::LINE, 1.0));
    for (vector, &action) in vectors.iter().zip(&panel.moves) {
        let [x, y] = plane.direction(vector);
        let length = x.hypot(y).max(1e-12);
        let r = 0.94 * radius / length;
        arrow(svg, centre, (centre.0 + r * x, centre.1 - r * y), CATEGORIES[action]);
    }
    let goals = conflict.goals.len();
    let most = (0..ACTIONS).map(|a| panel.moves.iter().filter(|m| **m == a).count()).max().unwrap_or(0);
    let right = |layout: &Layout| {
        let right = conflict.goals.iter().zip(&panel.moves).filter(|(goal, action)| {
            optimal_moves(layout, &distances(layout, **goal), conflict.cell) >> **action & 1 == 1
        });
        100.0 * right.count() as f64 / goals.max(1) as f64
    };
    let [one, other] = conflict.layouts.each_ref().map(right);
    let lines = [
        format!("{:.0}% agree on one move", 100.0 * most as f64 / vectors.len().max(1) as f64),
        format!("goals right in layout 1: {one:.0}%, in layout 2: {other:.0}%"),
    ];
    for (line, text) in lines.iter().enumerate() {
        let place = (centre.0, rect.y + rect.height + 13.0 + 13.0 * line as f64);
        svg.text(place, text, &TextStyle::new(10.0, Ink::SOFT, Anchor::Middle));
    }
}
