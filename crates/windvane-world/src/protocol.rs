//! The evaluation protocol, one for exact policies and learned agents: a reward-free context, then an episode.

use crate::env::{Action, ActionBuf, ActionSpace, Actions, Cmdp, ContextId, Start};
use crate::error::WorldError;
use crate::reward::{Reward, Task};
use crate::rng::Rng;

/// One episode to play.
#[derive(Clone, Debug)]
pub struct EvalEpisode {
    /// Where.
    pub context: ContextId,
    /// What for.
    pub task: Task,
    /// The episode's own randomness, so that episodes do not depend on their company.
    pub rng: Rng,
}

/// How an episode went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Whether the goal was reached, or what was to be held was held ([`Reward::Hold`]); never for other rewards.
    pub success: bool,
    /// The sum of rewards, less what the steps cost. An episode ends at its goal, so that reaching it counts once.
    pub reward: f32,
    /// Steps taken.
    pub steps: usize,
}

/// Acts in one episode at a time.
pub trait Policy {
    /// An episode begins at `obs`.
    fn begin(&mut self, task: &Task, obs: &[f32]) -> Result<(), WorldError>;
    /// Chooses an action.
    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf);
    /// Sees where it led.
    fn observe(&mut self, _obs: &[f32], _action: Action<'_>, _next: &[f32]) {}
}

/// The policy that takes every action with equal chance.
#[derive(Clone, Debug)]
pub struct RandomPolicy(pub ActionSpace);

impl Policy for RandomPolicy {
    fn begin(&mut self, _task: &Task, _obs: &[f32]) -> Result<(), WorldError> {
        Ok(())
    }

    fn act(&mut self, _obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        self.0.sample(rng, action);
    }
}

/// Acts in many episodes in lockstep, as a network does that takes whole batches.
///
/// `running` are the numbers of the episodes that still run; the other arguments hold one row or item for each of them.
pub trait VectorPolicy {
    /// What can go wrong.
    type Error: From<WorldError>;
    /// The episodes begin.
    fn begin(&mut self, episodes: &[EvalEpisode], obs: &[f32]) -> Result<(), Self::Error>;
    /// Adds one action for each running episode to `actions`, which is empty.
    fn act(
        &mut self,
        running: &[usize],
        obs: &[f32],
        episodes: &mut [EvalEpisode],
        actions: &mut Actions,
    ) -> Result<(), Self::Error>;
    /// Sees where they led.
    fn observe(
        &mut self,
        running: &[usize],
        obs: &[f32],
        actions: &Actions,
        next: &[f32],
    ) -> Result<(), Self::Error>;
}

/// Plays all episodes in lockstep, each from its context's own start, until its goal, a fall or the horizon.
pub fn play<T: VectorPolicy + ?Sized>(
    world: &dyn Cmdp,
    episodes: Vec<EvalEpisode>,
    policy: &mut T,
) -> Result<Vec<Outcome>, T::Error> {
    play_from(world, episodes, Start::Fixed, policy)
}

