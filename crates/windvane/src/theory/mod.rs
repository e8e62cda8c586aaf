//! Theorem 1 of the paper where everything is exact: on grids.
//!
//! The worst-case class error `eps_k` is the least error, in L2(rho), with which one pair (F, B) of rank d fits the successor
//! measures of the best policies of k layouts, in the layout that fits worst. Two classes are compared: F that is conditioned on
//! nothing, so that one F serves all layouts, and F that is conditioned on the layout, so that only B is shared. Splitting layouts into
//! cones gives each cone a pair of its own (the paper's theorem 2).

mod regret;

pub use regret::{Regret, regrets};

use crate::linalg::eigen;
use serde::Serialize;
use windvane_world::grid::{ACTIONS, Dynamics, Layout, Objective, Plan, SuccessorMeasure, deterministic};

/// Rounds in which the weights of layouts are moved toward those that fit worst.
const ROUNDS: usize = 16;

/// What F is conditioned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Conditioning {
    /// Nothing: F and B are the same for all layouts, of any rank.
    Nothing,
    /// The layout: B alone is shared, of rank d.
    Layout {
        /// The rank.
        d: usize,
    },
}

/// The error of the best fit found, and a bound that no fit is below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClassError {
    /// Of the fit.
    pub upper: f64,
    /// No fit is better.
    pub lower: f64,
}

/// The successor measure of the best policy of one layout for one goal, in density by a uniform rho.
#[derive(Clone, Debug)]
pub struct Measure {
    cells: usize,
    /// `[cells * ACTIONS * cells]`, scaled so that the sum of squares of a difference is the squared L2(rho) norm.
    rows: Vec<f64>,
    /// Cells that are free.
    free: Vec<bool>,
}

impl Measure {
    /// Computes it exactly.
    pub fn of(layout: &Layout, goal: usize, gamma: f64) -> Self {
        let dynamics = Dynamics::of(layout);
        let cells = layout.cells();
        let reward = (0..cells).map(|cell| f64::from(u8::from(cell == goal))).collect();
        let plan = Plan::solve(&dynamics, &Objective::Collect(reward), gamma);
        let measure = SuccessorMeasure::of(&dynamics, &deterministic(cells, |cell| plan.best(cell)), gamma);
        let free: Vec<bool> = (0..cells).map(|cell| layout.is_free(cell)).collect();
        let states = free.iter().filter(|free| **free).count() as f64;
        // rho is 1 / cells; density is M * cells, weighted by sqrt(rho) over what is reached and by the share of (s, a).
        let scale = (cells as f64).sqrt() / (states * ACTIONS as f64).sqrt();
        let weight = |place: usize| if free[place / cells / ACTIONS] { scale } else { 0.0 };
        let rows = measure.measure().iter().enumerate().map(|(place, m)| m * weight(place)).collect();
        Self { cells, rows, free }
    }

    /// The squared distance to another, over the cells that are free in both.
    fn distance(&self, other: &Self) -> f64 {
        let width = self.cells * ACTIONS;
        let both = |place: usize| self.free[place / width] && other.free[place / width];
        let pairs = self.rows.iter().zip(&other.rows).enumerate();
        pairs.filter(|(place, _)| both(*place)).map(|(_, (a, b))| (a - b) * (a - b)).sum()
    }

    /// `A^T A`, `[cells * cells]`.
    fn gram(&self) -> Vec<f64> {
        let n = self.cells;
        let mut gram = vec![0.0; n * n];
        for row in self.rows.chunks_exact(n) {
            for (i, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                gram[i * n..(i + 1) * n].iter_mut().zip(row).for_each(|(g, y)| *g += x * y);
            }
        }
        gram
    }
}

