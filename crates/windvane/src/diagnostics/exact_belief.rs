//! A belief against what is exact on grids: does it know the walls, and how far does a planner get on it?

use super::exact::Examiner;
use super::perturbed::{Perturbation, auroc};
use super::{Finding, Limits};
use crate::agent::Agent;
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, evaluate, explore, success};
use crate::fb::conditioning::Conditioner;
use crate::latent::{self, cone_means};
use crate::linalg::linear_probe;
use crate::planner::Planner;
use windvane_world::grid::{Planner as BayesPlanner, Prior};
use windvane_world::protocol::{EvalEpisode, rollout};
use windvane_world::rng::stream;
use windvane_world::{Reward, Split};

/// Random trajectories in each training context for the probe, half of them to learn from.
const PROBES: u64 = 20;
/// Most training contexts that the probe tells apart, and that angles are measured in.
const CONTEXTS: usize = 50;

/// Shares of cells that are rightly classified as wall or free.
struct Walls {
    /// Where the context went.
    seen: f64,
    /// Elsewhere, by the belief and by the exact posterior.
    elsewhere: f64,
    posterior: f64,
}

impl Examiner<'_> {
    /// Findings about the belief; none for a method without one.
    pub fn belief_findings(&self) -> Result<Vec<Finding>, LearnError> {
        if self.agent.belief().is_none() {
            return Ok(Vec::new());
        }
        let mut all = self.knowledge()?;
        all.push(self.angle()?);
        let quick = EvalConfig { rounds: 2, ..self.eval };
        let limits = Limits { good: 0.95, fair: 0.8 };
        let advice = "train the belief longer: it does not notice dynamics that are like none of its data";
        for perturbation in Perturbation::ALL {
            if let Some(area) = auroc(self.world, self.agent, perturbation, &quick, self.seed)? {
                let what = format!("unseen contexts separated from {} (AUROC)", perturbation.title());
                all.push(Finding::at_least("belief", what, area, limits, advice));
            }
        }
        all.extend(self.against_bayes()?);
        Ok(all)
    }

    /// Does the belief know the walls, and can one tell from it where one is?
    fn knowledge(&self) -> Result<Vec<Finding>, LearnError> {
        let advice = "train the belief longer, on more contexts";
        let (train, test) = (self.walls(Split::Train)?, self.walls(Split::Test)?);
        let finding = |what: String, value, good, fair| {
            Finding::at_least("belief", what, value, Limits { good, fair }, advice)
        };
        let mut findings = vec![
            finding("walls where the context went, training layouts".into(), train.seen, 0.97, 0.9),
            finding("walls where the context went, unseen layouts".into(), test.seen, 0.9, 0.9),
        ];
        for (name, walls) in [("training", &train), ("unseen", &test)] {
            let what = format!("walls elsewhere, {name} layouts / exact posterior's");
            findings.push(finding(what, walls.elsewhere / walls.posterior.max(1e-9), 0.95, 0.85));
        }
        let what = "linear probe of the training layout (after 500 steps)".to_owned();
        findings.push(finding(what, self.probe()?, 0.9, 0.7));
        Ok(findings)
    }

    /// How often cells are rightly classified as wall or free after one context of each layout.
    fn walls(&self, split: Split) -> Result<Walls, LearnError> {
        let prior = Prior::new(self.grid.layouts());
        let (mut seen, mut elsewhere, mut posterior) = ([0_usize; 2], [0_usize; 2], [0_usize; 2]);
        let add = |share: &mut [usize; 2], right: bool| {
            share[0] += usize::from(right);
            share[1] += 1;
        };
        for &context in self.world.contexts(split).iter().take(self.eval.contexts) {
            let layout = self.grid.layout(context)?;
            let trajectory = explore(self.world, context, &self.eval, self.seed, 0)?;
            let evidence = self.table().evidence(self.table().tokens_of(&trajectory));
            let open = self.enterable(&self.agent.known_after(context, &trajectory).dynamics);
            let mut exact = prior.posterior();
            exact.observe_all(self.world.spec(), trajectory.transitions());
            for (cell, wall) in exact.walls().iter().enumerate() {
                let Some(state) = self.state(cell) else { continue };
                let free = layout.is_free(cell);
                let right = (open[state] > 0.5) == free;
                if evidence[state * 2] + evidence[state * 2 + 1] > 0.0 {
                    add(&mut seen, right);
                } else {
                    add(&mut elsewhere, right);
                    add(&mut posterior, (*wall < 0.5) == free);
                }
            }
        }
        let share = |[right, all]: [usize; 2]| right as f64 / all.max(1) as f64;
        Ok(Walls { seen: share(seen), elsewhere: share(elsewhere), posterior: share(posterior) })
    }

    /// The chance that a state can be entered from beside it, the mean over ways in, `[states]`.
    fn enterable(&self, dynamics: &[f32]) -> Vec<f32> {
        let table = self.table();
        let mut sums = vec![(0.0, 0.0); table.states()];
        for (pair, p) in dynamics.chunks_exact(table.width()).enumerate() {
            let ways = table.outcomes(pair).iter().zip(p);
            for (&to, p) in ways.filter(|(to, _)| **to as usize != pair / table.actions) {
                sums[to as usize].0 += p;
                sums[to as usize].1 += 1.0;
            }
        }
        sums.into_iter().map(|(sum, count)| sum / f32::max(count, 1.0)).collect()
    }

    /// Whether a linear map can read the training layout off h.
    fn probe(&self) -> Result<f64, LearnError> {
        let contexts = self.world.contexts(Split::Train);
        let config = EvalConfig { context_steps: 500, ..self.eval };
        let (mut parts, mut labels) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for (label, &context) in contexts.iter().enumerate().take(CONTEXTS) {
            for round in 0..PROBES {
                let trajectory = explore(self.world, context, &config, self.seed, round)?;
                let half = (round % 2) as usize;
                parts[half].extend(self.agent.beliefs(&[&trajectory]).iter().map(|h| (h / 2.0).tanh()));
                labels[half].push(label);
            }
        }
        Ok(linear_probe(&parts[0], &labels[0], &parts[1], &labels[1], contexts.len().min(CONTEXTS)))
    }

    /// The mean angle between z of a goal and h, as Rotation-FB's cones see it.
    fn angle(&self) -> Result<Finding, LearnError> {
        let (mut beliefs, mut tasks) = (Vec::new(), Vec::new());
        for &context in self.world.contexts(Split::Train).iter().take(CONTEXTS) {
            let Some(task) = self.world.tasks(context)?.into_iter().next() else { continue };
            if let reward @ Reward::Goal { .. } = task.reward {
                let trajectory = explore(self.world, context, &self.eval, self.seed, 0)?;
                beliefs.extend(self.agent.beliefs(&[&trajectory]));
                tasks.push(self.agent.task(&reward));
            }
        }
        let (states, dim) = (self.table().states(), self.agent.dim());
        let width = dim.max(states);
        let centred = match &self.agent.conditioner {
            conditioner @ Conditioner::Belief { .. } => conditioner.centred(&beliefs),
            _ => beliefs,
        };
        let axes = cone_means(&centred, states, width);
        let angles: Vec<f64> =
            axes.chunks_exact(width).zip(&tasks).map(|(h, z)| latent::angle(&h[..dim], z)).collect();
        let mean = angles.iter().sum::<f64>() / angles.len().max(1) as f64;
        Ok(Finding::report("belief", "angle between z of a goal and h, degrees", mean))
    }

    /// The planner on the belief, with an exact B, against the exact Bayes planner, and F alone against the planner.
    fn against_bayes(&self) -> Result<Vec<Finding>, LearnError> {
        let exact = self.agent.with_exact_backward();
        let mut findings = Vec::new();
        for (mode, name, steps) in [
            (BeliefMode::Frozen, "frozen", 100),
            (BeliefMode::Frozen, "frozen", 500),
            (BeliefMode::Online, "online", 100),
        ] {
            let score = |agent: &Agent, planner: Planner| -> Result<f64, LearnError> {
                let config = EvalConfig { context_steps: steps, planner, ..self.eval };
                Ok(success(&evaluate(self.world, agent, Split::Test, mode, &config, self.seed)?))
            };
            let (planned, alone) = (score(&exact, Planner::Sweeps)?, score(self.agent, Self::F_ALONE)?);
            let bayes = self.bayes(mode, &EvalConfig { context_steps: steps, ..self.eval })?;
            let what = format!(
                "planner on the belief, {name} after {steps} steps, unseen: {planned:.2} / exact Bayes planner {bayes:.2}"
            );
            let advice = "the belief is the weak part: train it longer, on more contexts";
            let limits = Limits { good: 0.9, fair: 0.7 };
            findings.push(Finding::at_least("belief", what, planned / bayes.max(1e-9), limits, advice));
            let what = format!(
                "F alone, {name} after {steps} steps, unseen: {alone:.2} / planner on the same belief {planned:.2}"
            );
            let advice = "F lags behind its belief: train it longer (fb.steps)";
            let limits = Limits { good: 0.95, fair: 0.8 };
            findings.push(Finding::at_least("F", what, alone / planned.max(1e-9), limits, advice));
        }
        Ok(findings)
    }

    /// The share of episodes on unseen layouts that the exact Bayes planner wins, with the uniform prior over all layouts.
    fn bayes(&self, mode: BeliefMode, config: &EvalConfig) -> Result<f64, LearnError> {
        let prior = Prior::new(self.grid.layouts());
        let (mut won, mut all) = (0_usize, 0_usize);
        for &context in self.world.contexts(Split::Test).iter().take(config.contexts) {
            for round in 0..config.rounds {
                let trajectory = explore(self.world, context, config, self.seed, round)?;
                let mut belief = prior.posterior();
                belief.observe_all(self.world.spec(), trajectory.transitions());
                for task in self.world.tasks(context)? {
                    let episode =
                        EvalEpisode { context, task, rng: stream(self.seed, "episode", &[context.0, round]) };
                    let spec = self.world.spec();
                    let outcome = match mode {
                        BeliefMode::Frozen => {
                            rollout(self.world, episode, &mut BayesPlanner::new(spec, belief.dynamics()))?
                        }
                        BeliefMode::Online => {
                            rollout(self.world, episode, &mut BayesPlanner::new(spec, belief.clone()))?
                        }
                    };
                    won += usize::from(outcome.success);
                    all += 1;
                }
            }
        }
        Ok(won as f64 / all.max(1) as f64)
    }
}
