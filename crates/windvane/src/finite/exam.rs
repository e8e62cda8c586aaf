//! An examination of a trained agent where everything is exact: is B orthonormal, does F B agree with the successor measure,
//! does the belief know the walls, and does the policy make the most of its belief?

use super::agent::FiniteAgent;
use super::nets::Forward;
use super::play::evidence_of;
use super::situations::Situations;
use super::sweeps;
use super::target::{Dynamics as Source, Goal, Group, Reward as Stakes};
use crate::doctor::{self, Finding, Limits};
use crate::error::LearnError;
use crate::eval::{BeliefMode, EvalConfig, evaluate, explore, success};
use crate::linalg::{effective_rank, eigen, linear_probe};
use crate::train::Metrics;
use windvane_world::grid::{
    ACTIONS, Dynamics, GridWorld, Layout, Prior, SuccessorMeasure, deterministic, distances,
};
use windvane_world::{Cmdp, ContextId, Reward, Split};

/// Enough sweeps to forget where they began: value iteration.
pub const PLANNER_SWEEPS: usize = 200;
/// Steps of a random trajectory that shows nearly everything: what is wrong after it is not for want of knowledge.
const WELL_KNOWN: usize = 4000;
/// Training contexts that are looked at closely.
const CONTEXTS: usize = 5;
/// Random trajectories in each training context for the probe, half of them to learn from.
const PROBES: u64 = 20;
/// Distances to a goal that are reported together: up to, and what they are called in tables and in logs.
const BANDS: [(u16, &str, &str); 4] = [
    (4, "1-4", "optimal 1-4"),
    (8, "5-8", "optimal 5-8"),
    (16, "9-16", "optimal 9-16"),
    (u16::MAX, "17 and more", "optimal 17+"),
];
/// Goals of a context that are looked at while training.
const FEW_GOALS: usize = 12;

/// How far a policy is from perfect, and its F B from exact.
#[derive(Clone, Debug, Default)]
pub struct Exactness {
    /// Pairs of a state and a goal whose greedy action shortens the path, and all, by distance.
    pub optimal: [(usize, usize); 4],
    /// The error of F B against the exact successor measure of its own policy, relative and weighted by rho.
    pub error: f64,
    /// The mean of the largest worth, and the mean gap between the best and the worst action relative to it.
    pub scale: f64,
    /// The mean gap between the best and the worst action, relative to the best.
    pub gap: f64,
}

impl Exactness {
    /// The share of optimal actions over all distances.
    pub fn optimal_share(&self) -> f64 {
        let (right, all) = self.optimal.iter().fold((0, 0), |sum, band| (sum.0 + band.0, sum.1 + band.1));
        right as f64 / all.max(1) as f64
    }
}

/// Examines an agent on a grid.
#[derive(Clone, Copy)]
pub struct Examiner<'a> {
    /// The world, hidden maps included.
    pub world: &'a dyn Cmdp,
    /// Its maps.
    pub grid: &'a GridWorld,
    /// The patient.
    pub agent: &'a FiniteAgent,
    /// How it plays.
    pub eval: EvalConfig,
    /// The run's seed.
    pub seed: u64,
}