/// The worst-case class error of some layouts.
pub fn class_error(measures: &[&Measure], conditioning: Conditioning) -> ClassError {
    let grams: Vec<Vec<f64>> = match conditioning {
        Conditioning::Layout { d } if d < measures.first().map_or(0, |m| m.cells) => {
            measures.iter().map(|measure| measure.gram()).collect()
        }
        Conditioning::Layout { .. } => return ClassError::default(), // full rank fits each exactly
        Conditioning::Nothing => Vec::new(),
    };
    let mut weights = vec![1.0 / measures.len() as f64; measures.len()];
    let mut best = ClassError { upper: f64::INFINITY, lower: 0.0 };
    for _ in 0..ROUNDS {
        let errors = match conditioning {
            Conditioning::Nothing => errors_of_mean(measures, &weights),
            Conditioning::Layout { d } => errors_of_basis(&grams, &weights, d),
        };
        let worst = errors.iter().copied().fold(0.0, f64::max);
        // The weighted sum is least for these weights, so no pair has a smaller maximum.
        let least: f64 = errors.iter().zip(&weights).map(|(e, w)| e * w).sum();
        best.upper = best.upper.min(worst.max(0.0).sqrt());
        best.lower = best.lower.max(least.max(0.0).sqrt());
        if worst <= 0.0 {
            break;
        }
        weights.iter_mut().zip(&errors).for_each(|(w, e)| *w *= (2.0 * e / worst).exp());
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
    }
    best
}

/// Squared errors of the one measure that fits best in the weighted sum: their weighted mean, row by row.
fn errors_of_mean(measures: &[&Measure], weights: &[f64]) -> Vec<f64> {
    let width = measures[0].cells * ACTIONS;
    let mut mean = vec![0.0; measures[0].rows.len()];
    let mut total = vec![0.0; measures[0].cells];
    for (measure, w) in measures.iter().zip(weights) {
        mean.iter_mut().zip(&measure.rows).for_each(|(m, x)| *m += w * x);
        total.iter_mut().zip(&measure.free).for_each(|(t, free)| *t += if *free { *w } else { 0.0 });
    }
    mean.iter_mut().enumerate().for_each(|(place, m)| *m /= f64::max(total[place / width], 1e-300));
    let error = |measure: &&Measure| -> f64 {
        let pairs = measure.rows.iter().zip(&mean).enumerate();
        pairs.filter(|(place, _)| measure.free[place / width]).map(|(_, (x, m))| (x - m) * (x - m)).sum()
    };
    measures.iter().map(error).collect()
}

/// Squared errors with the rank-d B that fits best in the weighted sum: the first principal directions.
fn errors_of_basis(grams: &[Vec<f64>], weights: &[f64], d: usize) -> Vec<f64> {
    let n = (grams[0].len() as f64).sqrt() as usize;
    let mut sum = vec![0.0; n * n];
    for (gram, w) in grams.iter().zip(weights) {
        sum.iter_mut().zip(gram).for_each(|(s, g)| *s += w * g);
    }
    let (_, vectors) = eigen(sum, n);
    let error = |gram: &Vec<f64>| {
        let trace: f64 = (0..n).map(|i| gram[i * n + i]).sum();
        let captured: f64 = vectors
            .chunks_exact(n)
            .take(d)
            .map(|v| {
                let product = |row: &[f64]| row.iter().zip(v).map(|(g, v)| g * v).sum::<f64>();
                gram.chunks_exact(n).zip(v).map(|(row, v)| v * product(row)).sum::<f64>()
            })
            .sum();
        trace - captured
    };
    grams.iter().map(error).collect()
}

