//! States with their rewards, from a file.

use crate::env::EnvSpec;
use crate::episodes::read_rows;
use crate::error::WorldError;
use std::path::Path;

/// Largest file of labels that is read.
const LARGEST: u64 = 1 << 28;
/// Arrays that hold states, arrays that hold rewards.
const STATES: [&str; 3] = ["observations", "states", "state"];
const REWARDS: [&str; 3] = ["rewards", "reward", "labels"];
/// The column of rewards in a table.
const COLUMN: &str = "reward";

/// Reads labelled states: a `.csv` with a column for each dimension of `spec` and one called `reward`, in any order (UTF-8,
/// with or without a byte order mark; cells may stand in double quotes), or an `.npz` with `observations` (or `states`) and `rewards`.
pub fn read_labels(path: &Path, spec: &EnvSpec) -> Result<Vec<(Vec<f32>, f32)>, WorldError> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz")) {
        return npz(path, spec);
    }
    let reading = |error| WorldError::io(path, "reading labelled states", error);
    if std::fs::metadata(path).map_err(reading)?.len() > LARGEST {
        return Err(WorldError::data(path, "size", format!("more than {LARGEST} bytes")));
    }
    csv(path, &std::fs::read_to_string(path).map_err(reading)?, spec)
}

fn npz(path: &Path, spec: &EnvSpec) -> Result<Vec<(Vec<f32>, f32)>, WorldError> {
    let (states, width) = read_rows(path, &STATES)?;
    let (rewards, one) = read_rows(path, &REWARDS)?;
    if width != spec.obs_dim() {
        let problem = format!("{width} numbers a row, expected {}", spec.obs_dim());
        return Err(WorldError::data(path, STATES[0], problem));
    }
    if one != 1 || rewards.len() != states.len() / width {
        let problem =
            format!("{} numbers, expected one for each of {} states", rewards.len(), states.len() / width);
        return Err(WorldError::data(path, REWARDS[0], problem));
    }
    Ok(states.chunks_exact(width).map(<[f32]>::to_vec).zip(rewards).collect())
}

fn csv(path: &Path, text: &str, spec: &EnvSpec) -> Result<Vec<(Vec<f32>, f32)>, WorldError> {
    // Spreadsheets put a byte order mark before the first cell.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let split = |number: usize, line: &str| {
        cells(line).ok_or_else(|| {
            let problem =
                format!("has a quote that does not end: {}", line.chars().take(80).collect::<String>());
            WorldError::data(path, format!("line {}", number + 1), problem)
        })
    };
    let header = lines.next().map_or_else(|| Ok(Vec::new()), |(number, line)| split(number, line))?;
    let column = |name: &str| {
        header.iter().position(|column| column == name).ok_or_else(|| {
            let expected: Vec<&str> =
                spec.observation.iter().map(|d| d.name.as_str()).chain([COLUMN]).collect();
            let problem = format!("no column \"{name}\" in the first line; expected {}", expected.join(","));
            WorldError::data(path, "header", problem)
        })
    };
    let dims = spec.observation.iter().map(|dim| column(&dim.name)).collect::<Result<Vec<_>, _>>()?;
    let reward = column(COLUMN)?;
    lines
        .map(|(number, line)| {
            let cells = split(number, line)?;
            let cell = |place: usize| {
                let text = cells.get(place).map(String::as_str).unwrap_or_default();
                text.parse::<f32>().ok().filter(|x| x.is_finite()).ok_or_else(|| {
                    let field = format!("line {}, column \"{}\"", number + 1, header[place]);
                    WorldError::data(path, field, format!("is \"{text}\", expected a finite number"))
                })
            };
            let state = dims.iter().map(|&place| cell(place)).collect::<Result<_, _>>()?;
            Ok((state, cell(reward)?))
        })
        .collect()
}

/// The cells of a line: separated by commas, without the space around them, perhaps in double quotes (in which `""` is a
/// quote and a comma is no end); nothing if a quote does not end.
fn cells(line: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    let mut rest = Some(line);
    while let Some(from) = rest {
        let (cell, after) = match from.trim_start().strip_prefix('"') {
            Some(mut inside) => {
                let mut cell = String::new();
                loop {
                    let (part, after) = inside.split_once('"')?;
                    cell.push_str(part);
                    match after.strip_prefix('"') {
                        Some(more) => {
                            cell.push('"');
                            inside = more;
                        }
                        None => break (cell, after),
                    }
                }
            }
            None => (String::new(), from),
        };
        let (tail, next) = after.split_once(',').map_or((after, None), |(tail, next)| (tail, Some(next)));
        cells.push((cell + tail).trim().to_owned());
        rest = next;
    }
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActionSpace, Dim};

    fn spec() -> EnvSpec {
        let dim = |name: &str| Dim { name: name.into(), low: 0.0, high: 9.0, integer: false };
        let action = ActionSpace::Discrete { names: vec!["stay".into()] };
        EnvSpec { name: "toy".into(), observation: vec![dim("x"), dim("y")], action, horizon: 9 }
    }

    #[test]
    fn columns_may_stand_in_any_order_and_mistakes_name_their_line() {
        let read = |text: &str| csv(Path::new("l.csv"), text, &spec());
        let found = read("reward, y ,x,note\n1, 2,3,a\n\n-0.5,4,5,b\n").unwrap();
        assert_eq!(found, [(vec![3.0, 2.0], 1.0), (vec![5.0, 4.0], -0.5)]);
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error("x,reward\n1,2").contains("no column \"y\" in the first line; expected x,y,reward"));
        assert!(error("x,y,reward\n1,2,3\n1,much,3").contains("line 3, column \"y\": is \"much\""));
        assert!(error("x,y,reward\n1,2").contains("line 2, column \"reward\": is \"\""));
        assert!(error("x,y,reward\n1,2,NaN").contains("expected a finite number"));
        assert!(error("").contains("no column \"x\""));
        assert!(error("x,y,reward\n1,\"2,3").contains("line 2: has a quote that does not end"));
    }

    #[test]
    fn tables_of_spreadsheets_are_read() {
        let read = |text: &str| csv(Path::new("l.csv"), text, &spec()).unwrap();
        let expected = [(vec![3.0, 2.0], 1.0), (vec![5.0, 4.0], -0.5)];
        let plain = "x,y,reward,note\n3,2,1,a\n5,4,-0.5,b\n";
        assert_eq!(read(plain), expected);
        assert_eq!(read(&format!("\u{feff}{}", plain.replace('\n', "\r\n"))), expected);
        let quoted =
            "\u{feff}\"x\", \"y\" ,\"reward\",\"note\"\n\"3\",\"2\",\"1\",\"a, \"\"b\"\"\"\n5,4,\"-0.5\",\n";
        assert_eq!(read(quoted), expected);
    }

    #[test]
    fn cells_of_a_line() {
        let of = |line| cells(line).map(|cells| cells.join("|"));
        assert_eq!(of("a, \"b,\"\"c\"\"\" ,,d").as_deref(), Some("a|b,\"c\"||d"));
        assert_eq!(of("\"a"), None);
    }
}
