//! A trained agent against what is exact on grids: is B orthonormal, does F B agree with the successor measure, does F choose
//! the shortest ways?

use super::{Finding, Limits, spread};
use crate::agent::{Agent, Known};
use crate::data::StateTable;
use crate::error::LearnError;
use crate::eval::{EvalConfig, explore};
use crate::fb::ListedModel;
use crate::fb::config::ForwardForm;
use crate::linalg::{effective_rank, eigen};
use crate::planner::Planner;
use crate::planner::graph::argmax;
use crate::train::Scores;
use windvane_world::grid::{
    ACTIONS, Dynamics, GridWorld, Layout, SuccessorMeasure, deterministic, distances,
};
use windvane_world::{Cmdp, ContextId, Reward, Split};

/// Steps of a random trajectory that shows nearly everything: what is wrong after it is not for want of knowledge.
const WELL_KNOWN: usize = 4000;
/// Training contexts that are looked at closely.
const CONTEXTS: usize = 5;
/// Goals of a context that are looked at while training.
const FEW_GOALS: usize = 12;
/// Distances to a goal that are reported together: up to, and what they are called in tables and in logs.
const BANDS: [(u16, &str, &str); 4] = [
    (4, "1-4", "optimal 1-4"),
    (8, "5-8", "optimal 5-8"),
    (16, "9-16", "optimal 9-16"),
    (u16::MAX, "17 and more", "optimal 17+"),
];

/// How far a policy is from perfect, and its F B from exact.
#[derive(Clone, Debug, Default)]
pub struct Exactness {
    /// Pairs of a state and a goal whose greedy action shortens the path, and all, by distance.
    pub optimal: [(usize, usize); 4],
    /// Relative root mean square error of F B against the exact successor measure of its own policy.
    pub error: f64,
    /// The same on states other than the goal.
    pub error_off_goal: f64,
    /// Mean over tasks of the largest Q.
    pub largest_q: f64,
    /// Mean gap between the best and the worst action, relative to the best.
    pub gap: f64,
}

impl Exactness {
    /// The share of optimal actions over all distances.
    pub fn optimal_share(&self) -> f64 {
        let (right, all) = self.optimal.iter().fold((0, 0), |sum, band| (sum.0 + band.0, sum.1 + band.1));
        right as f64 / all.max(1) as f64
    }
}

/// Compares an agent on a grid with exact answers.
#[derive(Clone, Copy)]
pub struct Examiner<'a> {
    /// The environment, hidden maps included.
    pub world: &'a dyn Cmdp,
    /// Its maps.
    pub grid: &'a GridWorld,
    /// The agent.
    pub agent: &'a Agent,
    /// Its F and B.
    pub model: &'a ListedModel,
    /// How it is evaluated.
    pub eval: EvalConfig,
    /// The run's seed.
    pub seed: u64,
}

impl std::fmt::Debug for Examiner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Examiner({})", self.world.spec().name)
    }
}

/// The few numbers to watch while F is trained, besides its scores; none where nothing exact is known.
pub(crate) fn metrics(
    agent: &Agent,
    world: &dyn Cmdp,
    eval: &EvalConfig,
    seed: u64,
) -> Result<Scores, LearnError> {
    let Some(examiner) = Examiner::new(agent, world, eval, seed) else { return Ok(Scores::new()) };
    let exact = examiner.exactness(1, FEW_GOALS)?;
    let [ortho, _] = spread(&examiner.model.backward(), &examiner.uniform());
    let bands = exact.optimal.iter().zip(BANDS).filter(|((_, all), _)| *all > 0);
    let optimal = bands.map(|((right, all), (.., name))| (name, *right as f64 / *all as f64));
    let rest = [
        ("F B error", exact.error),
        ("F B error off goal", exact.error_off_goal),
        ("ortho error", ortho),
        ("largest Q", exact.largest_q),
    ];
    Ok(optimal.chain(rest).collect())
}

impl<'a> Examiner<'a> {
    /// An examiner of an agent on listed states of a grid; nothing for others.
    pub fn new(agent: &'a Agent, world: &'a dyn Cmdp, eval: &EvalConfig, seed: u64) -> Option<Self> {
        let (model, grid) = (agent.listed()?, world.grid()?);
        Some(Self { world, grid, agent, model, eval: *eval, seed })
    }

    /// Findings about data, B and F.
    pub fn findings(&self) -> Result<Vec<Finding>, LearnError> {
        let mut all = vec![self.coverage()];
        all.extend(self.backward());
        all.extend(self.forward()?);
        Ok(all)
    }

    pub(super) fn table(&self) -> &StateTable {
        &self.model.table
    }

    /// All states alike.
    fn uniform(&self) -> Vec<f32> {
        let states = self.table().states();
        vec![1.0 / states as f32; states]
    }

