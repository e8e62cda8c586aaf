//! What exact and learned policies think of one context, as views for a Q-map.

use super::qmap::{Cell, View};
use crate::agent::Agent;
use crate::error::LearnError;
use crate::eval::{EvalConfig, explore};
use windvane_world::grid::{ACTIONS, Dynamics, Objective, Plan, ahead};
use windvane_world::{Cmdp, ContextId, Task};

/// The exact view of a context, and that of each agent after the same random trajectory. Empty for worlds other than grids.
pub fn of_context(
    world: &dyn Cmdp,
    context: ContextId,
    task: &Task,
    config: &EvalConfig,
    seed: u64,
    agents: &[(&'static str, &Agent)],
) -> Result<Vec<View>, LearnError> {
    let Some(grid) = world.grid() else { return Ok(Vec::new()) };
    let spec = world.spec();
    let layout = grid.layout(context)?;
    let exact = Plan::solve(&Dynamics::of(layout), &Objective::of(task, spec)?, 0.95);
    let trajectory = explore(world, context, config, seed, 0)?;
    let view = |title: &str, value: &dyn Fn(usize) -> [f64; ACTIONS]| {
        let cells = layout.free_cells().map(|cell| {
            let mut at = [0.0; 2];
            spec.write_state(cell, &mut at);
            let q = value(cell);
            let best = (1..ACTIONS).fold(0, |best, a| if q[a] > q[best] { a } else { best });
            Cell { at, value: q[best], arrow: direction(layout.side(), cell, best) }
        });
        View { title: title.to_owned(), cells: cells.collect() }
    };
    let mut views = vec![view("exact", &|cell| std::array::from_fn(|a| exact.moves()[cell * ACTIONS + a]))];
    for (title, agent) in agents {
        let z = agent.task(&task.reward);
        let (Some(table), Some(values)) =
            (agent.table(), agent.q_table(context, &trajectory, &z, config.planner))
        else {
            continue;
        };
        views.push(view(title, &|cell| {
            let mut obs = [0.0; 2];
            spec.write_state(cell, &mut obs);
            let pair = table.nearest(&obs) * ACTIONS;
            std::array::from_fn(|a| f64::from(values[pair + a]))
        }));
    }
    Ok(views)
}

/// Where an action points on the map, also from a cell at the edge.
fn direction(side: usize, cell: usize, action: usize) -> [f64; 2] {
    let inner = side / 2 + side * (side / 2);
    let from = if ahead(side, cell, action).is_some() { cell } else { inner };
    let Some(to) = ahead(side, from, action) else { return [0.0, 0.0] };
    let step = |from: usize, to: usize| to as f64 - from as f64;
    [step(from % side, to % side), step(from / side, to / side)]
}
