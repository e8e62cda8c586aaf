//! The baselines on listed states against what is known exactly.

use super::agent::{FiniteAgent, Listener, identities, situations};
use super::fb::{FbConfig, FbTrainer};
use super::model::FbModel;
use super::nets::{Forward, NetConfig};
use super::situations::{Situations, TaskDraw};
use super::survey::Survey;
use super::sweeps;
use super::target::{Dynamics as Source, Goal, Group, Reward};
use super::tests::{cells, surveyed, truth};
use crate::correction::{CorrectionConfig, Corrector};
use crate::eval::{BeliefMode, EvalConfig, evaluate};
use crate::linalg::eigen;
use crate::methods::hilp::Hilp;
use crate::methods::lap::Lap;
use crate::phi::{FeatureLearner, Phi, PhiConfig, PhiTrainer, Source as _};
use crate::train::Learner as _;
use burn::tensor::Device;
use std::sync::Arc;
use windvane_world::Split;
use windvane_world::grid::{ACTIONS, Dynamics, SuccessorMeasure, deterministic, distances};

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
    assert!(
        cosine > 0.95,
        "largest angle between the spaces: {} degrees",
        cosine.min(1.0).acos().to_degrees()
    );
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
            let gap =
                raw[s * 16..][..16].iter().zip(&raw[g * 16..][..16]).map(|(x, y)| f64::from(x - y).powi(2));
            ours.push(gap.sum::<f64>().sqrt());
            steps.push(f64::from(far[cell]));
        }
    }
    let order = rank_correlation(&ours, &steps);
    assert!(order > 0.9, "rank correlation {order}");
}

#[test]
fn the_exact_successor_features_are_what_the_target_aims_at() {
    let (world, survey) = surveyed("doors", 1, 60);
    let layout = world.grid().unwrap().layout(world.contexts(Split::Train)[0]).unwrap();
    let (p, cells, states) = (truth(&*world, &survey), cells(&*world, &survey), survey.states());
    let (gamma, dim) = (0.9, 5);
    let phi: Vec<f32> = (0..states * dim).map(|i| ((i * i + 3 * i) % 17) as f32 / 8.0 - 1.0).collect();
    let z = [1.0, -0.5, 2.0, 0.3, -1.0];
    let (reward, nothing) = (Reward::over(&phi, dim), vec![0.0; survey.pairs() * dim]);
    // Heads begin after their action, U begins where it is.
    for (rows, heads) in [(survey.pairs(), true), (states, false)] {
        let group = Group {
            survey: &survey,
            f: vec![&nothing[..rows * dim]],
            b: &phi,
            z: &z,
            reward: &reward,
            gamma,
            temperature: 0.0,
            goal: Goal::Features,
        };
        let aim = if heads {
            group.aim(Source::Seen { p: &p, sweeps: 400 })
        } else {
            group.aim(Source::Decoded { p: &p, sweeps: 400 })
        };
        let mut q = aim.worth;
        if !heads {
            let v = std::mem::replace(&mut q, vec![0.0; survey.pairs()]);
            sweeps::expected(&survey, &p, &v, &mut q);
        }
        let mut best = vec![0; states];
        sweeps::greedy(ACTIONS, &q, &mut best);
        let choice = |cell: usize| cells.iter().position(|&c| c == cell).map_or(0, |s| best[s] as usize);
        let exact = SuccessorMeasure::of(
            &Dynamics::of(layout),
            &deterministic(layout.cells(), choice),
            f64::from(gamma),
        );
        for (row, found) in aim.density.chunks_exact(dim).enumerate() {
            let (state, action) =
                if heads { (row / ACTIONS, row % ACTIONS) } else { (row, choice(cells[row])) };
            if !layout.is_free(cells[state]) {
                continue;
            }
            let after = exact.after(cells[state], action);
            for (k, &found) in found.iter().enumerate() {
                let sum = summed(&phi, &cells, after, k, dim);
                let sum = if heads { sum } else { f64::from(phi[state * dim + k]) + f64::from(gamma) * sum };
                assert!(
                    (f64::from(found) - sum).abs() < 1e-3,
                    "heads: {heads}, feature {k} of row {row}: {found}, exactly {sum}"
                );
            }
        }
    }
}