/// The error when layouts are split into 1, 2, ... cones, each time the worst cone in two. Returns one error for each of
/// `counts`.
pub fn split_errors(measures: &[Measure], conditioning: Conditioning, counts: &[usize]) -> Vec<ClassError> {
    let error_of =
        |cone: &[usize]| class_error(&cone.iter().map(|&i| &measures[i]).collect::<Vec<_>>(), conditioning);
    let all: Vec<usize> = (0..measures.len()).collect();
    let mut cones = vec![(error_of(&all), all)];
    let mut errors = Vec::new();
    for &count in counts {
        while cones.len() < count.min(measures.len()) {
            let splittable = (0..cones.len()).filter(|&i| cones[i].1.len() > 1);
            let Some(worst) = splittable.max_by(|&a, &b| cones[a].0.upper.total_cmp(&cones[b].0.upper))
            else {
                break;
            };
            let (_, cone) = cones.swap_remove(worst);
            cones.extend(halves(measures, &cone).map(|half| (error_of(&half), half)));
        }
        let worst = |pick: fn(&ClassError) -> f64| cones.iter().map(|(e, _)| pick(e)).fold(0.0, f64::max);
        errors.push(ClassError { upper: worst(|e| e.upper), lower: worst(|e| e.lower) });
    }
    errors
}

/// Two parts of a cone: nearer to one of its two farthest members, or to the other.
fn halves(measures: &[Measure], cone: &[usize]) -> [Vec<usize>; 2] {
    let far = |from: usize| {
        let far = cone.iter().copied().filter(|&i| i != from);
        far.max_by(|&i, &j| {
            measures[from].distance(&measures[i]).total_cmp(&measures[from].distance(&measures[j]))
        })
        .unwrap_or(from)
    };
    let first = far(cone[0]);
    let second = far(first);
    let nearer = |i: &&usize| {
        **i != second
            && (**i == first
                || measures[**i].distance(&measures[first]) <= measures[**i].distance(&measures[second]))
    };
    let (one, other) = cone.iter().partition(|i| nearer(i));
    [one, other]
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_world::Split;
    use windvane_world::registry::{WorldConfig, make};

    fn measures(count: usize) -> Vec<Measure> {
        let world = make("doors", &WorldConfig::default()).unwrap();
        let grid = world.grid().unwrap();
        let layouts = world.contexts(Split::Train).iter().take(count).map(|c| *grid.layout(*c).unwrap());
        let layouts: Vec<Layout> = layouts.collect();
        let goal =
            (0..layouts[0].cells()).rev().find(|&cell| layouts.iter().all(|l| l.is_free(cell))).unwrap();
        layouts.iter().map(|layout| Measure::of(layout, goal, 0.9)).collect()
    }

    #[test]
    fn one_layout_is_fitted_exactly_and_more_never_better() {
        let measures = measures(8);
        let error =
            |k: usize, conditioning| class_error(&measures[..k].iter().collect::<Vec<_>>(), conditioning);
        assert!(error(1, Conditioning::Nothing).upper < 1e-9);
        assert!(error(8, Conditioning::Layout { d: 1000 }).upper < 1e-9, "full rank");
        for conditioning in [Conditioning::Nothing, Conditioning::Layout { d: 12 }] {
            let errors = [1, 2, 4, 8].map(|k| error(k, conditioning));
            for (fewer, more) in errors.iter().zip(&errors[1..]) {
                assert!(more.upper > fewer.upper, "{conditioning:?} {errors:?}");
            }
            assert!(errors.iter().all(|e| e.lower <= e.upper + 1e-9), "{errors:?}");
        }
    }

    #[test]
    fn splitting_into_cones_helps_until_each_layout_has_its_own() {
        let measures = measures(8);
        for conditioning in [Conditioning::Nothing, Conditioning::Layout { d: 12 }] {
            let errors = split_errors(&measures, conditioning, &[1, 2, 4, 8]);
            for (few, many) in errors.iter().zip(&errors[1..]) {
                assert!(many.upper <= few.upper * 1.02, "{conditioning:?} {errors:?}");
            }
            assert!(errors[3].upper < 0.9 * errors[0].upper, "{conditioning:?} {errors:?}");
        }
        assert!(split_errors(&measures, Conditioning::Nothing, &[8])[0].upper < 1e-9);
    }
}
