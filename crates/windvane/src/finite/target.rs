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
    /// What each row is divided by.
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

    /// The map from z to the reward phi z, for features that are given.
    pub(super) fn over(phi: &[f32], dim: usize) -> Self {
        let inverse = phi.iter().map(|&x| f64::from(x)).collect();
        Self { inverse, dim, rho: vec![1.0; phi.len() / dim] }
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
    /// Target forward vectors: `[states * d]`, or `[states * actions * d]` with one head per action. Of several, the least
    /// value and the least density count.
    pub(super) f: Vec<&'a [f32]>,
    /// Target B, or the given features, `[states * d]`.
    pub(super) b: &'a [f32],
    pub(super) z: &'a [f32],
    pub(super) reward: &'a Reward,
    pub(super) gamma: f32,
    /// Of the policy; 0 is greedy.
    pub(super) temperature: f32,
    /// What rows aim at.
    pub(super) goal: Goal,
}

/// What forward vectors are to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// `F B` the density of the successor measure: rows of `states` numbers.
    Measure,
    /// F the successor features of given ones: rows of d numbers.
    Features,
}

impl Goal {
    /// The row that a forward vector stands for, given B, or the features, of every state (`[states * d]`).
    pub(super) fn row(self, f: &[f32], b: &[f32]) -> Vec<f32> {
        match self {
            Self::Measure => b.chunks_exact(f.len()).map(|b| dot(f, b)).collect(),
            Self::Features => f.to_vec(),
        }
    }
}

