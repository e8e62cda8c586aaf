//! Whether a context looks like any that was learned from: half of it is predicted from the other half.

use super::agent::FiniteAgent;
use rand::RngExt as _;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;

/// Fewest moves that can be divided into halves that say something.
const FEWEST: usize = 4;
/// The least chance that an outcome is given, so that one of them cannot decide alone.
const LEAST: f64 = 1e-3;
/// Contexts that the usual surprise is measured on.
const CONTEXTS: u64 = 200;

/// The mean negative log-chance of every second move of `walk` under the belief of the others. What no data ever showed (a
/// push to the left that leads to the right) has the least chance there is.
pub(super) fn of(agent: &FiniteAgent, walk: &Trajectory) -> Option<f64> {
    let survey = agent.survey();
    let tokens: Vec<Option<u32>> =
        survey.moves_of(walk).into_iter().map(|led| survey.token_of(led)).collect();
    of_tokens(agent, &tokens, None)
}

/// How surprising contexts of the data are, each as if its group had never been met, least first.
pub(super) fn usual(agent: &FiniteAgent) -> Vec<f32> {
    let survey = agent.survey();
    let surprise = |i: u64| {
        let mut rng = stream(0, "surprise", &[i]);
        let group = rng.random_range(0..survey.groups().len());
        let episodes = &survey.groups()[group].episodes;
        let tokens = survey.episode(*episodes.get(rng.random_range(0..episodes.len().max(1)))?);
        let length = rng.random_range(FEWEST.min(tokens.len())..=tokens.len());
        let tokens: Vec<Option<u32>> = tokens[..length].iter().map(|token| Some(*token)).collect();
        of_tokens(agent, &tokens, Some(group)).map(|surprise| surprise as f32)
    };
    let mut usual: Vec<f32> = (0..CONTEXTS).filter_map(surprise).collect();
    usual.sort_unstable_by(f32::total_cmp);
    usual
}

fn of_tokens(agent: &FiniteAgent, tokens: &[Option<u32>], hidden: Option<usize>) -> Option<f64> {
    let survey = agent.survey();
    let belief = agent.belief().filter(|_| tokens.len() >= FEWEST)?;
    let mut evidence = vec![0.0; survey.states() * 2];
    for token in tokens.iter().step_by(2).flatten() {
        survey.add_evidence(*token as usize, &mut evidence);
    }
    let p = belief.infer_without(&evidence, &[hidden.into_iter().collect()]).dynamics; // [vocabulary]
    let chance = |token: &Option<u32>| token.map_or(0.0, |token| f64::from(p[token as usize])).max(LEAST);
    let others: Vec<f64> = tokens.iter().skip(1).step_by(2).map(|token| -chance(token).ln()).collect();
    Some(others.iter().sum::<f64>() / others.len() as f64)
}
