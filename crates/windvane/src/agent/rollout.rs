//! Many episodes in lockstep, each with its own belief: frozen after the context, or updated by what is met.

use super::{Acting, Agent, Known, Model, NodeValues};
use crate::belief::Evidence;
use crate::error::LearnError;
use crate::eval::BeliefMode;
use crate::latent;
use crate::planner::Planner;
use crate::planner::graph::argmax;
use windvane_world::protocol::{EvalEpisode, VectorPolicy};
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, ActionBuf, Actions, ContextId, Reward};

/// A vectorised rollout of one agent.
pub(crate) type Rollout<'a> = Box<dyn VectorPolicy<Error = LearnError> + 'a>;

#[derive(Debug)]
struct VectorRollout<'a> {
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
    /// The task vector before and after it goes toward the belief, and what the context adds to it.
    wanted: Vec<f32>,
    z: Vec<f32>,
    shift: Vec<f32>,
    /// Observations: what F is conditioned on, the belief behind it, the planner's values.
    input: Vec<f32>,
    belief: Vec<f32>,
    plan: Option<NodeValues>,
    /// Listed states: Q of every action everywhere.
    q: Vec<f32>,
    /// The action being held and the steps it is still to be held.
    held: ActionBuf,
    left: usize,
    /// What happened since the evidence was last added to: observations, actions.
    seen: Vec<f32>,
    done: Vec<ActionBuf>,
    /// Steps since the belief was last updated.
    stale: usize,
}

impl Agent {
    /// A rollout of one episode after each context trajectory, in the order the episodes will have.
    pub(crate) fn rollout<'a>(
        &'a self,
        contexts: &[&Trajectory],
        acting: Acting,
    ) -> Result<Rollout<'a>, LearnError> {
        let held = self.spec().action.buffer();
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
            episodes.push(Episode {
                evidence,
                shift,
                context: ContextId(0),
                wanted: Vec::new(),
                z: Vec::new(),
                input: Vec::new(),
                belief: Vec::new(),
                plan: None,
                q: Vec::new(),
                held: held.clone(),
                left: 0,
                seen: Vec::new(),
                done: Vec::new(),
                stale: 0,
            });
        }
        let online = acting.belief == BeliefMode::Online && self.belief().is_some();
        Ok(Box::new(VectorRollout { agent: self, acting, online, episodes }))
    }
}

impl VectorRollout<'_> {
    /// Forms the beliefs of the episodes `which` anew, and what follows from them.
    fn update(&mut self, which: &[usize]) {
        let agent = self.agent;
        let contexts: Vec<ContextId> = which.iter().map(|&i| self.episodes[i].context).collect();
        let evidence: Vec<&Evidence> = which.iter().map(|&i| &self.episodes[i].evidence).collect();
        let known = agent.known(&contexts, &evidence);
        let wanted: Vec<f32> = which.iter().flat_map(|&i| &self.episodes[i].wanted).copied().collect();
        let tasks = agent.blended(&known, &wanted, self.acting.blend);
        let q = match &agent.model {
            Model::Listed(model) => {
                let Acting { planner, task_policy, .. } = self.acting;
                agent.listed_values(model, &known, &tasks, planner, task_policy)
            }
            Model::Observations(_) => Vec::new(),
        };
        let share = |values: &[f32], i: usize| {
            let width = values.len() / which.len().max(1);
            values[i * width..(i + 1) * width].to_vec()
        };
        for (i, &number) in which.iter().enumerate() {
            let episode = &mut self.episodes[number];
            episode.z = share(&tasks, i);
            (episode.input, episode.belief) = (share(&known.inputs, i), share(&known.beliefs, i));
            episode.q = share(&q, i);
            episode.stale = 0;
            if let (Model::Observations(model), Planner::Sweeps) = (&agent.model, self.acting.planner) {
                episode.plan = agent.node_values(model, &episode.belief, &episode.z);
            }
        }
    }

    /// The action in a listed state.
    fn listed_action(&self, episode: &EvalEpisode, number: usize, obs: &[f32]) -> Option<ActionBuf> {
        let Model::Listed(model) = &self.agent.model else { return None };
        let table = model.table();
        let state = table.nearest(obs);
        if let Reward::Goal { goal, .. } = &episode.task.reward
            && table.nearest(goal) == state
            && let Some(action) = table.discretizer().straight(obs, goal)
        {
            return Some(action); // within a box nothing better is known
        }
        let q = &self.episodes[number].q[state * table.actions()..][..table.actions()];
        // A push that is less than a step worse than the best one leads on as well.
        Some(table.discretizer().action(q, model.config().gamma))
    }

    /// Chooses the next action of episodes on observations.
    fn decide(&mut self, which: &[usize], obs: &[f32], asked: &mut [EvalEpisode]) {
        let agent = self.agent;
        let Model::Observations(model) = &agent.model else { return };
        if which.is_empty() {
            return;
        }
        let episodes = || which.iter().map(|&i| &self.episodes[i]);
        let known = Known {
            inputs: episodes().flat_map(|e| &e.input).copied().collect(),
            beliefs: episodes().flat_map(|e| &e.belief).copied().collect(),
            dynamics: Vec::new(),
        };
        let z: Vec<f32> = episodes().flat_map(|e| &e.z).copied().collect();
        let (codec, dims) = (model.codec.actions(), model.codec.dims());
        let actions: Vec<ActionBuf> = if self.acting.planner == Planner::Sweeps {
            let planned = |(episode, obs): (&Episode, &[f32])| {
                let plan = episode.plan.as_ref()?;
                let q = agent.planned_values(model, plan, obs, &episode.belief);
                Some(codec.action(argmax(&q), &codec.candidates()[argmax(&q)]))
            };
            let still = || codec.action(0, &vec![0.0; codec.width()]);
            episodes().zip(obs.chunks_exact(dims)).map(|pair| planned(pair).unwrap_or_else(still)).collect()
        } else {
            let states = agent.states(model, obs, &known, &z);
            match model.n_choices() {
                Some(n) => {
                    let (q, choices) = (model.action_values(&states), codec.candidates());
                    let best = |q| codec.action(argmax(q), &choices[argmax(q)]);
                    q.chunks_exact(n).map(best).collect()
                }
                None => {
                    model.actions(&states).chunks_exact(codec.width()).map(|a| codec.action(0, a)).collect()
                }
            }
        };
        for (&number, mut action) in which.iter().zip(actions) {
            let episode = &mut self.episodes[number];
            if self.online && episode.evidence.transitions() < agent.settings.belief.probe {
                agent.spec().action.sample(&mut asked[number].rng, &mut action);
            }
            (episode.held, episode.left) = (action, model.codec.action_repeat());
        }
    }
}

