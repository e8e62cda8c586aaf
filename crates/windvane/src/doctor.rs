//! What an examination finds, and how to read it.

use serde::Serialize;

/// How good a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Healthy.
    Good,
    /// Works, but something could be better.
    Fair,
    /// Look here first.
    Poor,
}

/// One number with its reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The part it is about.
    pub part: &'static str,
    /// What was measured.
    pub what: String,
    /// The number.
    pub value: f64,
    /// How good it is; nothing for numbers that are neither.
    pub verdict: Option<Verdict>,
    /// What to do if it is not good.
    pub advice: Option<&'static str>,
}

/// Where good ends and where fair ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The last good value.
    pub good: f64,
    /// The last fair value.
    pub fair: f64,
}

impl Finding {
    /// A number that should be large.
    pub fn at_least(
        part: &'static str,
        what: impl Into<String>,
        value: f64,
        limits: Limits,
        advice: &'static str,
    ) -> Self {
        Self::judged(part, what.into(), value, value >= limits.good, value >= limits.fair, advice)
    }

    /// A number that should be small.
    pub fn at_most(
        part: &'static str,
        what: impl Into<String>,
        value: f64,
        limits: Limits,
        advice: &'static str,
    ) -> Self {
        Self::judged(part, what.into(), value, value <= limits.good, value <= limits.fair, advice)
    }

    /// A number to know.
    pub fn report(part: &'static str, what: impl Into<String>, value: f64) -> Self {
        Self { part, what: what.into(), value, verdict: None, advice: None }
    }

    fn judged(
        part: &'static str,
        what: String,
        value: f64,
        good: bool,
        fair: bool,
        advice: &'static str,
    ) -> Self {
        let verdict = match (good, fair) {
            (true, _) => Verdict::Good,
            (_, true) => Verdict::Fair,
            _ => Verdict::Poor,
        };
        Self { part, what, value, verdict: Some(verdict), advice: (!good).then_some(advice) }
    }
}
