//! The loop with a real learner: the belief of a tiny Randomized-Doors.

use super::*;
use crate::belief::BeliefConfig;
use crate::belief::state_evidence::StateEvidenceObjective;
use crate::belief::trainer::BeliefTrainer;
use crate::data::{EncoderConfig, StateTable};
use observe::JsonLines;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use windvane_world::collect::{BehaviourPolicy, CollectConfig, collect};
use windvane_world::registry::{WorldConfig, make};
use windvane_world::{Split, Start};

/// Where a test works: a folder, and what a few episodes in four layouts say.
struct Bench {
    folder: tempfile::TempDir,
    table: Arc<StateTable>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = make("doors", &WorldConfig { seed: 1, train: Some(4), test: Some(1) }).unwrap();
        let config = CollectConfig {
            contexts: world.contexts(Split::Train).to_vec(),
            episodes: 3,
            length: 60,
            start: Start::Random,
            seed: 1,
        };
        let data = collect(
            &*world,
            &BehaviourPolicy::Uniform,
            &config,
            "test",
            &folder.path().join("data"),
            &|_| (),
        )
        .unwrap();
        Self { table: Arc::new(StateTable::of(&data, &EncoderConfig::default(), 0.0).unwrap()), folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn learner(&self) -> BeliefTrainer<StateEvidenceObjective> {
        let config = BeliefConfig { steps: 20, batch: 4, width: 8, ..BeliefConfig::default() };
        let device = burn::tensor::Device::flex();
        let objective = StateEvidenceObjective::new(self.table.clone(), &config, 5, &device).unwrap();
        BeliefTrainer::new(objective, &config)
    }

    /// Trains a fresh learner on the checkpoint called `name`, stopping after `until` steps if that comes first.
    fn train(&self, name: &str, until: u64) -> Result<Ended, LearnError> {
        let interrupt = AtomicBool::new(false);
        let path = self.path(name);
        let stopper = Stopper { interrupt: &interrupt, until };
        let mut observers: Vec<Box<dyn Observer + '_>> =
            vec![Box::new(JsonLines::new(&path.with_extension("jsonl"))), Box::new(stopper)];
        let nothing = |_: &BeliefTrainer<StateEvidenceObjective>, _| Ok(Evaluation::default());
        train(&mut self.learner(), &SCHEDULE, &path, "belief of a test", nothing, &mut observers, &interrupt)
    }
}

const SCHEDULE: Schedule = Schedule { steps: 20, log_every: 1, eval_every: 0, save_every: 4 };

/// Asks the loop to stop after so many steps, as Ctrl-C would.
struct Stopper<'a> {
    interrupt: &'a AtomicBool,
    until: u64,
}

impl Observer for Stopper<'_> {
    fn logged(&mut self, at: &At, _: &Scores) -> Result<(), LearnError> {
        self.interrupt.store(at.step >= self.until, Ordering::Relaxed);
        Ok(())
    }

    fn evaluated(&mut self, _: &At, _: &Scores) -> Result<(), LearnError> {
        Ok(())
    }
}

/// The bytes of a finished checkpoint.
fn finished(bench: &Bench, name: &str) -> Vec<u8> {
    let saved = checkpoint::load(&bench.path(name), "belief of a test").unwrap().unwrap();
    assert!(saved.complete && saved.step == 20);
    std::fs::read(bench.path(name)).unwrap()
}

#[test]
fn a_run_stopped_anywhere_and_resumed_gives_the_same_bits() {
    let bench = Bench::new();
    assert_eq!(bench.train("whole", u64::MAX).unwrap(), Ended::Finished);
    for stop in [1, 7, 8, 19] {
        let name = format!("stopped-{stop}");
        assert_eq!(bench.train(&name, stop).unwrap(), Ended::Interrupted(stop));
        assert_eq!(bench.train(&name, u64::MAX).unwrap(), Ended::Finished);
        assert!(finished(&bench, "whole") == finished(&bench, &name), "stopped at {stop}");
        let rows = std::fs::read_to_string(bench.path(&name).with_extension("jsonl")).unwrap();
        assert_eq!(
            rows.lines().filter(|row| row.contains("\"train\"")).count(),
            20,
            "each step is logged once"
        );
    }
}

