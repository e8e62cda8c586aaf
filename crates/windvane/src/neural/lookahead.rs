//! Bellman sweeps through the predictor before acting, from what U says, over a net of visited states.

use super::fb::{FbModel, Places};

/// Most landmarks; with more the net is made wider.
const MOST: usize = 900;
/// Landmarks that a value between them is taken from.
const NEAR: usize = 3;

/// A net of visited states, evenly spread.
#[derive(Clone, Debug)]
pub(super) struct Landmarks {
    /// `[count, dims]`.
    obs: Vec<f32>,
    features: Vec<f32>,
    /// B of each, `[count, d]`: the reward that z stands for, once B is orthonormal, is B z.
    reward: Vec<f32>,
    /// Distance between neighbours, in usual changes.
    spacing: f32,
}

/// What every landmark is worth to one game.
#[derive(Clone, Debug)]
pub(super) struct Worth {
    worth: Vec<f32>,
    /// Whether one can be there at all, 0 to 1.
    support: Vec<f32>,
}

impl Landmarks {
    /// Picks landmarks from visited states `[rows, dims]`, of which `b [rows, d]` is B.
    pub(super) fn new(model: &FbModel, states: &[f32], b: &[f32]) -> Self {
        let change = model.lens.change();
        let (dims, dim) = (change.len(), model.dim());
        let mut spacing = 0.5;
        let kept = loop {
            let mut kept: Vec<usize> = Vec::new();
            for (row, state) in states.chunks_exact(dims).enumerate() {
                let apart =
                    |&other: &usize| distance2(state, &states[other * dims..], change) >= spacing * spacing;
                if kept.iter().all(apart) {
                    kept.push(row);
                }
                if kept.len() > MOST {
                    break;
                }
            }
            if kept.len() <= MOST {
                break kept;
            }
            spacing *= 1.15;
        };
        let obs: Vec<f32> = kept.iter().flat_map(|&row| &states[row * dims..][..dims]).copied().collect();
        let b: Vec<f32> = kept.iter().flat_map(|&row| &b[row * dim..][..dim]).copied().collect();
        Self { features: model.lens.features_of(&obs), obs, reward: b, spacing }
    }

    /// What every landmark is worth to a game that is told `told`, believes `belief` and wants `z`, after `sweeps`.
    pub(super) fn worth(
        &self,
        model: &FbModel,
        told: &[f32],
        belief: &[f32],
        z: &[f32],
        sweeps: usize,
    ) -> Option<Worth> {
        let places = Places {
            obs: self.obs.clone(),
            features: self.features.clone(),
            told: told.to_vec(),
            beliefs: belief.to_vec(),
            groups: 1,
        };
        let after = model.afterstates(&places)?;
        let links = self.links(model, &after);
        let mut worth = model.worth(&places, z); // [landmarks]
        let choices = links.len() / worth.len();
        let reward: Vec<f32> = self
            .reward
            .chunks_exact(z.len())
            .map(|b| b.iter().zip(z).map(|(b, z)| b * z).sum::<f32>())
            .collect();
        let support = model.support(&places).unwrap_or_else(|| vec![1.0; worth.len()]);
        let gamma = model.config.gamma;
        for _ in 0..sweeps {
            let floor = lowest(&worth);
            let going = links.chunks_exact(choices).map(|links| {
                links.iter().map(|link| link.of(&worth, &support, floor)).fold(f32::NEG_INFINITY, f32::max)
            });
            worth = going.zip(&reward).map(|(going, r)| r + gamma * going).collect();
        }
        Some(Worth { worth, support })
    }

    /// The worth of states `[rows, dims]` between landmarks.
    pub(super) fn between(&self, model: &FbModel, worth: &Worth, states: &[f32]) -> Vec<f32> {
        let floor = lowest(&worth.worth);
        self.links(model, states).iter().map(|link| link.of(&worth.worth, &worth.support, floor)).collect()
    }

    /// The landmarks near each state.
    fn links(&self, model: &FbModel, states: &[f32]) -> Vec<Link> {
        let change = model.lens.change();
        let link = |state: &[f32]| {
            let mut near = [(f32::INFINITY, 0); NEAR];
            for (i, landmark) in self.obs.chunks_exact(change.len()).enumerate() {
                let d2 = distance2(state, landmark, change);
                if d2 < near[NEAR - 1].0 {
                    near[NEAR - 1] = (d2, i);
                    let mut place = NEAR - 1;
                    while place > 0 && near[place].0 < near[place - 1].0 {
                        near.swap(place, place - 1);
                        place -= 1;
                    }
                }
            }
            // Relative to the nearest, so that far away it alone counts and nothing underflows.
            let width = 2.0 * (self.spacing * 0.5).powi(2);
            let shares = near.map(|(d2, _)| (-(d2 - near[0].0) / width).exp());
            let total: f32 = shares.iter().sum();
            Link { places: near.map(|(_, i)| i), shares: shares.map(|share| share / total) }
        };
        states.chunks_exact(change.len()).map(link).collect()
    }
}

/// Landmarks near a state, and how much each counts.
#[derive(Clone, Copy, Debug)]
struct Link {
    places: [usize; NEAR],
    shares: [f32; NEAR],
}

impl Link {
    /// The worth of the landmarks one can be at; down to `floor` where hardly any of them is one, as
    /// behind a wall.
    fn of(&self, worth: &[f32], support: &[f32], floor: f32) -> f32 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (&place, share) in self.places.iter().zip(self.shares) {
            sum += share * support[place] * worth[place];
            total += share * support[place];
        }
        floor + (sum / total.max(1e-6) - floor) * (2.0 * total).min(1.0)
    }
}

/// The least worth.
fn lowest(worth: &[f32]) -> f32 {
    worth.iter().copied().fold(f32::INFINITY, f32::min)
}

/// The squared distance in usual changes.
fn distance2(a: &[f32], b: &[f32], change: &[f32]) -> f32 {
    a.iter().zip(b).zip(change).map(|((a, b), size)| ((a - b) / size).powi(2)).sum()
}
