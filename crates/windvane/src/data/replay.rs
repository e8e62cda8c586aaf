//! The replay buffer: columns of a data set on the device, uploaded once; the host draws row numbers only.

use super::actions::ActionCodec;
use super::encoder::{DeviceCodec, ObservationEncoder, moments};
use super::{EncoderConfig, split_groups};
use crate::error::{LearnError, Result};
use crate::nn::{upload, upload_indices};
use burn::tensor::{Device, Int, Tensor};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windvane_world::episodes::{Episodes, Window};
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;
use windvane_world::{Action, ContextId, EnvSpec, Rng};

/// Weight of actions and changes beside states in a token: there are fewer of them.
pub(crate) const TOKEN_GAIN: f32 = 4.0;
/// Transitions that the scale of changes is measured on.
const SAMPLE: usize = 4096;
/// Draws before a transition is taken whatever its action.
const TRIES: usize = 64;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[TOKEN_GAIN as f64, SAMPLE as f64, TRIES as f64];

/// How observations, actions and transitions of one environment look to networks: all that an agent keeps of its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Codec {
    pub(crate) spec: EnvSpec,
    pub(crate) observations: ObservationEncoder,
    pub(crate) actions: ActionCodec,
    /// Environment steps that an action is held.
    pub(crate) action_repeat: usize,
    /// Standard deviation of the change of each coordinate over a held action.
    pub(crate) change_scale: Vec<f32>,
}

impl Codec {
    /// The codec that `config` asks for, scaled by what `data` holds.
    pub(crate) fn new(data: &Episodes, config: &EncoderConfig, seed: u64) -> Result<Self> {
        let actions = ActionCodec::new(&data.spec().action, config)?;
        let mut rng = stream(seed, "memory", &[]);
        let (mut sample, mut changes) = (Vec::new(), Vec::new());
        let (dims, repeat) = (data.spec().obs_dim(), config.action_repeat);
        for _ in 0..SAMPLE {
            let Some(window) = data.sample_window(&mut rng, repeat) else { break };
            let obs = data.observations(window.episode);
            let (from, to) = (window.start * dims, (window.start + repeat) * dims);
            sample.extend_from_slice(&obs[from..from + dims]);
            changes.extend(obs[to..to + dims].iter().zip(&obs[from..]).map(|(to, from)| to - from));
        }
        let scale = |dim: usize| moments(changes.iter().skip(dim).step_by(dims).copied()).1.max(1e-6);
        Ok(Self {
            observations: ObservationEncoder::new(data.spec(), config, &sample, seed),
            change_scale: (0..dims).map(scale).collect(),
            spec: data.spec().clone(),
            actions,
            action_repeat: repeat,
        })
    }

    /// Whether its parts fit each other and `config`, after it was read from a file.
    pub(crate) fn check(&self, config: &EncoderConfig) -> Result<(), String> {
        let dims = self.spec.obs_dim();
        let actions = ActionCodec::new(&self.spec.action, config).map_err(|error| error.to_string())?;
        let sizes =
            self.change_scale.len() == dims && self.change_scale.iter().all(|x| x.is_finite() && *x > 0.0);
        let fits = sizes && self.observations.fits(dims) && actions == self.actions;
        if !fits || self.action_repeat != config.action_repeat {
            return Err("the codec does not fit its environment and settings".into());
        }
        Ok(())
    }

    /// The same with its constants on a device.
    pub(crate) fn on_device(&self, device: &Device) -> DeviceCodec {
        DeviceCodec::new(&self.observations, &self.change_scale, device)
    }

    /// Numbers in an observation.
    pub(crate) fn dims(&self) -> usize {
        self.change_scale.len()
    }

    /// Numbers in a token.
    pub(crate) fn token_width(&self) -> usize {
        self.observations.width() + self.actions.width() + self.dims()
    }

    /// Encodings of rows of observations.
    pub(crate) fn encode(&self, obs: &[f32]) -> Vec<f32> {
        let mut features = Vec::new();
        obs.chunks_exact(self.dims()).for_each(|obs| self.observations.push(obs, &mut features));
        features
    }

    /// The tokens of a trajectory.
    pub(crate) fn tokens_of(&self, trajectory: &Trajectory) -> Vec<f32> {
        self.tokens(trajectory.observations(), &trajectory.actions().all())
    }

