//! The belief encoder for listed states: a transformer over what a set of transitions says of each state.
//!
//! Every transition is evidence about states: the one it left and the one it entered can be entered; one that it could
//! have entered (some other episode did, by the same action) and did not was blocked. Evidence of a set is the union, so
//! neither order nor repetition matters and one more transition is a constant-time update. The transformer attends over
//! states and gives h, one number per state: the log-odds that it can be entered. What was seen directly reaches h through
//! one weight that all states share: with few training contexts, that is what keeps a belief from snapping to the
//! nearest context it knows (docs/lab-notes.md).
//!
//! With `belief.encoder = "transitions"` nobody says what a transition is evidence of: as in the paper's `f_dyn`, the encoder is
//! given the set of transitions (s, a, s') alone. Each state sees all of them, each by its kind (which action, by how much it
//! moved) and by where it lies as seen from there, and the transformer over states comes after. Repetition does not matter
//! here either.

use super::contexts::{ContextBatch, ContextSampler};
use super::known_contexts::KnownContexts;
use super::trainer::BeliefObjective;
use super::{
    BeliefConfig, BeliefEncoder, EncoderKind, Evidence, Gaussian, Posteriors, StateEvidenceSet, ood,
};
use crate::data::StateTable;
use crate::error::Result;
use crate::nn::{
    Act, Init, Input, Linear, ParamId, Params, SetConfig, SetTransformer, Weights, read, upload,
    upload_indices,
};
use crate::train::Metrics;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use std::sync::Arc;
use windvane_world::Action;
use windvane_world::rng::stream;
use windvane_world::trajectory::Trajectory;

/// Logit of a place for an outcome that does not exist.
const NO_OUTCOME: f32 = -1e4;
/// Sizes of a state's features beside each other, so that evidence speaks loudest, then coordinates, then the state itself.
const EVIDENCE: f32 = 14.0;
const COORDINATE: f32 = 9.0;
const IDENTITY: f32 = 1.75;
/// Features of a state beside those: what was seen of it, and what known contexts say.
const SEEN: usize = 5;
/// Constants that change results.
pub(crate) const CONSTANTS: &[f64] = &[EVIDENCE as f64, COORDINATE as f64, IDENTITY as f64];
/// The least probability whose logarithm is measured.
const LEAST: f64 = 1e-6;
/// Contexts that go through the transformer at once; bounds memory, not results.
const CHUNK: usize = 64;

/// A belief encoder of listed states with its weights.
#[derive(Clone, Debug)]
pub(crate) struct StateEvidence {
    pub(crate) config: BeliefConfig,
    pub(crate) table: Arc<StateTable>,
    pub(crate) params: Params,
    transformer: SetTransformer,
    /// From a state's features to the mean and log-std of h there and the trust in known contexts; one map for all states.
    read: Linear,
    /// What each state adds to that map, and to its outcome.
    own_read: ParamId,
    own_bias: ParamId,
    /// How much direct evidence counts: entered, blocked.
    evidence_weight: ParamId,
    /// Nothing where the encoder is given evidence instead.
    transitions: Option<Transitions>,
    /// What each kind of step has for itself: this action, by this much, wherever it is taken.
    kind_bias: ParamId,
    constants: Constants,
    known: Option<KnownContexts>,
}

/// How a state takes in the transitions of a context.
#[derive(Clone, Debug)]
struct Transitions {
    /// What a transition says, by its kind and by where it lies as seen from the state, `[kinds, width]`.
    says: ParamId,
    /// The kind of each token as seen from each state, `[vocabulary * states]`.
    kinds: Tensor<1, Int>,
    /// From what all of them say together to the state's token and to the mean of h there.
    read: Linear,
}

/// Constants of a table, on the device.
#[derive(Clone, Debug)]
struct Constants {
    /// `[states, features]`: coordinates and identity of each state.
    places: Tensor<2>,
    /// `[vocabulary]`: the state each token enters.
    enters: Tensor<1, Int>,
    /// `[vocabulary]`: the kind of step each token is.
    kinds: Tensor<1, Int>,
    kind_count: usize,
    /// `[1, vocabulary]`: 1 where that is another state than the one left.
    leaves: Tensor<2>,
    /// `[1, vocabulary]`: 0 for outcomes, [`NO_OUTCOME`] for places without one.
    mask: Tensor<2>,
    /// Which states a token shows to be enterable, and which blocked, `[vocabulary, states]` each.
    entered: Tensor<2>,
    blocked: Tensor<2>,
}

