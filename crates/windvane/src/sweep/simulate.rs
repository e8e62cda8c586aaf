//! What a sweep is like on many cores: its units as a scheduler would run them, by the clock of measured costs.
//!
//! Cores take tasks in order, as a Slurm array does, and each task behaves as [`Sweep::task`](super::Sweep::task): it does its
//! own units, does others while those wait for what someone else is making, and waits only when there is nothing to do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Lock requests for one thing that is made, and for a unit: taken and let go.
const LOCK_REQUESTS: f64 = 2.0;
/// Locks that are looked at before a unit is begun.
const LOOKS: f64 = 4.0;
/// Seconds between two looks of a task that has nothing to do, as in [`task`](super::task).
const POLL: f64 = 16.0;
/// Units it looks at each time: its own and a few others.
const SEEN: usize = 5;
/// Seconds between two signs of life.
const BEAT: f64 = 60.0;
/// Loads are counted in windows of so many seconds.
const WINDOW: f64 = 10.0;

/// Something that is made once and that any number of units may need: data, a belief, an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// What it is; products of the same name are the same.
    pub name: String,
    /// CPU time to make it.
    pub seconds: f64,
    /// What it leaves in the folder.
    pub prints: Prints,
}

/// What work leaves in the shared folder.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prints {
    /// Files that stay.
    pub files: f64,
    /// Bytes that stay.
    pub stored: f64,
    /// Bytes written, with what is replaced on the way.
    pub written: f64,
}

/// A unit as the simulation sees it: products in the order in which they are needed.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// What it needs; the last is its own.
    pub needs: Vec<Product>,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Cores.
    pub cores: usize,
    /// Seconds until the last unit was done.
    pub makespan: f64,
    /// The share of that time in which cores were held and worked; cores are given back when no task is left for them.
    pub busy: f64,
    /// Core-hours that were held.
    pub core_hours: f64,
    /// Lock requests a second, on average and in the worst ten seconds.
    pub locks: [f64; 2],
    /// Bytes written a second, on average and in the worst ten seconds.
    pub bytes: [f64; 2],
    /// Files in the end.
    pub files: f64,
    /// Bytes in the end.
    pub stored: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Made {
    No,
    Now,
    Yes,
}

/// Loads by window.
#[derive(Default)]
struct Load(BTreeMap<u64, f64>);

impl Load {
    fn add(&mut self, from: f64, to: f64, amount: f64) {
        let windows = (from / WINDOW) as u64..=((to / WINDOW) as u64);
        let share = amount / (windows.clone().count() as f64);
        windows.for_each(|window| *self.0.entry(window).or_default() += share);
    }

    fn mean_and_peak(&self, makespan: f64) -> [f64; 2] {
        let sum: f64 = self.0.values().sum();
        [sum / makespan.max(1e-9), self.0.values().fold(0.0, |a: f64, b| a.max(*b)) / WINDOW]
    }
}

/// A core with its task.
#[derive(Default)]
struct Core {
    left: Vec<usize>,
    /// The unit it does, and which of its needs it makes.
    at: Option<(usize, usize)>,
    since: f64,
}

struct House<'a> {
    work: &'a [Work],
    /// For each unit, the numbers of its products.
    needs: Vec<Vec<usize>>,
    made: Vec<Made>,
    taken: Vec<bool>,
    over: Vec<bool>,
    locks: Load,
    bytes: Load,
    outcome: Outcome,
    /// What ends when: time in microseconds, core.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
}

/// Lets `cores` do `tasks`, lists of units by number.
pub fn simulate(work: &[Work], tasks: &[Vec<usize>], cores: usize) -> Outcome {
    let mut numbers = BTreeMap::new();
    let number = |name: &String, numbers: &mut BTreeMap<String, usize>| {
        let next = numbers.len();
        *numbers.entry(name.clone()).or_insert(next)
    };
    let needs =
        work.iter().map(|w| w.needs.iter().map(|p| number(&p.name, &mut numbers)).collect()).collect();
    let mut house = House {
        work,
        needs,
        made: vec![Made::No; numbers.len()],
        taken: vec![false; work.len()],
        over: vec![false; work.len()],
        locks: Load::default(),
        bytes: Load::default(),
        outcome: Outcome { cores, ..Outcome::default() },
        ends: BinaryHeap::new(),
    };
    let mut queue = tasks.iter();
    let mut all: Vec<Core> = Vec::new();
    let mut idle: Vec<usize> = Vec::new();
    let (mut now, mut working) = (0.0, 0.0);
    for index in 0..cores {
        let Some(task) = queue.next() else { break };
        all.push(Core { left: task.clone(), ..Core::default() });
        if !house.go_on(&mut all[index], index, now) {
            idle.push(index);
        }
    }
    let mut held_until = vec![0.0; all.len()];
    while let Some(Reverse((time, index))) = house.ends.pop() {
        now = time as f64 / 1e6;
        working += now - all[index].since;
        house.finish(&mut all[index]);
        // What was made may be what others wait for.
        let mut looking = std::mem::take(&mut idle);
        looking.insert(0, index);
        for index in looking {
            loop {
                let core = &mut all[index];
                if house.go_on(core, index, now) {
                    break;
                }
                if !core.left.is_empty() {
                    idle.push(index);
                    break;
                }
                held_until[index] = now;
                let Some(task) = queue.next() else { break };
                core.left.clone_from(task);
            }
        }
        let open = house.taken.iter().filter(|taken| !**taken).count();
        let next = house.ends.peek().map_or(now, |Reverse((time, _))| *time as f64 / 1e6);
        let looks = idle.len() as f64 * (next - now) / POLL * LOOKS * open.clamp(1, SEEN) as f64;
        house.locks.add(now, next, looks * LOCK_REQUESTS);
    }
    let held: f64 = held_until.iter().sum();
    Outcome {
        makespan: now,
        busy: working / held.max(1e-9),
        core_hours: held / 3600.0,
        locks: house.locks.mean_and_peak(now),
        bytes: house.bytes.mean_and_peak(now),
        ..house.outcome
    }
}

