//! Elementary functions in single precision: branch-free, so that loops over them vectorise, and made of exactly rounded
//! operations only, so that every instruction set gives the same bits.
#![allow(clippy::inline_always, clippy::excessive_precision)]

/// `e^x` to 1e-7 relative, for `x` from -80 to 88 and like the nearer of them beyond. `e^-80` is small enough to vanish in a
/// sum, and large enough for its products to stay normal numbers, which processors are fast with.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts: the first is exact in few bits, so its products with small integers are exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer on every machine.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-80.0, 88.0);
    let n = x.mul_add(LOG2_E, ROUND) - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x)); // |r| <= ln(2) / 2
    let p = r.mul_add(1.381_461_5e-3, 8.368_71e-3);
    let p = p.mul_add(r, 4.166_839e-2).mul_add(r, 0.166_665_21).mul_add(r, 0.499_999_94);
    let p = (p * r).mul_add(r, r) + 1.0;
    // 2^n, by its exponent bits; n is in [-115, 127].
    let scale = f32::from_bits(((n + ROUND).to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127)) << 23);
    p * scale
}

/// `ln(1 + e^x)`, to 3e-7.
#[inline(always)]
pub(super) fn softplus(x: f32) -> f32 {
    let u = exp(-x.abs());
    // ln(1 + u) = 2 artanh(t), and t is at most 1/3.
    let t = u / (u + 2.0);
    let s = t * t;
    let p = s.mul_add(1.0 / 15.0, 1.0 / 13.0).mul_add(s, 1.0 / 11.0).mul_add(s, 1.0 / 9.0);
    let p = p.mul_add(s, 1.0 / 7.0).mul_add(s, 1.0 / 5.0).mul_add(s, 1.0 / 3.0);
    let log = (p * s).mul_add(t, t) * 2.0;
    log + if x > 0.0 { x } else { 0.0 }
}

/// Density and upper tail of the standard normal at `|x|`: `(phi(x), 1 - Phi(|x|))`, to 2e-7.
#[inline(always)]
fn normal(x: f32) -> (f32, f32) {
    const INV_ROOT_TAU: f32 = 0.398_942_28;
    // 0.4 / sqrt(2): the tail is a polynomial of 1 / (1 + 0.4 u) times e^(-u^2), u = |x| / sqrt(2).
    const SLOPE: f32 = 0.282_842_7;
    let e = exp(-0.5 * x * x);
    let t = 1.0 / x.abs().mul_add(SLOPE, 1.0);
    let p = t.mul_add(-0.200_259_7, 0.709_149_24);
    let p = p
        .mul_add(t, -0.370_911_03)
        .mul_add(t, 0.468_276_68)
        .mul_add(t, 0.161_822_54)
        .mul_add(t, 0.231_922_25);
    (INV_ROOT_TAU * e, 0.5 * p * t * e)
}

/// `x * Phi(x)`, to 1e-6.
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let (_, tail) = normal(x);
    x * if x < 0.0 { tail } else { 1.0 - tail }
}

/// `x * Phi(x)` and its slope `Phi(x) + x * phi(x)`, to 1e-6.
#[inline(always)]
pub(super) fn gelu_slope(x: f32) -> (f32, f32) {
    let (density, tail) = normal(x);
    let cdf = if x < 0.0 { tail } else { 1.0 - tail };
    (x * cdf, x.mul_add(density, cdf))
}

/// The error function, to 1e-6.
#[cfg(test)]
pub(super) fn erf(x: f32) -> f32 {
    let (_, tail) = normal(x * std::f32::consts::SQRT_2);
    (1.0 - 2.0 * tail).copysign(x)
}

/// The hyperbolic tangent, to 4e-7 relative.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    // Beyond this tanh is 1 to the last bit.
    let x = x.clamp(-9.02, 9.02);
    let s = x * x;
    let p = s.mul_add(-1.220_343_4e-11, 3.058_497_8e-8);
    let p = p.mul_add(s, 2.800_743_8e-5).mul_add(s, 3.868_326_8e-3).mul_add(s, 0.136_799_14).mul_add(s, 1.0);
    let q = s.mul_add(1.287_365_2e-6, 3.938_629_2e-4);
    let q = q.mul_add(s, 2.724_583_4e-2).mul_add(s, 0.470_132_47).mul_add(s, 1.0);
    (x * p / q).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::{erf, exp, gelu, gelu_slope, normal, softplus, tanh};

    /// erf in f64: its Taylor series near 0, its continued fraction far out.
    fn erf64(x: f64) -> f64 {
        let a = x.abs();
        let value = if a < 3.0 {
            let (mut term, mut sum) = (a, a);
            for n in 1..200 {
                term *= -a * a / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            sum * 2.0 / std::f64::consts::PI.sqrt()
        } else {
            let fraction = (1..80).rev().fold(a, |f, n| a + f64::from(n) / 2.0 / f);
            1.0 - (-a * a).exp() / (fraction * std::f64::consts::PI.sqrt())
        };
        value.copysign(x)
    }

    fn points() -> impl Iterator<Item = f32> {
        (-120_000..=120_000).map(|i| i as f32 * 1e-4)
    }

    #[test]
    fn erf_tanh_and_gelu_agree_with_double_precision_to_a_millionth() {
        for x in points() {
            let wide = f64::from(x);
            assert!((f64::from(erf(x)) - erf64(wide)).abs() < 1e-6, "erf({x})");
            assert!((f64::from(tanh(x)) - wide.tanh()).abs() <= 4e-7 * wide.tanh().abs(), "tanh({x})");
            let cdf = 0.5 * (1.0 + erf64(wide / 2_f64.sqrt()));
            let density = (-0.5 * wide * wide).exp() / std::f64::consts::TAU.sqrt();
            let (got_density, tail) = normal(x);
            assert!((f64::from(got_density) - density).abs() < 2e-7, "phi({x})");
            assert!(
                (f64::from(tail) - 0.5 * (1.0 - erf64(wide.abs() / 2_f64.sqrt()))).abs() < 2e-7,
                "tail({x})"
            );
            assert!((f64::from(gelu(x)) - wide * cdf).abs() < 1e-6, "gelu({x})");
            assert!((f64::from(gelu_slope(x).1) - (cdf + wide * density)).abs() < 1e-6, "gelu'({x})");
            assert_eq!(gelu_slope(x).0, gelu(x));
        }
    }

    #[test]
    fn softplus_is_right_to_a_few_ten_millionths() {
        for x in points() {
            let exact = f64::from(x).exp().ln_1p();
            assert!((f64::from(softplus(x)) - exact).abs() < 3e-7 * exact.max(1.0), "softplus({x})");
        }
        assert!(softplus(200.0) == 200.0 && softplus(-200.0) < 1e-30);
    }

    #[test]
    fn exp_is_right_to_a_ten_millionth_and_survives_any_input() {
        for x in (-800_000..=880_000).map(|i| i as f32 * 1e-4) {
            let ratio = f64::from(exp(x)) / f64::from(x).exp();
            assert!((ratio - 1.0).abs() < 1e-7, "exp({x}) {ratio}");
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-34 && exp(f32::INFINITY).is_finite());
        assert!(tanh(f32::INFINITY) <= 1.0 && tanh(-50.0) >= -1.0);
        assert!(gelu(50.0) == 50.0 && gelu(-50.0).abs() < 1e-34);
    }
}
