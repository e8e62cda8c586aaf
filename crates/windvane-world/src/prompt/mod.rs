//! What is wanted, as people say it: goals, labelled states and formulas; weighted, joined, named, saved.

mod formula;
#[cfg(test)]
mod formula_tests;
mod labels;
mod saved;

pub use formula::Formula;
pub use labels::read_labels;
pub use saved::SavedTasks;

use crate::env::{Dim, EnvSpec};
use crate::error::WorldError;
use serde::{Deserialize, Serialize};

/// A task: one or more parts, each with its weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// The parts.
    pub parts: Vec<Weighted>,
}

/// A part of a task and how much it counts beside the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weighted {
    /// Its weight; below 0 it is avoided.
    pub weight: f32,
    /// What is wanted.
    #[serde(flatten)]
    pub part: Part,
}

/// One thing that is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// To be at a state.
    Goal(Vec<f32>),
    /// States with their rewards.
    Labels(Vec<(Vec<f32>, f32)>),
    /// A reward for every state, as a [`Formula`].
    Formula(String),
}

/// A part that fits a world.
#[derive(Clone, Debug)]
pub enum Checked<'a> {
    /// To be at a state.
    Goal(&'a [f32]),
    /// States with their rewards.
    Labels(&'a [(Vec<f32>, f32)]),
    /// A reward for every state.
    Formula(Formula),
}

impl Prompt {
    /// To be at a state.
    pub fn goal(state: &[f32]) -> Self {
        Self::default().and(1.0, Part::Goal(state.to_vec()))
    }

    /// States with their rewards.
    pub fn labels(states: &[(Vec<f32>, f32)]) -> Self {
        Self::default().and(1.0, Part::Labels(states.to_vec()))
    }

    /// A reward for every state, as a [`Formula`].
    pub fn formula(text: &str) -> Self {
        Self::default().and(1.0, Part::Formula(text.to_owned()))
    }

    /// The same with one part more.
    #[must_use]
    pub fn and(mut self, weight: f32, part: Part) -> Self {
        self.parts.push(Weighted { weight, part });
        self
    }

    /// What is likely a mistake though it can be done: goals and labelled states outside the range of observations of `spec`.
    /// There are none for a task that [`Self::check`] refuses.
    pub fn warnings(&self, spec: &EnvSpec) -> Vec<String> {
        let outside = |state: &[f32]| {
            spec.observation.iter().zip(state).find(|(dim, x)| !(dim.low..=dim.high).contains(x)).map(
                |(Dim { name, low, high, .. }, x)| {
                    format!("\"{name}\" is {x}, outside the range of the observation ({low} to {high})")
                },
            )
        };
        let of_part = |part: &Part| match part {
            Part::Goal(goal) => outside(goal).map(|problem| format!("goal: {problem}")),
            Part::Labels(labels) => {
                let rows = labels.iter().enumerate();
                let mut found = rows.filter_map(|(row, (state, _))| Some((row, outside(state)?)));
                let (row, first) = found.next()?;
                let more = match found.count() {
                    0 => String::new(),
                    more => format!(", and {more} more of {} states", labels.len()),
                };
                Some(format!("labelled state {row}: {first}{more}"))
            }
            Part::Formula(_) => None,
        };
        match self.check(spec) {
            Ok(_) => self.parts.iter().filter_map(|weighted| of_part(&weighted.part)).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// The parts with their weights, if all fit observations of `spec`.
    pub fn check(&self, spec: &EnvSpec) -> Result<Vec<(f32, Checked<'_>)>, WorldError> {
        let wrong = |part: &str, problem: String| WorldError::Prompt { part: part.to_owned(), problem };
        if self.parts.is_empty() {
            return Err(wrong("task", "has no parts; expected a goal, labelled states or a formula".into()));
        }
        let names: Vec<&str> = spec.observation.iter().map(|dim| dim.name.as_str()).collect();
        let state = |part: &str, state: &[f32]| {
            if state.len() != names.len() {
                let problem =
                    format!("{} numbers, expected {} ({})", state.len(), names.len(), names.join(", "));
                return Err(wrong(part, problem));
            }
            match state.iter().position(|x| !x.is_finite()) {
                Some(dim) => Err(wrong(
                    part,
                    format!("\"{}\" is {}, expected a finite number", names[dim], state[dim]),
                )),
                None => Ok(()),
            }
        };
        let check = |Weighted { weight, part }: &'_ Weighted| -> Result<(), WorldError> {
            if !weight.is_finite() {
                return Err(wrong("weight", format!("is {weight}, expected a finite number")));
            }
            match part {
                Part::Goal(goal) => state("goal", goal),
                Part::Labels(labels) if labels.is_empty() => {
                    Err(wrong("labelled states", "there are none".into()))
                }
                Part::Labels(labels) => labels.iter().enumerate().try_for_each(|(row, (obs, reward))| {
                    state(&format!("labelled state {row}"), obs)?;
                    if reward.is_finite() {
                        return Ok(());
                    }
                    Err(wrong(
                        &format!("reward of labelled state {row}"),
                        format!("is {reward}, expected a finite number"),
                    ))
                }),
                Part::Formula(_) => Ok(()),
            }
        };
        self.parts.iter().try_for_each(check)?;
        self.parts
            .iter()
            .map(|Weighted { weight, part }| {
                let part = match part {
                    Part::Goal(goal) => Checked::Goal(goal),
                    Part::Labels(labels) => Checked::Labels(labels),
                    Part::Formula(text) => Checked::Formula(Formula::parse(text, &names)?),
                };
                Ok((*weight, part))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ActionSpace;

    fn spec() -> EnvSpec {
        let dim = |name: &str| Dim { name: name.into(), low: 0.0, high: 9.0, integer: false };
        let action = ActionSpace::Discrete { names: vec!["stay".into()] };
        EnvSpec { name: "toy".into(), observation: vec![dim("x"), dim("y")], action, horizon: 9 }
    }

    fn error(prompt: &Prompt) -> String {
        prompt.check(&spec()).unwrap_err().to_string()
    }

    #[test]
    fn what_does_not_fit_the_world_is_named() {
        assert!(error(&Prompt::default()).contains("has no parts"));
        assert_eq!(error(&Prompt::goal(&[1.0])), "goal: 1 numbers, expected 2 (x, y)");
        assert_eq!(error(&Prompt::goal(&[1.0, f32::NAN])), "goal: \"y\" is NaN, expected a finite number");
        assert!(error(&Prompt::labels(&[])).contains("there are none"));
        assert!(
            error(&Prompt::labels(&[(vec![1.0, 1.0], f32::INFINITY)])).contains("labelled state 0: is inf")
        );
        assert!(error(&Prompt::formula("z > 3")).contains("no dimension \"z\"; known: x, y"));
        assert!(
            error(&Prompt::goal(&[1.0, 1.0]).and(f32::NAN, Part::Goal(vec![1.0, 1.0]))).contains("weight")
        );
    }

    #[test]
    fn states_that_no_observation_reaches_are_warned_of() {
        let inside = Prompt::goal(&[0.0, 9.0]).and(1.0, Part::Formula("x > 99".into()));
        assert_eq!(inside.warnings(&spec()), Vec::<String>::new());
        let states = [[1.0, 1.0], [1.0, -2.0], [12.0, 0.0]].map(|state| (state.to_vec(), 1.0));
        let outside = Prompt::goal(&[1.0, 40.0]).and(1.0, Part::Labels(states.to_vec()));
        let expected = [
            "goal: \"y\" is 40, outside the range of the observation (0 to 9)",
            "labelled state 1: \"y\" is -2, outside the range of the observation (0 to 9), and 1 more of 3 states",
        ];
        assert_eq!(outside.warnings(&spec()), expected);
        assert!(Prompt::goal(&[40.0]).warnings(&spec()).is_empty(), "an error, not a warning");
    }

    #[test]
    fn parts_keep_their_order_and_weights() {
        let prompt = Prompt::goal(&[1.0, 2.0]).and(-0.5, Part::Formula("x > 6".into()));
        let parts = prompt.check(&spec()).unwrap();
        assert!(matches!(parts[0], (1.0, Checked::Goal([1.0, 2.0]))));
        assert!(matches!(&parts[1], (-0.5, Checked::Formula(f)) if f.of(&[7.0, 0.0]) == 1.0));
    }
}
