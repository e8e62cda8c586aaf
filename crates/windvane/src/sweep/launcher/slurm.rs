//! The scripts with which Slurm runs a sweep: one array job for the units, one job for the report.
//!
//! Scripts are plain text made of the manifest and the options; submitting them is the command's business.

use crate::error::LearnError;
use crate::sweep::cost::Costs;
use crate::sweep::manifest::{REFERENCE, hash_of};
use crate::sweep::unit::Sweep;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A task does units until it has about so much to do: starting it costs Slurm and the file system a few seconds.
const TASK_SECONDS: f64 = 300.0;
/// What a unit is to one that is trained while nothing is measured: the reference policies are quick.
const REFERENCE_SHARE: f64 = 0.03;
/// Tasks of one array that every Slurm takes (`MaxArraySize` is 1,001 unless set).
pub const MOST_TASKS: usize = 1000;

/// What a job asks Slurm for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `--partition`.
    pub partition: Option<String>,
    /// `--time` of a task.
    pub time: Option<String>,
    /// `--mem` of a task.
    pub mem: Option<String>,
    /// Tasks that run at once.
    pub max_running: Option<usize>,
    /// Other options of `sbatch`, as they are.
    pub extra: Option<String>,
    /// Seconds before the time limit at which a unit saves and its task is requeued.
    pub margin: u64,
    /// Attempts that may fail or be killed without getting further before a unit is given up.
    pub tries: usize,
    /// Threads of a unit.
    pub threads: usize,
    /// The device's name.
    pub device: String,
}

/// What the scripts are about.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The sweep, in a folder whose path is absolute.
    pub sweep: &'a Sweep,
    /// The program, by an absolute path.
    pub program: PathBuf,
    /// What to ask for.
    pub options: &'a Options,
}

/// The jobs' name: that of the sweep and digits that tell its folder from others.
pub fn name(sweep: &Sweep) -> String {
    format!("windvane-{}-{}", sweep.manifest.sweep, hash_of(&sweep.folder.display().to_string()))
}

/// Splits units into tasks of at most `most`: a unit each, or a few in their order if they are known to be short.
pub fn tasks(
    sweep: &Sweep,
    units: &[usize],
    costs: &Costs,
    time: Option<f64>,
    most: usize,
) -> Vec<Vec<usize>> {
    let mut target = time.map_or(TASK_SECONDS, |limit| TASK_SECONDS.min(limit / 2.0)).max(1.0);
    let weight = |index: usize| {
        let unit = &sweep.manifest.units[index];
        let unknown = if unit.method == REFERENCE { REFERENCE_SHARE * TASK_SECONDS } else { TASK_SECONDS };
        costs.of(unit).unwrap_or(unknown)
    };
    loop {
        let mut tasks: Vec<(f64, Vec<usize>)> = Vec::new();
        for &index in units {
            let weight = weight(index);
            match tasks.last_mut() {
                Some((sum, task)) if *sum + weight <= target * 1.05 => {
                    *sum += weight;
                    task.push(index);
                }
                _ => tasks.push((weight, vec![index])),
            }
        }
        if tasks.len() <= most.max(1) || target > 1e12 {
            return tasks.into_iter().map(|(_, task)| task).collect();
        }
        target *= 1.3;
    }
}

/// Seconds of a time limit as Slurm writes it: `90`, `90:00`, `1:30:00`, `2-0`, `2-12:30` or `2-12:30:00`.
pub fn seconds(time: &str) -> Result<f64, LearnError> {
    let numbers = |text: &str| text.split(':').map(|n| n.parse::<u32>().ok().map(f64::from)).collect();
    let parts: Option<Vec<f64>> = numbers(time.split_once('-').map_or(time, |(_, rest)| rest));
    let days = time.split_once('-').map(|(days, _)| days.parse::<u32>().ok().map(f64::from));
    let seconds = match (days, parts.as_deref()) {
        (None, Some([m])) => Some(m * 60.0),
        (None, Some([m, s])) => Some(m * 60.0 + s),
        (None, Some([h, m, s])) => Some(h * 3600.0 + m * 60.0 + s),
        (Some(Some(days)), Some([h, rest @ ..])) if rest.len() < 3 => {
            let rest = rest.iter().zip([60.0, 1.0]).map(|(n, unit)| n * unit).sum::<f64>();
            Some(days * 86400.0 + h * 3600.0 + rest)
        }
        _ => None,
    };
    seconds.filter(|seconds| *seconds > 0.0).ok_or_else(|| LearnError::Config {
        origin: "--time".into(),
        problem: format!("\"{time}\" is no time limit; expected minutes, H:MM:SS or D-HH:MM:SS"),
    })
}