#[test]
fn a_run_killed_between_checkpoints_goes_on_from_the_last_and_gives_the_same_bits() {
    let bench = Bench::new();
    bench.train("whole", u64::MAX).unwrap();
    // What a kill at step 11 leaves behind: the checkpoint of step 8, rows up to 11, half a file beside them.
    bench.train("killed", 8).unwrap();
    let log = bench.path("killed").with_extension("jsonl");
    let mut rows = std::fs::read_to_string(&log).unwrap();
    rows.push_str("{\"kind\":\"train\",\"step\":9}\n{\"kind\":\"train\",\"step\":11}\n{\"kind\":\"tr");
    std::fs::write(&log, rows).unwrap();
    std::fs::write(bench.path("killed.partial"), "half a checkpoint").unwrap();
    bench.train("killed", u64::MAX).unwrap();
    assert!(finished(&bench, "whole") == finished(&bench, "killed"));
    assert_eq!(
        std::fs::read_to_string(&log).unwrap().lines().count(),
        21,
        "20 steps and the last evaluation"
    );
}

#[test]
fn a_finished_run_is_not_run_again() {
    let bench = Bench::new();
    bench.train("done", u64::MAX).unwrap();
    let before = std::fs::read(bench.path("done")).unwrap();
    assert_eq!(bench.train("done", u64::MAX).unwrap(), Ended::Finished);
    assert_eq!(before, std::fs::read(bench.path("done")).unwrap());
}

#[test]
fn times_stand_beside_the_checkpoint_and_add_up_over_resumptions() {
    let bench = Bench::new();
    let times = || checkpoint::read(&bench.path("run")).unwrap().unwrap().times;
    bench.train("run", 8).unwrap();
    let file = Times::path(&bench.path("run"));
    std::fs::write(&file, r#"{"cpu_seconds": 50.0, "wall_seconds": 100.0}"#).unwrap();
    assert_eq!(times(), Times { cpu_seconds: 50.0, wall_seconds: 100.0 });
    bench.train("run", u64::MAX).unwrap();
    assert!((50.0..60.0).contains(&times().cpu_seconds) && (100.0..110.0).contains(&times().wall_seconds));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(times(), Times::default(), "nobody noted them");
    // Version 1 stored them in the checkpoint.
    let mut old = TensorFile::default();
    for (name, word) in [("version", "1"), ("identity", "x"), ("step", "3"), ("complete", "false")] {
        old.insert_word(name, word);
    }
    old.insert_word("cpu_seconds", 2.5);
    old.insert_word("wall_seconds", 3.5);
    std::fs::write(bench.path("run"), old.to_bytes().unwrap()).unwrap();
    assert_eq!(times(), Times { cpu_seconds: 2.5, wall_seconds: 3.5 });
}

#[test]
fn foreign_newer_and_damaged_checkpoints_are_refused_by_name() {
    let bench = Bench::new();
    bench.train("good", u64::MAX).unwrap();
    let path = bench.path("good");
    let bytes = std::fs::read(&path).unwrap();
    let message = |identity: &str| checkpoint::load(&path, identity).unwrap_err().to_string();
    assert!(
        message("fb of a test").contains("is a checkpoint of belief of a test; expected one of fb of a test")
    );
    for cut in [0, 5, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        assert!(message("belief of a test").contains("damaged"), "cut at {cut}");
    }
    let mut flipped = bytes.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    std::fs::write(&path, &flipped).unwrap();
    assert!(message("belief of a test").contains("damaged"), "one bit of a tensor");
    let word = br#"version\":\"2"#;
    let place = bytes.windows(word.len()).position(|part| part == word).unwrap();
    let mut newer = bytes;
    newer[place + word.len() - 1] = b'7';
    std::fs::write(&path, &newer).unwrap();
    assert!(message("belief of a test").contains("version 7"), "{}", message("belief of a test"));
}

#[test]
fn a_loss_that_is_no_number_stops_with_its_name_and_the_last_checkpoint_stays() {
    struct Broken(BeliefTrainer<StateEvidenceObjective>);
    impl Learner for Broken {
        fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
            let mut metrics = self.0.train_step(step)?;
            if step == 10 {
                metrics[0].1 = metrics[0].1.clone() * f32::NAN;
            }
            Ok(metrics)
        }
        fn save(&self, file: &mut TensorFile) {
            self.0.save(file);
        }
        fn load(&mut self, file: &TensorFile) -> Result<(), LearnError> {
            self.0.load(file)
        }
    }
    let bench = Bench::new();
    let path = bench.path("broken");
    let never = AtomicBool::new(false);
    let nothing = |_: &Broken, _| Ok(Evaluation::default());
    let error =
        train(&mut Broken(bench.learner()), &SCHEDULE, &path, "x", nothing, &mut [], &never).unwrap_err();
    assert_eq!(error.to_string(), "loss became NaN at step 10; the last good checkpoint is intact");
    assert_eq!(checkpoint::load(&path, "x").unwrap().unwrap().step, 8);

    // Rows are rare, and a checkpoint is due before the next: it is not written over the good one.
    let path = bench.path("rare");
    let schedule = Schedule { log_every: 7, ..SCHEDULE };
    let error =
        train(&mut Broken(bench.learner()), &schedule, &path, "x", nothing, &mut [], &never).unwrap_err();
    let expected = "loss became NaN between steps 7 and 11; the last good checkpoint is intact";
    assert_eq!(error.to_string(), expected);
    assert_eq!(checkpoint::load(&path, "x").unwrap().unwrap().step, 8);
}