/// The dynamics a backup goes through, several sweeps deep: the probability of each token's outcome, `[vocabulary]`.
pub(super) enum Dynamics<'a> {
    /// Those decoded from the belief, for U.
    Decoded { p: &'a [f32], sweeps: usize },
    /// Those of the data, for heads; zeros for pairs that nobody tried.
    Seen { p: &'a [f32], sweeps: usize },
}

/// What one group's rows aim at.
pub(super) struct Aim {
    /// Density of the successor measure, `[rows * states]`, or successor features, `[rows * d]`.
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
            Dynamics::Seen { p, sweeps } => self.through_data(p, &reward, sweeps),
        };
        let worth: Vec<f32> = match self.goal {
            Goal::Measure => {
                let stakes: Vec<f32> = reward.iter().zip(self.survey.rho()).map(|(r, rho)| r * rho).collect();
                density.chunks_exact(stakes.len()).map(|row| dot(row, &stakes)).collect()
            }
            Goal::Features => density.chunks_exact(self.z.len()).map(|row| dot(row, self.z)).collect(),
        };
        let known = known.unwrap_or_else(|| vec![1.0; worth.len()]);
        Aim { density, worth, known }
    }

    /// Backs up U: own state now, then what the policy meets. Values settle first, then that policy's densities follow.
    fn through_predictor(&self, p: &[f32], reward: &[f32], sweeps: usize) -> Vec<f32> {
        let survey = self.survey;
        let mut v = self.values();
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
        let mut rows = self.rows();
        let mut next = vec![0.0; rows.len()];
        for _ in 0..sweeps {
            sweeps::evaluate(survey, p, &policy, self.gamma, &rows, &mut next);
            self.add_own(&mut next);
            std::mem::swap(&mut rows, &mut next);
        }
        rows
    }

    /// Backs up F(s, a): the states the data led to, then what the policy meets there. Values settle first, then that
    /// policy's rows follow.
    fn through_data(&self, p: &[f32], reward: &[f32], sweeps: usize) -> (Vec<f32>, Option<Vec<f32>>) {
        let survey = self.survey;
        let (actions, outcomes) = (survey.actions(), survey.width());
        let known: Vec<f32> =
            p.chunks_exact(outcomes).map(|p| f32::from(u8::from(p.iter().any(|p| *p > 0.0)))).collect();
        let mut q = self.values();
        let mut policy = vec![0.0; survey.pairs()];
        sweeps::policy(actions, &q, self.temperature, &mut policy);
        let mut next_q = vec![0.0; survey.pairs()];
        for _ in 1..sweeps {
            let both = q.chunks_exact(actions).zip(policy.chunks_exact(actions));
            let v: Vec<f32> =
                both.zip(reward).map(|((q, policy), r)| r + self.gamma * dot(q, policy)).collect();
            sweeps::expected(survey, p, &v, &mut next_q);
            let settled = q.iter_mut().zip(&next_q).zip(&known).filter(|(_, known)| **known > 0.0);
            settled.for_each(|((q, next), _)| *q = *next);
            sweeps::policy(actions, &q, self.temperature, &mut policy);
        }
        let mut rows = self.rows();
        let width = rows.len() / survey.pairs();
        for _ in 0..sweeps {
            let ahead = self.being(&rows, &policy, width); // [states * width]
            for (pair, row) in rows.chunks_exact_mut(width).enumerate().filter(|(pair, _)| known[*pair] > 0.0)
            {
                row.fill(0.0);
                let tokens = pair * outcomes..(pair + 1) * outcomes;
                let led = p[tokens.clone()].iter().zip(&survey.successors()[tokens]);
                for (p, &next) in led.filter(|(p, _)| **p > 0.0) {
                    let ahead = &ahead[next as usize * width..][..width];
                    row.iter_mut().zip(ahead).for_each(|(to, x)| *to += p * x);
                }
            }
        }
        (rows, Some(known))
    }

    /// What it is to be in each state and go on by `policy`, when actions lead to `rows [pairs * width]`.
    fn being(&self, rows: &[f32], policy: &[f32], width: usize) -> Vec<f32> {
        let actions = self.survey.actions();
        let mut being = vec![0.0; self.survey.states() * width];
        self.add_own(&mut being);
        for (s, to) in being.chunks_exact_mut(width).enumerate() {
            for pair in (s * actions..(s + 1) * actions).filter(|&pair| policy[pair] > 1e-6) {
                let weight = self.gamma * policy[pair];
                to.iter_mut().zip(&rows[pair * width..][..width]).for_each(|(to, x)| *to += weight * x);
            }
        }
        being
    }

    /// What each state adds by itself to the rows (`[states * width]`) of those who are there.
    fn add_own(&self, rows: &mut [f32]) {
        let states = self.survey.states();
        match self.goal {
            Goal::Measure => {
                let own = self.survey.rho().iter().enumerate();
                own.for_each(|(s, rho)| rows[s * states + s] += 1.0 / rho);
            }
            Goal::Features => rows.iter_mut().zip(self.b).for_each(|(row, phi)| *row += phi),
        }
    }

    /// What the current forward vectors say that the task is worth, `[rows]`.
    fn values(&self) -> Vec<f32> {
        self.least(|f| vec![dot(f, self.z)])
    }

    /// The rows that the current forward vectors stand for.
    fn rows(&self) -> Vec<f32> {
        self.least(|f| self.goal.row(f, self.b))
    }

    /// What `part` makes of each forward vector, one after the other; of several networks, the least.
    fn least(&self, part: impl Fn(&[f32]) -> Vec<f32>) -> Vec<f32> {
        let of = |f: &[f32]| f.chunks_exact(self.z.len()).flat_map(&part).collect::<Vec<f32>>();
        let mut nets = self.f.iter().map(|f| of(f));
        let mut least = nets.next().unwrap_or_default();
        for net in nets {
            least.iter_mut().zip(net).for_each(|(least, x)| *least = least.min(x));
        }
        least
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::surveyed;
    use super::*;

    #[test]
    fn of_several_networks_the_least_density_and_the_least_value_count() {
        let (_, survey) = surveyed("doors", 1, 5);
        let b: Vec<f32> = (0..survey.states() * 2).map(|i| 1.0 - (i % 3) as f32).collect();
        let reward = Reward::over(&b, 2);
        let nets: [Vec<f32>; 2] =
            [1.0, -1.0].map(|sign| (0..survey.states() * 2).map(|i| sign * (i % 5) as f32).collect());
        let z = [0.5, 2.0];
        let of = |f: Vec<&[f32]>| {
            let group = Group {
                survey: &survey,
                f,
                b: &b,
                z: &z,
                reward: &reward,
                gamma: 0.9,
                temperature: 0.0,
                goal: Goal::Measure,
            };
            (group.values(), group.rows())
        };
        let ((v, m), both) = (of(vec![&nets[0]]), of(vec![&nets[0], &nets[1]]));
        let (other_v, other_m) = of(vec![&nets[1]]);
        assert!(v.iter().zip(&other_v).zip(&both.0).all(|((a, b), least)| *least == a.min(*b)));
        assert!(m.iter().zip(&other_m).zip(&both.1).all(|((a, b), least)| *least == a.min(*b)));
        assert!(both.1 != m && both.1 != other_m, "neither is least everywhere");
    }
}
