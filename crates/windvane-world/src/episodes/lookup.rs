//! From a transition to its episode in a few instructions, with a table of bounded size.

/// Most entries of the table: 256 KiB, however large the data set.
const LARGEST: usize = 1 << 16;

/// For every `1 << shift` transitions, the episode that the first of them belongs to.
#[derive(Debug)]
pub(super) struct Lookup {
    shift: u32,
    first: Vec<u32>,
}

impl Lookup {
    /// Builds the table over valid offsets.
    pub(super) fn new(offsets: &[i64]) -> Self {
        let transitions = offsets[offsets.len() - 1] as usize;
        let mut shift = 0;
        while transitions >> shift >= LARGEST {
            shift += 1;
        }
        let mut episode = 0;
        let first = (0..=transitions >> shift).map(|slot| {
            while (offsets[episode + 1] as usize) <= slot << shift && episode + 2 < offsets.len() {
                episode += 1;
            }
            episode as u32
        });
        Self { shift, first: first.collect() }
    }

    /// The episode of a transition.
    #[inline]
    pub(super) fn find(&self, offsets: &[i64], transition: usize) -> usize {
        let wanted = transition as i64;
        assert!(wanted < offsets[offsets.len() - 1], "no transition {transition}");
        let slot = transition >> self.shift;
        let first = self.first[slot] as usize;
        // Most slots lie within one episode or reach into the next: no search, and no branch to guess.
        let near = first + usize::from(offsets[first + 1] <= wanted);
        if wanted < offsets[near + 1] { near } else { self.search(offsets, slot, near, wanted) }
    }

    /// Looks through the rest of a slot; apart, so that the rest of [`Self::find`] is small enough to need no call.
    #[cold]
    fn search(&self, offsets: &[i64], slot: usize, from: usize, wanted: i64) -> usize {
        let last = self.first.get(slot + 1).map_or(offsets.len() - 2, |&episode| episode as usize);
        from + offsets[from + 1..=last].partition_point(|&next| next <= wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_transition_finds_the_episode_that_holds_it(lengths in prop::collection::vec(1..2000_i64, 1..300)) {
            let mut offsets = vec![0];
            for length in &lengths {
                offsets.push(offsets[offsets.len() - 1] + length);
            }
            let lookup = Lookup::new(&offsets);
            prop_assert!(lookup.first.len() <= LARGEST);
            for (episode, pair) in offsets.windows(2).enumerate() {
                for transition in [pair[0], pair[0].midpoint(pair[1]), pair[1] - 1] {
                    prop_assert_eq!(lookup.find(&offsets, transition as usize), episode);
                }
            }
        }
    }
}
