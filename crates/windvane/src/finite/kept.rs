//! A trained agent on listed states as tensors and settings, apart from the data it was trained on.

use super::agent::{FiniteAgent, Listener};
use super::belief::{BeliefConfig, FiniteBelief};
use super::fb::FbConfig;
use super::model::FbModel;
use super::surprise;
use super::survey::{Survey, SurveyCard};
use crate::error::LearnError;
use crate::nn::{NnError, TensorFile};
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windvane_world::EnvSpec;

/// What the settings file says of an agent on listed states.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FiniteCard {
    survey: SurveyCard,
    fb: FbConfig,
    belief: Option<BeliefConfig>,
}

impl FiniteAgent {
    /// Writes all tensors that it needs to act, and says what they are.
    pub(super) fn kept(&self, file: &mut TensorFile) -> FiniteCard {
        let (card, rho, counts) = self.survey().kept();
        let device = Device::flex();
        let mut put = |name: &str, values: Vec<f32>, width: usize| {
            let shape = [values.len() / width, width];
            file.insert(name.to_owned(), &Tensor::from_data(TensorData::new(values, shape), &device));
        };
        put("survey/rho", rho, self.survey().states());
        put("survey/counts", counts, self.survey().vocabulary());
        let usual = surprise::usual(self);
        if !usual.is_empty() {
            let count = usual.len();
            put("surprise/usual", usual, count);
        }
        self.model().params().save(file, "fb/");
        if let Some(belief) = self.belief() {
            belief.params().save(file, "belief/");
        }
        FiniteCard { survey: card, fb: *self.model().config(), belief: self.belief().map(|b| *b.config()) }
    }

    /// The agent that was kept, in a world that looks like `env`.
    pub(crate) fn of_kept(
        card: FiniteCard,
        env: &EnvSpec,
        file: &TensorFile,
        device: &Device,
    ) -> Result<Self, LearnError> {
        let wrong =
            |name: &str, problem: &str| NnError::Parameter { name: name.into(), problem: problem.into() };
        let known = ["fb/", "belief/", "survey/", "surprise/"];
        if let Some(name) = file.names().find(|name| !known.iter().any(|prefix| name.starts_with(prefix))) {
            return Err(wrong(name, "is in the file but not part of an agent").into());
        }
        let values = |name: &str| file.values(name).ok_or_else(|| wrong(name, "is not in the file"));
        let survey = Survey::of_kept(card.survey, env, values("survey/rho")?, values("survey/counts")?)?;
        let mut model = FbModel::new(&survey, survey.states(), card.fb, 0, device)?;
        model.params_mut().load(file, "fb/")?;
        let listener = match card.belief {
            Some(config) => {
                let mut belief = FiniteBelief::new(&survey, config, 0, device)?;
                belief.params_mut().load(file, "belief/")?;
                Listener::Belief(Arc::new(belief))
            }
            None => Listener::Deaf,
        };
        let mut agent = Self::new(Arc::new(survey), listener, model);
        agent.usual = file.values("surprise/usual").map(<[f32]>::to_vec).unwrap_or_default();
        Ok(agent)
    }
}
