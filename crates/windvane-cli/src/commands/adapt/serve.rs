//! A control loop over lines of JSON.

use super::{Ready, parse_action};
use crate::output;
use serde_json::{Value, json};
use std::io::{BufRead as _, Read as _, Write as _};
use windvane::Session;
use windvane_world::{ActionBuf, EnvSpec};

/// Longest line that is read.
const LONGEST: u64 = 1 << 22;

/// Answers lines on stdin until it ends, or nobody reads the answers any more.
pub(super) fn serve(mut session: Session, spec: &EnvSpec, ready: &Ready<'_>) -> anyhow::Result<()> {
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut say = |value: &Value| {
        // A closed pipe is the reader's way of saying that it has enough.
        output::written(writeln!(stdout, "{value}").and_then(|()| stdout.flush()))
    };
    if !say(&json!({ "ready": ready })) {
        return Ok(());
    }
    let mut last: Option<(Vec<f32>, ActionBuf)> = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        if stdin.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if !line.ends_with(b"\n") && line.len() as u64 == LONGEST {
            skip_line(&mut stdin)?;
            if !say(&json!({ "error": format!("a line of more than {LONGEST} bytes; expected less") })) {
                return Ok(());
            }
            continue;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = answer(&line, spec, &mut session, &mut last);
        if !say(&answer.unwrap_or_else(|error| json!({ "error": format!("{error:#}") }))) {
            return Ok(());
        }
    }
}

/// Reads on to the end of a line.
fn skip_line(stdin: &mut impl std::io::BufRead) -> std::io::Result<()> {
    loop {
        let part = stdin.fill_buf()?;
        let end = part.iter().position(|byte| *byte == b'\n');
        let read = end.map_or(part.len(), |end| end + 1);
        stdin.consume(read);
        if end.is_some() || read == 0 {
            return Ok(());
        }
    }
}

/// What a line may ask for.
const KEYS: [&str; 6] = ["obs", "reset", "took", "values", "task", "confidence"];

fn answer(
    line: &[u8],
    spec: &EnvSpec,
    session: &mut Session,
    last: &mut Option<(Vec<f32>, ActionBuf)>,
) -> anyhow::Result<Value> {
    let asked: Value = serde_json::from_slice(line)?;
    let Some(fields) = asked.as_object() else {
        anyhow::bail!("expected an object such as {{\"obs\": [..]}}")
    };
    for (key, value) in fields {
        anyhow::ensure!(KEYS.contains(&key.as_str()), "unknown key \"{key}\"; known: {}", KEYS.join(", "));
        let flag = ["reset", "values", "confidence"].contains(&key.as_str());
        anyhow::ensure!(!flag || value.is_boolean(), "\"{key}\" is {value}; expected true or false");
        anyhow::ensure!(key != "obs" || value.is_array(), "\"obs\" is {value}; expected numbers in brackets");
    }
    if let Some(task) = asked.get("task") {
        session.retask(&serde_json::from_value(task.clone())?)?;
        let code = session.code();
        return Ok(json!({ "inference": code.inference, "fit": code.fit, "warnings": code.warnings }));
    }
    if asked["confidence"] == true {
        return Ok(json!({ "confidence": session.confidence(), "warning": session.confidence().warning() }));
    }
    if asked["reset"] == true {
        session.restart();
        *last = None;
    }
    let Some(numbers) = asked.get("obs").and_then(Value::as_array) else {
        anyhow::bail!(
            "expected {{\"obs\": [{} numbers]}}, perhaps with \"reset\": true, or {{\"task\": ..}}",
            spec.obs_dim()
        );
    };
    // What is no number becomes NaN, which is refused by the name of its dimension.
    let obs: Vec<f32> = numbers.iter().map(|x| x.as_f64().unwrap_or(f64::NAN) as f32).collect();
    if let Some((before, did)) = last.take() {
        let did = match asked.get("took") {
            Some(took) => parse_action(took).ok_or_else(|| {
                anyhow::anyhow!("\"took\" is {took}; expected a move's number, or numbers in brackets")
            })?,
            None => did,
        };
        session.observe(&before, &did, &obs)?;
    }
    let values = if asked["values"] == true { Some(session.values(&obs)?) } else { None };
    let action = session.act(&obs)?;
    let mut said = json!({ "action": self::action(&action) });
    if let Some(values) = values {
        said["values"] = json!(values);
    }
    *last = Some((obs, action));
    Ok(said)
}

/// An action as JSON.
pub(super) fn action(action: &ActionBuf) -> Value {
    match action {
        ActionBuf::Discrete(index) => json!(index),
        ActionBuf::Continuous(values) => json!(values),
    }
}
