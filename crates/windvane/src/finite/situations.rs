//! What the forward map is told of contexts, and where task vectors are drawn around that.

use crate::latent::VonMisesFisher;

/// Where random task vectors come from.
#[derive(Clone, Debug)]
pub enum TaskDraw {
    /// Anywhere on the sphere (FB, Belief-FB).
    Sphere,
    /// A cone around the belief (Rotation-FB).
    Cone(VonMisesFisher),
}

impl TaskDraw {
    /// Situations ready to be drawn around.
    pub(super) fn prepared(&self, mut situations: Situations, dim: usize) -> Situations {
        if let Self::Cone(_) = self {
            situations.axes = directions(&situations.axes, &middle(&situations.axes, situations.width), dim);
        }
        situations
    }
}

/// The mean of beliefs (`[count * width]`); zeros of none.
pub(super) fn middle(beliefs: &[f32], width: usize) -> Vec<f32> {
    let count = (beliefs.len() / width).max(1) as f32;
    let mut middle = vec![0.0; width];
    for h in beliefs.chunks_exact(width) {
        middle.iter_mut().zip(h).for_each(|(m, x)| *m += x / count);
    }
    middle
}

/// Beliefs (`[count * width]`) as directions of `dim` components: what they have in common, `middle`, points nowhere, so it
/// is taken out; the rest is filled up with zeros.
pub(super) fn directions(beliefs: &[f32], middle: &[f32], dim: usize) -> Vec<f32> {
    let width = middle.len();
    let mut directions = Vec::with_capacity(beliefs.len() / width * dim);
    for h in beliefs.chunks_exact(width) {
        directions.extend(h.iter().zip(middle).map(|(x, m)| x - m));
        directions.resize(directions.len() + dim - width, 0.0);
    }
    directions
}

/// What the forward map can be told, once for each context it is trained in.
#[derive(Clone, Debug, Default)]
pub struct Situations {
    /// Width of a condition.
    pub width: usize,
    /// The conditions, `[count * width]`.
    pub conditions: Vec<f32>,
    /// The predictor's dynamics under each, `[count * vocabulary]`.
    pub dynamics: Vec<f32>,
    /// The beliefs, `[count * width]`; empty without. [`TaskDraw`] makes directions of them to draw cones around.
    pub axes: Vec<f32>,
    /// The group each comes from; empty where all are taken for one.
    pub groups: Vec<usize>,
}

impl Situations {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.conditions.len() / self.width.max(1)
    }
}
