//! What of a context's hidden numbers a linear map reads off the belief: the direction of a wind, the signs of legs. The map is
//! fitted in training contexts, on trajectories that are not read afterwards.

use super::{Finding, Limits};
use crate::agent::Agent;
use crate::error::LearnError;
use crate::eval::{EvalConfig, explore};
use crate::linalg::LinearMap;
use serde_json::Value;
use windvane_world::{Cmdp, ContextId, Split};

/// Trajectories in each context that the map is fitted to, and as many that are read.
const ROUNDS: u64 = 8;
/// Steps of those that it is fitted to.
const FITTED_STEPS: usize = 100;
/// Steps after which the belief is read for the doctor.
const STEPS: [usize; 2] = [25, 100];
/// Ridge of the fit, as a share of a unit of h squared.
const RIDGE: f64 = 1e-3;

/// What kind of numbers are hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A vector whose direction counts: the wind.
    Direction,
    /// Numbers whose signs count: the legs.
    Signs,
}

/// One trajectory's belief, and what was read off it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Contexts seen in training, or not.
    pub split: Split,
    /// What is hidden.
    pub truth: Vec<f64>,
    /// What the linear map says.
    pub read: Vec<f64>,
    /// The belief.
    pub h: Vec<f32>,
}

/// What was read off beliefs after trajectories of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Readout {
    /// What kind of numbers.
    pub quantity: Quantity,
    /// Steps of the trajectories.
    pub steps: usize,
    /// One for each trajectory, seen contexts first.
    pub readings: Vec<Reading>,
}

impl Reading {
    /// The angle between what is hidden and what was read, in degrees.
    pub fn degrees(&self) -> f64 {
        let angle = |v: &[f64]| v[1].atan2(v[0]);
        let off = (angle(&self.read) - angle(&self.truth)).to_degrees().rem_euclid(360.0);
        off.min(360.0 - off)
    }

    /// Whether all signs are right.
    pub fn signs_are_right(&self) -> bool {
        self.truth.iter().zip(&self.read).all(|(truth, read)| truth * read > 0.0)
    }
}

impl Readout {
    /// The median angle in degrees, or the share of trajectories all of whose signs are right, in one split.
    pub fn score(&self, split: Split) -> f64 {
        let own = || self.readings.iter().filter(|reading| reading.split == split);
        match self.quantity {
            Quantity::Direction => median(&own().map(Reading::degrees).collect::<Vec<_>>()),
            Quantity::Signs => {
                own().filter(|reading| reading.signs_are_right()).count() as f64 / own().count().max(1) as f64
            }
        }
    }
}

/// Reads beliefs after `steps` steps of the protocol's random trajectory; nothing for an agent without a belief, or a world that hides neither
/// wind nor signs.
pub fn readout(
    world: &dyn Cmdp,
    agent: &Agent,
    eval: &EvalConfig,
    seed: u64,
    steps: usize,
) -> Result<Option<Readout>, LearnError> {
    let Some(&first) = world.contexts(Split::Train).first() else { return Ok(None) };
    let Some((quantity, _)) = hidden(&world.describe(first)?) else { return Ok(None) };
    if agent.belief().is_none() {
        return Ok(None);
    }
    let beliefs = |split: Split, rounds: std::ops::Range<u64>, steps: usize| {
        let config = EvalConfig { context_steps: steps, ..*eval };
        let mut rows = Vec::new();
        for &context in world.contexts(split) {
            let truth = truth_of(world, context)?;
            for round in rounds.clone() {
                let trajectory = explore(world, context, &config, seed, round)?;
                rows.push((truth.clone(), agent.beliefs(&[&trajectory])));
            }
        }
        Ok::<_, LearnError>(rows)
    };
    let map = fit(&beliefs(Split::Train, ROUNDS..2 * ROUNDS, FITTED_STEPS)?);
    let mut readings = Vec::new();
    for split in [Split::Train, Split::Test] {
        for (truth, h) in beliefs(split, 0..ROUNDS, steps)? {
            readings.push(Reading { split, read: map.apply(&h), truth, h });
        }
    }
    Ok(Some(Readout { quantity, steps, readings }))
}