impl Job<'_> {
    /// The folder of scripts and output.
    pub fn folder(&self) -> PathBuf {
        self.sweep.folder.join("slurm")
    }

    fn head(&self, name: &str, output: &str) -> String {
        let Options { partition, time, mem, extra, .. } = self.options;
        let output = self.folder().join(output);
        let mut text = format!("#!/bin/bash\n#SBATCH --job-name={name}\n");
        let mut add = |line: String| writeln!(text, "#SBATCH {line}").unwrap_or_default();
        add(format!("--output={}", quoted(&output)));
        for (flag, value) in [("partition", partition), ("time", time), ("mem", mem)] {
            if let Some(value) = value {
                add(format!("--{flag}={value}"));
            }
        }
        if let Some(extra) = extra {
            add(extra.clone());
        }
        text
    }

    /// The script of the array job that does `tasks`.
    pub fn array(&self, tasks: &[Vec<usize>]) -> String {
        let Options { max_running, margin, tries, threads, device, .. } = self.options;
        let manifest = super::super::Manifest::path(&self.sweep.folder, &self.sweep.manifest.sweep);
        let at_once = max_running.map(|n| format!("%{n}")).unwrap_or_default();
        let lines = tasks.iter().map(|task| {
            let numbers: Vec<String> = task.iter().map(ToString::to_string).collect();
            let names: Vec<String> = task.iter().map(|&i| self.sweep.manifest.units[i].name()).collect();
            format!("    {:<8}  # {}", numbers.join(","), names.join(" "))
        });
        let lines: Vec<String> = lines.collect();
        let (program, manifest) = (quoted(&self.program), quoted(&manifest));
        let patience = margin - margin / 4;
        self.head(&name(self.sweep), "%A_%a.txt")
            + &format!(
                r#"#SBATCH --array=0-{last}{at_once}
#SBATCH --cpus-per-task={threads}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@{margin}

# The units of each task, by their numbers in the manifest.
units=(
{lines}
)
echo "task $SLURM_ARRAY_TASK_ID on $SLURMD_NODENAME, start $((${{SLURM_RESTART_COUNT:-0}} + 1)): units ${{units[$SLURM_ARRAY_TASK_ID]}}"
{program} run --manifest {manifest} --index "${{units[$SLURM_ARRAY_TASK_ID]}}" \
    --tries {tries} --threads {threads} --device {device} &
unit=$!

# The time limit is near: the unit saves and ends, the task goes back to the queue. What cannot end in time is killed.
near= guard=
trap 'near=1; kill -TERM $unit; (sleep {patience} && kill -KILL $unit) & guard=$!' USR1
# Cancelled or preempted: Slurm tells the unit itself, which saves, and knows what comes next.
cancelled=
trap 'cancelled=1' TERM

wait $unit
code=$?
while kill -0 $unit 2>/dev/null; do # a signal ended the wait, not the unit
    wait $unit
    code=$?
done
if [ -n "$guard" ]; then kill "$guard" 2>/dev/null; fi
if [ "$code" = 0 ] || [ -n "$cancelled" ]; then exit "$code"; fi
# 75: another try may help. Above 128: killed; but 143 without a word to this script is a cancellation.
if [ -n "$near" ] || [ "$code" = 75 ] || {{ [ "$code" -gt 128 ] && [ "$code" != 143 ]; }}; then
    echo "back to the queue after exit code $code"
    scontrol requeue "$SLURM_JOB_ID" && sleep 60 # Slurm ends this script meanwhile
    exit 75
fi
exit "$code"
"#,
                last = tasks.len().saturating_sub(1),
                lines = lines.join("\n"),
            )
    }

    /// The script of the job that makes the report, and fails if units are missing.
    pub fn report(&self) -> String {
        let (program, folder) = (quoted(&self.program), quoted(&self.sweep.folder));
        self.head(&format!("{}-report", name(self.sweep)), "report-%j.txt")
            + &format!(
                "\n{program} report {folder} --figures\nreported=$?\n{program} status {folder} --check && exit $reported\n"
            )
    }
}

