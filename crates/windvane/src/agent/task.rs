//! From a prompt to a task vector: z = E[r(s) B(s)] over visited states, or the z whose B(s) z comes nearest to the reward.

use crate::error::{LearnError, Result};
use crate::fb::{ListedModel, ObservationModel};
use crate::latent;
use crate::linalg::{cholesky_solve, gram};
use serde::{Deserialize, Serialize};
use windvane_world::prompt::{Checked, Part};
use windvane_world::{EnvSpec, Prompt};

/// Largest exponent of a sharpened reward.
const LARGEST: f32 = 8.0;
/// Ridge of the least squares, as a share of the mean square of B's components.
const RIDGE: f64 = 1e-5;

/// States that were visited in the data, with B of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Visited {
    /// `[rows, dims]`.
    pub states: Vec<f32>,
    /// How often each is visited, as a share of all visits, `[rows]`.
    pub shares: Vec<f32>,
    /// B of each, `[rows, d]`.
    pub b: Vec<f32>,
    /// d.
    pub dim: usize,
    /// Whether the mean over these states is taken off a reward before it becomes z ([`crate::fb::FbConfig::centred_rewards`]).
    pub centred: bool,
    /// How much more well-paid states count ([`crate::fb::FbConfig::reward_sharpness`]).
    pub sharpness: f32,
}

/// How a reward becomes a task vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inference {
    /// The mean of r(s) B(s) (paper); right where B is orthonormal.
    #[default]
    Projection,
    /// The z whose B(s) z comes nearest to r(s).
    LeastSquares,
}

/// A task vector and where it came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskCode {
    /// z, of length sqrt(d).
    pub z: Vec<f32>,
    /// How it was made.
    pub inference: Inference,
    /// The share of a formula's variation over the visited states that B can express (R squared), smallest over the
    /// formulas; nothing without one.
    pub fit: Option<f64>,
    /// What is likely a mistake in the prompt ([`Prompt::warnings`]).
    pub warnings: Vec<String>,
    /// States that it asks to be taken to.
    pub goals: Vec<Vec<f32>>,
}

impl Visited {
    /// All listed states.
    pub(crate) fn listed(model: &ListedModel) -> Self {
        let table = &model.table;
        let mut states = vec![0.0; table.states() * table.spec().obs_dim()];
        let rows = states.chunks_exact_mut(table.spec().obs_dim());
        rows.enumerate().for_each(|(state, obs)| table.write_obs(state, obs));
        Self {
            states,
            shares: table.rho.clone(),
            b: model.backward(),
            dim: model.config.dim,
            centred: false,
            sharpness: 0.0,
        }
    }

    /// Observations `[rows * dims]`, each as often visited as the others.
    pub(crate) fn observations(model: &ObservationModel, states: Vec<f32>) -> Self {
        let count = states.len() / model.codec.dims();
        let b = model.backward(&states);
        Self {
            shares: vec![1.0 / count.max(1) as f32; count],
            dim: model.config.dim,
            centred: model.config.centred_rewards,
            sharpness: model.config.reward_sharpness,
            states,
            b,
        }
    }

    /// The task vector of a prompt. Each part's vector is brought to the sphere before its weight counts, so that weights
    /// compare what is wanted and not how often it was met. `backward` gives B of any states.
    pub fn task(
        &self,
        prompt: &Prompt,
        spec: &EnvSpec,
        inference: Inference,
        backward: impl Fn(&[f32]) -> Vec<f32>,
    ) -> Result<TaskCode> {
        let mut sum = vec![0.0; self.dim];
        let mut fit: Option<f64> = None;
        for (weight, part) in prompt.check(spec)? {
            let mut z = match part {
                Checked::Goal(goal) => self.solve(&backward(goal), &[1.0], &[1.0], true, inference),
                Checked::Labels(labels) => {
                    let states: Vec<f32> = labels.iter().flat_map(|(state, _)| state).copied().collect();
                    let rewards: Vec<f32> = labels.iter().map(|(_, reward)| *reward).collect();
                    let shares = vec![1.0 / labels.len() as f32; labels.len()];
                    self.solve(&backward(&states), &rewards, &shares, false, inference)
                }
                Checked::Formula(formula) => {
                    let rewards = formula.of_rows(&self.states)?;
                    let (z, explained) = self.solve_visited(formula.text(), rewards, inference)?;
                    fit = Some(fit.map_or(explained, |fit| fit.min(explained)));
                    z
                }
            };
            direct(&mut z)?;
            sum.iter_mut().zip(&z).for_each(|(sum, z)| *sum += weight * z);
        }
        if sum.iter().all(|x| x.abs() < 1e-6) {
            return Err(LearnError::config("task", "its parts cancel each other"));
        }
        latent::project(&mut sum);
        let goals = prompt.parts.iter().filter(|wanted| wanted.weight > 0.0);
        let goals = goals.filter_map(|wanted| match &wanted.part {
            Part::Goal(goal) => Some(goal.clone()),
            _ => None,
        });
        let (goals, warnings) = (goals.collect(), prompt.warnings(spec));
        Ok(TaskCode { z: sum, inference, fit, warnings, goals })
    }