impl House<'_> {
    /// Whether what a unit still needs can be made now, or is there.
    fn is_free(&self, unit: usize) -> bool {
        !self.taken[unit] && self.needs[unit].iter().all(|&need| self.made[need] != Made::Now)
    }

    /// Begins the next thing that a core can do; false if there is none.
    fn go_on(&mut self, core: &mut Core, index: usize, now: f64) -> bool {
        loop {
            core.left.retain(|&unit| !self.over[unit]);
            if let Some((unit, stage)) = core.at {
                let Some(&need) = self.needs[unit].get(stage) else {
                    (self.over[unit], core.at) = (true, None);
                    continue;
                };
                match self.made[need] {
                    Made::Yes => core.at = Some((unit, stage + 1)),
                    Made::Now => (self.taken[unit], core.at) = (false, None), // someone was faster
                    Made::No => {
                        self.made[need] = Made::Now;
                        core.since = now;
                        let seconds = self.work[unit].needs[stage].seconds;
                        self.locks.add(now, now + seconds, LOCK_REQUESTS);
                        self.bytes.add(now, now + seconds, self.work[unit].needs[stage].prints.written);
                        self.bytes.add(now, now + seconds, seconds / BEAT * 1000.0);
                        self.ends.push(Reverse((((now + seconds) * 1e6).round() as u64, index)));
                        return true;
                    }
                }
                continue;
            }
            let Some(&first) = core.left.first() else { return false };
            let count = self.work.len();
            let own = core.left.iter().copied();
            let others = (0..count).map(|n| (first + n) % count);
            let Some(unit) = own.chain(others).find(|&unit| self.is_free(unit)) else { return false };
            self.taken[unit] = true;
            core.at = Some((unit, 0));
            self.locks.add(now, now, (LOOKS + 1.0) * LOCK_REQUESTS);
        }
    }

    /// A core has made what it was making.
    fn finish(&mut self, core: &mut Core) {
        let Some((unit, stage)) = core.at else { return };
        let prints = self.work[unit].needs[stage].prints;
        self.made[self.needs[unit][stage]] = Made::Yes;
        self.outcome.files += prints.files;
        self.outcome.stored += prints.stored;
        core.at = Some((unit, stage + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(name: &str, seconds: f64) -> Product {
        Product {
            name: name.to_owned(),
            seconds,
            prints: Prints { files: 1.0, stored: 10.0, written: 100.0 },
        }
    }

    /// Units of 10 seconds each that share a belief of 100 seconds in groups of `group`.
    fn units(count: usize, group: usize) -> Vec<Work> {
        let unit = |index: usize| Work {
            needs: vec![
                product(&format!("belief {}", index / group), 100.0),
                product(&format!("rows {index}"), 10.0),
            ],
        };
        (0..count).map(unit).collect()
    }

    fn alone(count: usize) -> Vec<Vec<usize>> {
        (0..count).map(|index| vec![index]).collect()
    }

    #[test]
    fn one_core_takes_the_sum_and_makes_nothing_twice() {
        let outcome = simulate(&units(8, 4), &alone(8), 1);
        assert_eq!([outcome.makespan, outcome.files], [280.0, 10.0]);
        assert!((outcome.busy - 1.0).abs() < 1e-9);
    }

    #[test]
    fn cores_beyond_the_beliefs_wait_and_are_counted() {
        let outcome = simulate(&units(8, 4), &alone(8), 8);
        assert_eq!(outcome.makespan, 110.0, "beliefs side by side, then all rows");
        assert!(outcome.busy < 0.5 && outcome.locks[1] > 0.0, "{outcome:?}");
    }

    #[test]
    fn a_task_whose_unit_is_blocked_does_another_one() {
        // The first two tasks share a belief; the second takes the third's unit instead of waiting.
        let outcome = simulate(&units(4, 2), &alone(4), 2);
        assert_eq!(outcome.makespan, 120.0);
        assert!((outcome.busy - 1.0).abs() < 1e-9, "{outcome:?}");
    }

    #[test]
    fn more_cores_never_take_longer_here_and_never_beat_the_longest_chain() {
        let work = units(100, 5);
        let spans: Vec<f64> =
            [1, 3, 10, 30, 100, 1000].map(|cores| simulate(&work, &alone(100), cores).makespan).to_vec();
        assert!(spans.is_sorted_by(|a, b| a >= b), "{spans:?}");
        assert_eq!([spans[0], spans[5]], [3000.0, 110.0]);
    }
}
