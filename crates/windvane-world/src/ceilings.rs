//! What is achievable: reference policies that are given the information, measured under the evaluation protocol.

use crate::collect::Behaviour as _;
use crate::env::{ActionBuf, ActionSpace, Cmdp, ContextId, Split, Start};
use crate::error::WorldError;
use crate::protocol::{EvalEpisode, Outcome, Policy, RandomPolicy, rollout};
use crate::registry::{WorldConfig, make};
use crate::reward::{Reward, Task};
use crate::rng::{self, Rng};
use crate::trajectory::Trajectory;
use rayon::prelude::*;
use serde::Serialize;

/// Episodes of each policy for each context and task; the random context differs in each.
const ROUNDS: u64 = 4;

/// What to measure.
#[derive(Clone, Debug)]
pub struct CeilingConfig {
    /// The world's name.
    pub env: String,
    /// Number of training contexts; the paper's by default.
    pub train: Option<usize>,
    /// Number of held-out contexts; the paper's by default.
    pub test: Option<usize>,
    /// Worlds to average over, each with other contexts.
    pub seeds: Vec<u64>,
    /// Lengths of the trajectory of the world's behaviour policy that forms a belief.
    pub context_steps: Vec<usize>,
    /// Where that trajectory begins.
    pub context_start: Start,
    /// The contexts to play in.
    pub splits: Vec<Split>,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CeilingRow {
    /// Who played.
    pub policy: &'static str,
    /// Where.
    pub split: Split,
    /// Steps seen beforehand; 0 for policies that need none.
    pub context_steps: usize,
    /// Share of episodes that reached their goal.
    pub success: f64,
    /// Number of episodes.
    pub episodes: usize,
}

/// How one episode of a reference policy went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Played {
    /// Who played.
    pub policy: &'static str,
    /// Steps seen beforehand; 0 for policies that need none.
    pub context_steps: usize,
    /// How it went.
    pub outcome: Outcome,
}

/// Lets the reference policies of a world play: `random`, `shortest-path` with the true map (`oracle` where the task is no
/// goal: it knows the context and does what it can; `oracle-misled` takes it for another one, `oracle-untold` for none), `still`
/// where actions are vectors and the task is no goal, on Pointmass `beeline` (straight for the goal, sliding along walls), and in
/// mazes of both kinds
///
/// - `average-map`: plans on the mean of the training layouts, as if they were one;
/// - `bayes-frozen`: plans on the posterior after the context, over all layouts that exist (Pointmass: a sample of them);
/// - `bayes-online`: the same, and updates its belief with what it meets while it acts;
/// - `bayes-known`: as `bayes-frozen`, over the training layouts alone: what a policy that knows them by heart can reach
///   (in training contexts only, as any other contradicts them all).
///
/// All are greedy. The result does not depend on the number of threads.
pub fn measure(config: &CeilingConfig) -> Result<Vec<CeilingRow>, WorldError> {
    let mut rows: Vec<CeilingRow> = Vec::new();
    for &seed in &config.seeds {
        let world = make(&config.env, &WorldConfig { seed, train: config.train, test: config.test })?;
        let referee = Referee::new(world.as_ref())?;
        for &split in &config.splits {
            let contexts = world.contexts(split).par_iter();
            let episodes = contexts.map(|&context| episodes_in(&referee, config, seed, context));
            for Played { policy, context_steps, outcome } in
                episodes.collect::<Result<Vec<_>, _>>()?.into_iter().flatten()
            {
                let same = |row: &CeilingRow| {
                    (row.policy, row.split, row.context_steps) == (policy, split, context_steps)
                };
                let place = rows.iter().position(same).unwrap_or_else(|| {
                    rows.push(CeilingRow { policy, split, context_steps, success: 0.0, episodes: 0 });
                    rows.len() - 1
                });
                rows[place].episodes += 1;
                rows[place].success += f64::from(u8::from(outcome.success));
            }
        }
    }
    for row in &mut rows {
        row.success /= row.episodes as f64;
    }
    Ok(rows)
}