/// The same from where `start` says.
pub fn play_from<T: VectorPolicy + ?Sized>(
    world: &dyn Cmdp,
    mut episodes: Vec<EvalEpisode>,
    start: Start,
    policy: &mut T,
) -> Result<Vec<Outcome>, T::Error> {
    let spec = world.spec();
    let dim = spec.obs_dim();
    let mut envs =
        episodes.iter().map(|episode| world.instantiate(episode.context)).collect::<Result<Vec<_>, _>>()?;
    let mut obs = vec![0.0; episodes.len() * dim];
    for ((env, episode), obs) in envs.iter_mut().zip(&mut episodes).zip(obs.chunks_exact_mut(dim)) {
        env.reset(start, &mut episode.rng, obs)?;
    }
    policy.begin(&episodes, &obs)?;
    let begun = |(episode, obs): (&EvalEpisode, &[f32])| {
        let success = episode.task.reward.reached(obs);
        Outcome { success, reward: f32::from(u8::from(success)), steps: 0 }
    };
    let mut outcomes: Vec<Outcome> = episodes.iter().zip(obs.chunks_exact(dim)).map(begun).collect();
    let mut running: Vec<usize> = (0..episodes.len()).filter(|&episode| !outcomes[episode].success).collect();
    keep_rows(&mut obs, dim, |row| !outcomes[row].success);
    let mut next = obs.clone();
    let mut actions = spec.action.actions(episodes.len());
    let mut late = vec![0.0; episodes.len()];
    let last_third = spec.horizon - spec.horizon.div_ceil(3);
    for time in 0..spec.horizon {
        if running.is_empty() {
            break;
        }
        actions.clear();
        policy.act(&running, &obs, &mut episodes, &mut actions)?;
        let mut over = vec![false; running.len()];
        for (row, &number) in running.iter().enumerate() {
            let next = &mut next[row * dim..(row + 1) * dim];
            let step = envs[number].step(actions.get(row), next)?;
            let outcome = &mut outcomes[number];
            let reward = &episodes[number].task.reward;
            outcome.steps += 1;
            let earned = reward.of(next);
            outcome.reward += earned - step.cost;
            if time >= last_third {
                late[number] += earned;
            }
            outcome.success = reward.reached(next);
            over[row] = outcome.success || step.terminated;
        }
        policy.observe(&running, &obs, &actions, &next)?;
        keep_rows(&mut next, dim, |row| !over[row]);
        let mut flags = over.iter();
        running.retain(|_| flags.next() == Some(&false));
        obs.clone_from(&next);
    }
    for number in running {
        if let Reward::Hold { least, .. } = episodes[number].task.reward {
            outcomes[number].success = late[number] >= least * (spec.horizon - last_third) as f32;
        }
    }
    Ok(outcomes)
}

/// Plays one episode.
pub fn rollout(
    world: &dyn Cmdp,
    episode: EvalEpisode,
    policy: &mut dyn Policy,
) -> Result<Outcome, WorldError> {
    rollout_from(world, episode, Start::Fixed, policy)
}

/// The same from where `start` says.
pub fn rollout_from(
    world: &dyn Cmdp,
    episode: EvalEpisode,
    start: Start,
    policy: &mut dyn Policy,
) -> Result<Outcome, WorldError> {
    let mut policy = Solo { policy, action: world.spec().action.buffer() };
    play_from(world, vec![episode], start, &mut policy).map(|outcomes| outcomes[0])
}

/// One policy as a vectorised one.
struct Solo<'a> {
    policy: &'a mut dyn Policy,
    action: ActionBuf,
}

impl VectorPolicy for Solo<'_> {
    type Error = WorldError;

    fn begin(&mut self, episodes: &[EvalEpisode], obs: &[f32]) -> Result<(), WorldError> {
        self.policy.begin(&episodes[0].task, obs)
    }

    fn act(
        &mut self,
        _: &[usize],
        obs: &[f32],
        episodes: &mut [EvalEpisode],
        actions: &mut Actions,
    ) -> Result<(), WorldError> {
        self.policy.act(obs, &mut episodes[0].rng, &mut self.action);
        actions.push(self.action.as_action());
        Ok(())
    }

    fn observe(
        &mut self,
        _: &[usize],
        obs: &[f32],
        actions: &Actions,
        next: &[f32],
    ) -> Result<(), WorldError> {
        self.policy.observe(obs, actions.get(0), next);
        Ok(())
    }
}

