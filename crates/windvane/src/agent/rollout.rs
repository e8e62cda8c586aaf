//! Many episodes in lockstep, each with its own belief: frozen after the context, or updated by what is met.

use super::acting::{Ready, Trail};
use super::{Acting, Agent};
use crate::belief::Evidence;
use crate::error::{LearnError, Result};
use crate::eval::BeliefMode;
use crate::latent;
use windvane_world::protocol::{EvalEpisode, VectorPolicy};
use windvane_world::trajectory::Trajectory;
use windvane_world::{ActionBuf, Actions, ContextId, Reward};

/// A vectorised rollout of one agent.
#[derive(Debug)]
pub(crate) struct Rollout<'a> {
    agent: &'a Agent,
    acting: Acting,
    online: bool,
    episodes: Vec<Episode>,
}

/// One episode.
#[derive(Debug)]
struct Episode {
    evidence: Evidence,
    context: ContextId,
    /// The task vector before it goes toward the belief, and what the context adds to it.
    wanted: Vec<f32>,
    shift: Vec<f32>,
    trail: Trail,
    ready: Ready,
}

impl Agent {
    /// A rollout of one episode after each context trajectory, in the order the episodes will have.
    pub(crate) fn rollout<'a>(&'a self, contexts: &[&Trajectory], acting: Acting) -> Result<Rollout<'a>> {
        let mut episodes: Vec<Episode> = Vec::with_capacity(contexts.len());
        for (i, trajectory) in contexts.iter().enumerate() {
            // What several episodes share is made once.
            let again = contexts[..i].iter().position(|other| std::ptr::eq(*other, *trajectory));
            let (evidence, shift) = if let Some(first) = again {
                (episodes[first].evidence.clone(), episodes[first].shift.clone())
            } else {
                let trajectories = std::slice::from_ref(*trajectory);
                (self.evidence(trajectories), self.shift(trajectories)?)
            };
            let (context, wanted) = (ContextId(0), Vec::new());
            let (trail, ready) = (Trail::default(), Ready::default());
            episodes.push(Episode { evidence, context, wanted, shift, trail, ready });
        }
        let online = acting.belief == BeliefMode::Online && self.belief().is_some();
        Ok(Rollout { agent: self, acting, online, episodes })
    }
}

impl Rollout<'_> {
    /// Forms the beliefs of the episodes `which` anew, and what follows from them.
    fn update(&mut self, which: &[usize]) {
        let episodes = || which.iter().map(|&i| &self.episodes[i]);
        let contexts: Vec<ContextId> = episodes().map(|episode| episode.context).collect();
        let evidence: Vec<&Evidence> = episodes().map(|episode| &episode.evidence).collect();
        let tasks = episodes().map(|episode| episode.wanted.clone()).collect();
        let ready = self.agent.ready(&contexts, &evidence, tasks, self.acting);
        for (&i, ready) in which.iter().zip(ready) {
            self.episodes[i].ready = ready;
            self.episodes[i].trail.stale = 0;
        }
    }

    /// Straight to the goal in the same box, within which nothing better is known.
    fn straight(&self, episode: &EvalEpisode, obs: &[f32]) -> Option<ActionBuf> {
        let (table, Reward::Goal { goal, .. }) = (self.agent.table()?, &episode.task.reward) else {
            return None;
        };
        let same = table.nearest(goal) == table.nearest(obs);
        table.discretizer.straight(obs, goal).filter(|_| same)
    }
}

impl VectorPolicy for Rollout<'_> {
    type Error = LearnError;

    fn begin(&mut self, episodes: &[EvalEpisode], _: &[f32]) -> Result<()> {
        for (episode, asked) in self.episodes.iter_mut().zip(episodes) {
            episode.wanted = latent::shifted(self.agent.task(&asked.task.reward), &episode.shift);
            episode.context = asked.context;
            if let Reward::Goal { goal, .. } = &asked.task.reward {
                self.agent.observe_goal(&mut episode.evidence, goal);
            }
        }
        self.update(&(0..episodes.len()).collect::<Vec<_>>());
        Ok(())
    }

    fn act(
        &mut self,
        running: &[usize],
        obs: &[f32],
        episodes: &mut [EvalEpisode],
        actions: &mut Actions,
    ) -> Result<()> {
        let dims = self.agent.spec().obs_dim();
        let rows = running.iter().copied().zip(obs.chunks_exact(dims));
        let (which, free): (Vec<usize>, Vec<&[f32]>) =
            rows.filter(|(i, _)| self.episodes[*i].trail.is_free()).unzip();
        if !which.is_empty() {
            let ready: Vec<&Ready> = which.iter().map(|&i| &self.episodes[i].ready).collect();
            let chosen = self.agent.choose(&ready, &free.concat());
            for ((&i, obs), mut action) in which.iter().zip(free).zip(chosen) {
                if let Some(straight) = self.straight(&episodes[i], obs) {
                    action = straight;
                } else if self.online && self.agent.probes(&self.episodes[i].evidence) {
                    self.agent.spec().action.sample(&mut episodes[i].rng, &mut action);
                }
                self.episodes[i].trail.hold(action, self.agent.action_repeat());
            }
        }
        for &i in running {
            if let Some(action) = self.episodes[i].trail.next() {
                actions.push(action.as_action());
            }
        }
        Ok(())
    }

    fn observe(&mut self, running: &[usize], obs: &[f32], actions: &Actions, next: &[f32]) -> Result<()> {
        if !self.online {
            return Ok(());
        }
        let dims = self.agent.spec().obs_dim();
        let mut stale = Vec::new();
        for (row, &i) in running.iter().enumerate() {
            let [obs, next] = [obs, next].map(|obs| &obs[row * dims..][..dims]);
            let Episode { evidence, trail, .. } = &mut self.episodes[i];
            if trail.observe(self.agent, evidence, (obs, actions.get(row), next)) {
                stale.push(i);
            }
        }
        if !stale.is_empty() {
            self.update(&stale);
        }
        Ok(())
    }
}