impl Constants {
    fn new(table: &StateTable, device: &Device) -> Self {
        let (states, vocabulary) = (table.states(), table.vocabulary());
        let mut places = Vec::new();
        for state in 0..states {
            places.extend(table.one_hot(state).iter().map(|x| COORDINATE * x));
            places.extend((0..states).map(|other| if other == state { IDENTITY } else { 0.0 }));
        }
        let features = places.len() / states;
        let enters: Vec<i64> = table.successors().iter().map(|&s| i64::from(s)).collect();
        let moves = |(token, &s): (usize, &i64)| f32::from(u8::from(s as usize != table.leaves(token)));
        let leaves = enters.iter().enumerate().map(moves);
        let mask = (0..vocabulary).map(|token| if table.is_outcome(token) { 0.0 } else { NO_OUTCOME });
        let (kinds, kind_count) = table.kinds();
        let evidence: Vec<f32> = (0..vocabulary).flat_map(|token| table.evidence([token as u32])).collect();
        let shown = |part: usize| {
            let values = evidence.iter().skip(part).step_by(2).copied().collect();
            upload(values, [vocabulary, states], device)
        };
        Self {
            entered: shown(0),
            blocked: shown(1),
            places: upload(places, [states, features], device),
            leaves: upload(leaves.collect(), [1, vocabulary], device),
            mask: upload(mask.collect(), [1, vocabulary], device),
            enters: upload_indices(enters, device),
            kinds: upload_indices(kinds, device),
            kind_count,
        }
    }

    /// The states that some of the transitions `met [contexts, vocabulary]` show to be enterable, `[contexts, states]`.
    fn shown(&self, met: &Tensor<2>) -> Tensor<2> {
        met.clone().matmul(self.entered.clone()).clamp(0.0, 1.0)
    }
}

impl StateEvidence {
    /// An untrained encoder for the tokens of `table`.
    pub(crate) fn new(
        table: Arc<StateTable>,
        config: &BeliefConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let device = &device.clone().without_autodiff();
        let constants = Constants::new(&table, device);
        let mut params = Params::new(device, seed);
        let BeliefConfig { width, blocks, heads, .. } = *config;
        let input = SEEN + constants.places.dims()[1];
        let set = SetConfig { input, width, heads, blocks, hidden: 2 * width };
        let transitions = match config.encoder {
            EncoderKind::States => None,
            EncoderKind::Transitions => {
                let (kinds, count) = table.kinds_from();
                Some(Transitions {
                    says: params.add("transitions/says", [count, width], Init::Constant(0.0))?,
                    kinds: upload_indices(kinds, device),
                    read: Linear::new(&mut params, "transitions/read", &[width], width + 1)?,
                })
            }
        };
        Ok(Self {
            transitions,
            transformer: SetTransformer::new(&mut params, "set", &set)?,
            read: Linear::new(&mut params, "read", &[width], 3)?,
            own_read: params.add("own/read", [table.states(), width], Init::Constant(0.0))?,
            own_bias: params.add("own/bias", [1, table.states()], Init::Constant(0.0))?,
            evidence_weight: params.add("recall", [2, 1], Init::Constant(3.0))?,
            kind_bias: params.add("kind/bias", [1, constants.kind_count], Init::Constant(0.0))?,
            known: config.known_contexts.then(|| KnownContexts::of(&table, device)),
            config: config.clone(),
            params,
            constants,
            table,
        })
    }

    /// What a set of tokens says, with nothing known besides.
    pub(crate) fn seen(&self, tokens: impl IntoIterator<Item = u32>) -> StateEvidenceSet {
        let (met, open) = (vec![0.0; self.table.vocabulary()], vec![0.0; self.table.states()]);
        let mut seen = StateEvidenceSet { met, open, count: 0 };
        tokens.into_iter().for_each(|token| seen.add(token));
        seen
    }

