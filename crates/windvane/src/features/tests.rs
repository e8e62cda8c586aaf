//! Features and classifiers against what is exact.

use super::correction::{CorrectionConfig, Corrector, Transitions};
use super::*;
use crate::data::split_groups;
use crate::linalg::eigen;
use crate::methods::hilp::Hilp;
use crate::methods::lap::Lap;
use crate::testing::{cells, collected, observed, tabled};
use crate::train::Learner as _;
use windvane_world::Split;
use windvane_world::grid::distances;

/// What trained features make of every listed state, `[states * d]`.
fn learned(
    learner: &'static dyn FeatureLearner,
    table: &Arc<StateTable>,
    config: FeaturesConfig,
) -> Vec<f32> {
    let source = Source::listed(table.clone(), &Device::flex());
    let states = source.reference().0;
    let mut trainer =
        PhiObjective::trainer(learner, source, &[128, 128], config, 1, &Device::flex()).unwrap();
    (0..config.steps).for_each(|step| drop(trainer.train_step(step).unwrap()));
    trainer.objective.phi().raw(states)
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
    let (_, table) = tabled("doors", 1, 200);
    let (states, dim) = (table.states(), 6);
    let config = FeaturesConfig { dim, steps: 1500, batch: 256, rate: 3e-3, ..FeaturesConfig::default() };
    let raw = learned(&Lap, &table, config);
    // Transitions both ways, each state weighing as often as it was left or entered.
    let mut both = vec![0.0_f64; states * states];
    for (token, &count) in table.groups[0].counts.iter().enumerate() {
        let from = table.leaves(token);
        let to = table.successors()[token] as usize;
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
    let (world, table) = tabled("four-rooms", 1, 200);
    let config = FeaturesConfig { dim: 16, steps: 1500, batch: 256, rate: 2e-3, ..FeaturesConfig::default() };
    let raw = learned(&Hilp, &table, config);
    let layout = world.grid().unwrap().layout(world.contexts(Split::Train)[0]).unwrap();
    let cells = cells(&*world, &table);
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
fn classifiers_find_the_log_ratio_of_two_layouts() {
    let (_, table) = tabled("doors", 2, 300);
    let config = CorrectionConfig { width: 96, steps: 1200, batch: 256, ..CorrectionConfig::default() };
    let corrector = Corrector::listed(config, &table, &vec![0.0; table.states()], 1, &Device::flex());
    let (tokens, shares) = correction::shares(&table);
    let counts = table.groups[0].counts.iter().enumerate();
    let there: Vec<(u32, f32)> = counts.map(|(token, &count)| (token as u32, count)).collect();
    let trajectory = there.iter().flat_map(|&(token, count)| std::iter::repeat_n(token, count as usize));
    let found = corrector.corrections(&Transitions::listed(&table, trajectory)).unwrap();
    // p(s' | s, a) by shares of tokens.
    let conditional = |token: u32, all: &[(u32, f64)]| {
        let same = |other: u32| other as usize / table.width() == token as usize / table.width();
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

#[test]
fn features_are_never_learned_from_held_out_groups() {
    const HELD_OUT: f64 = 0.34;
    let (_, data) = collected("doors", 6, 4);
    let (_, held_out) = split_groups(&data, HELD_OUT);
    assert_eq!(held_out.len(), 2);
    let replay = Arc::new(Replay::new(data, &observed(), [HELD_OUT, 10.0], 3, &Device::flex()).unwrap());
    let source = Source::Observations(replay.clone());
    for i in 0..400 {
        for row in source.draw(&mut stream(1, "draw", &[i]), &HilpConfig::default()) {
            let group = replay.data.group(replay.episode_of(row));
            assert!(!held_out.contains(&group), "a transition of held-out group {group}");
        }
    }
}
