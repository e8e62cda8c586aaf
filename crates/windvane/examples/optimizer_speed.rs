//! What a step of the optimisers costs for ten square matrices, in CPU time on one thread:
//!
//! ```sh
//! cargo run --release --example optimizer_speed
//! ```
#![allow(clippy::print_stdout)] // it is here to print

use burn::tensor::{Device, Distribution, Tensor};
use cpu_time::ProcessTime;
use windvane::device::Threads;
use windvane::nn::{
    AdamConfig, Init, MuonConfig, NnError, Optimizer, OptimizerConfig, Params, multiply_adds,
};

/// Matrices of a store.
const MATRICES: usize = 10;
/// Steps of each optimiser, in turn; the median and the least count.
const STEPS: usize = 31;

fn main() -> Result<(), NnError> {
    Threads::new(1)?.run(|| [64, 128, 256, 512].into_iter().try_for_each(measure))
}

fn measure(side: usize) -> Result<(), NnError> {
    let device = Device::flex();
    let mut params = Params::new(&device, 1);
    for i in 0..MATRICES {
        params.add(&format!("w{i}"), [side, side], Init::Normal { std: 0.1 })?;
    }
    let pull = Tensor::<2>::random([side, side], Distribution::Default, &device);
    let adam = AdamConfig::default();
    let configs = [OptimizerConfig::from(adam), OptimizerConfig { adam, muon: Some(MuonConfig::default()) }];
    let mut learners =
        configs.map(|config| (params.clone(), Optimizer::new(config, &params, &[]), Vec::new(), 0));
    for _ in 0..STEPS {
        for (params, optimizer, times, products) in &mut learners {
            let weights = params.track();
            let ids: Vec<_> = params.iter().map(|(_, id)| id).collect();
            let losses = ids.into_iter().map(|id| (weights[id].clone() * pull.clone()).sum());
            let Some(loss) = losses.reduce(|a, b| a + b) else { continue };
            let gradients = loss.backward();
            drop(loss);
            let (before, start) = (multiply_adds(), ProcessTime::now());
            optimizer.step(params, weights, gradients, 1.0, None);
            times.push(start.elapsed().as_secs_f64() * 1e3);
            *products = multiply_adds() - before;
        }
    }
    for (name, (_, _, mut times, products)) in ["Adam", "Muon"].into_iter().zip(learners) {
        times.sort_unstable_by(f64::total_cmp);
        let (median, least) = (times[times.len() / 2], times[0]);
        let rate = 2.0 * products as f64 / least / 1e6;
        println!(
            "{MATRICES} of {side} x {side}, {name}: {median:.2} ms, least {least:.2} ms; products {rate:.0} GFLOP/s"
        );
    }
    Ok(())
}