    /// The Gaussians of contexts; `hidden` names, for each of them (or for none), groups that are not to be recognised.
    pub(crate) fn infer_without(&self, evidence: &[&StateEvidenceSet], hidden: &[Vec<usize>]) -> Posteriors {
        let (weights, device) = (self.params.weights(), self.params.device());
        let mut all = Posteriors::default();
        for (chunk, sets) in evidence.chunks(CHUNK).enumerate() {
            let rows = |part: fn(&StateEvidenceSet) -> &Vec<f32>, width: usize| {
                let values = sets.iter().flat_map(|set| part(set)).copied().collect();
                upload(values, [sets.len(), width], device)
            };
            let met = rows(|set| &set.met, self.table.vocabulary());
            let open = rows(|set| &set.open, self.table.states());
            let hidden = self.hidden(hidden.get(chunk * CHUNK..).unwrap_or_default(), sets.len());
            all.extend(self.encode(&weights, met, Some(open), hidden).read());
        }
        all
    }

    /// Marks for [`KnownContexts::recognise`] of the groups that are hidden from the first `contexts`; nothing where none is.
    fn hidden(&self, hidden: &[Vec<usize>], contexts: usize) -> Option<Tensor<2>> {
        let hidden = &hidden[..hidden.len().min(contexts)];
        let known = self.known.as_ref().filter(|_| hidden.iter().any(|groups| !groups.is_empty()))?;
        let mut marks = vec![0.0; contexts * known.groups()];
        for (row, groups) in marks.chunks_exact_mut(known.groups()).zip(hidden) {
            groups.iter().for_each(|&group| row[group] = 1.0);
        }
        Some(upload(marks, [contexts, known.groups()], self.params.device()))
    }

    /// h from which transitions contexts met, `[contexts, vocabulary]`, and which states are open besides, `[contexts, states]`.
    fn encode(
        &self,
        weights: &Weights,
        met: Tensor<2>,
        open: Option<Tensor<2>>,
        hidden: Option<Tensor<2>>,
    ) -> Gaussian {
        let (contexts, states, width) = (met.dims()[0], self.table.states(), self.config.width);
        let mut entered = self.constants.shown(&met); // [contexts, states]
        let blocked = met.clone().matmul(self.constants.blocked.clone()).clamp_max(1.0);
        if let Some(open) = open {
            entered = (entered + open).clamp_max(1.0);
        }
        let recognised =
            self.known.as_ref().map(|known| known.recognise(entered.clone(), blocked.clone(), hidden));
        let nothing = || Tensor::zeros([contexts, states], &met.device());
        let everywhere = |x: Tensor<2>| x.expand([contexts, states]);
        let mut seen = match self.transitions {
            None => vec![entered.clone(), blocked.clone()],
            Some(_) => vec![nothing(), nothing()],
        };
        match &recognised {
            Some(r) => seen.extend([r.mean.clone(), everywhere(r.fit.clone()), everywhere(r.alone.clone())]),
            None => (2..SEEN).for_each(|_| seen.push(nothing())),
        }
        let seen = seen.into_iter().map(|x| x.reshape([contexts * states, 1]) * EVIDENCE).collect();
        let seen = Tensor::cat(seen, 1); // [contexts * states, SEEN]
        let (onto, direct) = match &self.transitions {
            None => {
                let weight = &weights[self.evidence_weight];
                let direct =
                    entered * weight.clone().narrow(0, 0, 1) - blocked * weight.clone().narrow(0, 1, 1);
                (None, direct)
            }
            Some(Transitions { says, kinds, read }) => {
                let says = weights[*says].clone().select(0, kinds.clone()); // [vocabulary * states, width]
                let says = says.reshape([self.table.vocabulary(), states * width]);
                // Bounded: that a state was entered is as true after the tenth time as after the first.
                let said = (met.matmul(says) * EVIDENCE).tanh().reshape([contexts * states, width]);
                let read = read.forward(weights, Input::One(said), Act::None) * EVIDENCE; // [contexts * states, width + 1]
                let direct = read.clone().narrow(1, width, 1).reshape([contexts, states]);
                (Some(read.narrow(1, 0, width)), direct)
            }
        };
        let x = self.transformer.tokens_at(weights, seen, &self.constants.places, onto); // [contexts * states, width]
        let both = self.read.forward(weights, Input::One(x.clone()), Act::None); // [contexts * states, 3]
        let part = |i: usize| both.clone().narrow(1, i, 1).reshape([contexts, states]);
        // Between e^-5 and e^1: a spread that the KL term can shape but no batch can blow up.
        let log_std = part(1).tanh() * 3.0 - 2.0;
        let own = weights[self.own_read].clone().reshape([1, states, width]);
        let own = (x.reshape([contexts, states, width]) * own).sum_dim(2).reshape([contexts, states]);
        let mut mean = part(0) + own + weights[self.own_bias].clone() + direct;
        if let Some(recognised) = recognised {
            mean = mean + recognised.odds * part(2);
        }
        Gaussian { mean, log_std }
    }

