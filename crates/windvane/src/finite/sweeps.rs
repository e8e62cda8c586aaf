//! Bellman sweeps through decoded dynamics, in plain numbers.
//!
//! `p` holds the probability of each token's outcome, `[vocabulary]`; values live on visited states.

use super::survey::Survey;
use crate::agent::Outlook;

/// What each action is worth when its outcomes are worth `v`: `q[s * actions + a] = sum_k p_k v(successor_k)`.
pub fn expected(survey: &Survey, p: &[f32], v: &[f32], q: &mut [f32]) {
    expected_where(survey, p, v, v, q);
}

/// The same where a move that leads nowhere is worth `kept` of its state.
pub fn expected_where(survey: &Survey, p: &[f32], v: &[f32], kept: &[f32], q: &mut [f32]) {
    let width = survey.width();
    let rows = p.chunks_exact(width).zip(survey.successors().chunks_exact(width));
    for (pair, (q, (p, next))) in q.iter_mut().zip(rows).enumerate() {
        let own = pair / survey.actions();
        let worth = |&s: &u32| if s as usize == own { kept[own] } else { v[s as usize] };
        *q = p.iter().zip(next).map(|(p, s)| p * worth(s)).sum();
    }
}

/// The first best action of each state.
pub fn greedy(actions: usize, q: &[f32], policy: &mut [u32]) {
    for (best, q) in policy.iter_mut().zip(q.chunks_exact(actions)) {
        *best = (1..actions).fold(0, |best, a| if q[a] > q[best] { a } else { best }) as u32;
    }
}

/// Value iteration from where `v` stands: as often as `outlook` says `v(s) = r(s) + gamma * max_a sum_k p_k v(successor_k)`,
/// where `v` is the worth of *being* in a state, its own reward included. Returns what each action is worth then.
pub fn optimise(
    survey: &Survey,
    p: &[f32],
    reward: &[f32],
    gamma: f32,
    outlook: Outlook,
    v: &mut [f32],
) -> Vec<f32> {
    let mut q = vec![0.0; survey.pairs()];
    let mut kept = v.to_vec();
    let mut look = |v: &[f32], q: &mut [f32]| {
        // Who stays for good gets the reward of that place for ever.
        let stay = reward.iter().map(|r| r / (1.0 - gamma));
        let both = kept.iter_mut().zip(v.iter().zip(stay));
        both.for_each(|(kept, (v, stay))| *kept = outlook.retry * v + (1.0 - outlook.retry) * stay);
        expected_where(survey, p, v, &kept, q);
    };
    for _ in 0..outlook.lookahead {
        look(v, &mut q);
        for ((v, r), q) in v.iter_mut().zip(reward).zip(q.chunks_exact(survey.actions())) {
            *v = r + gamma * q.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        }
    }
    look(v, &mut q);
    q
}

/// The target's policy, `[states * actions]`: greedy at temperature 0, else Boltzmann over what actions are worth relative to
/// the best of their state, so that moves that tie share the mass and far goals count like near ones.
pub fn policy(actions: usize, q: &[f32], temperature: f32, policy: &mut [f32]) {
    let peak = q.iter().fold(0.0_f32, |peak, q| peak.max(q.abs()));
    for (p, q) in policy.chunks_exact_mut(actions).zip(q.chunks_exact(actions)) {
        let best = (1..actions).fold(0, |best, a| if q[a] > q[best] { a } else { best });
        let size = temperature * q.iter().fold(0.01 * peak, |size, q| size.max(q.abs()));
        for (a, p) in p.iter_mut().enumerate() {
            *p = if a == best {
                1.0
            } else if size > 0.0 {
                ((q[a] - q[best]) / size).exp()
            } else {
                0.0
            };
        }
        let total: f32 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= total);
    }
}

/// What `policy [states * actions]` leads to: `out[s, :] = gamma * sum_k p_k rows[successor_k, :]`, for rows of any width.
pub fn evaluate(survey: &Survey, p: &[f32], policy: &[f32], gamma: f32, rows: &[f32], out: &mut [f32]) {
    let (row, width) = (rows.len() / survey.states(), survey.width());
    for (s, out) in out.chunks_exact_mut(row).enumerate() {
        out.fill(0.0);
        let pairs = s * survey.actions()..(s + 1) * survey.actions();
        for pair in pairs.filter(|&pair| policy[pair] > 1e-6) {
            let tokens = pair * width..(pair + 1) * width;
            let outcomes = p[tokens.clone()].iter().zip(&survey.successors()[tokens]);
            for (p, &next) in outcomes.filter(|(p, _)| **p != 0.0) {
                let ahead = &rows[next as usize * row..][..row];
                let weight = gamma * policy[pair] * p;
                out.iter_mut().zip(ahead).for_each(|(o, m)| *o += weight * m);
            }
        }
    }
}