    /// How much of each group's environment its data shows.
    fn coverage(&self) -> Finding {
        let table = self.table();
        let share = |counts: &[f32]| {
            let tried =
                |width: usize| counts.chunks_exact(width).filter(|of| of.iter().any(|n| *n > 0.0)).count();
            let visited = tried(table.width() * table.actions);
            tried(table.width()) as f64 / (visited * table.actions).max(1) as f64
        };
        let worst = table.groups.iter().map(|group| share(&group.counts)).fold(1.0, f64::min);
        let limits = Limits { good: 0.95, fair: 0.7 };
        let advice = "collect more, or with a policy that explores: what was never tried cannot be learned";
        Finding::at_least("data", "actions tried in visited states, worst group", worst, limits, advice)
    }

    /// B: are different states different?
    fn backward(&self) -> [Finding; 2] {
        let [error, rank] = spread(&self.model.backward(), &self.uniform());
        let advice = "raise fb.ortho_coef or train longer: goals that look alike to B get the same z";
        let what = "orthonormality error (mean cosine of different states)";
        let share = rank / self.table().states() as f64;
        let limits = Limits { good: 0.5, fair: 0.25 };
        [
            Finding::at_most("B", what, error, Limits { good: 0.1, fair: 0.3 }, advice),
            Finding::at_least("B", "effective rank / states", share, limits, advice),
        ]
    }

    /// F alone: against the exact successor measure and the shortest paths of well-known training contexts.
    fn forward(&self) -> Result<Vec<Finding>, LearnError> {
        let exact = self.exactness(CONTEXTS, usize::MAX)?;
        let mut findings = Vec::new();
        let advice = "train F longer (fb.steps)";
        for ((right, all), (_, name, _)) in exact.optimal.iter().zip(BANDS).filter(|((_, all), _)| *all > 0) {
            let share = *right as f64 / *all as f64;
            let what = format!("optimal actions of F alone, {name} steps from the goal");
            findings.push(Finding::at_least("F", what, share, Limits { good: 0.99, fair: 0.9 }, advice));
        }
        let what = if self.model.has_given_features() {
            "error of psi against the exact successor features"
        } else {
            "error of F B against the exact successor measure"
        };
        let limits = Limits { good: 0.1, fair: 0.3 };
        findings.push(Finding::at_most("F", what, exact.error, limits, advice));
        if !self.model.has_given_features() {
            let what = "the same on states other than the goal";
            findings.push(Finding::report("F", what, exact.error_off_goal));
        }
        findings.push(Finding::report("F", "largest Q, mean over tasks (at most 1)", exact.largest_q));
        findings.push(Finding::at_least(
            "F",
            "gap between best and worst action / best",
            exact.gap,
            Limits { good: 0.02, fair: 0.005 },
            "the gaps drown in the scale: lower fb.gamma",
        ));
        let share = self.forward_rank()? / self.table().states() as f64;
        let limits = Limits { good: 0.1, fair: 0.03 };
        findings.push(Finding::at_least("F", "effective rank / states", share, limits, advice));
        Ok(findings)
    }

    /// Looks closely at `contexts` training contexts that the agent knows well, and up to `goals` goals in each.
    pub fn exactness(&self, contexts: usize, goals: usize) -> Result<Exactness, LearnError> {
        let mut sum = Exactness::default();
        let mut episodes = 0.0;
        for &context in self.world.contexts(Split::Train).iter().take(contexts) {
            let layout = self.grid.layout(context)?;
            let known = self.well_known(context)?;
            let every = layout.free_cells().count().div_ceil(goals).max(1);
            for goal in layout.free_cells().step_by(every) {
                let (Some(z), Some(goal_state)) = (self.goal_task(goal), self.state(goal)) else { continue };
                let q = self.model.action_values(&known.dynamics, &z);
                self.judge_actions(layout, goal, &q, &mut sum);
                let [all, off_goal] = self.measure_error(layout, &known, &z, &q, goal_state);
                sum.error += all;
                sum.error_off_goal += off_goal;
                episodes += 1.0;
            }
        }
        for part in [&mut sum.error, &mut sum.error_off_goal, &mut sum.largest_q, &mut sum.gap] {
            *part /= f64::max(episodes, 1.0);
        }
        Ok(sum)
    }

    /// The task of reaching a cell; nothing if no episode went there.
    fn goal_task(&self, cell: usize) -> Option<Vec<f32>> {
        self.state(cell)?;
        let mut obs = vec![0.0; self.world.spec().obs_dim()];
        self.world.spec().write_state(cell, &mut obs);
        Some(self.agent.task(&Reward::Goal { goal: obs, tolerance: 0.0 }))
    }

    /// What the agent knows of a context after it has seen nearly everything.
    fn well_known(&self, context: ContextId) -> Result<Known, LearnError> {
        let config = EvalConfig { context_steps: WELL_KNOWN, ..self.eval };
        Ok(self.agent.known_after(context, &explore(self.world, context, &config, self.seed, 0)?))
    }

