//! A trained agent as tensors and settings, apart from the data it was trained on.

use super::agent::NeuralAgent;
use super::belief::NeuralBelief;
use super::config::NeuralPlan;
use super::fb::FbModel;
use super::lens::Lens;
use super::situations::Listener;
use crate::error::LearnError;
use crate::nn::{NnError, TensorFile};
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windvane_world::{ContextId, EnvSpec};

/// What the settings file says of the networks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NeuralCard {
    plan: NeuralPlan,
    lens: Lens,
    told: Told,
    /// Whether a belief or predictor is among the tensors, and how many groups it has codes of.
    belief: Option<usize>,
}

/// What F is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Nothing,
    Belief { scale: f32 },
    ContextId { groups: usize, contexts: Vec<ContextId> },
}

impl NeuralCard {
    /// Whether it belongs to observations and actions of `env`.
    pub(crate) fn check(&self, env: &EnvSpec) -> Result<(), String> {
        if self.lens.spec() != env {
            return Err(format!("core.neural.lens.spec is not the environment {}", env.name));
        }
        self.lens.check(&self.plan)
    }
}

impl NeuralAgent {
    /// Writes all tensors that it needs to act, and says what they are.
    pub(super) fn kept(&self, file: &mut TensorFile) -> NeuralCard {
        let device = self.model.params.device();
        let mut put = |name: &str, values: &[f32], width: usize| {
            let data = TensorData::new(values.to_vec(), [values.len() / width, width]);
            file.insert(name.to_owned(), &Tensor::from_data(data, device));
        };
        put("visited/states", &self.visited.states, self.lens().change().len());
        if !self.usual.is_empty() {
            put("surprise/usual", &self.usual, self.usual.len());
        }
        let told = match &self.listener {
            Listener::Deaf => Told::Nothing,
            Listener::Belief { middle, scale, .. } => {
                put("belief/middle", middle, middle.len());
                Told::Belief { scale: *scale }
            }
            Listener::ContextId { groups, contexts, .. } => {
                Told::ContextId { groups: *groups, contexts: contexts.clone() }
            }
        };
        self.model.params.save(file, "fb/");
        if let Some(actor) = &self.model.actor {
            actor.params.save(file, "actor/");
        }
        let belief = self.listener.belief().or(self.model.predictor.as_deref());
        if let Some(belief) = belief {
            belief.params.save(file, "belief/net/");
        }
        NeuralCard {
            plan: self.plan.clone(),
            lens: self.lens().clone(),
            told,
            belief: belief.map(|belief| belief.codes().len() / belief.dim()),
        }
    }

    /// The agent that was kept.
    pub(crate) fn of_kept(card: NeuralCard, file: &TensorFile, device: &Device) -> Result<Self, LearnError> {
        let NeuralCard { plan, lens, told, belief } = card;
        plan.check().map_err(|problem| LearnError::Config { origin: "plan".into(), problem })?;
        let lens = Arc::new(lens);
        let known = ["fb/", "actor/", "belief/", "visited/", "surprise/"];
        if let Some(name) = file.names().find(|name| !known.iter().any(|prefix| name.starts_with(prefix))) {
            let problem = "is in the file but not part of an agent".to_owned();
            return Err(NnError::Parameter { name: name.to_owned(), problem }.into());
        }
        let values = |name: &str| {
            let missing =
                || NnError::Parameter { name: name.to_owned(), problem: "is not in the file".into() };
            file.values(name).map(<[f32]>::to_vec).ok_or_else(missing)
        };
        let belief = match belief {
            Some(groups) => {
                let mut belief = NeuralBelief::new(&lens, groups, &plan.belief, 0, device)?;
                belief.params.load(file, "belief/net/")?;
                Some(Arc::new(belief.from_source(plan.source)))
            }
            None => None,
        };
        let listener = match (told, &belief) {
            (Told::Belief { scale }, Some(belief)) => {
                let middle = values("belief/middle")?;
                if middle.len() != belief.dim() {
                    let problem = format!("has {} numbers, expected {}", middle.len(), belief.dim());
                    return Err(NnError::Parameter { name: "belief/middle".into(), problem }.into());
                }
                Listener::Belief { belief: belief.clone(), middle, scale }
            }
            (Told::ContextId { groups, contexts }, belief) => {
                let codes = belief.as_ref().map(|belief| belief.codes()).unwrap_or_default();
                Listener::ContextId { groups, contexts, codes }
            }
            (Told::Nothing | Told::Belief { .. }, _) => Listener::Deaf,
        };
        let mut model = FbModel::new(lens.clone(), listener.width(), belief, &plan, 0, device)?;
        model.params.load(file, "fb/")?;
        if let Some(actor) = &mut model.actor {
            actor.params.load(file, "actor/")?;
        }
        let states = values("visited/states")?;
        if states.is_empty() || states.len() % lens.change().len() != 0 {
            let problem = format!("has {} numbers, expected rows of {}", states.len(), lens.change().len());
            return Err(NnError::Parameter { name: "visited/states".into(), problem }.into());
        }
        let usual = file.values("surprise/usual").map(<[f32]>::to_vec).unwrap_or_default();
        Ok(Self::of_parts(model, listener, plan, states, usual))
    }
}
