//! A memory as others draw from it: transitions for features, and what classifiers see of them.

use super::lens::Lens;
use super::memory::Memory;
use crate::correction::Seen;
use crate::methods::hilp::HilpConfig;
use crate::phi::Source;
use rand::RngExt as _;
use windvane_world::Rng;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;

/// States or transitions that stand for all data.
const REFERENCE: u64 = 4096;

impl Source for Memory {
    fn inputs(&self) -> usize {
        self.lens().features().width()
    }

    fn draw(&self, rng: &mut Rng, config: &HilpConfig, rows: &mut [Vec<f32>; 3]) {
        let group = self.group(rng);
        let Some(window) = self.data().sample_group_window(rng, group, self.lens().repeat()) else { return };
        let obs = |step: usize| {
            let dims = self.lens().change().len();
            &self.data().observations(window.episode)[step * dims..][..dims]
        };
        let goal = if rng.random_bool(config.random_goals) {
            let group = self.group(rng);
            self.state(rng, group).unwrap_or_default()
        } else {
            let moves = 1 + config.ahead(rng);
            obs((window.start + moves * self.lens().repeat()).min(self.data().length(window.episode)))
        };
        let transition = [obs(window.start), obs(window.start + self.lens().repeat()), goal];
        rows.iter_mut().zip(transition).for_each(|(rows, obs)| self.lens().features().push(obs, rows));
    }

    fn reference(&self) -> (Vec<f32>, Vec<f32>) {
        let mut states = Vec::new();
        for i in 0..REFERENCE {
            let mut rng = stream(0, "reference", &[i]);
            let group = self.group(&mut rng);
            self.lens().features().push(self.state(&mut rng, group).unwrap_or_default(), &mut states);
        }
        (states, vec![1.0 / REFERENCE as f32; REFERENCE as usize])
    }
}

impl Memory {
    /// Transitions that stand for all data, as classifiers see them, and the observations they led to.
    pub(super) fn transitions(&self) -> (Seen, Vec<f32>) {
        let (mut tokens, mut led) = (Vec::new(), Vec::new());
        let dims = self.lens().change().len();
        for i in 0..REFERENCE {
            let mut rng = stream(0, "transitions", &[i]);
            let group = self.group(&mut rng);
            let window = self.data().sample_group_window(&mut rng, group, self.lens().repeat());
            let Some(window) = window else { continue };
            let obs = &self.data().observations(window.episode)[window.start * dims..];
            let actions = self.data().actions(window.episode);
            self.lens().push_tokens(
                self.lens().repeat(),
                obs,
                |step| actions.get(window.start + step),
                &mut tokens,
            );
            led.extend_from_slice(&obs[self.lens().repeat() * dims..][..dims]);
        }
        (self.lens().seen(&tokens), led)
    }
}

impl Lens {
    /// What classifiers see of a walk.
    pub(super) fn seen_in(&self, walk: &Trajectory) -> Seen {
        self.seen(&self.tokens_of(walk))
    }

    /// What classifiers see of tokens: the state and the action, and the change that followed.
    fn seen(&self, tokens: &[f32]) -> Seen {
        let width = self.features().width() + self.moves().width();
        let mut seen = Seen { width, next_width: self.change().len(), ..Seen::default() };
        for token in tokens.chunks_exact(self.token()) {
            let (sa, change) = token.split_at(width);
            seen.sa.extend_from_slice(sa);
            seen.next.extend_from_slice(change);
        }
        seen
    }
}
