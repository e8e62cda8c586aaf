//! The parameters of a model: named matrices in one store, apart from the layers that use them.
//!
//! Layers hold only [`ParamId`]s. The same layer runs with the weights being trained, with a target copy, or frozen,
//! depending on the [`Weights`] it is given; a target network is a second store, not a second model.

use super::error::NnError;
use super::init::Init;
use super::ops::adam::place;
use super::tensor_file::TensorFile;
use super::transfer::upload_parameter;
use burn::tensor::{Device, Tensor};
use std::collections::BTreeMap;
use std::ops::Index;

/// The largest number of elements in one parameter: far above any sensible network, far below an overflow.
const MAX_ELEMENTS: usize = 1 << 30;

/// Names one parameter of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamId(usize);

/// Named parameters on one device. Every parameter is a matrix; a vector is a matrix of one row.
#[derive(Clone, Debug)]
pub struct Params {
    device: Device,
    seed: u64,
    values: Vec<Tensor<2>>,
    /// Sorted by name: the order of checkpoints, of the gradient norm and of everything else that folds over parameters.
    index: BTreeMap<String, ParamId>,
}

/// The values a forward pass runs with, by [`ParamId`].
#[derive(Debug)]
pub struct Weights(Vec<Tensor<2>>);

impl Index<ParamId> for Weights {
    type Output = Tensor<2>;

    fn index(&self, id: ParamId) -> &Tensor<2> {
        &self.0[id.0]
    }
}

impl Params {
    /// An empty store; `seed` decides the first values of whatever is added.
    pub fn new(device: &Device, seed: u64) -> Self {
        Self { device: device.clone().without_autodiff(), seed, values: Vec::new(), index: BTreeMap::new() }
    }

    /// Adds a parameter and draws its first values from the stream of its name.
    pub fn add(&mut self, name: &str, shape: [usize; 2], init: Init) -> Result<ParamId, NnError> {
        let elements = shape[0].saturating_mul(shape[1]);
        if elements == 0 || elements > MAX_ELEMENTS {
            return Err(NnError::Size {
                what: format!("parameter \"{name}\" of {} x {}", shape[0], shape[1]),
                size: elements,
                expected: format!("1 to {MAX_ELEMENTS} elements"),
            });
        }
        let id = ParamId(self.values.len());
        if self.index.insert(name.to_owned(), id).is_some() {
            return Err(NnError::Duplicate(name.to_owned()));
        }
        let values = init.draw(self.seed, name, shape);
        self.values.push(place(upload_parameter(values, shape, &self.device)));
        Ok(id)
    }

    /// The device the parameters live on (without autodiff).
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The values to train with: gradients of a loss are stored for every one of them.
    pub fn track(&self) -> Weights {
        Weights(self.values.iter().map(|value| value.clone().autodiff().require_grad()).collect())
    }

    /// The values as constants, for target networks, evaluation, and networks another loss only passes through.
    pub fn weights(&self) -> Weights {
        Weights(self.values.clone())
    }

    /// Number of parameters (matrices).
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no parameter.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of elements over all parameters.
    pub fn elements(&self) -> usize {
        self.values.iter().map(|value| value.shape().num_elements()).sum()
    }

    /// All parameters in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, ParamId)> {
        self.index.iter().map(|(name, id)| (name.as_str(), *id))
    }

    /// One parameter's values.
    pub fn get(&self, id: ParamId) -> &Tensor<2> {
        &self.values[id.0]
    }

    /// Replaces one parameter's values by a tensor of the same shape.
    pub(crate) fn set(&mut self, id: ParamId, value: Tensor<2>) {
        self.values[id.0] = value;
    }

    /// Moves one parameter's values out, so that they can be changed in place; [`Params::set`] puts them back.
    pub(crate) fn take(&mut self, id: ParamId) -> Tensor<2> {
        self.values[id.0].extract()
    }

    /// Writes every parameter as `prefix` + name.
    pub fn save(&self, file: &mut TensorFile, prefix: &str) {
        for (name, id) in self.iter() {
            file.insert(format!("{prefix}{name}"), self.get(id));
        }
    }

    /// Reads every parameter back; the file must hold exactly this store's names and shapes below `prefix`.
    pub fn load(&mut self, file: &TensorFile, prefix: &str) -> Result<(), NnError> {
        if let Some(name) =
            file.names().find(|n| n.strip_prefix(prefix).is_some_and(|n| !self.index.contains_key(n)))
        {
            let problem = "is in the file but not in this network".to_owned();
            return Err(NnError::Parameter { name: name.to_owned(), problem });
        }
        let read = |(name, id): (&String, &ParamId)| {
            file.tensor(&format!("{prefix}{name}"), self.values[id.0].dims(), &self.device)
                .map(|t| (*id, place(t)))
        };
        let values = self.index.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        for (id, value) in values {
            self.set(id, value);
        }
        Ok(())
    }
}
