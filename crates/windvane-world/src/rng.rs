//! Randomness is an argument: every random choice is drawn from a named stream of one seed.

use rand::SeedableRng;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The one generator of the project: portable, reproducible, cheap to seek.
pub type Rng = rand_chacha::ChaCha8Rng;

/// The stream of `seed` that serves `purpose`, at the place `index` (for instance a context and an episode number).
///
/// Streams with different names or indices are independent, so work can be split over threads or resumed at any
/// place without changing a single draw elsewhere.
pub fn stream(seed: u64, purpose: &str, index: &[u64]) -> Rng {
    let mut name = Vec::with_capacity(purpose.len() + 1 + 8 * index.len());
    name.extend_from_slice(purpose.as_bytes());
    name.push(0);
    for i in index {
        name.extend_from_slice(&i.to_le_bytes());
    }
    let mut key = [0_u8; 32];
    key[..16].copy_from_slice(&xxh3_128_with_seed(&name, seed).to_le_bytes());
    key[16..].copy_from_slice(&xxh3_128_with_seed(&name, !seed).to_le_bytes());
    Rng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::stream;
    use rand::Rng as _;

    #[test]
    fn streams_repeat_and_differ_by_name_index_and_seed() {
        let draw = |seed, name, index: &[u64]| stream(seed, name, index).next_u64();
        assert_eq!(draw(1, "collect", &[2, 3]), draw(1, "collect", &[2, 3]));
        let others = [draw(2, "collect", &[2, 3]), draw(1, "layouts", &[2, 3]), draw(1, "collect", &[3, 2])];
        assert!(others.iter().all(|&x| x != draw(1, "collect", &[2, 3])));
    }
}