/// For the doctor: what is read in unseen contexts after a short and a long trajectory.
pub(super) fn findings(
    agent: &Agent,
    world: &dyn Cmdp,
    eval: &EvalConfig,
    seed: u64,
) -> Result<Vec<Finding>, LearnError> {
    let mut findings = Vec::new();
    for steps in STEPS {
        let Some(readout) = readout(world, agent, eval, seed, steps)? else { break };
        let [seen, unseen] = [Split::Train, Split::Test].map(|split| readout.score(split));
        let advice = "the belief does not hold what is hidden: train it longer, or on data whose actions give it away less";
        findings.push(match readout.quantity {
            Quantity::Direction => Finding::at_most(
                "belief",
                format!("median error of the wind's direction after {steps} steps, unseen, in degrees (seen: {seen:.1})"),
                unseen,
                Limits { good: 10.0, fair: 30.0 },
                advice,
            ),
            Quantity::Signs => Finding::at_least(
                "belief",
                format!("all legs named right after {steps} steps, unseen, as a share (seen: {seen:.2})"),
                unseen,
                Limits { good: 0.95, fair: 0.7 },
                advice,
            ),
        });
    }
    Ok(findings)
}

fn truth_of(world: &dyn Cmdp, context: ContextId) -> Result<Vec<f64>, LearnError> {
    Ok(hidden(&world.describe(context)?).map(|(_, truth)| truth).unwrap_or_default())
}

/// The hidden numbers that a context's description tells: its wind where one blows, else the signs of its legs.
fn hidden(about: &Value) -> Option<(Quantity, Vec<f64>)> {
    let numbers = |key: &str| -> Option<Vec<f64>> {
        about.get(key)?.as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()
    };
    match numbers("wind").filter(|wind| wind.iter().any(|x| *x != 0.0)) {
        Some(wind) => Some((Quantity::Direction, wind)),
        None => numbers("legs").map(|legs| (Quantity::Signs, legs)),
    }
}

/// The middle of values; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The linear map from h to what is hidden.
fn fit(rows: &[(Vec<f64>, Vec<f32>)]) -> LinearMap {
    let h: Vec<f32> = rows.iter().flat_map(|(_, h)| h).copied().collect();
    let truth: Vec<f64> = rows.iter().flat_map(|(truth, _)| truth).copied().collect();
    LinearMap::fit(&h, &truth, rows.len(), |_| RIDGE * rows.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_belief_that_is_a_turned_wind_is_read_to_the_degree_and_noise_is_not() {
        let wind = |i: u32| {
            let angle = f64::from(i) * 0.6;
            vec![4.0 * angle.cos(), 4.0 * angle.sin()]
        };
        let belief = |w: &[f64]| vec![(w[0] - w[1]) as f32 + 0.3, (w[0] + w[1]) as f32, 0.7];
        let rows: Vec<_> = (0..9).map(|i| (wind(i), belief(&wind(i)))).collect();
        let map = fit(&rows);
        for i in 20..24 {
            let (truth, h) = (wind(i), belief(&wind(i)));
            let reading = Reading { split: Split::Test, read: map.apply(&h), truth, h };
            assert!(reading.degrees() < 1.0, "{reading:?}");
        }
        let constant: Vec<_> = (0..9).map(|i| (wind(i), vec![0.0, 0.0, 0.7])).collect();
        let map = fit(&constant);
        let off = (0..9).map(|i| {
            let h = vec![0.0, 0.0, 0.7];
            Reading { split: Split::Train, read: map.apply(&h), truth: wind(i), h }.degrees()
        });
        assert!(median(&off.collect::<Vec<_>>()) > 45.0);
    }

    #[test]
    fn a_still_ant_hides_its_legs_and_a_maze_neither() {
        let legs = hidden(&json!({"wind": [0.0, 0.0], "legs": [1, -1, 1, 1]})).unwrap();
        assert_eq!(legs, (Quantity::Signs, vec![1.0, -1.0, 1.0, 1.0]));
        let wind = hidden(&json!({"wind": [0.0, -4.0], "legs": [1, 1, 1, 1]})).unwrap();
        assert_eq!(wind, (Quantity::Direction, vec![0.0, -4.0]));
        assert_eq!(hidden(&json!({"walls": []})), None);
        let reading = |read: [f64; 2]| Reading {
            split: Split::Test,
            truth: vec![1.0, -1.0],
            read: read.to_vec(),
            h: Vec::new(),
        };
        assert!(reading([0.2, -3.0]).signs_are_right());
        assert!(!reading([0.2, 0.1]).signs_are_right());
    }
}