    /// The task vector of a reward whose value at every visited state is known, `[rows]`.
    pub fn task_of(&self, rewards: &[f32], inference: Inference) -> Result<TaskCode> {
        let wrong = |problem: String| LearnError::config("task", problem);
        if rewards.len() != self.shares.len() {
            let problem = format!("{} rewards of {} visited states", rewards.len(), self.shares.len());
            return Err(wrong(problem));
        }
        if let Some(row) = rewards.iter().position(|r| !r.is_finite()) {
            return Err(wrong(format!(
                "the reward of row {row} is {}, expected a finite number",
                rewards[row]
            )));
        }
        let (mut z, explained) = self.solve_visited("function", rewards.to_vec(), inference)?;
        direct(&mut z)?;
        Ok(TaskCode { z, inference, fit: Some(explained), ..TaskCode::default() })
    }

    /// The vector of a reward called `name` at all visited states, and the share of its variation that B can express.
    fn solve_visited(
        &self,
        name: &str,
        mut rewards: Vec<f32>,
        inference: Inference,
    ) -> Result<(Vec<f32>, f64)> {
        refuse_constant(name, &rewards)?;
        self.weigh(&mut rewards);
        let z = self.solve(&self.b, &rewards, &self.shares, false, inference);
        Ok((z, self.explained(&rewards)))
    }

    /// Makes the weights of these states out of their rewards: sharpened, and less their mean, where that is asked for.
    pub(crate) fn weigh(&self, rewards: &mut [f32]) {
        let mean =
            |rewards: &[f32]| rewards.iter().zip(&self.shares).map(|(r, share)| r * share).sum::<f32>();
        if self.sharpness > 0.0 {
            let middle = mean(rewards);
            rewards.iter_mut().for_each(|r| *r -= middle);
            let squares: Vec<f32> = rewards.iter().map(|r| r * r).collect();
            let scale = self.sharpness / mean(&squares).sqrt().max(f32::MIN_POSITIVE);
            // Beyond some point one state alone would count.
            rewards.iter_mut().for_each(|r| *r = (*r * scale).min(LARGEST).exp());
        }
        if self.centred {
            let middle = mean(rewards);
            rewards.iter_mut().for_each(|r| *r -= middle);
        }
    }

    /// The vector of rewards at states of which `b [rows, d]` is B. The spread of B is taken over all visited states where a
    /// reward at a single one has to stand for itself.
    fn solve(
        &self,
        b: &[f32],
        rewards: &[f32],
        shares: &[f32],
        single: bool,
        inference: Inference,
    ) -> Vec<f32> {
        let mut z = vec![0.0_f64; self.dim];
        for ((b, r), share) in b.chunks_exact(self.dim).zip(rewards).zip(shares) {
            z.iter_mut().zip(b).for_each(|(z, b)| *z += f64::from(share * r * b));
        }
        if inference == Inference::LeastSquares {
            let (rows, weights) = if single { (&self.b[..], &self.shares[..]) } else { (b, shares) };
            let mut gram = gram(rows, weights, self.dim, RIDGE);
            cholesky_solve(&mut gram, self.dim, &mut z, 1);
        }
        z.into_iter().map(|x| x as f32).collect()
    }

    /// The share of the variation of `rewards` over the visited states that some B(s) z and a constant explain.
    fn explained(&self, rewards: &[f32]) -> f64 {
        let mean = |values: &mut dyn Iterator<Item = f64>| -> f64 {
            values.zip(&self.shares).map(|(x, share)| x * f64::from(*share)).sum()
        };
        let centre = mean(&mut rewards.iter().map(|r| f64::from(*r)));
        let centred: Vec<f32> = rewards.iter().map(|r| (f64::from(*r) - centre) as f32).collect();
        let z = self.solve(&self.b, &centred, &self.shares, false, Inference::LeastSquares);
        let expressed = self
            .b
            .chunks_exact(self.dim)
            .map(|b| b.iter().zip(&z).map(|(b, z)| f64::from(b * z)).sum::<f64>());
        let left = mean(&mut expressed.zip(&centred).map(|(x, r)| (f64::from(*r) - x).powi(2)));
        let all = mean(&mut centred.iter().map(|r| f64::from(*r).powi(2)));
        if all > 0.0 { (1.0 - left / all).clamp(0.0, 1.0) } else { 1.0 }
    }
}

/// Brings the vector of a reward to the sphere; one of 0 at all visited states has no direction.
fn direct(z: &mut [f32]) -> Result<()> {
    if !z.iter().any(|x| x.abs() >= 1e-9) {
        let problem = "the reward is 0 wherever the data went; expected one that some visited state pays";
        return Err(LearnError::config("task", problem));
    }
    latent::project(z);
    Ok(())
}

