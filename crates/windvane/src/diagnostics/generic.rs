//! What can be said of a trained agent without exact answers: data, B, F, the belief, and how tasks and beliefs lie to each
//! other.

use super::{Finding, Limits, spread};
use crate::agent::{Agent, Known};
use crate::data::Replay;
use crate::fb::ObservationModel;
use crate::fb::conditioning::Conditioner;
use crate::latent;
use crate::linalg::linear_probe;
use crate::nn::read;
use rand::RngExt as _;
use windvane_world::rng::stream;

/// States that B and F are examined on.
const STATES: usize = 400;
/// Tasks that F is examined under.
const TASKS: usize = 8;
/// Contexts of each group for the probe, half of them to learn it.
const CONTEXTS: usize = 16;
/// Most groups that the probe tells apart.
const GROUPS: usize = 50;
/// States that coverage is measured against.
const NET: usize = 1000;

/// Findings about all parts of an agent on observations; about the belief with the data it was trained on.
pub(super) fn findings(
    agent: &Agent,
    model: &ObservationModel,
    replay: Option<&Replay>,
    seed: u64,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = about_data(agent, model).into_iter().collect();
    findings.extend(about_backward(agent, model));
    findings.extend(about_forward(agent, model, seed));
    if let Some(replay) = replay {
        findings.extend(about_belief(agent, replay, seed));
    }
    findings
}

fn about_data(agent: &Agent, model: &ObservationModel) -> Option<Finding> {
    let (states, scale) = (&agent.visited.states, &model.codec.change_scale);
    let dims = scale.len();
    let net = NET.min(states.len() / dims / 2);
    let nearest = |state: &[f32]| {
        let distance = |other: &[f32]| -> f32 {
            state.iter().zip(other).zip(scale).map(|((a, b), scale)| ((a - b) / scale).powi(2)).sum()
        };
        states.chunks_exact(dims).take(net).map(distance).fold(f32::INFINITY, f32::min).sqrt()
    };
    let others: Vec<f32> = states.chunks_exact(dims).skip(net).take(STATES).map(nearest).collect();
    let mean = others.iter().map(|d| f64::from(*d)).sum::<f64>() / others.len() as f64;
    let what = format!("steps from a visited state to the nearest of {net} others (coverage)");
    (!others.is_empty()).then(|| Finding::report("data", what, mean))
}

fn about_backward(agent: &Agent, model: &ObservationModel) -> Vec<Finding> {
    let dim = model.config.dim;
    let rows = STATES.min(agent.visited.shares.len());
    let [error, rank] = spread(&agent.visited.b[..rows * dim], &vec![1.0 / rows as f32; rows]);
    let advice = "raise fb.ortho_coef or train longer: goals that look alike to B get the same z";
    let what = "mean cosine of two visited states";
    let floor = (dim as f64 / 2.0).min(20.0);
    vec![
        Finding::at_most("B", what, error, Limits { good: 0.2, fair: 0.4 }, advice),
        Finding::at_least("B", "effective rank", rank, Limits { good: floor, fair: floor / 2.5 }, advice),
    ]
}

/// F under a few goals, each in a few states, conditioned on what is known on average; with an actor, the actor against the
/// best of candidates.
fn about_forward(agent: &Agent, model: &ObservationModel, seed: u64) -> Vec<Finding> {
    let (dim, dims) = (model.config.dim, model.codec.dims());
    let count = agent.visited.shares.len();
    let mut rng = stream(seed, "exam", &[]);
    let mut pick = || rng.random_range(0..count);
    let per_task = (STATES / TASKS).min(count);
    let mut known = Known::default();
    if let Conditioner::Belief { mean, .. } = &agent.conditioner {
        known.belief.clone_from(mean);
    }
    let (mut groups, mut obs) = (Vec::new(), Vec::new());
    for _ in 0..TASKS {
        let goal = pick();
        groups.push((&known, &agent.visited.b[goal * dim..][..dim]));
        (0..per_task).for_each(|_| obs.extend_from_slice(&agent.visited.states[pick() * dims..][..dims]));
    }
    let states = model.states(&obs, &groups);
    let Some(n) = model.n_choices() else {
        return about_actor(model, &states, per_task * TASKS).into_iter().collect();
    };
    let values = model.action_values(&states);
    let size = values.iter().map(|q| f64::from(q.abs())).sum::<f64>() / values.len() as f64;
    let gap = |q: &[f32]| {
        let mut q = q.to_vec();
        q.sort_unstable_by(|a, b| b.total_cmp(a));
        f64::from(q[0] - q.get(1).copied().unwrap_or(q[0]))
    };
    let gaps: f64 = values.chunks_exact(n).map(gap).sum::<f64>() / (values.len() / n) as f64;
    let advice = "train longer, hold actions longer (encoder.action_repeat) or lower fb.gamma: actions look alike to F";
    let what = "gap between the two best actions, as a share of Q";
    let limits = Limits { good: 0.01, fair: 0.001 };
    vec![Finding::at_least("F", what, gaps / size.max(1e-12), limits, advice)]
}

