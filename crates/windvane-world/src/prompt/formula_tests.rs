//! Formulas against plain Rust, and against what people get wrong.

use super::formula::Formula;
use proptest::prelude::*;

const NAMES: [&str; 4] = ["x", "y", "arm[0]", "cart speed"];

fn value(text: &str) -> f32 {
    Formula::parse(text, &NAMES).unwrap_or_else(|e| panic!("{e}")).of(&[7.0, 2.0, -3.0, 0.5])
}

fn error(text: &str) -> String {
    Formula::parse(text, &NAMES).unwrap_err().to_string()
}

#[test]
fn formulas_mean_what_they_say() {
    for (text, expected) in [
        ("(x > 6) * (y < 3) - 0.1", 0.9),
        ("x - y - 1", 4.0),
        ("x - (y - 1)", 6.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-y ^ 2", -4.0),
        ("2 * -y", -4.0),
        ("6 / 2 / 3", 1.0),
        ("1 + 2 * 3", 7.0),
        ("arm[0] + 'cart speed'", -2.5),
        ("abs(arm[0]) + min(x, y) + max(x, y)", 12.0),
        ("clip(x, -1, 1)", 1.0),
        ("x > 6 and y > 6 or not y > 6", 1.0),
        ("not (x > 6) or y == 3", 0.0),
        ("x >= 7 and x <= 7 and x != 8", 1.0),
        ("1 < y < 3", 1.0),
        ("-4 < arm[0] < -3.5", 0.0),
        ("-0.2 < arm[0] < 0.2", 0.0),
        ("0 < y < x < 8", 1.0),
        ("0 < y < x < 7 or x == 7 > 6", 1.0),
        ("9 > x >= 7 == 7 != y", 1.0),
        ("not 1 < y < 3", 0.0),
        ("(1 < y < 3) * x + (0 < (1 < y < 3) < 2)", 8.0),
        ("(3 > y) < 2", 1.0),
        ("sqrt(4) + exp(0) + log(1) + sin(0) + cos(0) + tanh(0) + sign(-2)", 3.0),
        ("1.5e1 + .5 + 2.", 17.5),
        ("cos(pi)", -1.0),
    ] {
        assert!((value(text) - expected).abs() < 1e-6, "{text} is {}", value(text));
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    assert!(
        error("x + speed")
            .contains("at character 5: no dimension \"speed\"; known: x, y, arm[0], cart speed")
    );
    assert!(error("(x > 6").contains("expected \")\""));
    assert!(error("x y").contains("at character 3: expected an operator or the end"));
    assert!(error("x +").contains("ends where a number"));
    assert!(error("").contains("ends where a number"));
    assert!(error("import(x)").contains("no function \"import\"; known: abs"));
    assert!(error("min(x)").contains("min takes 2 arguments"));
    assert!(error("'cart speed").contains("without its second quote"));
    assert!(error("1e99").contains("is no number"));
    assert!(error("x ; y").contains("at character 3"));
    let nested = format!("{}x{}", "(".repeat(1000), ")".repeat(1000));
    assert!(error(&nested).contains("more than 64 levels"));
    assert!(error(&"-".repeat(3000)).contains("more than 64 levels"));
    assert!(error(&"x+".repeat(5000)).contains("10000 characters, expected at most 4096"));
}

#[test]
fn a_division_by_zero_names_the_state_it_happens_at() {
    let formula = Formula::parse("1 / (x - 3)", &["x", "y"]).unwrap();
    assert_eq!(formula.of_rows(&[5.0, 0.0, 4.0, 9.0]).unwrap(), [0.5, 1.0]);
    let error = formula.of_rows(&[5.0, 0.0, 3.0, 9.0]).unwrap_err().to_string();
    assert!(error.contains("is inf at the state [3.0, 9.0]"), "{error}");
}

proptest! {
    /// Any text is a formula or an error, and rows agree with single states.
    #[test]
    fn no_text_panics(text in "[-xy0-9+*/()<>=.,' a-z]{0,40}", obs in proptest::array::uniform4(-9.0_f32..9.0)) {
        if let Ok(formula) = Formula::parse(&text, &NAMES) {
            let one = formula.of(&obs);
            match formula.of_rows(&obs) {
                Ok(rows) => prop_assert_eq!(rows, vec![one]),
                Err(_) => prop_assert!(!one.is_finite()),
            }
        }
    }

    /// Sums and products nest as the usual rules say.
    #[test]
    fn arithmetic_agrees_with_rust(a in -9.0_f32..9.0, b in 1.0_f32..9.0, c in 1.0_f32..9.0) {
        let formula = Formula::parse("x * y - x / arm[0] + (y - arm[0]) * x", &["x", "y", "arm[0]"]).unwrap();
        prop_assert_eq!(formula.of(&[a, b, c]), a * b - a / c + (b - c) * a);
    }
}