    /// A token for every held action: the state, the mean action, the change. `obs` has one row more than there are actions.
    pub(crate) fn tokens(&self, obs: &[f32], actions: &[Action<'_>]) -> Vec<f32> {
        let (dims, repeat, mut tokens) = (self.dims(), self.action_repeat, Vec::new());
        let states = obs.chunks_exact(dims).step_by(repeat);
        for ((state, next), held) in states.clone().zip(states.skip(1)).zip(actions.chunks_exact(repeat)) {
            self.observations.push(state, &mut tokens);
            let place = tokens.len();
            self.actions.encode(held, &mut tokens);
            let change = state.iter().zip(next).zip(&self.change_scale);
            tokens.extend(change.map(|((from, to), scale)| (to - from) / scale));
            tokens[place..].iter_mut().for_each(|x| *x *= TOKEN_GAIN);
        }
        tokens
    }
}

/// A data set on the device, and how rows of it are drawn.
#[derive(Debug)]
pub struct Replay {
    pub(crate) data: Episodes,
    pub(crate) codec: Arc<Codec>,
    constants: DeviceCodec,
    /// Groups that are learned from, and those that are held out to measure on.
    learned: Vec<usize>,
    held_out: Vec<usize>,
    /// The row that each episode begins at, and the number of rows.
    first_rows: Vec<usize>,
    /// `[rows, dims]`: every observation, episode after episode; a transition goes by the row it begins at.
    observations: Tensor<2>,
    /// `[rows, width]`: the mean action of the held window that begins there.
    actions: Tensor<2>,
    /// `[rows]`: its number, where actions are numbered.
    indices: Tensor<1, Int>,
    /// The same on the host; nothing where the window holds no single action.
    held: Vec<bool>,
    /// `[rows, 1]`: 0 where the dynamics ended the episode within the window, else 1.
    not_terminal: Tensor<2>,
}

/// Transitions over held actions, on the device.
#[derive(Clone, Debug)]
pub struct Transitions {
    /// Observations, `[rows, dims]`.
    pub obs: Tensor<2>,
    /// Their encodings, `[rows, features]`.
    pub s: Tensor<2>,
    /// Encoded actions, `[rows, width]`.
    pub a: Tensor<2>,
    /// Numbers of the actions, `[rows]`.
    pub index: Tensor<1, Int>,
    /// Observations that followed, `[rows, dims]`.
    pub next_obs: Tensor<2>,
    /// Their encodings, `[rows, features]`.
    pub next: Tensor<2>,
    /// Changes in units of the change scale, `[rows, dims]`.
    pub change: Tensor<2>,
    /// 0 where the dynamics ended the episode, else 1, `[rows, 1]`.
    pub not_terminal: Tensor<2>,
}

impl Replay {
    /// Uploads `data`. An error if a learned group has fewer than two episodes of at least `shortest` transitions.
    pub fn new(
        data: Episodes,
        config: &EncoderConfig,
        [held_out, shortest]: [f64; 2],
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let shortest = (shortest as usize).max(config.action_repeat);
        let enough = |group| data.group_episodes(group).filter(|&e| data.length(e) >= shortest).count() >= 2;
        if let Some(group) = (0..data.groups()).find(|&group| !enough(group)) {
            let problem =
                format!("group {group} has fewer than 2 episodes of at least {shortest} transitions");
            return Err(LearnError::run(data.path(), problem));
        }
        let codec = Arc::new(Codec::new(&data, config, seed)?);
        let device = device.clone().without_autodiff();
        let (learned, held_groups) = split_groups(&data, held_out);
        let (dims, repeat, width) = (codec.dims(), codec.action_repeat, codec.actions.width());
        let rows = data.transitions() + data.episodes();
        let (mut actions, mut not_terminal) = (Vec::with_capacity(rows * width), Vec::with_capacity(rows));
        let (mut indices, mut held) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for episode in 0..data.episodes() {
            let (length, taken) = (data.length(episode), data.actions(episode).all());
            for start in 0..=length {
                let begins = actions.len();
                if start + repeat <= length {
                    codec.actions.encode(&taken[start..start + repeat], &mut actions);
                } else {
                    actions.resize(begins + width, 0.0);
                }
                let index = codec.actions.index(&actions[begins..]);
                indices.push(index.unwrap_or(0) as i64);
                held.push(index.is_some());
                let over = data.terminated(episode) && start + repeat == length;
                not_terminal.push(f32::from(u8::from(!over)));
            }
        }
        // Episodes have one observation more than transitions.
        let first_rows = data.offsets().iter().enumerate().map(|(number, &first)| first as usize + number);
        Ok(Self {
            first_rows: first_rows.collect(),
            observations: upload(data.all_observations().to_vec(), [rows, dims], &device),
            actions: upload(actions, [rows, width], &device),
            indices: upload_indices(indices, &device),
            not_terminal: upload(not_terminal, [rows, 1], &device),
            constants: codec.on_device(&device),
            held,
            data,
            codec,
            learned,
            held_out: held_groups,
        })
    }

    /// Number of groups that are learned from.
    pub fn groups(&self) -> usize {
        self.learned.len()
    }