/// How often the actor is at least as good as the best of a few candidate actions on the same F.
fn about_actor(
    model: &ObservationModel,
    states: &crate::fb::observations::States,
    rows: usize,
) -> Option<Finding> {
    let acted = model.values_of(states, model.actions(states));
    let candidates = model.codec.actions.candidates();
    let mut best = vec![f32::NEG_INFINITY; rows];
    for candidate in &candidates {
        let values = model.values_of(states, candidate.repeat(rows));
        best.iter_mut().zip(values).for_each(|(best, q)| *best = best.max(q));
    }
    let near = |(q, best): (&f32, &f32)| *q >= best - 0.02 * best.abs().max(1e-3);
    let share = acted.iter().zip(&best).filter(|pair| near(*pair)).count() as f64 / rows.max(1) as f64;
    let what =
        format!("states where the actor is as good as the best of {} candidates on F", candidates.len());
    if rows == 0 {
        return None;
    }
    if model.actor_config.clones() {
        // Trained to stay near the data, it leaves actions alone of which F only believes that they are better.
        return Some(Finding::report("actor", what, share));
    }
    let advice = "the actor lags behind F: train longer, or raise actor.rate";
    Some(Finding::at_least("actor", what, share, Limits { good: 0.8, fair: 0.5 }, advice))
}

fn about_belief(agent: &Agent, replay: &Replay, seed: u64) -> Vec<Finding> {
    let (Some(belief), Some(encoder)) = (agent.predictor(), agent.belief()) else { return Vec::new() };
    let config = &agent.settings.belief;
    let groups = replay.groups().min(GROUPS);
    let (mut sets, mut labels) = (Vec::new(), Vec::new());
    for i in 0..CONTEXTS * groups {
        let mut rng = stream(seed, "probe", &[i as u64]);
        let rows = replay.draw_context(&mut rng, i % groups, config.max_context);
        sets.push(read(replay.tokens(replay.rows(&rows))));
        labels.push(i % groups);
    }
    let posteriors = belief.infer_tokens(&sets.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let h = agent.conditioner.centred(&posteriors.mean);
    let half = sets.len() / 2;
    let (learn, test) = h.split_at(half * encoder.dim());
    let named = linear_probe(learn, &labels[..half], test, &labels[half..], groups);
    let chance = 1.0 / groups as f64;
    let advice = "train the belief longer, or with longer contexts: h does not tell groups apart";
    let what = format!("a linear map names the group ({groups} of them)");
    let limits = Limits { good: 0.5_f64.max(2.0 * chance).min(1.0), fair: 3.0 * chance };
    let mut findings = vec![Finding::at_least("belief", what, named, limits, advice)];
    findings.extend(about_angles(agent, &h));
    if let Conditioner::Belief { scale, .. } = &agent.conditioner {
        let squares = posteriors.std.iter().map(|s| f64::from(s * scale).powi(2)).sum::<f64>();
        let sure = (squares / posteriors.std.len().max(1) as f64).sqrt();
        findings.push(Finding::report("belief", "std of h beside its differences between contexts", sure));
    }
    if let (Some(first), Some(last)) = (agent.calibration.first(), agent.calibration.last()) {
        let median = agent.calibration[agent.calibration.len() / 2];
        let what = format!("ood score of contexts not learned from, median ({first:.3} to {last:.3})");
        findings.push(Finding::report("belief", what, f64::from(median)));
    }
    findings
}

/// The mean angle between goals and beliefs, where they live on the same sphere.
fn about_angles(agent: &Agent, centred: &[f32]) -> Option<Finding> {
    let dim = agent.dim();
    if agent.belief().is_none_or(|belief| belief.dim() != dim) {
        return None;
    }
    let pairs = centred.chunks_exact(dim).zip(agent.visited.b.chunks_exact(dim));
    let angles: Vec<f64> = pairs.map(|(h, z)| latent::angle(h, z)).collect();
    let mean = angles.iter().sum::<f64>() / angles.len().max(1) as f64;
    Some(Finding::report("belief", "angle between z of a goal and h, degrees", mean))
}