impl Examiner<'_> {
    /// All findings.
    pub fn findings(&self) -> Result<Vec<Finding>, LearnError> {
        let mut all = vec![self.coverage()];
        all.extend(self.backward());
        all.extend(self.forward()?);
        if self.agent.listens() {
            all.extend(self.belief()?);
            all.extend(self.doubts()?);
            all.extend(self.yardstick()?);
        }
        Ok(all)
    }

    /// How much of each group's world its data shows.
    fn coverage(&self) -> Finding {
        let survey = self.agent.survey();
        let tried = |counts: &[(u32, u32)]| {
            counts.chunk_by(|a, b| a.0 as usize / survey.width() == b.0 as usize / survey.width()).count()
        };
        let share = |counts: &[(u32, u32)]| {
            let mut visited = vec![false; survey.states()];
            counts
                .iter()
                .for_each(|(token, _)| visited[*token as usize / survey.width() / survey.actions()] = true);
            let pairs = visited.iter().filter(|v| **v).count() * survey.actions();
            tried(counts) as f64 / pairs.max(1) as f64
        };
        let worst = survey.groups().iter().map(|group| share(&group.counts)).fold(1.0, f64::min);
        let limits = Limits { good: 0.95, fair: 0.7 };
        let advice = "collect more, or with a policy that explores: what was never tried cannot be learned";
        Finding::at_least("data", "actions tried in visited states, worst group", worst, limits, advice)
    }

    /// B: are different states different?
    fn backward(&self) -> [Finding; 2] {
        let rho = self.agent.survey().rho();
        let [error, rank] = doctor::spread(&self.agent.model().backward(), rho);
        let advice = "raise agent.ortho or train longer: goals that look alike to B get the same z";
        let what = "orthonormality error (mean cosine of different states)";
        let share = rank / rho.len() as f64;
        [
            Finding::at_most("B", what, error, Limits { good: 0.1, fair: 0.3 }, advice),
            Finding::at_least(
                "B",
                "effective rank / states",
                share,
                Limits { good: 0.5, fair: 0.25 },
                advice,
            ),
        ]
    }

    /// F: against the exact successor measure and the shortest paths of well-known training contexts.
    fn forward(&self) -> Result<Vec<Finding>, LearnError> {
        let exact = self.exactness(CONTEXTS, usize::MAX)?;
        let mut findings = Vec::new();
        let advice = "train F longer, or look further ahead (eval.lookahead)";
        for ((right, all), (_, name, _)) in exact.optimal.iter().zip(BANDS).filter(|((_, all), _)| *all > 0) {
            let share = *right as f64 / *all as f64;
            let what = format!("optimal actions, {name} steps from the goal");
            findings.push(Finding::at_least("F", what, share, Limits { good: 0.99, fair: 0.9 }, advice));
        }
        let limits = Limits { good: 0.1, fair: 0.3 };
        findings.push(Finding::at_most(
            "F",
            match self.agent.model().goal() {
                Goal::Measure => "error of F B against the exact successor measure",
                Goal::Features => "error of psi against the exact successor features",
            },
            exact.error,
            limits,
            advice,
        ));
        findings.push(Finding::report("F", "largest worth of an action, mean over tasks", exact.scale));
        let what = "gap between best and worst action / best";
        findings.push(Finding::at_least(
            "F",
            what,
            exact.gap,
            Limits { good: 0.02, fair: 0.005 },
            "the gaps drown in the scale: lower agent.gamma",
        ));
        let rank = self.forward_rank()?;
        let states = self.agent.survey().states() as f64;
        findings.push(Finding::at_least(
            "F",
            "effective rank / states",
            rank / states,
            Limits { good: 0.1, fair: 0.03 },
            advice,
        ));
        Ok(findings)
    }

    /// The numbers to watch: optimal actions by distance, the error of F B, orthonormality and the scale of Q.
    pub fn vitals(&self) -> Result<Metrics, LearnError> {
        let exact = self.exactness(1, FEW_GOALS)?;
        let [ortho, _] = doctor::spread(&self.agent.model().backward(), self.agent.survey().rho());
        let bands = exact.optimal.iter().zip(BANDS).filter(|((_, all), _)| *all > 0);
        let optimal = bands.map(|((right, all), (.., name))| (name, *right as f64 / *all as f64));
        Ok(optimal
            .chain([("F B error", exact.error), ("ortho error", ortho), ("Q scale", exact.scale)])
            .collect())
    }

    /// Looks closely at `contexts` training contexts that the agent knows well, and up to `goals` goals in each.
    pub fn exactness(&self, contexts: usize, goals: usize) -> Result<Exactness, LearnError> {
        let mut sum = Exactness::default();
        let mut games = 0.0;
        let b = self.agent.model().backward();
        let stakes = self.agent.model().rewards(&b, self.agent.survey().rho());
        for &context in self.world.contexts(Split::Train).iter().take(contexts) {
            let layout = self.grid.layout(context)?;
            let situation = self.well_known(context)?;
            let every = layout.free_cells().count().div_ceil(goals).max(1);
            for goal in layout.free_cells().step_by(every) {
                let Some(z) = self.goal_task(goal) else { continue };
                let q = self.agent.action_values(&situation, &z, self.eval.outlook());
                self.judge_actions(layout, goal, &q, &mut sum);
                sum.error += self.successor_error(layout, &situation, &z, &q, &b, &stakes);
                games += 1.0;
            }
        }
        for part in [&mut sum.error, &mut sum.scale, &mut sum.gap] {
            *part /= f64::max(games, 1.0);
        }
        Ok(sum)
    }

    /// The task of reaching a cell; nothing if no episode went there.
    fn goal_task(&self, cell: usize) -> Option<Vec<f32>> {
        let mut obs = vec![0.0; self.world.spec().obs_dim()];
        self.world.spec().write_state(cell, &mut obs);
        self.agent.survey().state(&obs)?;
        Some(self.agent.task(&Reward::Goal { goal: obs, tolerance: 0.0 }))
    }

    /// What the agent believes of a context after it has seen nearly everything.
    fn well_known(&self, context: ContextId) -> Result<Situations, LearnError> {
        let config = EvalConfig { context_steps: WELL_KNOWN, ..self.eval };
        let evidence = evidence_of(self.agent, &explore(self.world, context, &config, self.seed, 0)?);
        Ok(self.agent.situations_in(&[context], &evidence))
    }

    /// The visited state of a cell.
    fn state(&self, cell: usize) -> Option<usize> {
        let mut obs = vec![0.0; self.world.spec().obs_dim()];
        self.world.spec().write_state(cell, &mut obs);
        self.agent.survey().state(&obs)
    }

    fn judge_actions(&self, layout: &Layout, goal: usize, q: &[f32], sum: &mut Exactness) {
        let far = distances(layout, goal);
        let (mut peak, mut gaps, mut count) = (0.0_f64, 0.0, 0.0);
        for cell in layout.free_cells().filter(|&cell| cell != goal && far[cell] != u16::MAX) {
            let Some(state) = self.state(cell) else { continue };
            let q = &q[state * ACTIONS..][..ACTIONS];
            let mut best = [0];
            sweeps::greedy(ACTIONS, q, &mut best);
            let shorter = far[layout.step(cell, best[0] as usize)] < far[cell];
            let band = BANDS.iter().position(|(limit, ..)| far[cell] <= *limit).unwrap_or(0);
            sum.optimal[band].0 += usize::from(shorter);
            sum.optimal[band].1 += 1;
            let high = f64::from(q[best[0] as usize]);
            let low = q.iter().fold(f64::INFINITY, |low, &q| low.min(f64::from(q)));
            peak = peak.max(high);
            gaps += (high - low) / high.abs().max(1e-9);
            count += 1.0;
        }
        sum.scale += peak;
        sum.gap += gaps / f64::max(count, 1.0);
    }

    /// The relative error, weighted by rho, of the successor measure F B (of the successor features F, where features are
    /// given) against the exact one of the policy that `q` gives.
    fn successor_error(
        &self,
        layout: &Layout,
        situation: &Situations,
        z: &[f32],
        q: &[f32],
        b: &[f32],
        stakes: &Stakes,
    ) -> f64 {
        let (survey, config) = (self.agent.survey(), self.agent.model().config());
        let (gamma, goal, dim) = (config.gamma, self.agent.model().goal(), z.len());
        let f = self.agent.model().forward(situation.conditions.clone(), z.to_vec());
        let mut policy = vec![0; survey.states()];
        sweeps::greedy(ACTIONS, q, &mut policy);
        let ours = match config.nets.forward {
            Forward::Predictor => {
                let group =
                    Group { survey, f: vec![&f], b, z, reward: stakes, gamma, temperature: 0.0, goal };
                group.aim(Source::Decoded { p: &situation.dynamics, sweeps: self.eval.lookahead }).density
            }
            Forward::Paper => {
                let chosen = policy.iter().enumerate().map(|(s, &a)| &f[(s * ACTIONS + a as usize) * dim..]);
                chosen.flat_map(|f| goal.row(&f[..dim], b)).collect()
            }
        };
        let cells: Vec<Option<usize>> = (0..layout.cells()).map(|cell| self.state(cell)).collect();
        let choice = |cell: usize| cells[cell].map_or(0, |state| policy[state] as usize);
        let policy = deterministic(layout.cells(), choice);
        let exact = SuccessorMeasure::of(&Dynamics::of(layout), &policy, f64::from(gamma));
        let mut open = vec![false; survey.states()];
        layout.free_cells().filter_map(|cell| cells[cell]).for_each(|state| open[state] = true);
        let (mut off, mut size) = (0.0, 0.0);
        for cell in layout.free_cells() {
            let Some(s) = cells[cell] else { continue };
            // How often each state is met. U counts the state itself first, F what comes after the action.
            let mut met = vec![0.0; survey.states()];
            let after = exact.after(cell, choice(cell));
            for to in layout.free_cells() {
                let Some(t) = cells[to] else { continue };
                met[t] = match config.nets.forward {
                    Forward::Predictor => f64::from(u8::from(s == t)) + f64::from(gamma) * after[to],
                    Forward::Paper => after[to],
                };
            }
            let width = ours.len() / survey.states();
            for (k, &ours) in ours[s * width..][..width].iter().enumerate() {
                let (truth, weight) = match goal {
                    Goal::Measure if !open[k] => continue,
                    Goal::Measure => {
                        let rho = f64::from(survey.rho()[k]);
                        (met[k] / rho, rho)
                    }
                    Goal::Features => {
                        let phi = b.iter().skip(k).step_by(dim).map(|phi| f64::from(*phi));
                        (met.iter().zip(phi).map(|(met, phi)| met * phi).sum(), 1.0)
                    }
                };
                let weight = weight * f64::from(survey.rho()[s]);
                off += weight * (f64::from(ours) - truth).powi(2);
                size += weight * truth * truth;
            }
        }
        (off / size).sqrt()
    }

    /// Over how many directions F spreads: contexts, goals and states together.
    fn forward_rank(&self) -> Result<f64, LearnError> {
        let dim = self.agent.model().config().nets.dim;
        let mut gram = vec![0.0; dim * dim];
        for &context in self.world.contexts(Split::Train).iter().take(CONTEXTS) {
            let situation = self.well_known(context)?;
            for &goal in self.grid.goals(context)? {
                let Some(z) = self.goal_task(goal) else { continue };
                for f in self.agent.model().forward(situation.conditions.clone(), z).chunks_exact(dim) {
                    for (row, &x) in gram.chunks_exact_mut(dim).zip(f) {
                        row.iter_mut().zip(f).for_each(|(g, &y)| *g += f64::from(x) * f64::from(y));
                    }
                }
            }
        }
        Ok(effective_rank(&eigen(gram, dim).0))
    }

    /// Does the belief know the walls, and can one tell from it where one is?
    fn belief(&self) -> Result<Vec<Finding>, LearnError> {
        let limits = Limits { good: 0.97, fair: 0.9 };
        let advice = "train the belief longer, on more contexts";
        let train = self.walls(Split::Train)?;
        let test = self.walls(Split::Test)?;
        let mut findings = vec![
            Finding::at_least(
                "belief",
                "walls where the context went, training layouts",
                train.seen,
                limits,
                advice,
            ),
            Finding::at_least(
                "belief",
                "walls where the context went, unseen layouts",
                test.seen,
                Limits { good: 0.9, ..limits },
                advice,
            ),
        ];
        for (name, walls) in [("training", &train), ("unseen", &test)] {
            let what = format!("walls elsewhere, {name} layouts / exact posterior's");
            let limits = Limits { good: 0.95, fair: 0.85 };
            findings.push(Finding::at_least(
                "belief",
                what,
                walls.elsewhere / walls.posterior.max(1e-9),
                limits,
                advice,
            ));
        }
        let what = "linear probe of the training layout (after 500 steps)";
        findings.push(Finding::at_least(
            "belief",
            what,
            self.probe()?,
            Limits { good: 0.9, fair: 0.7 },
            advice,
        ));
        Ok(findings)
    }

    /// How often walls and free cells are told apart after one context of each layout.
    fn walls(&self, split: Split) -> Result<Walls, LearnError> {
        let prior = Prior::new(self.grid.layouts());
        let (mut seen, mut elsewhere, mut posterior) = (Share::default(), Share::default(), Share::default());
        for &context in self.world.contexts(split).iter().take(self.eval.contexts) {
            let layout = self.grid.layout(context)?;
            let walk = explore(self.world, context, &self.eval, self.seed, 0)?;
            let evidence = evidence_of(self.agent, &walk);
            let open = self.enterable(&self.agent.situations(&evidence).dynamics);
            let mut exact = prior.posterior();
            exact.observe_all(self.world.spec(), walk.transitions());
            let walls = exact.walls();
            for (cell, wall) in walls.iter().enumerate() {
                let Some(state) = self.state(cell) else { continue };
                let free = layout.is_free(cell);
                let right = (open[state] > 0.5) == free;
                if evidence[state * 2] + evidence[state * 2 + 1] > 0.0 {
                    seen.add(right);
                } else {
                    elsewhere.add(right);
                    posterior.add((*wall < 0.5) == free);
                }
            }
        }
        Ok(Walls { seen: seen.value(), elsewhere: elsewhere.value(), posterior: posterior.value() })
    }

    /// The chance that a state can be entered from beside it, as decoded dynamics say on average, `[states]`.
    fn enterable(&self, dynamics: &[f32]) -> Vec<f32> {
        let survey = self.agent.survey();
        let mut sums = vec![(0.0, 0.0); survey.states()];
        for (token, (p, &to)) in dynamics.iter().zip(survey.successors()).enumerate() {
            let pair = token / survey.width();
            let real = token % survey.width() < survey.outcomes(pair);
            if real && to as usize != pair / survey.actions() {
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
        for (label, &context) in contexts.iter().enumerate().take(50) {
            for round in 0..PROBES {
                let evidence =
                    evidence_of(self.agent, &explore(self.world, context, &config, self.seed, round)?);
                let half = (round % 2) as usize;
                parts[half].extend(self.agent.situations(&evidence).conditions);
                labels[half].push(label);
            }
        }
        Ok(linear_probe(&parts[0], &labels[0], &parts[1], &labels[1], contexts.len().min(50)))
    }

    /// Value iteration on the decoded dynamics against the exact Bayes planner, and the agent against that.
    fn yardstick(&self) -> Result<Vec<Finding>, LearnError> {
        let mut findings = Vec::new();
        let limits = Limits { good: 0.9, fair: 0.7 };
        for (mode, name, steps) in [
            (BeliefMode::Frozen, "frozen", 100),
            (BeliefMode::Frozen, "frozen", 500),
            (BeliefMode::Online, "online", 100),
        ] {
            let config = EvalConfig { context_steps: steps, ..self.eval };
            let planner = EvalConfig { lookahead: PLANNER_SWEEPS, ..config };
            let score = |config: &EvalConfig| -> Result<f64, LearnError> {
                Ok(success(&evaluate(self.world, self.agent, Split::Test, mode, config, self.seed)?))
            };
            let (belief, agent) = (score(&planner)?, score(&config)?);
            let bayes = super::bayes::success(self.world, self.grid, mode, &config, self.seed)?;
            let what = format!(
                "planner on the belief, {name} after {steps} steps, unseen: {belief:.2} / exact Bayes planner {bayes:.2}"
            );
            let advice = "the belief is the weak part: train it longer, on more contexts";
            findings.push(Finding::at_least("yardstick", what, belief / bayes.max(1e-9), limits, advice));
            let what = format!(
                "agent, {name} after {steps} steps, unseen: {agent:.2} / planner on its belief {belief:.2}"
            );
            let advice = "F lags behind its belief: train it longer, or look further ahead (eval.lookahead)";
            findings.push(Finding::at_least(
                "yardstick",
                what,
                agent / belief.max(1e-9),
                Limits { good: 0.95, fair: 0.8 },
                advice,
            ));
        }
        Ok(findings)
    }
}

struct Walls {
    seen: f64,
    elsewhere: f64,
    posterior: f64,
}

#[derive(Default)]
struct Share {
    right: usize,
    all: usize,
}

impl Share {
    fn add(&mut self, right: bool) {
        self.right += usize::from(right);
        self.all += 1;
    }

    fn value(&self) -> f64 {
        self.right as f64 / self.all.max(1) as f64
    }
}
