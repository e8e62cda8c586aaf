//! The numbers that the paper prints.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use windvane_world::Split;

/// One method's numbers: mean and standard deviation.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Numbers {
    train: [f64; 2],
    test: [f64; 2],
}

/// By environment, then by method.
static TABLE: LazyLock<BTreeMap<String, BTreeMap<String, Numbers>>> =
    LazyLock::new(|| toml::from_str(include_str!("published.toml")).unwrap_or_default());

/// Mean and standard deviation that the paper prints for a method; nothing where it prints none.
pub fn score(env: &str, method: &str, split: Split) -> Option<[f64; 2]> {
    let numbers = TABLE.get(env)?.get(method)?;
    Some(match split {
        Split::Train => numbers.train,
        Split::Test => numbers.test,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_and_holds_the_headline_numbers() {
        assert_eq!(score("four-rooms", "rfb", Split::Test), Some([0.61, 0.05]));
        assert_eq!(score("pointmass", "oracle-id", Split::Train), Some([0.92, 0.02]));
        assert_eq!(score("doors", "rfb", Split::Test), None);
    }
}
