//! Rewards as formulas over named observation dimensions: parsed into a list of operations, never executed as code.
//!
//! ```text
//! (x > 6) * (y < 3) - 0.1
//! exp(-abs(angle)) - 0.01 * 'cart speed' ^ 2
//! ```
//!
//! Numbers, names of dimensions (in single quotes if they hold spaces), `pi`; `+ - * / ^`; `< <= > >= == !=`, which give
//! 1 or 0 and may be chained (`-1 < x < 1` is `-1 < x and x < 1`); `and or not`;
//! `abs sqrt exp log sin cos tanh sign min max clip`; brackets.

use crate::error::WorldError;
use std::fmt;

/// Longest formula, in bytes.
const LONGEST: usize = 4096;
/// Most brackets, signs and functions within each other.
const DEEPEST: usize = 64;

/// A parsed formula over the dimensions of one kind of observation.
#[derive(Clone, Debug)]
pub struct Formula {
    text: String,
    dims: usize,
    /// In postfix order.
    program: Vec<Op>,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Number(f32),
    Dim(usize),
    One(Unary),
    Two(Binary),
    /// As `Two`, but the second operand stays on top for the next link of a chained comparison.
    Link(Binary),
}

type Unary = fn(f32) -> f32;
type Binary = fn(f32, f32) -> f32;
/// An operator: its sign, how tightly it binds, what it does.
type Operator = (&'static str, u8, Binary);

/// Functions by name, with their number of arguments; `clip` is made of two others.
const ONE: &[(&str, Unary)] = &[
    ("abs", f32::abs),
    ("sqrt", f32::sqrt),
    ("exp", f32::exp),
    ("log", f32::ln),
    ("sin", f32::sin),
    ("cos", f32::cos),
    ("tanh", f32::tanh),
    ("sign", |x| if x == 0.0 { 0.0 } else { x.signum() }),
];
const TWO: &[(&str, Binary)] = &[("min", f32::min), ("max", f32::max)];
/// Binary operators with what binds tighter having the larger number; longer spellings first.
const BINARY: &[Operator] = &[
    ("or", 1, |a, b| truth(a != 0.0 || b != 0.0)),
    ("and", 2, and),
    ("<=", COMPARISON, |a, b| truth(a <= b)),
    (">=", COMPARISON, |a, b| truth(a >= b)),
    ("==", COMPARISON, |a, b| truth(a == b)),
    ("!=", COMPARISON, |a, b| truth(a != b)),
    ("<", COMPARISON, |a, b| truth(a < b)),
    (">", COMPARISON, |a, b| truth(a > b)),
    ("+", 5, |a, b| a + b),
    ("-", 5, |a, b| a - b),
    ("*", 6, |a, b| a * b),
    ("/", 6, |a, b| a / b),
    ("^", 8, f32::powf),
];
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SIGN: u8 = 7;

fn truth(yes: bool) -> f32 {
    f32::from(u8::from(yes))
}

fn and(a: f32, b: f32) -> f32 {
    truth(a != 0.0 && b != 0.0)
}

impl Formula {
    /// Parses `text`, in which the dimensions of an observation go by `names`.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, WorldError> {
        let mut parser = Parser { text, at: 0, names, program: Vec::new(), depth: 0 };
        if text.len() > LONGEST {
            return Err(parser.wrong(format!("{} characters, expected at most {LONGEST}", text.len())));
        }
        parser.expression(0)?;
        parser.skip_space();
        if parser.at < text.len() {
            return Err(parser.wrong("expected an operator or the end"));
        }
        Ok(Self { text: text.to_owned(), dims: names.len(), program: parser.program })
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The reward at one observation; not finite where the formula has no value.
    pub fn of(&self, obs: &[f32]) -> f32 {
        let mut stack = Vec::with_capacity(8);
        for op in &self.program {
            match *op {
                Op::Number(x) => stack.push(x),
                Op::Dim(dim) => stack.push(obs[dim]),
                Op::One(f) => stack.last_mut().into_iter().for_each(|x| *x = f(*x)),
                Op::Two(f) => {
                    let second = stack.pop().unwrap_or_default();
                    if let Some(first) = stack.last_mut() {
                        *first = f(*first, second);
                    }
                }
                Op::Link(f) => {
                    let second = stack.pop().unwrap_or_default();
                    if let Some(first) = stack.last_mut() {
                        *first = f(*first, second);
                    }
                    stack.push(second);
                }
            }
        }
        stack.pop().unwrap_or_default()
    }

    /// The reward of every row of `observations`, column by column; an error where the formula has no value.
    pub fn of_rows(&self, observations: &[f32]) -> Result<Vec<f32>, WorldError> {
        let rows = observations.len() / self.dims;
        let mut stack: Vec<Vec<f32>> = Vec::new();
        for op in &self.program {
            match *op {
                Op::Number(x) => stack.push(vec![x; rows]),
                Op::Dim(dim) => {
                    stack.push(observations.iter().skip(dim).step_by(self.dims).copied().collect());
                }
                Op::One(f) => stack.last_mut().into_iter().flatten().for_each(|x| *x = f(*x)),
                Op::Two(f) => {
                    let second = stack.pop().unwrap_or_default();
                    let first = stack.last_mut().into_iter().flatten();
                    first.zip(second).for_each(|(x, y)| *x = f(*x, y));
                }
                Op::Link(f) => {
                    let second = stack.pop().unwrap_or_default();
                    let first = stack.last_mut().into_iter().flatten();
                    first.zip(&second).for_each(|(x, y)| *x = f(*x, *y));
                    stack.push(second);
                }
            }
        }
        let rewards = stack.pop().unwrap_or_default();
        match rewards.iter().position(|r| !r.is_finite()) {
            Some(row) => Err(WorldError::Prompt {
                part: format!("formula \"{}\"", self.text),
                problem: format!(
                    "is {} at the state {:?} of the data (a division by zero, or a root or logarithm of too little)",
                    rewards[row],
                    &observations[row * self.dims..][..self.dims]
                ),
            }),
            None => Ok(rewards),
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: &'a [&'a str],
    program: Vec<Op>,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// An expression whose operators all bind tighter than `loosest`.
    fn expression(&mut self, loosest: u8) -> Result<(), WorldError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(format!("more than {DEEPEST} levels of brackets and signs")));
        }
        self.operand()?;
        // Links of a chained comparison whose truth is still on the stack.
        let mut links = 0;
        while let Some((sign, strength, f)) = self.operator() {
            if strength <= loosest {
                break;
            }
            self.at += sign.len();
            // A power of a power counts from the right, everything else from the left.
            self.expression(if sign == "^" { strength - 1 } else { strength })?;
            let chained = strength == COMPARISON && self.operator().is_some_and(|next| next.1 == COMPARISON);
            if chained {
                links += 1;
                self.program.push(Op::Link(f));
            } else {
                self.program.push(Op::Two(f));
                self.program.extend(std::iter::repeat_n(Op::Two(and), links));
                links = 0;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// What an operator can stand beside.
    fn operand(&mut self) -> Result<(), WorldError> {
        self.skip_space();
        let Some(first) = self.rest().chars().next() else {
            return Err(self.wrong("ends where a number, a name or a bracket was expected"));
        };
        match first {
            '(' => {
                self.at += 1;
                self.expression(0)?;
                self.close()
            }
            '-' | '+' => {
                self.at += 1;
                self.expression(SIGN)?;
                if first == '-' {
                    self.program.push(Op::One(|x| -x));
                }
                Ok(())
            }
            '0'..='9' | '.' => self.number(),
            '\'' => {
                let name = self.rest()[1..].split('\'').next().unwrap_or_default();
                if self.rest().len() < name.len() + 2 {
                    return Err(self.wrong("a quoted name without its second quote"));
                }
                self.dim(name)?;
                self.at += name.len() + 2;
                Ok(())
            }
            c if c.is_alphabetic() || c == '_' => self.word(),
            c => Err(self.wrong(format!("unexpected \"{c}\""))),
        }
    }

    fn number(&mut self) -> Result<(), WorldError> {
        let rest = self.rest();
        let mut end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            if count > 0 {
                end = rest.len() - digits.len() + count;
            }
        }
        match rest[..end].parse::<f32>() {
            Ok(x) if x.is_finite() => {
                self.at += end;
                self.program.push(Op::Number(x));
                Ok(())
            }
            _ => Err(self.wrong(format!("\"{}\" is no number", &rest[..end]))),
        }
    }

    /// A function, `not`, `pi`, or a dimension.
    fn word(&mut self) -> Result<(), WorldError> {
        let name = self.name();
        let called = self.rest()[name.len()..].trim_start().starts_with('(');
        match name {
            "not" => {
                self.at += name.len();
                self.expression(NOT)?;
                self.program.push(Op::One(|x| truth(x == 0.0)));
                Ok(())
            }
            name if called => self.call(name),
            "pi" if !self.names.contains(&"pi") => {
                self.at += name.len();
                self.program.push(Op::Number(std::f32::consts::PI));
                Ok(())
            }
            name => {
                self.dim(name)?;
                self.at += name.len();
                Ok(())
            }
        }
    }

    fn call(&mut self, name: &str) -> Result<(), WorldError> {
        let one = ONE.iter().find(|(known, _)| *known == name).map(|(_, f)| Op::One(*f));
        let two = TWO.iter().find(|(known, _)| *known == name).map(|(_, f)| Op::Two(*f));
        if one.or(two).is_none() && name != "clip" {
            let known: Vec<&str> =
                ONE.iter().map(|f| f.0).chain(TWO.iter().map(|f| f.0)).chain(["clip"]).collect();
            return Err(self.wrong(format!("no function \"{name}\"; known: {}", known.join(", "))));
        }
        self.at += name.len();
        self.skip_space();
        self.at += 1; // the bracket
        self.expression(0)?;
        if let Some(op) = one {
            self.program.push(op);
        }
        let more: &[Binary] = match two {
            Some(Op::Two(f)) => &[f],
            _ if name == "clip" => &[f32::max, f32::min],
            _ => &[],
        };
        for f in more {
            self.skip_space();
            if !self.rest().starts_with(',') {
                return Err(self.wrong(format!("{name} takes {} arguments", more.len() + 1)));
            }
            self.at += 1;
            self.expression(0)?;
            self.program.push(Op::Two(*f));
        }
        self.close()
    }

    fn close(&mut self) -> Result<(), WorldError> {
        self.skip_space();
        if !self.rest().starts_with(')') {
            return Err(self.wrong("expected \")\""));
        }
        self.at += 1;
        Ok(())
    }

    fn dim(&mut self, name: &str) -> Result<(), WorldError> {
        let Some(dim) = self.names.iter().position(|known| *known == name) else {
            let known = self.names.join(", ");
            return Err(self.wrong(format!("no dimension \"{name}\"; known: {known}")));
        };
        self.program.push(Op::Dim(dim));
        Ok(())
    }

    /// The name that begins here: letters, digits, `_`, `.`, and a place in brackets as in `arm[0]`.
    fn name(&self) -> &'a str {
        let rest = self.rest();
        let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = rest.find(|c| !plain(c)).unwrap_or(rest.len());
        let place = rest[end..].strip_prefix('[').and_then(|place| place.split_once(']'));
        match place {
            Some((digits, _)) if digits.chars().all(|c| c.is_ascii_digit()) => {
                &rest[..end + digits.len() + 2]
            }
            _ => &rest[..end],
        }
    }

    /// The operator that begins here.
    fn operator(&mut self) -> Option<Operator> {
        self.skip_space();
        let (rest, name) = (self.rest(), self.name());
        let fits = |sign: &str| {
            if sign.starts_with(char::is_alphabetic) { name == sign } else { rest.starts_with(sign) }
        };
        BINARY.iter().find(|(sign, ..)| fits(sign)).copied()
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn wrong(&self, problem: impl fmt::Display) -> WorldError {
        let problem = format!("at character {}: {problem}", self.text[..self.at].chars().count() + 1);
        let start: String = self.text.chars().take(80).collect();
        WorldError::Prompt { part: format!("formula \"{start}\""), problem }
    }
}
