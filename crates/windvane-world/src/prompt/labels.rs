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

/// Reads labelled states: a `.csv` with a column for each dimension of `spec` and one called `reward`, in any order, or an
/// `.npz` with `observations` (or `states`) and `rewards`.
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
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header: Vec<&str> =
        lines.next().map(|(_, line)| line.split(',').map(str::trim).collect()).unwrap_or_default();
    let column = |name: &str| {
        header.iter().position(|column| *column == name).ok_or_else(|| {
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
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            let cell = |place: usize| {
                let text = cells.get(place).copied().unwrap_or_default();
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
    }
}