/// A path as a shell reads it back.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=%+".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Plan;
    use crate::sweep::{Manifest, ablation};

    fn sweep(seeds: u64) -> Sweep {
        let base = Plan::preset("doors", "quick").unwrap();
        let settings = ablation::settings(ablation::MAIN, "quick", &base).unwrap();
        let methods = ["fb".to_owned(), "bfb".to_owned()];
        let manifest = Manifest::new(ablation::MAIN, "doors", settings, &methods, 0..seeds).unwrap();
        Sweep { folder: "/shared/my sweep".into(), manifest }
    }

    #[test]
    fn times_are_read_as_slurm_reads_them() {
        let all = [("90", 5400.0), ("90:30", 5430.0), ("1:30:00", 5400.0), ("2-0", 172_800.0)];
        for (text, expected) in all.into_iter().chain([("1-1:30", 91_800.0), ("1-1:30:01", 91_801.0)]) {
            assert_eq!(seconds(text).unwrap(), expected, "{text}");
        }
        for wrong in ["", "soon", "1:2:3:4", "-1", "1-", "1-1:1:1:1", "0"] {
            assert!(seconds(wrong).unwrap_err().to_string().contains("expected minutes"), "{wrong}");
        }
    }

    #[test]
    fn short_units_share_a_task_and_every_unit_is_in_exactly_one() {
        let sweep = sweep(40);
        let units: Vec<usize> = (0..sweep.manifest.units.len()).filter(|index| *index != 7).collect();
        let mut costs = Costs::default();
        let unmeasured = tasks(&sweep, &units, &costs, None, MOST_TASKS);
        assert!(unmeasured.iter().all(|task| task.len() <= 2), "the reference policies go with one other");
        sweep.manifest.units[..3].iter().for_each(|unit| costs.add(unit, 100.0));
        for (time, most, longest) in [(None, MOST_TASKS, 3), (Some(250.0), MOST_TASKS, 1), (None, 7, 60)] {
            let tasks = tasks(&sweep, &units, &costs, time, most);
            assert!(tasks.len() <= most && tasks.iter().all(|task| task.len() <= longest), "{tasks:?}");
            assert_eq!(tasks.concat(), units, "in order, none twice, none lost");
        }
    }

    #[test]
    fn a_script_holds_what_was_asked_for_and_is_bash() {
        let sweep = sweep(1);
        let options = Options {
            partition: Some("short".into()),
            time: Some("1:00:00".into()),
            max_running: Some(2),
            extra: Some("--gres=gpu:1 --account=lab".into()),
            margin: 120,
            tries: 3,
            threads: 2,
            device: "cuda".into(),
            ..Options::default()
        };
        let job = Job { sweep: &sweep, program: "/opt/it's/windvane".into(), options: &options };
        let script = job.array(&[vec![0, 1], vec![2]]);
        for line in [
            "#SBATCH --partition=short",
            "#SBATCH --time=1:00:00",
            "#SBATCH --gres=gpu:1 --account=lab",
            "#SBATCH --array=0-1%2",
            "#SBATCH --cpus-per-task=2",
            "#SBATCH --requeue",
            "#SBATCH --signal=B:USR1@120",
            "    0,1       # quick/reference-0 quick/fb-0",
            r#"'/opt/it'\''s/windvane' run --manifest '/shared/my sweep/main.json' --index "${units[$SLURM_ARRAY_TASK_ID]}" \"#,
            "    --tries 3 --threads 2 --device cuda &",
        ] {
            assert!(script.lines().any(|there| there == line), "{line}\nin\n{script}");
        }
        assert!(!script.contains("--mem"), "what was not asked for is left to the site");
        for script in [script, job.report()] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), script).unwrap();
            let checked = std::process::Command::new("bash").arg("-n").arg(file.path()).status();
            assert!(checked.unwrap().success());
        }
    }
}
