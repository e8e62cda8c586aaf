//! The transitions met so far, as a set of tokens that never outgrows its bound.

/// Two tokens nearer than this share of their length say the same.
const ALIKE: f32 = 0.1;

/// A bounded set of tokens, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSet {
    width: usize,
    most: usize,
    tokens: Vec<f32>,
}

impl TokenSet {
    /// An empty set of tokens of `width` numbers that holds at most `most` of them, or as many as it begins with.
    pub fn new(width: usize, most: usize) -> Self {
        Self { width, most: most.max(1), tokens: Vec::new() }
    }

    /// Adds tokens. A first context is stored whole, however long it is.
    pub fn extend(&mut self, tokens: &[f32]) {
        if self.tokens.is_empty() {
            self.most = self.most.max(tokens.len() / self.width);
        }
        tokens.chunks_exact(self.width).for_each(|token| self.push(token));
    }

    /// Adds a token. In a full set it takes the place of the oldest one that says the same; of the oldest of all if none
    /// does.
    fn push(&mut self, token: &[f32]) {
        if self.len() >= self.most {
            let bound = ALIKE * ALIKE * token.iter().map(|x| x * x).sum::<f32>();
            let alike =
                |other: &[f32]| other.iter().zip(token).map(|(x, y)| (x - y) * (x - y)).sum::<f32>() <= bound;
            let old = self.tokens.chunks_exact(self.width).position(alike).unwrap_or(0);
            self.tokens.drain(old * self.width..(old + 1) * self.width);
        }
        self.tokens.extend_from_slice(token);
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len() / self.width
    }

    /// All tokens, one after the other.
    pub fn tokens(&self) -> &[f32] {
        &self.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::TokenSet;

    #[test]
    fn a_full_set_forgets_what_it_knows_twice_before_what_is_old() {
        let mut set = TokenSet::new(2, 3);
        set.extend(&[1.0, 0.0, 0.0, 1.0]);
        set.push(&[0.0, -1.0]);
        assert_eq!(set.len(), 3);
        set.push(&[0.01, 1.0]);
        assert_eq!(set.tokens(), [1.0, 0.0, 0.0, -1.0, 0.01, 1.0], "the second said the same");
        set.push(&[5.0, 5.0]);
        assert_eq!(set.tokens(), [0.0, -1.0, 0.01, 1.0, 5.0, 5.0], "nothing did: the oldest goes");
    }

    #[test]
    fn a_long_context_is_kept_whole_and_does_not_grow() {
        let mut set = TokenSet::new(1, 4);
        set.extend(&(0..10).map(|x| x as f32).collect::<Vec<_>>());
        (10..1000).for_each(|x| set.push(&[x as f32]));
        assert_eq!(set.len(), 10);
    }
}