impl VectorPolicy for VectorRollout<'_> {
    type Error = LearnError;

    fn begin(&mut self, episodes: &[EvalEpisode], _: &[f32]) -> Result<(), LearnError> {
        for (episode, asked) in self.episodes.iter_mut().zip(episodes) {
            episode.wanted = latent::shifted(self.agent.task(&asked.task.reward), &episode.shift);
            episode.context = asked.context;
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
    ) -> Result<(), LearnError> {
        let dims = self.agent.spec().obs_dim();
        let free = running.iter().zip(obs.chunks_exact(dims)).filter(|(i, _)| self.episodes[**i].left == 0);
        let (which, free): (Vec<usize>, Vec<&[f32]>) = free.map(|(&i, obs)| (i, obs)).unzip();
        self.decide(&which, &free.concat(), episodes);
        for (&number, obs) in running.iter().zip(obs.chunks_exact(dims)) {
            if let Some(action) = self.listed_action(&episodes[number], number, obs) {
                self.episodes[number].held = action;
            } else {
                self.episodes[number].left -= 1;
            }
            actions.push(self.episodes[number].held.as_action());
        }
        Ok(())
    }

    fn observe(
        &mut self,
        running: &[usize],
        obs: &[f32],
        _: &Actions,
        next: &[f32],
    ) -> Result<(), LearnError> {
        let Some(belief) = self.agent.belief().filter(|_| self.online) else { return Ok(()) };
        let dims = self.agent.spec().obs_dim();
        let (repeat, refresh) = match &self.agent.model {
            Model::Listed(_) => (1, 1),
            Model::Observations(model) => (model.codec.action_repeat(), self.agent.settings.belief.refresh),
        };
        let mut stale = Vec::new();
        for (row, &number) in running.iter().enumerate() {
            let (obs, next) = (&obs[row * dims..][..dims], &next[row * dims..][..dims]);
            let episode = &mut self.episodes[number];
            if episode.done.is_empty() {
                episode.seen.extend_from_slice(obs);
            }
            episode.seen.extend_from_slice(next);
            episode.done.push(episode.held.clone());
            episode.stale += 1;
            if episode.done.len() == repeat {
                let actions: Vec<Action<'_>> = episode.done.iter().map(ActionBuf::as_action).collect();
                let news = belief.observe_step(&mut episode.evidence, &episode.seen, &actions);
                episode.seen.clear();
                episode.done.clear();
                if news && episode.stale >= refresh {
                    stale.push(number);
                }
            }
        }
        if !stale.is_empty() {
            self.update(&stale);
        }
        Ok(())
    }
}