    /// g(s, a, h): the log-probability of each outcome, `[contexts * pairs, outcomes]`. Entering another state weighs what h
    /// says of it, wherever one comes from, and every outcome what its kind of step does: a bias of each outcome's own would
    /// learn by heart.
    fn decode(&self, weights: &Weights, h: Tensor<2>) -> Tensor<2> {
        let Constants { enters, leaves, mask, kinds, .. } = &self.constants;
        let contexts = h.dims()[0];
        let entering = h.select(1, enters.clone()) * leaves.clone(); // [contexts, vocabulary]
        let kind = weights[self.kind_bias].clone().select(1, kinds.clone()); // [1, vocabulary]
        let logits = entering + kind + mask.clone();
        log_softmax(logits.reshape([contexts * self.table.pairs(), self.table.width()]), 1)
    }

    /// Dynamics decoded from means of h `[contexts * states]`, which agree with the evidence of each context, as far as there is any.
    pub(crate) fn dynamics_given(&self, mean: &[f32], evidence: &[&StateEvidenceSet]) -> Vec<f32> {
        let (states, vocabulary, weights) =
            (self.table.states(), self.table.vocabulary(), self.params.weights());
        let mut all = Vec::with_capacity(mean.len() / states * vocabulary);
        for mean in mean.chunks(CHUNK * states) {
            let h = upload(mean.to_vec(), [mean.len() / states, states], self.params.device());
            all.extend(read(self.decode(&weights, h).exp()));
        }
        for (p, StateEvidenceSet { met, open, .. }) in all.chunks_exact_mut(vocabulary).zip(evidence) {
            let mut seen = self.table.evidence_in(met);
            seen.iter_mut().step_by(2).zip(open).for_each(|(entered, open)| *entered = entered.max(*open));
            self.table.trust(p, &seen, self.config.block_persistence);
        }
        all
    }

    /// The ood score of tokens as [`BeliefEncoder::ood_score`] defines it; `hidden` is a group not to be recognised.
    pub(crate) fn ood_of_tokens(&self, tokens: &[Option<u32>], hidden: Option<usize>) -> Option<f64> {
        if tokens.len() < ood::FEWEST {
            return None;
        }
        let seen = self.seen(tokens.iter().step_by(2).flatten().copied());
        let mean = self.infer_without(&[&seen], &[hidden.into_iter().collect()]).mean;
        let p = self.dynamics_given(&mean, &[]); // [vocabulary]
        let chance =
            |token: &Option<u32>| token.map_or(0.0, |token| f64::from(p[token as usize])).max(ood::LEAST);
        let others: Vec<f64> = tokens.iter().skip(1).step_by(2).map(|token| -chance(token).ln()).collect();
        Some(others.iter().sum::<f64>() / others.len() as f64)
    }
}

impl BeliefEncoder for StateEvidence {
    fn dim(&self) -> usize {
        self.table.states()
    }

    fn no_evidence(&self) -> Evidence {
        Evidence::States(self.seen([]))
    }