/// A reward that is the same everywhere wants nothing, so no task vector stands for it; one that is 0 has an error of its own.
fn refuse_constant(formula: &str, rewards: &[f32]) -> Result<()> {
    match rewards {
        [first, rest @ ..] if *first != 0.0 && rest.iter().all(|r| r == first) => {
            let everywhere = format!("the reward \"{formula}\" is {first} at every visited state");
            let expected = "every policy earns the same; expected one that differs between states";
            Err(LearnError::config("task", format!("{everywhere}: {expected}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_world::{ActionSpace, Dim};

    fn spec() -> EnvSpec {
        let dim = |name: &str| Dim { name: name.into(), low: 0.0, high: 9.0, integer: false };
        let action = ActionSpace::Discrete { names: vec!["stay".into()] };
        EnvSpec { name: "toy".into(), observation: vec![dim("x"), dim("y")], action, horizon: 9 }
    }

    /// B of a toy: linear, and not orthonormal.
    fn backward(states: &[f32]) -> Vec<f32> {
        states.chunks_exact(2).flat_map(|s| [s[0], s[0] + 3.0 * s[1], 1.0]).collect()
    }

    fn visited() -> Visited {
        let states: Vec<f32> = (0..100).flat_map(|i| [(i % 10) as f32, (i / 10) as f32]).collect();
        Visited {
            b: backward(&states),
            shares: vec![0.01; 100],
            states,
            dim: 3,
            centred: false,
            sharpness: 0.0,
        }
    }

    fn task(prompt: &Prompt, inference: Inference) -> Result<TaskCode> {
        visited().task(prompt, &spec(), inference, backward)
    }

    #[test]
    fn projection_is_the_mean_of_rewarded_features() {
        let found = task(&Prompt::formula("(x == 3) * (y == 1)"), Inference::Projection).unwrap();
        let mut expected = backward(&[3.0, 1.0]);
        latent::project(&mut expected);
        let goal = task(&Prompt::goal(&[3.0, 1.0]), Inference::Projection).unwrap();
        for z in [&found.z, &goal.z] {
            assert!(z.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4), "{z:?} {expected:?}");
        }
    }

    #[test]
    fn sharpened_rewards_count_the_best_paid_states_most_and_keep_their_order() {
        let visited = Visited { sharpness: 2.0, ..visited() };
        let mut rewards: Vec<f32> = visited.states.chunks_exact(2).map(|s| s[0]).collect();
        visited.weigh(&mut rewards);
        // 0 to 9 with a deviation of 2.87: each next one counts exp(2 / 2.87) times as much.
        let ratio = rewards[9] / rewards[8];
        assert!((ratio - (2.0_f32 / 2.872_281).exp()).abs() < 1e-4, "{ratio}");
        assert!(rewards[..10].is_sorted());
    }

    #[test]
    fn least_squares_finds_a_reward_that_is_in_reach() {
        // 2 x - y = 7/3 b0 - 1/3 b1.
        let found = task(&Prompt::formula("2 * x - y"), Inference::LeastSquares).unwrap();
        let mut expected = vec![7.0, -1.0, 0.0];
        latent::project(&mut expected);
        assert!(found.z.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.02), "{found:?} {expected:?}");
        assert!(found.fit.unwrap() > 0.999);
        assert!(task(&Prompt::formula("(x - 4.5) ^ 2"), Inference::LeastSquares).unwrap().fit.unwrap() < 0.1);
    }

    #[test]
    fn weights_compare_directions_and_not_sizes() {
        let both = Prompt::formula("1000 * (x == 3) * (y == 1)").and(-1.0, Part::Goal(vec![3.0, 1.0]));
        assert!(task(&both, Inference::Projection).unwrap_err().to_string().contains("cancel"));
        let nothing = Prompt::formula("0 * x");
        assert!(
            task(&nothing, Inference::Projection).unwrap_err().to_string().contains("wherever the data went")
        );
    }

    #[test]
    fn a_constant_reward_is_named_as_such() {
        for constant in ["1", "x > -1", "2 + 0 * y"] {
            let error = task(&Prompt::formula(constant), Inference::LeastSquares).unwrap_err().to_string();
            assert!(error.contains("every policy earns the same"), "{constant}: {error}");
        }
        assert!(task(&Prompt::formula("x > 8"), Inference::Projection).is_ok());
    }

    #[test]
    fn a_goal_that_no_observation_reaches_is_warned_of() {
        let warnings = |goal| task(&Prompt::goal(goal), Inference::Projection).unwrap().warnings;
        assert!(warnings(&[3.0, 9.0]).is_empty());
        assert!(warnings(&[3.0, 9.5])[0].contains("outside the range"), "{:?}", warnings(&[3.0, 9.5]));
    }
}