/// A feature summed over the cells that are met.
fn summed(phi: &[f32], cells: &[usize], met: &[f64], k: usize, dim: usize) -> f64 {
    cells.iter().enumerate().map(|(s, &cell)| met[cell] * f64::from(phi[s * dim + k])).sum()
}

/// At a temperature so high that every policy is the uniform one, which has no ties to break.
#[test]
fn successor_features_are_learned_as_the_tabular_ones() {
    let (world, survey) = surveyed("doors", 1, 100);
    let (states, dim) = (survey.states(), 12);
    let phi = PhiConfig { dim, steps: 200, batch: 256, rate: 3e-3, ..PhiConfig::default() };
    let phi = learned(&Lap, &survey, phi).of(survey.reference().0);
    let layout = world.grid().unwrap().layout(world.contexts(Split::Train)[0]).unwrap();
    let cells = cells(&*world, &survey);
    let uniform = vec![1.0 / ACTIONS as f64; layout.cells() * ACTIONS];
    for forward in [Forward::Paper, Forward::Predictor] {
        let nets = NetConfig { forward, ..NetConfig::default() };
        let config =
            FbConfig { nets, steps: 400, groups: 8, gamma: 0.9, temperature: 1e6, ..FbConfig::default() };
        let model = FbModel::over(phi.clone(), &survey, config, 1, &Device::flex()).unwrap();
        let agent = FiniteAgent::new(survey.clone(), Listener::Deaf, model.clone());
        let situations: Situations = agent.situations(&vec![0.0; states * 2]);
        let mut trainer = FbTrainer::of(model, survey.clone(), situations.clone(), TaskDraw::Sphere, 1);
        (0..config.steps).for_each(|step| drop(trainer.train_step(step).unwrap()));
        let exact = SuccessorMeasure::of(&Dynamics::of(layout), &uniform, f64::from(config.gamma));
        let psi = trainer.model().forward(situations.conditions, phi[..dim].to_vec());
        let (mut off, mut size) = (0.0, 0.0);
        for (row, found) in psi.chunks_exact(dim).enumerate() {
            for (k, &found) in found.iter().enumerate() {
                let after = |pair: usize| {
                    summed(&phi, &cells, exact.after(cells[pair / ACTIONS], pair % ACTIONS), k, dim)
                };
                let sum = match forward {
                    Forward::Paper => after(row),
                    Forward::Predictor => {
                        let ahead = (0..ACTIONS).map(|a| after(row * ACTIONS + a)).sum::<f64>();
                        f64::from(phi[row * dim + k]) + f64::from(config.gamma) * ahead / ACTIONS as f64
                    }
                };
                off += (f64::from(found) - sum).powi(2);
                size += sum * sum;
            }
        }
        let error = f64::sqrt(off / size);
        assert!(error < 0.1, "{forward:?}: relative error {error}");
    }
}

/// A baseline that cannot solve one layout is a bug, not a finding.
#[test]
fn successor_features_solve_a_single_layout() {
    let (world, survey) = surveyed("four-rooms", 1, 100);
    let phi = PhiConfig { dim: 50, steps: 600, batch: 256, ..PhiConfig::default() };
    let eval = EvalConfig { rounds: 1, ..EvalConfig::default() };
    for learner in [&Hilp as &'static dyn FeatureLearner, &Lap] {
        let phi = learned(learner, &survey, phi).of(survey.reference().0);
        let config = FbConfig { steps: 20, groups: 8, ..FbConfig::default() };
        let model = FbModel::over(phi, &survey, config, 1, &Device::flex()).unwrap();
        let average = situations(&survey, None, &survey.average(), &vec![0.0; survey.states() * 2]);
        let mut trainer = FbTrainer::of(model, survey.clone(), average, TaskDraw::Sphere, 1);
        (0..config.steps).for_each(|step| drop(trainer.train_step(step).unwrap()));
        let agent = FiniteAgent::new(survey.clone(), Listener::Deaf, trainer.model().clone());
        let rows = evaluate(&*world, &agent, Split::Train, BeliefMode::Frozen, &eval, 1).unwrap();
        assert!(rows.len() == 3 && rows.iter().all(|row| row.success), "{learner:?}: {rows:?}");
    }
}