    fn observe(&self, evidence: &mut Evidence, obs: &[f32], actions: &[Action<'_>]) -> bool {
        let Evidence::States(set) = evidence else { return false };
        // What changes nothing that the encoder is given is no news.
        let given = |met: &[f32]| match self.config.encoder {
            EncoderKind::States => self.table.evidence_in(met),
            EncoderKind::Transitions => met.to_vec(),
        };
        let before = given(&set.met);
        self.table.tokens_between(obs, actions).flatten().for_each(|token| set.add(token));
        given(&set.met) != before
    }

    fn observe_open(&self, evidence: &mut Evidence, obs: &[f32]) {
        if let (Evidence::States(set), Some(state)) = (evidence, self.table.state(obs)) {
            set.open[state] = 1.0;
        }
    }

    fn infer(&self, evidence: &[&Evidence]) -> Posteriors {
        self.infer_without(&sets(evidence), &[])
    }

    fn dynamics(&self, mean: &[f32], evidence: &[&Evidence]) -> Vec<f32> {
        self.dynamics_given(mean, &sets(evidence))
    }

    fn ood_score(&self, trajectory: &Trajectory) -> Option<f64> {
        let tokens = self.table.tokens_between(trajectory.observations(), &trajectory.actions().all());
        self.ood_of_tokens(&tokens.collect::<Vec<_>>(), None)
    }

    fn params(&self) -> &Params {
        &self.params
    }
}

/// What was seen between listed states.
fn sets<'a>(evidence: &[&'a Evidence]) -> Vec<&'a StateEvidenceSet> {
    let set = |evidence: &&'a Evidence| match evidence {
        Evidence::States(set) => Some(set),
        Evidence::Tokens(_) => None,
    };
    evidence.iter().filter_map(set).collect()
}

/// The ELBO of a [`StateEvidence`]: from part of a group's transitions, predict the outcome of all of them.
#[derive(Debug)]
pub(crate) struct StateEvidenceObjective {
    pub(crate) model: StateEvidence,
    sampler: ContextSampler,
    /// Logarithm of the average dynamics, `[1, vocabulary]`: what there is to beat.
    unconditioned: Tensor<2>,
    seed: u64,
}

impl StateEvidenceObjective {
    /// The objective of an untrained encoder.
    pub(crate) fn new(
        table: Arc<StateTable>,
        config: &BeliefConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let model = StateEvidence::new(table.clone(), config, seed, device)?;
        let device = model.params.device();
        let average = upload(table.average(), [1, table.vocabulary()], device);
        let sampler = ContextSampler::new(table, config.context, device);
        Ok(Self { model, sampler, unconditioned: average.clamp_min(LEAST).log(), seed })
    }
}

impl BeliefObjective for StateEvidenceObjective {
    fn params(&self) -> &Params {
        &self.model.params
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.model.params
    }

    fn loss(&self, weights: &Weights, step: u64) -> (Tensor<1>, Metrics) {
        let (model, config) = (&self.model, &self.model.config);
        let (states, batch) = (model.table.states(), config.batch);
        let mut rng = stream(self.seed, "belief-batch", &[step]);
        let ContextBatch { met, truth, groups } = self.sampler.draw(&mut rng, batch);
        // What is made of several groups is none of them.
        let hide = |groups: Vec<usize>| {
            let forgotten = groups.len() > 1 || rng.random_bool(config.forget);
            if forgotten { groups } else { Vec::new() }
        };
        let hidden: Vec<Vec<usize>> = groups.into_iter().map(hide).collect();
        let open = config.goal_evidence.then(|| {
            let goals = (0..batch).flat_map(|_| model.table.mark_of_goal(&mut rng)).collect();
            // A goal that nobody could enter is none.
            upload::<2>(goals, [batch, states], model.params.device())
                * model.constants.shown(&truth.clone().sign())
        });
        let belief = model.encode(weights, met, open, model.hidden(&hidden, batch));
        let noise = StandardNormal.sample_iter(&mut rng).take(batch * states).collect();
        let h = belief.sample(upload(noise, [batch, states], model.params.device()));
        let log_p = model.decode(weights, h); // [batch * pairs, outcomes]
        let tried = truth.clone().sum().clamp_min(1.0); // pairs that anyone tried
        let off = |log_p: Tensor<2>| -(log_p * truth.clone()).sum() / tried.clone(); // [1]
        let [unconditioned, known] =
            [self.unconditioned.clone(), truth.clone().clamp_min(LEAST).log()].map(off);
        let prediction = off(log_p.reshape(truth.dims()));
        let kl = belief.kl();
        let loss = prediction.clone() + kl.clone() * config.kl;
        let metrics = vec![
            ("loss", loss.clone()),
            ("prediction", prediction),
            ("unconditioned prediction", unconditioned),
            ("known context's prediction", known),
            ("kl", kl),
        ];
        (loss, metrics)
    }
}

#[cfg(test)]
#[path = "state_evidence_tests.rs"]
mod tests;
