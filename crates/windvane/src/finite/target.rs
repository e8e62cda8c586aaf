//! What forward maps aim at: Bellman backups of densities, in plain numbers.

use super::survey::Survey;
use super::sweeps;
use crate::linalg::cholesky_solve;

/// Rewards that task vectors stand for, given B of every state.
#[derive(Debug)]
pub(super) struct Reward {
    /// `B^T (B B^T + eps)^-1`, by rows of states: `[states * d]`.
    inverse: Vec<f64>,
    dim: usize,
    rho: Vec<f32>,
}

impl Reward {
    /// Prepares the map from z to the reward r with `sum_s rho(s) r(s) B(s) = z`, in the least squares sense.
    pub(super) fn new(b: &[f32], rho: &[f32], dim: usize) -> Self {
        let states = rho.len();
        let mut gram = vec![0.0_f64; states * states];
        for i in 0..states {
            for j in 0..=i {
                let dot: f64 = (0..dim).map(|k| f64::from(b[i * dim + k]) * f64::from(b[j * dim + k])).sum();
                gram[i * states + j] = dot;
            }
            gram[i * states + i] += 1e-3 * dim as f64;
        }
        let mut inverse: Vec<f64> = b.iter().map(|&x| f64::from(x)).collect();
        cholesky_solve(&mut gram, states, &mut inverse, dim);
        Self { inverse, dim, rho: rho.to_vec() }
    }

    /// The reward of every state for task vector `z`.
    pub(super) fn of(&self, z: &[f32]) -> Vec<f32> {
        let rows = self.inverse.chunks_exact(self.dim).zip(&self.rho);
        rows.map(|(row, rho)| {
            let weight: f64 = row.iter().zip(z).map(|(a, b)| a * f64::from(*b)).sum();
            (weight / f64::from(*rho)) as f32
        })
        .collect()
    }
}

/// One group's current estimates.
pub(super) struct Group<'a> {
    pub(super) survey: &'a Survey,
    /// Target forward vectors: `[states * d]`, or `[states * actions * d]` with one head per action.
    pub(super) f: &'a [f32],
    /// Target B, `[states * d]`.
    pub(super) b: &'a [f32],
    pub(super) z: &'a [f32],
    pub(super) reward: &'a Reward,
    pub(super) gamma: f32,
    /// Of the policy; 0 is greedy.
    pub(super) temperature: f32,
}

/// The dynamics a backup goes through.
pub(super) enum Dynamics<'a> {
    /// Those decoded from the belief, several sweeps deep.
    Decoded { p: &'a [f32], sweeps: usize },
    /// Those of the data, one step deep.
    Seen { counts: &'a [(u32, u32)] },
}

/// What one group's rows aim at.
pub(super) struct Aim {
    /// Density of the successor measure, `[rows * states]`.
    pub(super) density: Vec<f32>,
    /// Worth of the task under it, `[rows]`.
    pub(super) worth: Vec<f32>,
    /// 1 for rows with a target, 0 for others, `[rows]`.
    pub(super) known: Vec<f32>,
}

impl Aim {
    /// What an error of the worth is measured by: its own size for a goal (plus a little), else the largest.
    pub(super) fn yardstick(&self, goal: bool) -> impl Iterator<Item = f32> {
        let peak = self.worth.iter().fold(1e-6_f32, |peak, w| peak.max(w.abs()));
        self.worth.iter().map(move |w| if goal { w.abs() + 0.02 * peak } else { peak })
    }
}

impl Group<'_> {
    pub(super) fn aim(&self, dynamics: Dynamics<'_>) -> Aim {
        let reward = self.reward.of(self.z);
        let (density, known) = match dynamics {
            Dynamics::Decoded { p, sweeps } => (self.through_predictor(p, &reward, sweeps), None),
            Dynamics::Seen { counts } => self.through_data(counts),
        };
        let states = self.survey.states();
        let stakes: Vec<f32> = reward.iter().zip(self.survey.rho()).map(|(r, rho)| r * rho).collect();
        let worth: Vec<f32> = density.chunks_exact(states).map(|row| dot(row, &stakes)).collect();
        let known = known.unwrap_or_else(|| vec![1.0; worth.len()]);
        Aim { density, worth, known }
    }

    /// Backs up U: own state now, then what the policy meets. Values settle first, then that policy's densities follow.
    fn through_predictor(&self, p: &[f32], reward: &[f32], sweeps: usize) -> Vec<f32> {
        let (survey, states, dim) = (self.survey, self.survey.states(), self.z.len());
        let mut v: Vec<f32> = self.f.chunks_exact(dim).map(|u| dot(u, self.z)).collect();
        let (mut q, mut policy) = (vec![0.0; survey.pairs()], vec![0.0; survey.pairs()]);
        let choose = |v: &[f32], q: &mut [f32], policy: &mut [f32]| {
            sweeps::expected(survey, p, v, q);
            sweeps::policy(survey.actions(), q, self.temperature, policy);
        };
        for _ in 0..sweeps {
            choose(&v, &mut q, &mut policy);
            let pairs = q.chunks_exact(survey.actions()).zip(policy.chunks_exact(survey.actions()));
            for ((v, r), (q, policy)) in v.iter_mut().zip(reward).zip(pairs) {
                *v = r + self.gamma * dot(q, policy);
            }
        }
        choose(&v, &mut q, &mut policy);
        let mut m = self.densities(self.f);
        let mut next = vec![0.0; states * states];
        for _ in 0..sweeps {
            sweeps::evaluate(survey, p, &policy, self.gamma, &m, &mut next);
            std::mem::swap(&mut m, &mut next);
        }
        m
    }

    /// Backs up F(s, a): the states the group's data led to, then what the greedy policy meets there.
    fn through_data(&self, counts: &[(u32, u32)]) -> (Vec<f32>, Option<Vec<f32>>) {
        let (survey, states, dim) = (self.survey, self.survey.states(), self.z.len());
        let q: Vec<f32> = self.f.chunks_exact(dim).map(|f| dot(f, self.z)).collect();
        let mut policy = vec![0; states];
        sweeps::greedy(survey.actions(), &q, &mut policy);
        let chosen = policy.iter().enumerate().flat_map(|(s, &a)| {
            let row = s * survey.actions() + a as usize;
            &self.f[row * dim..(row + 1) * dim]
        });
        let ahead = self.densities(&chosen.copied().collect::<Vec<_>>()); // of being in s and going on greedily
        let mut shares = vec![0.0; survey.vocabulary()];
        survey.write_shares(counts, &mut shares);
        let mut density = vec![0.0; survey.pairs() * states];
        let mut known = vec![0.0; survey.pairs()];
        for (token, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let (pair, next) = (token / survey.width(), survey.successors()[token] as usize);
            known[pair] = 1.0;
            let row = &mut density[pair * states..(pair + 1) * states];
            row.iter_mut()
                .zip(&ahead[next * states..][..states])
                .for_each(|(d, m)| *d += share * self.gamma * m);
            row[next] += share / survey.rho()[next];
        }
        (density, Some(known))
    }

    /// `f B^T`, `[rows * states]`.
    fn densities(&self, f: &[f32]) -> Vec<f32> {
        let dim = self.z.len();
        f.chunks_exact(dim).flat_map(|f| self.b.chunks_exact(dim).map(move |b| dot(f, b))).collect()
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