/// Keeps the rows of `values` for which `keep` says so.
fn keep_rows(values: &mut Vec<f32>, width: usize, keep: impl Fn(usize) -> bool) {
    let mut remaining = 0;
    for row in 0..values.len() / width {
        if keep(row) {
            values.copy_within(row * width..(row + 1) * width, remaining * width);
            remaining += 1;
        }
    }
    values.truncate(remaining * width);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{WorldConfig, make};
    use crate::{Split, rng};

    /// Policies side by side, each with an episode of its own.
    struct Company(Vec<(RandomPolicy, ActionBuf)>);

    impl VectorPolicy for Company {
        type Error = WorldError;

        fn begin(&mut self, _: &[EvalEpisode], _: &[f32]) -> Result<(), WorldError> {
            Ok(())
        }

        fn act(
            &mut self,
            running: &[usize],
            obs: &[f32],
            episodes: &mut [EvalEpisode],
            actions: &mut Actions,
        ) -> Result<(), WorldError> {
            for (&number, obs) in running.iter().zip(obs.chunks_exact(2)) {
                let (policy, action) = &mut self.0[number];
                policy.act(obs, &mut episodes[number].rng, action);
                actions.push(action.as_action());
            }
            Ok(())
        }

        fn observe(
            &mut self,
            running: &[usize],
            obs: &[f32],
            actions: &Actions,
            next: &[f32],
        ) -> Result<(), WorldError> {
            assert_eq!([obs.len(), next.len()], [running.len() * 2; 2]);
            assert_eq!(actions.len(), running.len());
            Ok(())
        }
    }

    #[test]
    fn episodes_do_not_depend_on_their_company() {
        for name in ["doors", "pointmass"] {
            let world = make(name, &WorldConfig::default()).unwrap();
            let contexts = world.contexts(Split::Test);
            let episodes: Vec<EvalEpisode> = (0..60)
                .map(|number| {
                    let context = contexts[number as usize % contexts.len()];
                    // A goal near the start, so that episodes end at many different times.
                    let start: Vec<f32> =
                        serde_json::from_value(world.describe(context).unwrap()["start"].clone()).unwrap();
                    let goal = vec![start[0] + 1.0, start[1] + 1.0];
                    let task =
                        Task { name: "near".into(), reward: crate::Reward::Goal { goal, tolerance: 0.5 } };
                    EvalEpisode { context, task, rng: rng::stream(7, "episode", &[number]) }
                })
                .collect();
            let policy = RandomPolicy(world.spec().action.clone());
            let mut company = Company(vec![(policy.clone(), world.spec().action.buffer()); episodes.len()]);
            let together = play(world.as_ref(), episodes.clone(), &mut company).unwrap();
            let lengths: std::collections::BTreeSet<usize> =
                together.iter().map(|episode| episode.steps).collect();
            assert!(lengths.len() > 5, "{lengths:?}");
            for (episode, outcome) in episodes.into_iter().zip(together) {
                let alone = rollout(world.as_ref(), episode, &mut policy.clone()).unwrap();
                assert_eq!(alone, outcome);
                assert!(
                    alone.success == (alone.reward == 1.0)
                        && (alone.success || alone.steps == world.spec().horizon)
                );
            }
        }
    }

    #[test]
    fn holding_counts_in_the_last_third_alone() {
        let world = make("pendulum", &WorldConfig::default()).unwrap();
        let context = world.contexts(Split::Train)[0];
        // A clock: the reward changes at a given step, whatever is seen.
        let play = |from: usize, until: usize, least: f32| {
            let clock = std::sync::atomic::AtomicUsize::new(0);
            let reward = std::sync::Arc::new(move |_: &[f32]| {
                let now = clock.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                f32::from(u8::from((from..until).contains(&now)))
            });
            let task = Task { name: "hold".into(), reward: Reward::Hold { reward, least } };
            let episode = EvalEpisode { context, task, rng: rng::stream(0, "episode", &[]) };
            let policy = &mut RandomPolicy(world.spec().action.clone());
            let outcome = rollout(world.as_ref(), episode, policy).unwrap();
            assert_eq!((outcome.reward, outcome.steps), ((until - from) as f32, 100));
            outcome.success
        };
        assert!(play(66, 100, 1.0) && !play(67, 100, 1.0) && play(67, 100, 0.97));
        assert!(!play(0, 66, 0.1) && !play(0, 80, 0.9) && play(0, 80, 0.4));
    }

    #[test]
    fn a_reward_without_a_goal_is_collected_until_the_horizon() {
        let world = make("four-rooms", &WorldConfig::default()).unwrap();
        let context = world.contexts(Split::Train)[0];
        let reward = crate::Reward::Function(std::sync::Arc::new(|_| 0.5));
        let episode = EvalEpisode {
            context,
            task: Task { name: "half".into(), reward },
            rng: rng::stream(0, "episode", &[]),
        };
        let outcome =
            rollout(world.as_ref(), episode, &mut RandomPolicy(world.spec().action.clone())).unwrap();
        assert_eq!(outcome, Outcome { success: false, reward: 50.0, steps: 100 });
    }
}
