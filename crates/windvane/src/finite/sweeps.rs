//! Bellman sweeps through decoded dynamics, in plain numbers.
//!
//! `p` holds the probability of each token's outcome, `[vocabulary]`; values live on visited states.

use super::survey::Survey;

/// What each action is worth when its outcomes are worth `v`: `q[s * actions + a] = sum_k p_k v(successor_k)`.
pub fn expected(survey: &Survey, p: &[f32], v: &[f32], q: &mut [f32]) {
    let width = survey.width();
    let rows = p.chunks_exact(width).zip(survey.successors().chunks_exact(width));
    for (q, (p, next)) in q.iter_mut().zip(rows) {
        *q = p.iter().zip(next).map(|(p, &s)| p * v[s as usize]).sum();
    }
}

/// The first best action of each state.
pub fn greedy(actions: usize, q: &[f32], policy: &mut [u32]) {
    for (best, q) in policy.iter_mut().zip(q.chunks_exact(actions)) {
        *best = (1..actions).fold(0, |best, a| if q[a] > q[best] { a } else { best }) as u32;
    }
}

/// Value iteration from where `v` stands: `sweeps` times `v(s) = r(s) + gamma * max_a sum_k p_k v(successor_k)`, where
/// `v` is the worth of *being* in a state, its own reward included.
pub fn optimise(survey: &Survey, p: &[f32], reward: &[f32], gamma: f32, sweeps: usize, v: &mut [f32]) {
    let mut q = vec![0.0; survey.pairs()];
    for _ in 0..sweeps {
        expected(survey, p, v, &mut q);
        for ((v, r), q) in v.iter_mut().zip(reward).zip(q.chunks_exact(survey.actions())) {
            *v = r + gamma * q.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        }
    }
}

/// One sweep of policy evaluation on a table of occupancies, `m[s, :] = 1{s}/rho(s) + gamma * sum_k p_k m[successor_k, :]`
/// under the actions of `policy`: densities of the successor measure (own state included) with respect to `rho`.
pub fn evaluate(survey: &Survey, p: &[f32], policy: &[u32], gamma: f32, m: &[f32], out: &mut [f32]) {
    let (states, width) = (survey.states(), survey.width());
    for (s, out) in out.chunks_exact_mut(states).enumerate() {
        let pair = s * survey.actions() + policy[s] as usize;
        out.fill(0.0);
        let tokens = pair * width..(pair + 1) * width;
        for (p, &next) in
            p[tokens.clone()].iter().zip(&survey.successors()[tokens]).filter(|(p, _)| **p != 0.0)
        {
            let ahead = &m[next as usize * states..][..states];
            out.iter_mut().zip(ahead).for_each(|(o, m)| *o += gamma * p * m);
        }
        out[s] += 1.0 / survey.rho()[s];
    }
}
