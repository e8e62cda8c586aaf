//! `windvane train`: data, belief and agent in one folder.

use crate::interrupt::{self, Stopped};
use crate::revision::REVISION;
use crate::watch::Bars;
use crate::{bounds, output, table};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use windvane::config::layers::Setting;
use windvane::device::{DeviceName, Threads};
use windvane::eval::ScoreKind;
use windvane::request::{Request, Score, take_scores};
use windvane::run::{Run, RunContext};
use windvane::{methods, train::folder::RunFolder};

/// Trains a method from nothing: collects data, trains the belief and the agent, takes scores.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane train --env four-rooms --method bfb --out runs/bfb
  windvane train --env four-rooms --preset many --method rfb --seed 1 --set fb.kappa=100 --out runs/rfb
  windvane train --data data/robot --method rfb --out runs/robot      your own data (`windvane import`)
  windvane train --env doors --method bfb --out runs/bfb --dry-run    every setting, and where it comes from

A run that was stopped or killed goes on where it was when the same command is given again.")]
pub(crate) struct Train {
    /// The world (`windvane envs` lists them); without one, the data set of --data is all that is learned from
    #[arg(long, value_name = "NAME", required_unless_present = "data")]
    env: Option<String>,
    #[arg(long, value_name = "NAME", help = format!("The method: {}", methods::names()))]
    method: String,
    /// Decides contexts, data, weights and everything else that is random
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Built-in settings to start from
    #[arg(long, value_name = "NAME", default_value = "standard")]
    preset: String,
    /// A TOML file of settings to lay on top
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A single setting to lay on top, for instance fb.kappa=100
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The run's folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A data set to use or make instead of OUT/data, so that runs can share it
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A belief to use or make instead of OUT/belief.safetensors, so that methods can share it
    #[arg(long, value_name = "FILE")]
    belief: Option<PathBuf>,
    /// Where tensors live: cpu, vulkan, wgpu, cuda or metal
    #[arg(long, default_value_t = DeviceName::Cpu)]
    device: DeviceName,
    /// Threads; two runs of one thread side by side get farther than one of two
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = bounds::count::<usize>(bounds::THREADS))]
    threads: usize,
    /// Print the resolved settings with their origins, and stop: nothing is written
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Train {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let interrupt = interrupt::flag()?;
        let request = self.request();
        if self.dry_run {
            let (layers, _) = request.settings()?;
            let settings = layers.settings();
            layers.value().check()?;
            methods::find(&self.method)?;
            return self.say_settings(&settings);
        }
        let (run, folder) = request.open()?;
        let device = self.device.open()?;
        Threads::new(self.threads)?.run(|| self.stages(&run, &device, &folder, interrupt))
    }

    fn request(&self) -> Request {
        let Self { env, method, preset, config, set, seed, out, data, belief, .. } = self;
        Request {
            env: env.clone(),
            method: method.clone(),
            preset: preset.clone(),
            config: config.clone(),
            set: set.clone(),
            seed: *seed,
            out: out.clone(),
            data: data.clone(),
            belief: belief.clone(),
        }
    }

    fn stages(
        &self,
        run: &Run,
        device: &windvane::device::Device,
        folder: &RunFolder,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<()> {
        let world = run.world()?;
        let mut at = RunContext { world: &*world, device, progress: &mut Bars, interrupt };
        let agent = run.agent(&mut at)?.ok_or(Stopped)?;
        let _scores_can_be_taken_again = interrupt::at_once()?;
        if run.recorded.is_some() {
            return self.without_scores();
        }
        let (planners, kind) = (agent.standard_planners(), &ScoreKind::of(&*world)?);
        let names = [self.preset.as_str(), REVISION];
        let scores = take_scores(run, folder, &*world, &agent, names, interrupt)?.ok_or(Stopped)?;
        if self.json {
            let rows = scores.iter().flat_map(|Score { split, belief, by }| {
                by.iter().map(move |(planner, score)| {
                    json!({"split": split, "belief": belief, "planner": planner, kind.name(): score})
                })
            });
            return output::json(&json!({"out": self.out, "rows": rows.collect::<Vec<_>>()}));
        }
        let line = |Score { split, belief, by }: &Score| {
            let shares = by.iter().map(|(_, x)| x.map_or("-".to_owned(), |x| kind.text(x)));
            [format!("{split:?}"), format!("{belief:?}")].into_iter().chain(shares).collect()
        };
        let rows: Vec<Vec<String>> = scores.iter().map(line).collect();
        let mut head = vec!["split", "belief"];
        head.extend(planners.iter().map(|planner| planner.title()));
        output::say(&format!(
            "{}; \"F alone\" acts by the forward map, \"with planner\" by value iteration on the belief's dynamics.",
            kind.title()
        ));
        output::say(&table::render(&head, &rows));
        Ok(())
    }
}

impl Train {
    /// What `--dry-run` prints.
    fn say_settings(&self, settings: &[Setting]) -> anyhow::Result<()> {
        if self.json {
            let Self { method, seed, out, .. } = self;
            let document = json!({"method": method, "seed": seed, "out": out, "settings": settings});
            return output::json(&document);
        }
        let line = |s: &Setting| vec![s.key.clone(), s.value.to_string(), s.origin.clone()];
        let lines: Vec<Vec<String>> = settings.iter().map(line).collect();
        output::say(&table::render(&["setting", "value", "origin"], &lines));
        Ok(())
    }

    /// What is said where there is no world to play in.
    fn without_scores(&self) -> anyhow::Result<()> {
        if self.json {
            return output::json(&json!({"out": self.out, "rows": []}));
        }
        output::say(&format!(
            "{}: trained; go on with `windvane export {0} --out FOLDER` and `windvane adapt FOLDER`",
            self.out.display()
        ));
        Ok(())
    }
}
