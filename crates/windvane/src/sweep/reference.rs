//! The reference policies under the evaluation protocol: the same trajectories and episodes as the agents'.

use super::row::Row;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, ScoreRow, explore, optimal_steps, row};
use crate::methods::{Condition, METHODS};
use crate::planner::Planner;
use rayon::prelude::*;
use windvane_world::ceilings::{Played, Referee};
use windvane_world::protocol::EvalEpisode;
use windvane_world::rng::stream;
use windvane_world::{Cmdp, ContextId, Split};

/// The policies whose belief goes on learning.
const ONLINE: &str = "bayes-online";

/// The policies that are given the context, whatever was seen of it.
const GIVEN: [&str; 2] = ["shortest-path", "oracle"];

/// The rows of all reference policies; the rest of each row is as `like` says.
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
    let episodes = all
        .par_iter()
        .map(|&(split, context)| in_context(&referee, world, eval, lengths, seed, split, context));
    let mut rows = Vec::new();
    for episodes in episodes.collect::<Result<Vec<_>, _>>()? {
        for (policy, episodes) in episodes {
            rows.extend(Row::of_episodes(&episodes, &Row { method: policy.to_owned(), ..like.clone() }));
        }
    }
    Ok(rows)
}

/// The episodes of each policy and length in one context.
type Episodes = Vec<(&'static str, Vec<ScoreRow>)>;

fn in_context(
    referee: &Referee<'_>,
    world: &dyn Cmdp,
    eval: &EvalConfig,
    lengths: &[usize],
    seed: u64,
    split: Split,
    context: ContextId,
) -> Result<Episodes, LearnError> {
    let longest = EvalConfig { context_steps: lengths.iter().copied().max().unwrap_or(0), ..*eval };
    let trajectories = (0..eval.rounds)
        .map(|round| explore(world, context, &longest, seed, round))
        .collect::<Result<Vec<_>, _>>()?;
    let mut all: Episodes = Vec::new();
    for task in world.tasks(context)? {
        let optimal = optimal_steps(world, context, &task)?;
        for (round, trajectory) in trajectories.iter().enumerate() {
            let rng = stream(seed, "episode", &[context.0, round as u64]);
            let episode = EvalEpisode { context, task: task.clone(), rng };
            for Played { policy, context_steps, outcome } in referee.play(&episode, trajectory, lengths)? {
                let belief = if policy == ONLINE { BeliefMode::Online } else { BeliefMode::Frozen };
                let config = EvalConfig { context_steps, planner: Planner::None, ..*eval };
                let plain = row(context, &task, round as u64, optimal, split, belief, &config);
                let episode = ScoreRow {
                    success: outcome.success,
                    reward: outcome.reward,
                    steps: outcome.steps,
                    ..plain
                };
                let same = |(name, episodes): &&mut (&str, Vec<ScoreRow>)| {
                    *name == policy && episodes[0].context_steps == context_steps
                };
                match all.iter_mut().find(same) {
                    Some((_, episodes)) => episodes.push(episode),
                    None => all.push((policy, vec![episode])),
                }
            }
        }
    }
    Ok(all)
}

/// The policy that is the ceiling of a row, or the one that stands in for it: exact, and given no more than the
/// row's agent.
pub fn ceiling_policy(row: &Row) -> &'static [&'static str] {
    let method = METHODS.iter().find(|method| method.name == row.method);
    let given = method.is_some_and(|method| method.condition == Condition::ContextId);
    match (row.belief, row.split) {
        (_, Split::Train) if given => &["shortest-path", "oracle"],
        (BeliefMode::Online, _) => &[ONLINE, "shortest-path", "oracle"],
        // Whoever has learned from the training contexts may know them by heart: so does their ceiling.
        (BeliefMode::Frozen, Split::Train) => &["bayes-known", "shortest-path", "oracle"],
        (BeliefMode::Frozen, Split::Test) => &["bayes-frozen", "shortest-path", "oracle"],
    }
}

/// Fills in what the exact policies of `reference` reached in the same episodes, and shares of it where there is no success.
pub fn with_ceilings(rows: &mut [Row], reference: &[Row]) {
    for row in rows {
        let knows =
            |other: &&Row| other.method == "oracle" && other.same_episodes(row) && other.success == 0.0;
        let best = reference.iter().find(knows).and_then(|oracle| oracle.reward).filter(|best| *best > 0.0);
        row.share = best.and_then(|best| Some(row.reward? / best));
        let of = |policy: &&str| {
            let same = |other: &&Row| {
                other.method == **policy
                    && other.same_episodes(row)
                    && (other.context_steps == row.context_steps || GIVEN.contains(policy))
            };
            reference.iter().find(same).map(|other| if best.is_some() { 1.0 } else { other.success })
        };
        row.ceiling = ceiling_policy(row).iter().find_map(of);
    }
}
