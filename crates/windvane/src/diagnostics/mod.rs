//! Diagnostics of a trained agent: findings with a verdict and an advice.

mod actor_swap;
pub mod context_curve;
mod context_swap;
pub mod exact;
mod exact_belief;
mod generic;
pub mod perturbed;
pub mod readout;
mod task_vectors;

use crate::agent::{Agent, Model};
use crate::data::Replay;
use crate::error::LearnError;
use crate::eval::EvalConfig;

use crate::linalg::{effective_rank, eigen};
use serde::Serialize;
use windvane_world::Cmdp;

/// How good a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Healthy.
    Good,
    /// Works, but something could be better.
    Fair,
    /// Look here first.
    Poor,
}

/// One number with its reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The part it is about.
    pub part: &'static str,
    /// What was measured.
    pub what: String,
    /// The number.
    pub value: f64,
    /// How good it is; nothing for numbers that are neither.
    pub verdict: Option<Verdict>,
    /// What to do if it is not good.
    pub advice: Option<&'static str>,
}

/// All that can be said of an agent: against exact answers on grids, by its own numbers elsewhere. Hidden contexts of the
/// environment are looked at, the data where it is given. `world` is nothing for data that no environment of ours is behind.
pub fn examine(
    agent: &Agent,
    world: Option<&dyn Cmdp>,
    replay: Option<&Replay>,
    eval: &EvalConfig,
    seed: u64,
) -> Result<Vec<Finding>, LearnError> {
    let mut findings = match &agent.model {
        Model::Observations(model) => generic::findings(agent, model, replay, seed),
        Model::Listed(_) => Vec::new(),
    };
    if let Some(world) = world {
        if let Some(examiner) = exact::Examiner::new(agent, world, eval, seed) {
            findings.extend(examiner.findings()?);
            findings.extend(examiner.belief_findings()?);
        }
        findings.extend(actor_swap::findings(agent, world, eval, seed)?);
        findings.extend(readout::findings(agent, world, eval, seed)?);
        findings.extend(task_vectors::findings(agent, world)?);
        findings.extend(context_swap::in_world(agent, world, eval, seed)?);
    } else if let Some(replay) = replay {
        findings.extend(context_swap::in_data(agent, replay, seed));
    }
    Ok(findings)
}

/// Where good ends and where fair ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The last good value.
    pub good: f64,
    /// The last fair value.
    pub fair: f64,
}

impl Finding {
    /// A number that should be large.
    pub fn at_least(
        part: &'static str,
        what: impl Into<String>,
        value: f64,
        limits: Limits,
        advice: &'static str,
    ) -> Self {
        Self::judged(part, what.into(), value, value >= limits.good, value >= limits.fair, advice)
    }

    /// A number that should be small.
    pub fn at_most(
        part: &'static str,
        what: impl Into<String>,
        value: f64,
        limits: Limits,
        advice: &'static str,
    ) -> Self {
        Self::judged(part, what.into(), value, value <= limits.good, value <= limits.fair, advice)
    }

    /// A number to know.
    pub fn report(part: &'static str, what: impl Into<String>, value: f64) -> Self {
        Self { part, what: what.into(), value, verdict: None, advice: None }
    }

    fn judged(
        part: &'static str,
        what: String,
        value: f64,
        good: bool,
        fair: bool,
        advice: &'static str,
    ) -> Self {
        let verdict = match (good, fair) {
            (true, _) => Verdict::Good,
            (_, true) => Verdict::Fair,
            _ => Verdict::Poor,
        };
        Self { part, what, value, verdict: Some(verdict), advice: (!good).then_some(advice) }
    }
}

/// How differently B sees states: the mean cosine between two of them (root mean square, 0 is orthonormal), and the effective
/// rank of all. `rows [count * width]`, drawn with `weights [count]`.
pub(crate) fn spread(rows: &[f32], weights: &[f32]) -> [f64; 2] {
    let count = weights.len();
    let width = rows.len() / count.max(1);
    let unit: Vec<f64> = rows
        .chunks_exact(width.max(1))
        .flat_map(|row| {
            let length = row.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt().max(1e-12);
            row.iter().map(move |x| f64::from(*x) / length)
        })
        .collect();
    let mut gram = vec![0.0; count * count];
    let (mut squares, mut total) = (0.0, 0.0);
    for i in 0..count {
        for j in 0..count {
            let (x, y) = (&unit[i * width..][..width], &unit[j * width..][..width]);
            let cosine: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
            let weight = f64::from(weights[i]) * f64::from(weights[j]);
            gram[i * count + j] = cosine * weight.sqrt();
            if i != j {
                squares += weight * cosine * cosine;
                total += weight;
            }
        }
    }
    [(squares / f64::max(total, 1e-12)).sqrt(), effective_rank(&eigen(gram, count).0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orthogonal_rows_have_no_error_and_full_rank_and_equal_ones_the_opposite() {
        let axes = [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0];
        let [error, rank] = spread(&axes, &[1.0 / 3.0; 3]);
        assert!(error < 1e-9 && (rank - 3.0).abs() < 1e-6, "{error} {rank}");
        let [error, rank] = spread(&[1.0; 9], &[1.0 / 3.0; 3]);
        assert!((error - 1.0).abs() < 1e-6 && (rank - 1.0).abs() < 1e-3, "{error} {rank}");
    }

    #[test]
    fn a_verdict_follows_its_limits() {
        let limits = Limits { good: 0.1, fair: 0.3 };
        let verdict = |x| Finding::at_most("B", "error", x, limits, "do").verdict;
        assert_eq!(
            [0.05, 0.2, 0.4].map(verdict),
            [Some(Verdict::Good), Some(Verdict::Fair), Some(Verdict::Poor)]
        );
        let finding = Finding::at_least("F", "share", 0.05, Limits { good: 0.9, fair: 0.5 }, "train");
        assert_eq!((finding.verdict, finding.advice), (Some(Verdict::Poor), Some("train")));
    }
}