#[test]
fn rows_hold_the_means_of_their_steps_and_cost_one_read_each() {
    /// Measures the number of its step, and twice that.
    struct Counter;
    impl Learner for Counter {
        fn train_step(&mut self, step: u64) -> Result<Metrics, LearnError> {
            let number = |x: u64| Tensor::full([1], x as f64, &burn::tensor::Device::flex());
            Ok(vec![("loss", number(step)), ("twice", number(2 * step))])
        }
        fn save(&self, _: &mut TensorFile) {}
        fn load(&mut self, _: &TensorFile) -> Result<(), LearnError> {
            Ok(())
        }
    }
    struct Rows(std::rc::Rc<std::cell::RefCell<Vec<Scores>>>);
    impl Observer for Rows {
        fn logged(&mut self, _: &At, means: &Scores) -> Result<(), LearnError> {
            self.0.borrow_mut().push(means.clone());
            Ok(())
        }
        fn evaluated(&mut self, _: &At, _: &Scores) -> Result<(), LearnError> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let rows = std::rc::Rc::default();
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(Rows(std::rc::Rc::clone(&rows)))];
    let schedule = Schedule { steps: 10, log_every: 4, eval_every: 0, save_every: 100 };
    let (never, path) = (AtomicBool::new(false), folder.path().join("rows"));
    let nothing = |_: &Counter, _| Ok(Evaluation::default());
    let before = crate::nn::transfers();
    train(&mut Counter, &schedule, &path, "x", nothing, &mut observers, &never).unwrap();
    let expected = [(1.5, 3.0), (5.5, 11.0), (8.5, 17.0)].map(|(a, b)| vec![("loss", a), ("twice", b)]);
    assert_eq!(*rows.borrow(), expected);
    assert_eq!(crate::nn::transfers().reads - before.reads, 3, "three rows");
}

#[test]
fn a_target_that_is_reached_ends_the_training_early() {
    let bench = Bench::new();
    let never = AtomicBool::new(false);
    let good = |_: &BeliefTrainer<StateEvidenceObjective>, step| {
        Ok(Evaluation { scores: vec![("steps", step as f64)], good_enough: step >= 10 })
    };
    let schedule = Schedule { eval_every: 5, ..SCHEDULE };
    let ended =
        train(&mut bench.learner(), &schedule, &bench.path("early"), "x", good, &mut [], &never).unwrap();
    assert_eq!(ended, Ended::Target(10));
}

#[test]
fn two_trainers_never_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder::RunFolder::open(folder.path()).unwrap();
    let error = folder::RunFolder::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("another process is training in this folder"), "{error}");
    drop(first);
    assert!(folder::RunFolder::open(folder.path()).is_ok());
    assert!(folder::RunFolder::existing(&folder.path().join("none")).is_err());
}
