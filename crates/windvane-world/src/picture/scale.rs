//! From numbers to places, and the round numbers to write beside an axis.

/// A straight map from an interval of numbers to an interval of places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
}

impl Scale {
    /// Maps `domain` to `range`; a domain of one number is widened around it.
    pub fn new(domain: (f64, f64), range: (f64, f64)) -> Self {
        let (low, high) = domain;
        let domain = if high > low { domain } else { (low - 0.5, low + 0.5) };
        Self { domain, range }
    }

    /// The place of a number.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value - self.domain.0) / (self.domain.1 - self.domain.0);
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// The interval of numbers.
    pub fn domain(&self) -> (f64, f64) {
        self.domain
    }

    /// Round numbers within the domain, about `count` of them, and how each is written.
    pub fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let rough = (self.domain.1 - self.domain.0) / count.max(1) as f64;
        if !(rough.is_finite() && rough > 0.0) {
            return Vec::new();
        }
        let step = round_step(rough);
        let decimals = (0..12).find(|&d| (step * 10_f64.powi(d)).fract().abs() < 1e-6).unwrap_or(12) as usize;
        let first = (self.domain.0 / step - 1e-9).ceil() as i64;
        let last = (self.domain.1 / step + 1e-9).floor() as i64;
        (first..=last.min(first.saturating_add(100)))
            .map(|place| {
                let value = place as f64 * step;
                // The true minus sign, as wide as a digit.
                (value, format!("{value:.decimals$}").replace('-', "\u{2212}"))
            })
            .collect()
    }

    /// The end of an axis from 0 over `value` whose last tick, of about `count`, stands at its end.
    pub fn round_up(value: f64, count: usize) -> f64 {
        if !(value.is_finite() && value > 0.0) {
            return 1.0;
        }
        let mut end = value;
        // A higher end may ask for wider steps; twice is enough for every step of the series.
        for _ in 0..3 {
            let step = round_step(end / count.max(1) as f64);
            end = (end / step - 1e-9).ceil() * step;
        }
        end
    }
}

/// About `rough`, but 1, 2, 2.5, 5 or 10 times a power of ten.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0].map(|factor| factor * power);
    steps.into_iter().find(|&step| step >= rough * 0.8).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_numbers_within_the_domain() {
        let written = |low, high| {
            let ticks = Scale::new((low, high), (0.0, 1.0)).ticks(5);
            ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(written(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            written(-3.0, 12.0),
            ["\u{2212}2.5", "0.0", "2.5", "5.0", "7.5", "10.0"].map(str::to_owned)
        );
        assert_eq!(written(0.0, 0.013), ["0.0000", "0.0025", "0.0050", "0.0075", "0.0100", "0.0125"]);
        assert_eq!(written(7.0, 7.0), ["6.6", "6.8", "7.0", "7.2", "7.4"]);
    }

    proptest! {
        #[test]
        fn a_rounded_end_is_a_tick_and_not_below(value in 1e-6..1e6_f64, count in 2..8_usize) {
            let end = Scale::round_up(value, count);
            let (last, _) = Scale::new((0.0, end), (0.0, 1.0)).ticks(count).pop().unwrap();
            prop_assert!(end >= value * (1.0 - 1e-9) && (last - end).abs() < 1e-9 * end, "{} {} {}", value, end, last);
        }

        #[test]
        fn any_domain_gives_few_ticks_inside_it(low in -1e9..1e9_f64, span in 1e-6..1e9_f64) {
            let scale = Scale::new((low, low + span), (0.0, 100.0));
            let ticks = scale.ticks(5);
            prop_assert!(ticks.len() <= 101);
            for (value, _) in ticks {
                prop_assert!((-1.0..=101.0).contains(&scale.at(value)), "{} at {}", value, scale.at(value));
            }
        }
    }
}