    /// The listed state of a cell.
    pub(super) fn state(&self, cell: usize) -> Option<usize> {
        let mut obs = vec![0.0; self.world.spec().obs_dim()];
        self.world.spec().write_state(cell, &mut obs);
        self.table().state(&obs)
    }

    fn judge_actions(&self, layout: &Layout, goal: usize, q: &[f32], sum: &mut Exactness) {
        let far = distances(layout, goal);
        let (mut peak, mut gaps, mut count) = (0.0_f64, 0.0, 0.0);
        for cell in layout.free_cells().filter(|&cell| cell != goal && far[cell] != u16::MAX) {
            let Some(state) = self.state(cell) else { continue };
            let q = &q[state * ACTIONS..][..ACTIONS];
            let best = argmax(q);
            let shorter = far[layout.step(cell, best)] < far[cell];
            let band = BANDS.iter().position(|(limit, ..)| far[cell] <= *limit).unwrap_or(0);
            sum.optimal[band].0 += usize::from(shorter);
            sum.optimal[band].1 += 1;
            let high = f64::from(q[best]);
            let low = q.iter().fold(f64::INFINITY, |low, &q| low.min(f64::from(q)));
            peak = peak.max(high);
            gaps += (high - low) / high.abs().max(1e-9);
            count += 1.0;
        }
        sum.largest_q += peak;
        sum.gap += gaps / f64::max(count, 1.0);
    }

    /// Relative root mean square error of F B (of F, where features are given) against the exact measure of the policy that `q`
    /// gives: over all states, and over states other than the goal.
    fn measure_error(&self, layout: &Layout, known: &Known, z: &[f32], q: &[f32], goal: usize) -> [f64; 2] {
        let (table, config) = (self.table(), &self.model.config);
        let (gamma, dim, given) = (f64::from(config.gamma), config.dim, self.model.has_given_features());
        let rows = self.model.measure(&known.dynamics, z);
        let width = if given { dim } else { table.states() };
        let policy: Vec<usize> = q.chunks_exact(ACTIONS).map(argmax).collect();
        let cells: Vec<Option<usize>> = (0..layout.cells()).map(|cell| self.state(cell)).collect();
        let choice = |cell: usize| cells[cell].map_or(0, |state| policy[state]);
        let exact =
            SuccessorMeasure::of(&Dynamics::of(layout), &deterministic(layout.cells(), choice), gamma);
        let b = if given { self.model.backward() } else { Vec::new() };
        let mut sums = [[0.0; 2]; 2]; // squared error and size, over all and off the goal
        for cell in layout.free_cells() {
            let Some(s) = cells[cell] else { continue };
            // Share of discounted time in each state. U counts the state itself first, heads what comes after the action.
            let after = exact.after(cell, choice(cell));
            let mut met = vec![0.0; table.states()];
            for to in layout.free_cells() {
                let Some(t) = cells[to] else { continue };
                met[t] = (1.0 - gamma)
                    * match config.forward {
                        ForwardForm::Predictor => f64::from(u8::from(s == t)) + gamma * after[to],
                        ForwardForm::Paper => after[to],
                    };
            }
            let row = match config.forward {
                ForwardForm::Predictor => s,
                ForwardForm::Paper => s * ACTIONS + policy[s],
            };
            for (k, &ours) in rows[row * width..][..width].iter().enumerate() {
                let truth = if given {
                    b.iter().skip(k).step_by(dim).zip(&met).map(|(phi, met)| f64::from(*phi) * met).sum()
                } else {
                    met[k]
                };
                let off = (f64::from(ours) - truth).powi(2);
                for sum in sums.iter_mut().take(if k == goal { 1 } else { 2 }) {
                    sum[0] += off;
                    sum[1] += truth * truth;
                }
            }
        }
        sums.map(|[off, size]| (off / size.max(1e-12)).sqrt())
    }

    /// Over how many directions F B spreads: contexts, goals and states together.
    fn forward_rank(&self) -> Result<f64, LearnError> {
        let mut gram: Vec<f64> = Vec::new();
        let mut width = 0;
        for &context in self.world.contexts(Split::Train).iter().take(CONTEXTS) {
            let known = self.well_known(context)?;
            for &goal in self.grid.goals(context)? {
                let Some(z) = self.goal_task(goal) else { continue };
                let rows = self.model.measure(&known.dynamics, &z);
                width =
                    if self.model.has_given_features() { self.agent.dim() } else { self.table().states() };
                gram.resize(width * width, 0.0);
                for f in rows.chunks_exact(width) {
                    for (row, &x) in gram.chunks_exact_mut(width).zip(f) {
                        row.iter_mut().zip(f).for_each(|(g, &y)| *g += f64::from(x) * f64::from(y));
                    }
                }
            }
        }
        Ok(if width == 0 { 0.0 } else { effective_rank(&eigen(gram, width).0) })
    }

    /// Who acts when F is judged.
    pub(super) const F_ALONE: Planner = Planner::None;
}
