//! F, the actor and the predictor on a few rows of plain numbers: what a session acts by, quicker than by tensors.

use super::acting::Ready;
use super::{Agent, Model};
use crate::belief::RowPredictor;
use crate::data::Codec;
use crate::fb::actor::RowActor;
use crate::fb::conditioning::Conditioner;
use crate::fb::config::ValueHead;
use crate::nn::RowNet;
use std::sync::Arc;
use windvane_world::ActionBuf;

/// The networks of an agent on observations, under one belief and task.
#[derive(Debug)]
pub(super) struct Rows {
    codec: Arc<Codec>,
    head: ValueHead,
    /// Numbers in a conditioning input.
    condition: usize,
    forward: Vec<RowNet>,
    /// Chooses vectors; nothing where the best of candidates is taken.
    actor: Option<RowActor>,
    /// What F goes through, where it does.
    predictor: Option<RowPredictor>,
}

impl Rows {
    /// Copies the weights; nothing on listed states, and for networks without such a form.
    pub(super) fn new(agent: &Agent) -> Option<Self> {
        let Model::Observations(model) = &agent.model else { return None };
        let weights = model.params.weights();
        let blank = vec![0.0; model.condition + agent.dim()];
        let b = model.backward.network().map(|net| (net, &weights));
        let nets = model.forward.iter().map(|net| RowNet::new(net, &weights, b, &blank, agent.dim()));
        let actor = match &model.actor {
            Some(actor) => Some(actor.row(b, &blank, agent.dim())?),
            None => None,
        };
        // Oracle-ID has embeddings of groups, zeros where it knows none: its predictor is the conditioned one too.
        let conditioned = !matches!(agent.conditioner, Conditioner::Nothing);
        Some(Self {
            codec: model.codec.clone(),
            head: model.config.value_head,
            condition: model.condition,
            forward: nets.collect::<Option<_>>()?,
            actor,
            predictor: model.predictor.as_ref().map(|belief| belief.row_predictor(conditioned)),
        })
    }

    /// Takes another belief and task.
    pub(super) fn fix(&mut self, ready: &Ready) {
        let mut task = ready.known.input.clone();
        task.resize(self.condition, 0.0);
        task.extend_from_slice(&ready.z);
        self.forward.iter_mut().for_each(|net| net.fix(&task));
        self.actor.iter_mut().for_each(|actor| actor.fix(&task));
        if let (Some(predictor), false) = (&mut self.predictor, ready.known.belief.is_empty()) {
            predictor.condition(&ready.known.belief);
        }
    }

    /// Q of each action to choose from at `obs`, for the task `z`; nothing where the actor chooses.
    pub(super) fn q(&mut self, obs: &[f32], z: &[f32]) -> Option<Vec<f32>> {
        if self.actor.is_some() {
            return None;
        }
        let Self { codec, head, forward, predictor, .. } = self;
        let (s, actions) = (codec.encode(obs), &codec.actions);
        let n = actions.n_candidates();
        let candidates = || (0..n).map(|index| actions.candidate(index));
        // One row for each candidate, so that weights are read once; one row where F has a head for each.
        let (states, with) = match predictor {
            Some(predictor) => {
                let sa: Vec<f32> = candidates().flat_map(|a| [&s[..], &a].concat()).collect();
                let scales = &codec.change_scale;
                let change = predictor.predict(&sa).chunks_exact(scales.len()); // [n, dims]
                let next = change.flat_map(|change| obs.iter().zip(change.iter().zip(scales)));
                let next: Vec<f32> = next.map(|(x, (change, scale))| x + change * scale).collect();
                (codec.encode(&next), Vec::new())
            }
            None if actions.n_actions().is_none() => (s.repeat(n), candidates().flatten().collect()),
            None => (s, Vec::new()),
        };
        let (width, share) = (head.width(z.len()), 1.0 / forward.len() as f32);
        let mut values = vec![0.0; n];
        for net in forward {
            let raw = net.forward(&states, &with).chunks_exact(width); // [n, width]
            values.iter_mut().zip(raw).for_each(|(q, raw)| *q += share * head.value(raw, z));
        }
        Some(values)
    }

    /// The action of the actor at `obs`; nothing without one.
    pub(super) fn act(&mut self, obs: &[f32]) -> Option<ActionBuf> {
        let s = self.codec.encode(obs);
        Some(self.codec.actions.action(0, self.actor.as_mut()?.act(&s)))
    }
}
