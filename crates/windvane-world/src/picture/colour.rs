//! Colours that people with any eyes can tell apart.

use std::fmt;

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// White.
    pub const WHITE: Self = Self(255, 255, 255);

    /// The colour at `t` of the way from 0 (this) to 1 (the other).
    #[must_use]
    pub fn mix(self, other: Self, t: f64) -> Self {
        let part = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * t).round() as u8;
        Self(part(self.0, other.0), part(self.1, other.1), part(self.2, other.2))
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// The greys of text, lines and walls, from the darkest.
pub struct Ink;

impl Ink {
    /// Titles.
    pub const TEXT: Colour = Colour(0x1f, 0x23, 0x28);
    /// Labels and numbers.
    pub const SOFT: Colour = Colour(0x57, 0x60, 0x6a);
    /// Walls.
    pub const WALL: Colour = Colour(0x48, 0x50, 0x5a);
    /// Frames and ticks.
    pub const LINE: Colour = Colour(0x8c, 0x95, 0x9f);
    /// Grid lines.
    pub const FAINT: Colour = Colour(0xe3, 0xe6, 0xea);
    /// Free space.
    pub const PAPER: Colour = Colour(0xfb, 0xfb, 0xfc);
}

/// Eight colours for eight kinds, by Okabe and Ito; the strongest first.
pub const CATEGORIES: [Colour; 8] = [
    Colour(0x00, 0x72, 0xb2),
    Colour(0xd5, 0x5e, 0x00),
    Colour(0x00, 0x9e, 0x73),
    Colour(0xcc, 0x79, 0xa7),
    Colour(0xe6, 0x9f, 0x00),
    Colour(0x56, 0xb4, 0xe9),
    Colour(0x8c, 0x6d, 0x31),
    Colour(0x1f, 0x23, 0x28),
];

/// A way from one colour to another through evenly spaced ones.
#[derive(Clone, Copy, Debug)]
pub struct ColourMap(&'static [Colour]);

impl ColourMap {
    /// The colour of `t`, from 0 to 1; what lies outside is cut off, and NaN is as 0.
    pub fn at(&self, t: f64) -> Colour {
        let steps = self.0.len() - 1;
        let place = if t.is_nan() { 0.0 } else { t.clamp(0.0, 1.0) * steps as f64 };
        let below = (place as usize).min(steps - 1);
        self.0[below].mix(self.0[below + 1], place - below as f64)
    }
}

/// Dark blue to yellow, even in lightness: for values where both ends matter.
pub const VIRIDIS: ColourMap = ColourMap(&[
    Colour(0x44, 0x01, 0x54),
    Colour(0x48, 0x24, 0x75),
    Colour(0x41, 0x44, 0x87),
    Colour(0x35, 0x5f, 0x8d),
    Colour(0x2a, 0x78, 0x8e),
    Colour(0x21, 0x91, 0x8c),
    Colour(0x22, 0xa8, 0x84),
    Colour(0x44, 0xbf, 0x70),
    Colour(0x7a, 0xd1, 0x51),
    Colour(0xbd, 0xdf, 0x26),
    Colour(0xfd, 0xe7, 0x25),
]);

/// Almost white to dark violet, even in lightness: for amounts, where nothing looks like nothing.
pub const HEAT: ColourMap = ColourMap(&[
    Colour(0xff, 0xfd, 0xf2),
    Colour(0xfe, 0xe9, 0xb9),
    Colour(0xfe, 0xc5, 0x8b),
    Colour(0xfd, 0x9a, 0x6a),
    Colour(0xf1, 0x6e, 0x5b),
    Colour(0xd3, 0x43, 0x6e),
    Colour(0xa1, 0x30, 0x7e),
    Colour(0x6b, 0x1d, 0x81),
    Colour(0x3b, 0x0f, 0x70),
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_map_begins_and_ends_with_its_ends_and_takes_any_number() {
        assert_eq!(VIRIDIS.at(0.0), Colour(0x44, 0x01, 0x54));
        assert_eq!(VIRIDIS.at(1.0), Colour(0xfd, 0xe7, 0x25));
        assert_eq!(VIRIDIS.at(0.05), Colour(0x46, 0x13, 0x65));
        assert_eq!([f64::NAN, f64::NEG_INFINITY].map(|t| HEAT.at(t)), [HEAT.at(0.0); 2]);
        assert_eq!(HEAT.at(f64::INFINITY), HEAT.at(1.0));
    }

    #[test]
    fn heat_grows_steadily_darker() {
        let lightness = |t: f64| {
            let Colour(r, g, b) = HEAT.at(t);
            0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
        };
        assert!((0..=100).map(|i| lightness(f64::from(i) / 100.0)).is_sorted_by(|a, b| a > b));
    }
}