/// All episodes in one context.
fn episodes_in(
    referee: &Referee<'_>,
    config: &CeilingConfig,
    seed: u64,
    context: ContextId,
) -> Result<Vec<Played>, WorldError> {
    let world = referee.world;
    let spec = world.spec();
    let longest = config.context_steps.iter().copied().max().unwrap_or(0);
    let mut actor = world.behaviour().actor(world, context)?;
    let mut episodes = Vec::new();
    for (number, task) in world.tasks(context)?.iter().enumerate() {
        for round in 0..ROUNDS {
            let rng = |purpose| rng::stream(seed, purpose, &[context.0, number as u64, round]);
            let episode = EvalEpisode { context, task: task.clone(), rng: rng("episode") };
            let mut env = world.instantiate(context)?;
            let mut random = rng("context");
            actor.begin(&mut random);
            let act = |obs: &[f32], rng: &mut Rng, action: &mut ActionBuf| actor.act(obs, rng, action);
            let start = config.context_start;
            let trajectory = Trajectory::explore(env.as_mut(), spec, start, longest, &mut random, act)?;
            episodes.extend(referee.play(&episode, &trajectory, &config.context_steps)?);
        }
    }
    Ok(episodes)
}

/// Who does nothing, in the middle of what can be done.
struct Still;

impl Policy for Still {
    fn begin(&mut self, _: &Task, _: &[f32]) -> Result<(), WorldError> {
        Ok(())
    }

    fn act(&mut self, _: &[f32], _: &mut Rng, action: &mut ActionBuf) {
        if let ActionBuf::Continuous(values) = action {
            values.fill(0.0);
        }
    }
}

/// The contexts that a belief is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// All that exist.
    All,
    /// Those of the training split: what a policy that knows them by heart can believe.
    Training,
}

/// Beliefs about a world's contexts by Bayes' rule, and policies that plan on them.
pub trait ExactBeliefs: Sync {
    /// Plans on what the first `steps` transitions of a trajectory leave of `among`; `online`, also on what is met while acting.
    fn planner(
        &self,
        among: Among,
        trajectory: &Trajectory,
        steps: usize,
        online: bool,
    ) -> Box<dyn Policy + '_>;

    /// Plans on the mean of the training contexts, as if they were one; nothing without any.
    fn average(&self) -> Option<Box<dyn Policy + '_>>;
}

/// One world and what its reference policies know of it.
pub struct Referee<'a> {
    world: &'a dyn Cmdp,
    beliefs: Option<Box<dyn ExactBeliefs + 'a>>,
}

impl<'a> Referee<'a> {
    /// Tells the policies of `world` what they may know.
    pub fn new(world: &'a dyn Cmdp) -> Result<Self, WorldError> {
        Ok(Self { world, beliefs: world.exact_beliefs()? })
    }

    /// The context after `context` in its split, for policies that are given a wrong one; nothing where there is one alone.
    fn other(&self, context: ContextId) -> Option<ContextId> {
        let split = [Split::Train, Split::Test].map(|split| self.world.contexts(split));
        let of = split.into_iter().find(|contexts| contexts.len() > 1 && contexts.contains(&context))?;
        of.iter().cycle().skip_while(|other| **other != context).nth(1).copied()
    }

