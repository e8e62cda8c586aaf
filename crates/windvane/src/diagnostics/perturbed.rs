//! Dynamics that are perturbed on purpose, to see whether an agent notices.

use crate::agent::Agent;
use crate::error::LearnError;
use crate::eval::{EvalConfig, explore_in};
use rand::RngExt as _;
use windvane_world::rng::stream;
use windvane_world::{Action, ActionBuf, Cmdp, Env, Rng, Split, Start, Step, WorldError};

/// A way to perturb dynamics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perturbation {
    /// Every action does the opposite: moves are taken from the other end of their list, vectors turned round.
    Mirrored,
    /// Every move does what the next one in the list does; vectors of two components are turned by a quarter.
    Turned,
    /// Three actions in ten are replaced by random ones.
    Slippery,
}

impl Perturbation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mirrored, Self::Turned, Self::Slippery];

    /// As tables print it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mirrored => "mirrored actions",
            Self::Turned => "turned actions",
            Self::Slippery => "3 of 10 actions random",
        }
    }
}

/// An environment whose actions do not do what they should.
struct Rewired<'a> {
    env: Box<dyn Env>,
    world: &'a dyn Cmdp,
    perturbation: Perturbation,
    rng: Rng,
}

impl Env for Rewired<'_> {
    fn reset(&mut self, start: Start, rng: &mut Rng, obs: &mut [f32]) -> Result<(), WorldError> {
        self.env.reset(start, rng, obs)
    }

    fn step(&mut self, action: Action<'_>, obs: &mut [f32]) -> Result<Step, WorldError> {
        let space = &self.world.spec().action;
        let mut done = space.buffer();
        let count = space.size() as u32;
        match (self.perturbation, action) {
            (Perturbation::Slippery, _) if self.rng.random_bool(0.3) => {
                space.sample(&mut self.rng, &mut done);
            }
            (Perturbation::Slippery, action) => return self.env.step(action, obs),
            (Perturbation::Mirrored, Action::Discrete(a)) => done = ActionBuf::Discrete(count - 1 - a),
            (Perturbation::Turned, Action::Discrete(a)) => done = ActionBuf::Discrete((a + 1) % count),
            (Perturbation::Mirrored, Action::Continuous(a)) => {
                done = ActionBuf::Continuous(a.iter().map(|x| -x).collect());
            }
            (Perturbation::Turned, Action::Continuous(a)) => {
                let turned = match a {
                    [x, y] => vec![-y, *x],
                    a => a.iter().map(|x| -x).collect(),
                };
                done = ActionBuf::Continuous(turned);
            }
        }
        self.env.step(done.as_action(), obs)
    }
}

/// How well ood scores tell unseen contexts from perturbed ones: the chance that a perturbed one scores higher. Nothing where
/// the agent has no belief.
pub fn auroc(
    world: &dyn Cmdp,
    agent: &Agent,
    perturbation: Perturbation,
    eval: &EvalConfig,
    seed: u64,
) -> Result<Option<f64>, LearnError> {
    let (mut ordinary, mut off) = (Vec::new(), Vec::new());
    for &context in world.contexts(Split::Test).iter().take(eval.contexts) {
        for round in 0..eval.rounds {
            let mut env = world.instantiate(context)?;
            ordinary.extend(agent.ood_score(&explore_in(&mut *env, world, context, eval, seed, round)?));
            let rng = stream(seed, "perturbed", &[context.0, round]);
            let mut env = Rewired { env, world, perturbation, rng };
            off.extend(agent.ood_score(&explore_in(&mut env, world, context, eval, seed, round)?));
        }
    }
    Ok((!ordinary.is_empty() && !off.is_empty()).then(|| area(&ordinary, &off)))
}

/// The chance that one of `high` is larger than one of `low`; ties count half.
fn area(low: &[f64], high: &[f64]) -> f64 {
    let beats = |h: f64| {
        low.iter()
            .map(|&l| {
                if h > l {
                    1.0
                } else if h == l {
                    0.5
                } else {
                    0.0
                }
            })
            .sum::<f64>()
    };
    high.iter().map(|&h| beats(h)).sum::<f64>() / (low.len() * high.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::area;

    #[test]
    fn the_area_is_one_for_apart_half_for_alike_and_zero_for_swapped() {
        let (low, high) = ([1.0, 2.0, 3.0], [4.0, 5.0]);
        assert_eq!([area(&low, &high), area(&low, &low), area(&high, &low)], [1.0, 0.5, 0.0]);
    }
}
