//! The reference players under the evaluation protocol: the same walks and games as the agents'.

use super::row::Row;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, ScoreRow, explore, optimal_steps, row};
use crate::methods::{Condition, METHODS};
use crate::planner::Planner;
use rayon::prelude::*;
use windvane_world::ceilings::{Played, Referee};
use windvane_world::protocol::Game;
use windvane_world::rng::stream;
use windvane_world::{Cmdp, ContextId, Split};

/// The players whose belief goes on learning.
const ONLINE: &str = "bayes-online";

/// The players who are told the context, whatever was seen of it.
const TOLD: [&str; 2] = ["shortest-path", "oracle"];

/// The rows of all reference players; the rest of each row is as `like` says.
pub fn rows(
    world: &dyn Cmdp,
    eval: &EvalConfig,
    lengths: &[usize],
    seed: u64,
    like: &Row,
) -> Result<Vec<Row>, LearnError> {
    let referee = Referee::new(world)?;
    let contexts = |split| world.contexts(split).iter().take(eval.contexts).map(move |c| (split, *c));
    let all: Vec<(Split, ContextId)> = contexts(Split::Train).chain(contexts(Split::Test)).collect();
    let games = all
        .par_iter()
        .map(|&(split, context)| in_context(&referee, world, eval, lengths, seed, split, context));
    let mut rows = Vec::new();
    for games in games.collect::<Result<Vec<_>, _>>()? {
        for (player, games) in games {
            rows.extend(Row::of_games(&games, &Row { method: player.to_owned(), ..like.clone() }));
        }
    }
    Ok(rows)
}

/// The games of each player and length in one context.
type Games = Vec<(&'static str, Vec<ScoreRow>)>;

fn in_context(
    referee: &Referee<'_>,
    world: &dyn Cmdp,
    eval: &EvalConfig,
    lengths: &[usize],
    seed: u64,
    split: Split,
    context: ContextId,
) -> Result<Games, LearnError> {
    let longest = EvalConfig { context_steps: lengths.iter().copied().max().unwrap_or(0), ..*eval };
    let walks = (0..eval.rounds)
        .map(|round| explore(world, context, &longest, seed, round))
        .collect::<Result<Vec<_>, _>>()?;
    let mut all: Games = Vec::new();
    for task in world.tasks(context)? {
        let optimal = optimal_steps(world, context, &task)?;
        for (round, walk) in walks.iter().enumerate() {
            let rng = stream(seed, "game", &[context.0, round as u64]);
            let game = Game { context, task: task.clone(), rng };
            for Played { player, context_steps, outcome } in referee.play(&game, walk, lengths)? {
                let belief = if player == ONLINE { BeliefMode::Online } else { BeliefMode::Frozen };
                let config = EvalConfig { context_steps, planner: Planner::None, ..*eval };
                let plain = row(context, &task, round as u64, optimal, split, belief, &config);
                let game = ScoreRow {
                    success: outcome.success,
                    reward: outcome.reward,
                    steps: outcome.steps,
                    ..plain
                };
                let same = |(name, games): &&mut (&str, Vec<ScoreRow>)| {
                    *name == player && games[0].context_steps == context_steps
                };
                match all.iter_mut().find(same) {
                    Some((_, games)) => games.push(game),
                    None => all.push((player, vec![game])),
                }
            }
        }
    }
    Ok(all)
}

/// The player that is the ceiling of a row, or who stands in for one that is not there: exact, and told no more than the
/// row's agent.
pub fn ceiling_player(row: &Row) -> &'static [&'static str] {
    let method = METHODS.iter().find(|method| method.name == row.method);
    let told = method.is_some_and(|method| method.condition == Condition::ContextId);
    match (row.belief, row.split) {
        (_, Split::Train) if told => &["shortest-path", "oracle"],
        (BeliefMode::Online, _) => &[ONLINE, "shortest-path", "oracle"],
        // Whoever has learned from the training contexts may know them by heart: so does their ceiling.
        (BeliefMode::Frozen, Split::Train) => &["bayes-known", "shortest-path", "oracle"],
        (BeliefMode::Frozen, Split::Test) => &["bayes-frozen", "shortest-path", "oracle"],
    }
}

/// Fills in what the exact players of `reference` reached in the same games, and shares of it where there is no success.
pub fn with_ceilings(rows: &mut [Row], reference: &[Row]) {
    for row in rows {
        let knows = |other: &&Row| other.method == "oracle" && other.same_games(row) && other.success == 0.0;
        let best = reference.iter().find(knows).and_then(|oracle| oracle.reward).filter(|best| *best > 0.0);
        row.share = best.and_then(|best| Some(row.reward? / best));
        let of = |player: &&str| {
            let same = |other: &&Row| {
                other.method == **player
                    && other.same_games(row)
                    && (other.context_steps == row.context_steps || TOLD.contains(player))
            };
            reference.iter().find(same).map(|other| if best.is_some() { 1.0 } else { other.success })
        };
        row.ceiling = ceiling_player(row).iter().find_map(of);
    }
}
