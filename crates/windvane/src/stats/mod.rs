//! Statistics of scores, as papers should print them: means over seeds, interquartile means with stratified bootstrap
//! intervals, the probability of improvement, performance profiles (Agarwal et al., 2021; the Python package `rliable`).

pub mod table;

use rand::RngExt as _;
use windvane_world::Rng;

/// Scores of one method, a row of tasks for each seed: `[seeds][tasks]`.
pub type Scores = Vec<Vec<f64>>;

/// An estimate with its 95% interval, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end; a single seed has no interval.
    pub low: Option<f64>,
    /// Upper end, likewise.
    pub high: Option<f64>,
}

impl Estimate {
    /// Both ends; the estimate itself where there is no interval.
    pub fn ends(&self) -> [f64; 2] {
        [self.low, self.high].map(|end| end.unwrap_or(self.value))
    }
}

/// Draws of the bootstrap.
pub const DRAWS: usize = 2000;

/// The mean of numbers; 0 of none.
pub fn mean(values: &[f64]) -> f64 {
    // An empty sum is -0.0, which would be printed as such.
    (0.0 + values.iter().sum::<f64>()) / values.len().max(1) as f64
}

/// The mean over seeds and the standard deviation (of the sample) between their means over tasks, as the paper prints.
pub fn mean_and_std(scores: &Scores) -> (f64, f64) {
    let of_seeds: Vec<f64> = scores.iter().map(|tasks| mean(tasks)).collect();
    let middle = mean(&of_seeds);
    let square: f64 = of_seeds.iter().map(|x| (x - middle).powi(2)).sum();
    (middle, (square / (of_seeds.len().max(2) - 1) as f64).sqrt())
}

/// The interquartile mean over all seeds and tasks: the mean without the lowest and the highest quarter.
pub fn iqm(scores: &Scores) -> f64 {
    let mut all: Vec<f64> = scores.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let cut = all.len() / 4;
    mean(&all[cut..all.len() - cut])
}

/// The share of pairs of seeds in which `x` beats `y` at the same task, ties counted half; the mean over tasks.
pub fn improvement(x: &Scores, y: &Scores) -> f64 {
    let tasks = x.iter().chain(y).map(Vec::len).min().unwrap_or(0);
    let of_task = |task: usize| {
        let pairs = x.iter().flat_map(|a| y.iter().map(move |b| (a[task], b[task])));
        let wins: Vec<f64> = pairs.map(|(a, b)| f64::midpoint((a > b).into(), (a >= b).into())).collect();
        mean(&wins)
    };
    mean(&(0..tasks).map(of_task).collect::<Vec<_>>())
}

/// The share of seeds and tasks with a score above each threshold.
pub fn profile(scores: &Scores, thresholds: &[f64]) -> Vec<f64> {
    let all: Vec<f64> = scores.iter().flatten().copied().collect();
    let above = |t: &f64| all.iter().filter(|score| **score > *t).count() as f64 / all.len().max(1) as f64;
    thresholds.iter().map(above).collect()
}

/// An estimate of `scores` with the interval of the percentile bootstrap, seeds drawn anew within each task.
pub fn bootstrap(scores: &Scores, rng: &mut Rng, statistic: impl Fn(&Scores) -> f64) -> Estimate {
    if scores.len() < 2 {
        return Estimate { value: statistic(scores), low: None, high: None };
    }
    interval(statistic(scores), (0..DRAWS).map(|_| statistic(&resampled(scores, rng))).collect())
}

/// The same for a statistic of two methods, each drawn anew.
pub fn bootstrap_pair(
    x: &Scores,
    y: &Scores,
    rng: &mut Rng,
    statistic: impl Fn(&Scores, &Scores) -> f64,
) -> Estimate {
    if x.len().max(y.len()) < 2 {
        return Estimate { value: statistic(x, y), low: None, high: None };
    }
    let draws = (0..DRAWS).map(|_| statistic(&resampled(x, rng), &resampled(y, rng))).collect();
    interval(statistic(x, y), draws)
}

