//! The baselines on listed states against what is known exactly.

use super::agent::{FiniteAgent, Listener, identities};
use super::fb::{FbConfig, FbModel, FbTrainer, TaskDraw};
use super::survey::Survey;
use super::tests::{cells, surveyed};
use super::{agent, nets};
use crate::correction::{CorrectionConfig, Corrector};
use crate::linalg::eigen;
use crate::methods::hilp::Hilp;
use crate::methods::lap::Lap;
use crate::phi::{FeatureLearner, Phi, PhiConfig, PhiTrainer, Source as _};
use crate::train::Learner as _;
use burn::tensor::Device;
use std::sync::Arc;
use windvane_world::grid::distances;
use windvane_world::{ContextId, Split};

fn learned(learner: &'static dyn FeatureLearner, survey: &Arc<Survey>, config: PhiConfig) -> Phi {
    let mut trainer =
        PhiTrainer::new(learner, survey.clone(), &[128, 128], config, 1, &Device::flex()).unwrap();
    (0..config.steps).for_each(|step| drop(trainer.train_step(step).unwrap()));
    trainer.phi()
}

/// The smallest of the cosines of the angles between two spaces that columns of `a` and `b [rows * d]` span.
fn least_cosine(a: &[f64], b: &[f64], dim: usize) -> f64 {
    let orthonormal = |x: &[f64]| -> Vec<f64> {
        let mut columns: Vec<Vec<f64>> =
            (0..dim).map(|k| x.iter().skip(k).step_by(dim).copied().collect()).collect();
        for k in 0..dim {
            for j in 0..k {
                let (done, rest) = columns.split_at_mut(k);
                let dot: f64 = done[j].iter().zip(&rest[0]).map(|(x, y)| x * y).sum();
                rest[0].iter_mut().zip(&done[j]).for_each(|(x, y)| *x -= dot * y);
            }
            let length = columns[k].iter().map(|x| x * x).sum::<f64>().sqrt();
            columns[k].iter_mut().for_each(|x| *x /= length);
        }
        columns.concat()
    };
    let (a, b) = (orthonormal(a), orthonormal(b));
    let rows = a.len() / dim;
    let cosine = |i: usize, j: usize| -> f64 {
        a[i * rows..][..rows].iter().zip(&b[j * rows..][..rows]).map(|(x, y)| x * y).sum()
    };
    let product: Vec<f64> = (0..dim * dim).map(|ij| cosine(ij / dim, ij % dim)).collect();
    let gram = (0..dim * dim)
        .map(|ij| (0..dim).map(|k| product[ij / dim * dim + k] * product[ij % dim * dim + k]).sum::<f64>());
    eigen(gram.collect(), dim).0[dim - 1].max(0.0).sqrt()
}

#[test]
fn lap_finds_the_smoothest_eigenvectors_of_the_graph_of_transitions() {
    let (_, survey) = surveyed("doors", 1, 200);
    let (states, dim) = (survey.states(), 6);
    let config = PhiConfig { dim, steps: 1500, batch: 256, rate: 3e-3, ..PhiConfig::default() };
    let phi = learned(&Lap, &survey, config);
    // Transitions both ways, each state weighing as often as it was left or entered.
    let mut both = vec![0.0_f64; states * states];
    for &(token, count) in &survey.groups()[0].counts {
        let from = token as usize / survey.width() / survey.actions();
        let to = survey.successors()[token as usize] as usize;
        both[from * states + to] += f64::from(count);
        both[to * states + from] += f64::from(count);
    }
    let weight: Vec<f64> = both.chunks_exact(states).map(|row| row.iter().sum::<f64>()).collect();
    let normal = (0..states * states)
        .map(|i| both[i] / (weight[i / states] * weight[i % states]).sqrt())
        .collect::<Vec<_>>();
    let (_, vectors) = eigen(normal, states); // largest first: the smoothest
    let exact: Vec<f64> =
        (0..states).flat_map(|s| (0..dim).map(|k| vectors[k * states + s]).collect::<Vec<_>>()).collect();
    // In the metric of the weights, as the eigenvectors are.
    let raw = phi.raw(survey.reference().0);
    let ours: Vec<f64> = raw
        .chunks_exact(dim)
        .zip(&weight)
        .flat_map(|(row, w)| row.iter().map(|x| f64::from(*x) * w.sqrt()).collect::<Vec<_>>())
        .collect();
    let cosine = least_cosine(&ours, &exact, dim);
    assert!(cosine > 0.95, "largest angle between the spaces: {} degrees", cosine.min(1.0).acos().to_degrees());
}

/// Spearman's rank correlation; ties share their mean rank.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |x: &[f64]| -> Vec<f64> {
        let mut sorted = x.to_vec();
        sorted.sort_by(f64::total_cmp);
        let below = |v: f64| sorted.partition_point(|y| *y < v) as f64;
        let upto = |v: f64| sorted.partition_point(|y| *y <= v) as f64;
        x.iter().map(|&v| f64::midpoint(below(v), upto(v) - 1.0)).collect()
    };
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let sum = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    sum(&a, &b) / (sum(&a, &a) * sum(&b, &b)).sqrt()
}

#[test]
fn hilp_puts_states_as_far_apart_as_they_are_in_steps() {
    let (world, survey) = surveyed("four-rooms", 1, 200);
    let config = PhiConfig { dim: 16, steps: 1500, batch: 256, rate: 2e-3, ..PhiConfig::default() };
    let raw = learned(&Hilp, &survey, config).raw(survey.reference().0);
    let layout = world.grid().unwrap().layout(world.contexts(Split::Train)[0]).unwrap();
    let cells = cells(&*world, &survey);
    let (mut ours, mut steps) = (Vec::new(), Vec::new());
    for (g, &goal) in cells.iter().enumerate() {
        let far = distances(layout, goal);
        for (s, &cell) in cells.iter().enumerate().filter(|(_, cell)| far[**cell] != u16::MAX) {
            let gap = raw[s * 16..][..16].iter().zip(&raw[g * 16..][..16]).map(|(x, y)| f64::from(x - y).powi(2));
            ours.push(gap.sum::<f64>().sqrt());
            steps.push(f64::from(far[cell]));
        }
    }
    let order = rank_correlation(&ours, &steps);
    assert!(order > 0.9, "rank correlation {order}");
}