    /// Draws a group.
    pub fn draw_group(&self, rng: &mut Rng) -> usize {
        rng.random_range(0..self.learned.len())
    }

    /// The context of each group; nothing where contexts are not labelled.
    pub fn privileged_contexts(&self) -> Option<Vec<ContextId>> {
        let labels = self.data.privileged_context_labels()?;
        Some(self.learned.iter().map(|&group| labels.of(self.data.group_episodes(group).start)).collect())
    }

    /// The row of a transition of `group`, drawn uniformly from those whose action is held.
    pub fn draw(&self, rng: &mut Rng, group: usize) -> usize {
        let mut row = 0;
        for _ in 0..TRIES {
            let window = self.data.sample_group_window(rng, self.learned[group], self.codec.action_repeat);
            let Some(window) = window else { break };
            row = self.row(window);
            if self.held[row] {
                break;
            }
        }
        row
    }

    /// The row of a state of `group`, drawn uniformly.
    pub fn draw_state(&self, rng: &mut Rng, group: usize) -> usize {
        self.data.sample_group_window(rng, self.learned[group], 1).map_or(0, |window| self.row(window))
    }

    /// The row of a state so many held actions after the one at `row`, or of the last one of its episode.
    pub fn later(&self, row: usize, actions: usize) -> usize {
        let last = self.first_rows[self.episode_of(row) + 1] - 1;
        (row + actions * self.codec.action_repeat).min(last)
    }

    /// The rows of the transitions of a context of `group`: so many consecutive steps of one episode, or as many as there are.
    pub fn draw_context(&self, rng: &mut Rng, group: usize, steps: usize) -> Vec<usize> {
        self.context_of(rng, self.learned[group], steps)
    }

    /// The same of a held-out group; of a learned one if none is held out.
    pub fn draw_held_out_context(&self, rng: &mut Rng, steps: usize) -> Vec<usize> {
        let from = if self.held_out.is_empty() { &self.learned } else { &self.held_out };
        let group = from[rng.random_range(0..from.len())];
        self.context_of(rng, group, steps)
    }

    fn context_of(&self, rng: &mut Rng, group: usize, steps: usize) -> Vec<usize> {
        let longest = self.data.group_episodes(group).map(|e| self.data.length(e)).max().unwrap_or(0);
        let (steps, repeat) = (steps.min(longest), self.codec.action_repeat);
        let Some(window) = self.data.sample_group_window(rng, group, steps) else { return Vec::new() };
        let first = self.row(window);
        (0..(steps + 1).saturating_sub(repeat)).step_by(repeat).map(|step| first + step).collect()
    }

    fn row(&self, window: Window) -> usize {
        self.first_rows[window.episode] + window.start
    }

    pub(crate) fn episode_of(&self, row: usize) -> usize {
        self.first_rows.partition_point(|&first| first <= row) - 1
    }

    /// The observation of a row, on the host.
    pub fn host_state(&self, row: usize) -> &[f32] {
        &self.data.all_observations()[row * self.codec.dims()..][..self.codec.dims()]
    }

    /// Rows by their numbers, on the device.
    pub fn rows(&self, rows: &[usize]) -> Tensor<1, Int> {
        upload_indices(rows.iter().map(|&row| row as i64).collect(), &self.observations.device())
    }

    /// Observations of rows, `[rows, dims]`.
    pub fn states(&self, rows: Tensor<1, Int>) -> Tensor<2> {
        self.observations.clone().select(0, rows)
    }

    /// Encodings of rows, `[rows, features]`.
    pub fn encoded(&self, rows: Tensor<1, Int>) -> Tensor<2> {
        self.constants.encode(self.states(rows))
    }

    /// Transitions by the rows they begin at.
    pub fn transitions(&self, rows: Tensor<1, Int>) -> Transitions {
        let obs = self.states(rows.clone());
        let next_obs = self.states(rows.clone() + self.codec.action_repeat as i64);
        Transitions {
            s: self.constants.encode(obs.clone()),
            a: self.actions.clone().select(0, rows.clone()),
            index: self.indices.clone().select(0, rows.clone()),
            next: self.constants.encode(next_obs.clone()),
            change: (next_obs.clone() - obs.clone()) / self.constants.change_scale.clone(),
            not_terminal: self.not_terminal.clone().select(0, rows),
            obs,
            next_obs,
        }
    }

    /// Tokens (state, action, change) of transitions, `[rows, token]`.
    pub fn tokens(&self, rows: Tensor<1, Int>) -> Tensor<2> {
        let Transitions { s, a, change, .. } = self.transitions(rows);
        Tensor::cat(vec![s, a * TOKEN_GAIN, change * TOKEN_GAIN], 1)
    }
}