fn resampled(scores: &Scores, rng: &mut Rng) -> Scores {
    let seeds = scores.len();
    let mut drawn = scores.clone();
    for row in &mut drawn {
        for (task, score) in row.iter_mut().enumerate() {
            *score = scores[rng.random_range(0..seeds)][task];
        }
    }
    drawn
}

fn interval(value: f64, mut draws: Vec<f64>) -> Estimate {
    draws.sort_by(f64::total_cmp);
    // Between the two nearest draws, as NumPy's percentiles are.
    let at = |share: f64| {
        let place = share * (draws.len() - 1) as f64;
        let below = place.floor() as usize;
        let above = (below + 1).min(draws.len() - 1);
        draws[below] + (draws[above] - draws[below]) * place.fract()
    };
    Estimate { value, low: Some(at(0.025)), high: Some(at(0.975)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_world::rng::stream;

    fn scores() -> Scores {
        vec![vec![0.1, 0.5, 0.9], vec![0.2, 0.6, 0.8], vec![0.3, 0.4, 1.0], vec![0.0, 0.5, 0.7]]
    }

    #[test]
    fn an_interquartile_mean_leaves_out_the_extremes() {
        // Twelve scores, three cut at each end: 0.3, 0.4, 0.5, 0.5, 0.6, 0.7.
        assert!((iqm(&scores()) - 0.5).abs() < 1e-12);
        assert!((iqm(&vec![vec![0.2], vec![0.4], vec![0.9]]) - 0.5).abs() < 1e-12, "three cannot be cut");
    }

    #[test]
    fn means_are_of_seeds_and_their_spread_is_between_seeds() {
        let (mean, std) = mean_and_std(&vec![vec![0.0, 1.0], vec![1.0, 1.0]]);
        assert_eq!(mean, 0.75);
        assert!((std - 0.125_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn whoever_always_wins_improves_for_certain_and_ties_are_even() {
        let better: Scores = scores().iter().map(|row| row.iter().map(|x| x + 2.0).collect()).collect();
        assert_eq!(improvement(&better, &scores()), 1.0);
        assert_eq!(improvement(&scores(), &better), 0.0);
        assert_eq!(improvement(&scores(), &scores()), 0.5);
    }

    #[test]
    fn a_profile_falls_from_all_to_none() {
        assert_eq!(profile(&scores(), &[-0.1, 0.55, 1.0]), [1.0, 5.0 / 12.0, 0.0]);
    }

    #[test]
    fn an_interval_of_means_is_as_wide_as_theory_says() {
        // Forty seeds of one task with known spread: the interval of the mean is 1.96 standard errors each way.
        let scores: Scores = (0..40).map(|i| vec![f64::from(i) / 39.0]).collect();
        let estimate = bootstrap(&scores, &mut stream(0, "bootstrap", &[]), |s| mean_and_std(s).0);
        let error = (0..40).map(|i| (f64::from(i) / 39.0 - 0.5).powi(2)).sum::<f64>() / 40.0;
        let half = 1.96 * (error / 40.0).sqrt();
        assert!((estimate.value - 0.5).abs() < 1e-12);
        let [low, high] = estimate.ends();
        assert!((low - (0.5 - half)).abs() < 0.015, "{estimate:?} {half}");
        assert!((high - (0.5 + half)).abs() < 0.015, "{estimate:?} {half}");
    }

    #[test]
    fn one_seed_has_no_interval() {
        let one = bootstrap(&vec![vec![0.2, 0.4]], &mut stream(0, "bootstrap", &[]), |s| mean_and_std(s).0);
        assert_eq!((one.low, one.high), (None, None));
        assert_eq!(one.ends(), [one.value; 2]);
        let pair =
            bootstrap_pair(&vec![vec![0.2]], &vec![vec![0.1]], &mut stream(0, "pair", &[]), improvement);
        assert_eq!((pair.value, pair.low), (1.0, None));
    }
}
