//! A task of a scheduler: a few units, and others while those wait.

use super::attempt::Attempts;
use super::unit::{Bench, Ended, State, Sweep};
use crate::error::LearnError;
use crate::train::folder::sleep;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time between two polls for a unit that can be begun: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(16)];
/// Other tasks' units that are looked at each time: were it all of them, a thousand tasks that wait would ask the shared folder
/// for a hundred thousand locks a second (`windvane simulate`).
const OTHERS: usize = 4;

/// How a task ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEnded {
    /// Its units that failed and may be tried again, by name.
    pub again: Vec<String>,
    /// Its units that are not tried again, by name.
    pub given_up: Vec<String>,
    /// It was asked to stop.
    pub interrupted: bool,
}

impl Sweep {
    /// Does the units with the given numbers. While others work on all that are left, or on what those need first, does
    /// other units that nobody has begun, and waits only when there are none. `tell` hears of every unit that ended.
    pub fn task(
        &self,
        mine: &[usize],
        bench: &mut Bench<'_>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<TaskEnded, LearnError> {
        bench.waits = false;
        let count = self.manifest.units.len();
        let mut left = Vec::new();
        for &index in mine {
            self.unit(index)?;
            left.push(index);
        }
        let mut over = vec![false; count]; // done, or failed here
        let mut ended = TaskEnded::default();
        let (mut pause, mut turn) = (PAUSES[0], 0);
        loop {
            left.retain(|&index| !over[index]);
            let Some(&first) = left.first() else { return Ok(ended) };
            // Tasks begin their search for other work at different units, so that they do not all meet, and go on from there.
            let others = (0..count).map(|n| (first + turn + n) % count);
            let others = others.filter(|index| !over[*index] && !left.contains(index)).take(OTHERS);
            let order: Vec<usize> = left.iter().copied().chain(others).collect();
            turn += OTHERS;
            let mut idle = true;
            for index in order {
                if bench.interrupt.load(Ordering::Relaxed) {
                    return Ok(TaskEnded { interrupted: true, ..ended });
                }
                let unit = &self.manifest.units[index];
                if self.state(unit)? == State::Busy {
                    continue;
                }
                let own = left.contains(&index);
                let name = unit.name();
                match self.run(unit, bench) {
                    Ok(Ended::Elsewhere | Ended::Blocked) => continue,
                    Ok(Ended::Interrupted) => return Ok(TaskEnded { interrupted: true, ..ended }),
                    Ok(Ended::Done) => tell(&format!("{name}: done")),
                    Ok(Ended::Already) => {
                        over[index] = true;
                        continue;
                    }
                    Ok(Ended::GivenUp) if own => {
                        let words = Attempts::read(&self.place(unit)).last_words().unwrap_or_default();
                        tell(&format!("{name}: given up: {words}"));
                        ended.given_up.push(name);
                    }
                    Ok(Ended::GivenUp) => {}
                    Err(error) => {
                        tell(&format!("{name}: failed: {error}"));
                        let given_up = Attempts::read(&self.place(unit)).given_up();
                        let list = if given_up { &mut ended.given_up } else { &mut ended.again };
                        list.extend(own.then_some(name));
                    }
                }
                over[index] = true;
                idle = false;
                break; // its own units may be free now
            }
            if idle && left.iter().any(|&index| !over[index]) {
                sleep(pause, bench.interrupt);
                pause = (pause * 2).min(PAUSES[1]);
            } else {
                pause = PAUSES[0];
            }
        }
    }
}
