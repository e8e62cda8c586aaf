//! From a world and a behaviour policy to a data set: in parallel, resumable, the same bytes on any thread count.

mod learner;
mod policy;

pub use learner::Learner;
#[cfg(feature = "mujoco")]
pub(crate) use policy::bell;
pub use policy::{Actor, Behaviour, BehaviourPolicy};

use crate::env::{Cmdp, ContextId, Start};
use crate::episodes::{
    Block, ContextEntry, EpisodeInfo, Episodes, Leftover, Plan, Provenance, Writer, finished_plan,
    plan_difference,
};
use crate::error::WorldError;
use crate::rng;
use rayon::prelude::*;
use serde::Serialize;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Episodes that one thread collects at a time.
const PIECE: usize = 32;
/// Most numbers that wait in memory to be written.
const MOST_NUMBERS: usize = 1 << 24;

/// What to collect. All of it is recorded in the data set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectConfig {
    /// In which contexts; each becomes a group of the data set, and a row of its table of contexts.
    #[serde(skip)]
    pub contexts: Vec<ContextId>,
    /// Episodes in each of them.
    pub episodes: usize,
    /// Steps in each episode.
    pub length: usize,
    /// Where episodes begin.
    pub start: Start,
    /// Seed of everything random.
    pub seed: u64,
}

/// Collects a data set into the new folder `out`.
///
/// Every episode draws from its own random stream, named by context and number, so that neither threads nor a restart
/// change a byte. Killed in the middle, the same call goes on where the last one was; a data set that is
/// there already and was collected with the same settings is opened as it is. `generator` is recorded as the
/// program; `progress` is called again and again, each time with how many more transitions are done.
pub fn collect(
    world: &dyn Cmdp,
    behaviour: &dyn Behaviour,
    config: &CollectConfig,
    generator: &str,
    out: &Path,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Episodes, WorldError> {
    check(world, config)?;
    let prepared = behaviour.prepare(world, config.seed, out)?;
    let behaviour = prepared.as_deref().unwrap_or(behaviour);
    // A policy that does not fit the world should say so before anything is written.
    behaviour.actor(world, config.contexts[0])?;
    let plan = plan_of(world, behaviour, config, generator)?;
    if let Some(there) = collected(out, &plan)? {
        return Ok(there);
    }
    let Some(mut writer) = Writer::begin(out, plan, Leftover::Continue)? else { return Episodes::open(out) };
    progress(writer.transitions());
    let total = config.contexts.len() * config.episodes;
    let numbers = config.length * (world.spec().obs_dim() + world.spec().action.size()) + 1;
    let most = (MOST_NUMBERS / numbers).max(PIECE);
    // How much is done between commits decides only what a kill may cost; it follows the speed of the world.
    let mut wave = 8 * PIECE;
    while writer.episodes() < total {
        let begun = Instant::now();
        let wanted = writer.episodes()..total.min(writer.episodes() + wave);
        let blocks: Vec<Block> = pieces(wanted, config.episodes)
            .into_par_iter()
            .map(|piece| {
                let block = run(world, behaviour, config, piece)?;
                progress(block.actions.len());
                Ok(block)
            })
            .collect::<Result<_, WorldError>>()?;
        blocks.iter().try_for_each(|block| writer.append(block))?;
        writer.commit()?;
        wave = match begun.elapsed() {
            quick if quick < Duration::from_millis(500) => (2 * wave).min(most),
            slow if slow > Duration::from_secs(3) => (wave / 2).max(PIECE),
            _ => wave,
        };
    }
    writer.finish()
}

/// The data set at `out`, if there is one that `plan` says; an error if there is another. Who wrote it does not matter.
fn collected(out: &Path, plan: &Plan) -> Result<Option<Episodes>, WorldError> {
    let Some(mut there) = finished_plan(out) else { return Ok(None) };
    there.provenance.generator.clone_from(&plan.provenance.generator);
    match plan_difference(&there, plan) {
        None => Episodes::open(out).map(Some),
        Some(difference) => Err(WorldError::data(
            out,
            "output",
            format!("was collected with other settings ({difference}); choose another name or remove it"),
        )),
    }
}

fn check(world: &dyn Cmdp, config: &CollectConfig) -> Result<(), WorldError> {
    let counts =
        [("contexts", config.contexts.len()), ("episodes", config.episodes), ("length", config.length)];
    for (name, count) in counts {
        if count == 0 {
            return Err(WorldError::Invalid(format!(
                "{}: nothing to collect, {name} is 0",
                world.spec().name
            )));
        }
    }
    let mut sorted = config.contexts.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(WorldError::Invalid(format!(
            "{}: context {} is listed twice",
            world.spec().name,
            pair[0].0
        )));
    }
    let [contexts, episodes, length] = counts.map(|(_, count)| count);
    let transitions = contexts.checked_mul(episodes).and_then(|episodes| episodes.checked_mul(length));
    if transitions.is_none_or(|transitions| transitions > 1 << 40) {
        return Err(WorldError::Invalid(format!(
            "{}: more than 2^40 transitions asked for",
            world.spec().name
        )));
    }
    Ok(())
}

fn plan_of(
    world: &dyn Cmdp,
    behaviour: &dyn Behaviour,
    config: &CollectConfig,
    generator: &str,
) -> Result<Plan, WorldError> {
    let entry = |&id: &ContextId| Ok(ContextEntry { id, about: world.describe(id)? });
    let settings = serde_json::to_value(config)
        .map_err(|error| WorldError::Invalid(format!("the settings cannot be recorded: {error}")))?;
    Ok(Plan {
        env: world.spec().clone(),
        provenance: Provenance {
            generator: generator.to_owned(),
            policy: behaviour.name(),
            seed: Some(config.seed),
            config: settings,
        },
        contexts: config.contexts.iter().map(entry).collect::<Result<_, WorldError>>()?,
    })
}

/// Cuts a range of episodes, counted over all contexts, into pieces within one context.
fn pieces(episodes: Range<usize>, per_context: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = episodes.start;
    while start < episodes.end {
        let context_end = (start / per_context + 1) * per_context;
        let end = episodes.end.min(context_end).min(start + PIECE);
        pieces.push(start..end);
        start = end;
    }
    pieces
}

/// Plays a few episodes of one context.
fn run(
    world: &dyn Cmdp,
    behaviour: &dyn Behaviour,
    config: &CollectConfig,
    piece: Range<usize>,
) -> Result<Block, WorldError> {
    let spec = world.spec();
    let dims = spec.obs_dim();
    let group = piece.start / config.episodes;
    let context = config.contexts[group];
    let mut env = world.instantiate(context)?;
    let mut actor = behaviour.actor(world, context)?;
    let mut block = Block::new(spec);
    let mut action = spec.action.buffer();
    let mut obs = vec![0.0; dims];
    for number in piece {
        let episode = (number % config.episodes) as u64;
        let mut rng = rng::stream(config.seed, "collect", &[context.0, episode]);
        env.reset(config.start, &mut rng, &mut obs)?;
        block.observations.extend_from_slice(&obs);
        actor.begin(&mut rng);
        let mut length = 0;
        let mut terminated = false;
        while length < config.length && !terminated {
            actor.act(&obs, &mut rng, &mut action);
            terminated = env.step(action.as_action(), &mut obs)?.terminated;
            block.observations.extend_from_slice(&obs);
            block.actions.push(action.as_action());
            length += 1;
        }
        block.episodes.push(EpisodeInfo { length, terminated, group, context: Some(context) });
    }
    Ok(block)
}