    /// One episode for each policy; those with a belief play it once after each of `lengths` steps of `trajectory`.
    pub fn play(
        &self,
        episode: &EvalEpisode,
        trajectory: &Trajectory,
        lengths: &[usize],
    ) -> Result<Vec<Played>, WorldError> {
        let spec = self.world.spec();
        let mut episodes = Vec::new();
        let mut play = |name, context_steps, policy: &mut dyn Policy| -> Result<(), WorldError> {
            let outcome = rollout(self.world, episode.clone(), policy)?;
            episodes.push(Played { policy: name, context_steps, outcome });
            Ok(())
        };
        play("random", 0, &mut RandomPolicy(spec.action.clone()))?;
        let is_goal = matches!(episode.task.reward, Reward::Goal { .. });
        if !is_goal && matches!(spec.action, ActionSpace::Continuous { .. }) {
            play("still", 0, &mut Still)?;
        }
        // A policy for the world's own task alone is no measure of the others.
        let own = is_goal || self.world.tasks(episode.context)?[0].name == episode.task.name;
        if let Some((name, mut policy)) = self.world.ignorant().filter(|_| own) {
            play(name, 0, policy.as_mut())?;
        }
        if let Some(mut policy) = self.world.oracle(episode.context)? {
            play(if is_goal { "shortest-path" } else { "oracle" }, 0, policy.as_mut())?;
            if let Some(mut misled) = self
                .other(episode.context)
                .filter(|_| own && !is_goal)
                .and_then(|other| self.world.oracle(other).transpose())
                .transpose()?
            {
                play("oracle-misled", 0, misled.as_mut())?;
            }
        }
        let Some(beliefs) = self.beliefs.as_ref().filter(|_| is_goal) else { return Ok(episodes) };
        if let Some(mut policy) = beliefs.average() {
            play("average-map", 0, policy.as_mut())?;
        }
        let is_known = self.world.contexts(Split::Train).contains(&episode.context);
        for (name, among, online) in [
            ("bayes-frozen", Among::All, false),
            ("bayes-online", Among::All, true),
            ("bayes-known", Among::Training, false),
        ] {
            for &steps in lengths.iter().filter(|_| among == Among::All || is_known) {
                play(name, steps, beliefs.planner(among, trajectory, steps, online).as_mut())?;
            }
        }
        Ok(episodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceilings(env: &str, seeds: u64, context_start: Start) -> Vec<CeilingRow> {
        let config = CeilingConfig {
            env: env.to_owned(),
            train: None,
            test: None,
            seeds: (0..seeds).collect(),
            context_steps: vec![50, 100, 200, 500],
            context_start,
            splits: vec![Split::Test],
        };
        measure(&config).unwrap()
    }

    fn success(rows: &[CeilingRow], policy: &str) -> Vec<f64> {
        rows.iter().filter(|row| row.policy == policy).map(|row| row.success).collect()
    }

    fn assert_near(measured: &[f64], expected: &[f64]) {
        let near = measured.iter().zip(expected).all(|(m, e)| (m - e).abs() <= 0.05);
        assert!(near && measured.len() == expected.len(), "{measured:?}, expected {expected:?}");
    }

    #[test]
    fn four_rooms_has_its_known_ceilings() {
        let rows = ceilings("four-rooms", 6, Start::Fixed);
        assert_near(&success(&rows, "random"), &[0.09]);
        assert_near(&success(&rows, "average-map"), &[0.19]);
        assert_near(&success(&rows, "bayes-frozen"), &[0.45, 0.62, 0.79, 0.94]);
        assert_eq!(success(&rows, "shortest-path"), [1.0]);
        assert_eq!(success(&rows, "bayes-online"), [1.0; 4]);
    }

    #[test]
    fn doors_has_its_known_ceilings() {
        let rows = ceilings("doors", 6, Start::Fixed);
        assert_near(&success(&rows, "random"), &[0.05]);
        assert_near(&success(&rows, "bayes-frozen"), &[0.16, 0.28, 0.50, 0.80]);
        assert_eq!(success(&rows, "shortest-path"), [1.0]);
        assert_eq!(success(&rows, "bayes-online"), [1.0; 4]);
    }

    #[test]
    fn a_context_from_random_starts_tells_less_of_the_way_from_the_start() {
        let fixed = success(&ceilings("four-rooms", 3, Start::Fixed), "bayes-frozen");
        let random = success(&ceilings("four-rooms", 3, Start::Random), "bayes-frozen");
        assert!(fixed.iter().zip(&random).all(|(fixed, random)| fixed > random), "{fixed:?} {random:?}");
    }

    #[test]
    fn ceilings_do_not_depend_on_the_number_of_threads() {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| ceilings("doors", 1, Start::Random))
        };
        assert_eq!(with(1), with(3));
    }
}
