//! The losses of SAC and their gradients, as functions of what they are given.

use super::super::mlp::{Mlp, Pass, tanh};

/// Bounds of the logarithm of a deviation.
const LOG_DEVIATION: [f32; 2] = [-5.0, 2.0];

/// The deviation that an output of the policy stands for: its exponential, within bounds.
pub(in super::super) fn deviation(output: f32) -> f32 {
    libm::expf(output.clamp(LOG_DEVIATION[0], LOG_DEVIATION[1]))
}

/// Actions that were drawn from a squashed Gaussian: a = tanh(u), u = mean + deviation * draw.
#[derive(Clone, Debug, Default)]
pub(super) struct Drawn {
    /// [rows, actions], each -1 to 1.
    pub(super) actions: Vec<f32>,
    /// Deviations of u, [rows, actions].
    pub(super) deviations: Vec<f32>,
    /// ln p(a | s) = sum of -draw^2 / 2 - ln deviation - ln(2 pi) / 2 - ln(1 - a^2), [rows].
    pub(super) log_prob: Vec<f32>,
}

/// Draws for outputs of the policy, [rows, means then logarithms of deviations], by normal numbers, [rows, actions].
pub(super) fn draw(outputs: &[f32], draws: &[f32], actions: usize) -> Drawn {
    let mut drawn = Drawn::default();
    for (output, draws) in outputs.chunks_exact(2 * actions).zip(draws.chunks_exact(actions)) {
        let (means, logs) = output.split_at(actions);
        let mut log_prob = 0.0;
        for ((mean, log), draw) in means.iter().zip(logs).zip(draws) {
            let deviation = deviation(*log);
            let u = mean + deviation * draw;
            let log = log.clamp(LOG_DEVIATION[0], LOG_DEVIATION[1]);
            log_prob += -0.5 * draw * draw - log - HALF_LN_TAU - log_slope(u);
            drawn.actions.push(tanh(u));
            drawn.deviations.push(deviation);
        }
        drawn.log_prob.push(log_prob);
    }
    drawn
}

/// ln(2 pi) / 2.
const HALF_LN_TAU: f32 = 0.918_938_5;

/// ln(1 - tanh(u)^2) = 2 (ln 2 - |u| - ln(1 + exp(-2 |u|))), which does not lose what tanh rounds away.
fn log_slope(u: f32) -> f32 {
    let u = u.abs();
    2.0 * (std::f32::consts::LN_2 - u - libm::log1pf(libm::expf(-2.0 * u)))
}

/// States and actions side by side, as a critic sees them: [rows, state + action].
pub(super) fn concat(states: &[f32], actions: &[f32], rows: usize) -> Vec<f32> {
    let (state, action) = (states.len() / rows, actions.len() / rows);
    let rows = states.chunks_exact(state).zip(actions.chunks_exact(action));
    rows.flat_map(|(state, action)| state.iter().chain(action)).copied().collect()
}

/// The loss of a critic, mean of (Q(s, a) - targets)^2 / 2; adds its gradient.
pub(super) fn critic_loss(
    critic: Mlp,
    parameters: &[f32],
    input: &[f32],
    targets: &[f32],
    gradient: &mut [f32],
) -> f32 {
    let count = targets.len() as f32;
    let mut pass = Pass::default();
    critic.forward(parameters, input, &mut pass);
    let off: Vec<f32> = pass.output().iter().zip(targets).map(|(q, targets)| q - targets).collect();
    let slopes: Vec<f32> = off.iter().map(|off| off / count).collect();
    critic.backward(parameters, &mut pass, &slopes, gradient);
    off.iter().map(|off| 0.5 * off * off).sum::<f32>() / count
}

/// The smaller of two critics' values, [rows], and which of them it is.
pub(super) fn smaller(
    critic: Mlp,
    critics: [&[f32]; 2],
    input: &[f32],
    passes: &mut [Pass; 2],
) -> Vec<(f32, usize)> {
    for (parameters, pass) in critics.into_iter().zip(&mut *passes) {
        critic.forward(parameters, input, pass);
    }
    let [one, two] = passes.each_ref().map(Pass::output);
    one.iter().zip(two).map(|(one, two)| if one <= two { (*one, 0) } else { (*two, 1) }).collect()
}

/// The loss of the policy, mean of temperature * ln p(a | s) - min Q(s, a) over actions drawn by `draws`; adds its gradient. Gives
/// what was drawn too.
pub(super) fn policy_loss(
    [policy, critic]: [Mlp; 2],
    parameters: &[f32],
    critics: [&[f32]; 2],
    states: &[f32],
    draws: &[f32],
    temperature: f32,
    gradient: &mut [f32],
) -> (f32, Drawn) {
    let actions = policy.sizes[3] / 2;
    let rows = states.len() / policy.sizes[0];
    let count = rows as f32;
    let mut pass = Pass::default();
    policy.forward(parameters, states, &mut pass);
    let drawn = draw(pass.output(), draws, actions);
    let mut passes = [Pass::default(), Pass::default()];
    let values = smaller(critic, critics, &concat(states, &drawn.actions, rows), &mut passes);
    // How the smaller value changes with the action, [rows, actions].
    let mut action_gradient = vec![0.0; rows * actions];
    for (which, pass) in passes.iter_mut().enumerate() {
        let chosen: Vec<f32> = values.iter().map(|(_, smaller)| f32::from(*smaller == which)).collect();
        let slopes = critic.inputs(critics[which], pass, &chosen);
        let slopes = slopes.chunks_exact(critic.sizes[0]).flat_map(|row| &row[policy.sizes[0]..]);
        action_gradient.iter_mut().zip(slopes).for_each(|(action_gradient, slope)| *action_gradient += slope);
    }
    let mut slopes = vec![0.0; rows * 2 * actions];
    for (row, slopes) in slopes.chunks_exact_mut(2 * actions).enumerate() {
        for action in 0..actions {
            let place = row * actions + action;
            let a = drawn.actions[place];
            // d ln p / du = 2 a, since d ln(1 - tanh^2) / du = -2 tanh.
            let slope = (temperature * 2.0 * a - action_gradient[place] * (1.0 - a * a)) / count;
            slopes[action] = slope;
            let log = pass.output()[row * 2 * actions + actions + action];
            if (LOG_DEVIATION[0]..=LOG_DEVIATION[1]).contains(&log) {
                slopes[actions + action] =
                    slope * drawn.deviations[place] * draws[place] - temperature / count;
            }
        }
    }
    policy.backward(parameters, &mut pass, &slopes, gradient);
    let losses =
        drawn.log_prob.iter().zip(&values).map(|(log_prob, (value, _))| temperature * log_prob - value);
    (losses.sum::<f32>() / count, drawn)
}

/// The slope of the temperature's loss, -ln temperature * mean(ln p(a | s) + target entropy), in ln temperature.
pub(super) fn temperature_gradient(log_prob: &[f32], entropy: f32) -> f32 {
    -(log_prob.iter().sum::<f32>() / log_prob.len() as f32 + entropy)
}
