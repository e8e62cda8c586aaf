//! `windvane collect`: a behaviour policy in a world, recorded.

use crate::choice::{SplitChoice, StartChoice};
use crate::revision::GENERATOR;
use crate::{bounds, output, progress};
use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use windvane_world::collect::{BehaviourPolicy, CollectConfig, collect};
use windvane_world::registry::{WORLDS, WorldConfig, make};

/// Collects a data set: a behaviour policy in many contexts of a world.
///
/// The same arguments give the same bytes, on any number of threads. A run that was killed goes on where it was when
/// the same command is given again; what is collected is left as it is. Without --contexts and --episodes, the paper's numbers are used.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane collect --env four-rooms --contexts 30 --episodes 250 --seed 0 --out data/four-rooms
  windvane collect --env pointmass --out data/pointmass
  windvane collect --env doors --policy walker:0.3 --out data/doors-walker
  windvane collect --env ant-wind --policy expert --episodes 20 --out data/ant-wind")]
pub(crate) struct Collect {
    /// The world (`windvane envs` lists them)
    #[arg(long, value_name = "NAME")]
    env: String,
    /// Number of contexts
    #[arg(long, value_name = "N", value_parser = bounds::count::<usize>(bounds::CONTEXTS))]
    contexts: Option<usize>,
    /// Episodes in each context
    #[arg(long, value_name = "K", value_parser = bounds::count::<usize>(1..=10_000_000))]
    episodes: Option<usize>,
    /// Seed of contexts and episodes
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Folder to make; one that holds this very data set already is left as it is, any other is refused
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Who acts: `uniform`, `sticky[:REPEAT]`, `held[:STEPS]` (continuous actions), `walker[:EPSILON]` (grids), `expert[:sac|:sac-targets][:pure]` (ants; by PPO unless it says SAC, on torques or on joint targets); by default the paper's choice for the world
    #[arg(long)]
    policy: Option<BehaviourPolicy>,
    /// Where episodes begin
    #[arg(long, value_enum, default_value_t = StartChoice::Random)]
    start: StartChoice,
    /// Steps in an episode; by default the world's
    #[arg(long, value_name = "STEPS", value_parser = bounds::count::<usize>(1..=*bounds::STEPS.end()))]
    length: Option<usize>,
    /// Contexts to learn from, or held-out ones
    #[arg(long, value_enum, default_value_t = SplitChoice::Train)]
    split: SplitChoice,
    /// Number of contexts to hold out from training; by default the paper's
    #[arg(long, value_name = "N", value_parser = bounds::count::<usize>(0..=*bounds::CONTEXTS.end()))]
    held_out: Option<usize>,
    /// Threads; by default all cores
    #[arg(long, value_name = "N", value_parser = bounds::count::<usize>(bounds::THREADS))]
    threads: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Collect {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (train, test) = match self.split {
            SplitChoice::Train => (self.contexts, self.held_out),
            SplitChoice::Test => (None, self.contexts.or(self.held_out)),
        };
        let world = make(&self.env, &WorldConfig { seed: self.seed, train, test })?;
        let contexts = world.contexts(self.split.into()).to_vec();
        let paper = WORLDS
            .iter()
            .find(|entry| entry.name == self.env)
            .map(|entry| (entry.paper_episodes)(contexts.len()));
        let config = CollectConfig {
            episodes: self.episodes.or(paper).context("say how many --episodes to collect")?,
            length: self.length.unwrap_or(world.spec().horizon),
            start: self.start.into(),
            seed: self.seed,
            contexts,
        };
        let policy = self.policy.unwrap_or(world.behaviour());
        if matches!(policy, BehaviourPolicy::Expert { .. }) {
            output::note("an expert is learned first, within minutes, and saved beside the data");
        }
        let total = config.contexts.len() as u64 * config.episodes as u64 * config.length as u64;
        let progress = progress::start(total, "transitions", 0);
        let threads = rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or(0)).build()?;
        let data = threads.install(|| {
            collect(&*world, &policy, &config, GENERATOR, &self.out, &|done| progress.add(done as u64))
        })?;
        drop(progress);
        if self.json {
            return output::json(&json!({
                "path": data.path(),
                "env": data.spec().name,
                "policy": policy.to_string(),
                "seed": self.seed,
                "summary": data.summary(),
            }));
        }
        output::say(&format!(
            "{}: {} transitions in {} episodes of {} contexts ({policy}, seed {})",
            data.path().display(),
            data.transitions(),
            data.episodes(),
            data.groups(),
            self.seed
        ));
        Ok(())
    }
}
