//! Whether a context looks like any that was learned from: half of it is predicted from the other half.

use super::agent::FiniteAgent;
use windvane_world::trajectory::Trajectory;

/// Fewest moves that can be divided into halves that say something.
const FEWEST: usize = 4;
/// The least chance that an outcome is given, so that one of them cannot decide alone.
const LEAST: f64 = 1e-3;

/// The mean negative log-chance of every second move of `walk` under the belief of the others. What no data ever showed (a
/// push to the left that leads to the right) has the least chance there is.
pub(super) fn of(agent: &FiniteAgent, walk: &Trajectory) -> Option<f64> {
    let survey = agent.survey();
    let moves = survey.view().moves(walk.observations(), |step| walk.actions().get(step), walk.len());
    if !agent.listens() || moves.len() < FEWEST {
        return None;
    }
    let mut evidence = vec![0.0; survey.states() * 2];
    for token in moves.iter().step_by(2).filter_map(|&led| survey.token_of(led)) {
        survey.add_evidence(token as usize, &mut evidence);
    }
    let p = agent.situations(&evidence).dynamics; // [vocabulary]
    let others: Vec<f64> = moves
        .iter()
        .skip(1)
        .step_by(2)
        .map(|&led| {
            let chance = survey.token_of(led).map_or(0.0, |token| f64::from(p[token as usize]));
            -chance.max(LEAST).ln()
        })
        .collect();
    Some(others.iter().sum::<f64>() / others.len() as f64)
}
