//! Tensors as bytes, in the safetensors format, so that other tools can open a checkpoint.

use super::error::NnError;
use super::transfer::{read, upload};
use burn::tensor::{Device, Tensor};
use safetensors::{Dtype, SafeTensors, View};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use xxhash_rust::xxh3::Xxh3;

/// The one metadata entry. A single entry keeps the bytes reproducible: the format's own map has no order.
const META: &str = "windvane";
/// The word that holds the checksum.
const CHECKSUM: &str = "xxh3_128";

/// Named matrices of `f32` and a few named words, in name order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorFile {
    tensors: BTreeMap<String, Matrix>,
    words: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Matrix {
    shape: [usize; 2],
    values: Vec<f32>,
}

impl View for &Matrix {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.values.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        self.values.len() * size_of::<f32>()
    }
}

impl TensorFile {
    /// Stores a copy of a tensor.
    pub fn insert(&mut self, name: String, tensor: &Tensor<2>) {
        let matrix = Matrix { shape: tensor.dims(), values: read(tensor.clone()) };
        self.tensors.insert(name, matrix);
    }

    /// Stores a matrix that is on the host already.
    ///
    /// # Panics
    /// If the number of values is not that of the shape.
    pub fn insert_values(&mut self, name: String, values: Vec<f32>, shape: [usize; 2]) {
        assert!(values.len() == shape[0] * shape[1], "{} values for a matrix of {shape:?}", values.len());
        self.tensors.insert(name, Matrix { shape, values });
    }

    /// Stores a word, for instance a step counter.
    pub fn insert_word(&mut self, name: &str, word: impl ToString) {
        self.words.insert(name.to_owned(), word.to_string());
    }

    /// A stored word.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.words.get(name).map(String::as_str)
    }

    /// The names of the stored tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A stored tensor, which must have this shape.
    pub fn tensor(&self, name: &str, shape: [usize; 2], device: &Device) -> Result<Tensor<2>, NnError> {
        let matrix = self.matrix(name)?;
        if matrix.shape != shape {
            let problem = format!("is {:?} in the file, expected {shape:?}", matrix.shape);
            return Err(NnError::Parameter { name: name.to_owned(), problem });
        }
        Ok(upload(matrix.values.clone(), shape, device))
    }

    /// A stored tensor's elements in row order; an error if it is not there.
    pub fn vector(&self, name: &str) -> Result<Vec<f32>, NnError> {
        Ok(self.matrix(name)?.values.clone())
    }

    fn matrix(&self, name: &str) -> Result<&Matrix, NnError> {
        let problem = || "is not in the file".to_owned();
        self.tensors.get(name).ok_or_else(|| NnError::Parameter { name: name.to_owned(), problem: problem() })
    }

    /// A stored tensor's elements in row order.
    pub fn values(&self, name: &str) -> Option<&[f32]> {
        self.tensors.get(name).map(|matrix| matrix.values.as_slice())
    }

    /// A stored tensor's shape.
    pub fn shape(&self, name: &str) -> Option<[usize; 2]> {
        self.tensors.get(name).map(|matrix| matrix.shape)
    }

    /// The file's bytes; equal contents give equal bytes. They carry a checksum of all tensors.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NnError> {
        let mut words = self.words.clone();
        words.insert(CHECKSUM.to_owned(), self.checksum());
        let words = serde_json::to_string(&words).map_err(|e| NnError::File(e.to_string()))?;
        let meta = HashMap::from([(META.to_owned(), words)]);
        safetensors::serialize(&self.tensors, Some(meta)).map_err(|e| NnError::File(e.to_string()))
    }

    /// Reads bytes written by [`TensorFile::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NnError> {
        let fault = |problem: String| NnError::File(problem);
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| fault(e.to_string()))?;
        let mut words: BTreeMap<String, String> =
            match header.metadata().as_ref().and_then(|meta| meta.get(META)) {
                Some(words) => {
                    serde_json::from_str(words).map_err(|e| fault(format!("metadata \"{META}\": {e}")))?
                }
                None => BTreeMap::new(),
            };
        let file = SafeTensors::deserialize(bytes).map_err(|e| fault(e.to_string()))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let (&[rows, cols], Dtype::F32) = (view.shape(), view.dtype()) else {
                let got = format!("{:?} of shape {:?}", view.dtype(), view.shape());
                return Err(fault(format!("\"{name}\" is {got}, expected a matrix of F32")));
            };
            let (words, _) = view.data().as_chunks::<4>();
            let values = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
            tensors.insert(name.to_owned(), Matrix { shape: [rows, cols], values });
        }
        let expected = words.remove(CHECKSUM);
        let file = Self { tensors, words };
        match expected {
            Some(expected) if expected != file.checksum() => {
                Err(fault("its checksum does not fit its tensors".into()))
            }
            _ => Ok(file),
        }
    }

    /// XXH3 of all names and elements, in order.
    fn checksum(&self) -> String {
        let mut state = Xxh3::new();
        for (name, matrix) in &self.tensors {
            state.update(name.as_bytes());
            matrix.values.chunks(1024).for_each(|part| {
                let bytes: Vec<u8> = part.iter().flat_map(|x| x.to_le_bytes()).collect();
                state.update(&bytes);
            });
        }
        format!("{:032x}", state.digest128())
    }
}

#[cfg(test)]
mod tests {
    use super::{TensorFile, upload};
    use burn::tensor::Device;

    fn sample() -> TensorFile {
        let mut file = TensorFile::default();
        let tensor = upload(vec![1.0, -2.5, 3.0, f32::MIN_POSITIVE, 0.0, 1e30], [2, 3], &Device::flex());
        file.insert("b/w".to_owned(), &tensor);
        file.insert("a/w".to_owned(), &tensor.transpose());
        file.insert_word("step", 17);
        file.insert_word("kind", "test");
        file
    }

    #[test]
    fn bytes_read_back_as_the_same_file_and_are_reproducible() {
        let bytes = sample().to_bytes().unwrap();
        assert_eq!(bytes, sample().to_bytes().unwrap());
        assert_eq!(TensorFile::from_bytes(&bytes).unwrap(), sample());
        assert_eq!(sample().names().collect::<Vec<_>>(), ["a/w", "b/w"]);
    }

    #[test]
    fn damaged_bytes_are_errors_not_panics() {
        let bytes = sample().to_bytes().unwrap();
        for cut in [0, 1, 7, 8, 20, bytes.len() - 1] {
            assert!(TensorFile::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let mut huge = bytes.clone();
        huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(TensorFile::from_bytes(&huge).is_err());
    }

    #[test]
    fn a_tensor_of_another_shape_is_named_with_what_was_expected() {
        let error = sample().tensor("a/w", [2, 3], &Device::flex()).unwrap_err().to_string();
        assert_eq!(error, "parameter \"a/w\": is [3, 2] in the file, expected [2, 3]");
        let error = sample().tensor("c", [2, 3], &Device::flex()).unwrap_err().to_string();
        assert_eq!(error, "parameter \"c\": is not in the file");
    }
}