/// Oracle-ID is told nothing of a context it was not trained in.
#[test]
fn an_unseen_context_is_told_as_zeros_and_the_average() {
    let (world, survey) = surveyed("doors", 3, 20);
    let average = survey.average();
    let [seen, unseen] = [Split::Train, Split::Test].map(|split| world.contexts(split)[1]);
    let groups = [seen, unseen].map(|context| survey.privileged_group(context));
    assert_eq!(groups, [Some(1), None]);
    let told = identities(&survey, &average, &groups);
    assert_eq!(told.conditions, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let (own, other) = told.dynamics.split_at(survey.vocabulary());
    assert_eq!(other, average);
    assert_ne!(own, average);
    // Its own dynamics are certain wherever its data went.
    let layout = world.grid().unwrap().layout(seen).unwrap();
    let cells = cells(&*world, &survey);
    for &(token, _) in &survey.groups()[1].counts {
        let pair = token as usize / survey.width();
        let led = cells[survey.successors()[token as usize] as usize];
        assert_eq!(layout.step(cells[pair / ACTIONS], pair % ACTIONS), led);
        assert_eq!(own[token as usize], 1.0);
    }
}

/// In a world of two layouts, what classifiers say of a transition in one of them is the log of its probability there over
/// that in the data of both.
#[test]
fn classifiers_find_the_log_ratio_of_two_layouts() {
    let (_, survey) = surveyed("doors", 2, 300);
    let config = CorrectionConfig { width: 96, steps: 1200, batch: 256, ..CorrectionConfig::default() };
    let (tokens, shares) = survey.shares();
    let data = survey.seen(tokens.iter().copied());
    let corrector = Corrector::new(config, data, shares.clone(), vec![0.0; tokens.len()], 1, &Device::flex());
    let there = &survey.groups()[0].counts;
    let walk = there.iter().flat_map(|&(token, count)| std::iter::repeat_n(token, count as usize));
    let found = corrector.corrections(&survey.seen(walk)).unwrap();
    // p(s' | s, a) by shares of tokens.
    let conditional = |token: u32, all: &[(u32, f64)]| {
        let same = |other: u32| other as usize / survey.width() == token as usize / survey.width();
        let pair: f64 = all.iter().filter(|(other, _)| same(*other)).map(|(_, n)| n).sum();
        all.iter().find(|(other, _)| *other == token).map_or(0.0, |(_, n)| *n) / pair
    };
    let source: Vec<(u32, f64)> = tokens.iter().zip(&shares).map(|(&t, &n)| (t, f64::from(n))).collect();
    let target: Vec<(u32, f64)> = there.iter().map(|&(t, n)| (t, f64::from(n))).collect();
    let (mut off, mut differing, mut all) = (0.0, 0, 0);
    for ((&token, found), share) in tokens.iter().zip(found).zip(&shares) {
        let [there, data] = [&target, &source].map(|all| conditional(token, all));
        if there.is_nan() {
            continue; // nobody was there
        }
        let exact = (there / data).ln().clamp(-3.0, 3.0);
        off += f64::from(*share) * (f64::from(found) - exact).abs();
        if exact.abs() > 0.5 {
            all += 1;
            differing += usize::from(f64::from(found) * exact > 0.0 && found.abs() > 0.25);
        }
    }
    assert!(off < 0.1, "mean error {off}");
    assert!(
        all > 4 && differing as f64 >= 0.9 * f64::from(all),
        "{differing} of {all} where the layouts differ"
    );
}
