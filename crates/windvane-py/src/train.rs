//! Training on a thread of its own, while the caller's looks for Ctrl-C and tells how it goes.

use crate::agent::Agent;
use crate::errors::{Answer, guarded, panicked};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use windvane::device::{DeviceName, Threads};
use windvane::request::take_scores;
use windvane::run::{Progress, RunContext};
use windvane::train::Scores;
use windvane::train::observe::{At, Observer};
use windvane::{LearnError, Request};
use windvane_cli::REVISION;

/// How long the caller's thread waits for news before it looks for Ctrl-C.
const POLL: Duration = Duration::from_millis(50);

/// News of a training.
struct News {
    kind: &'static str,
    stage: String,
    at: At,
    metrics: Scores,
}

/// Sends news to the caller's thread. Nobody may be listening any more: then there is no news.
#[derive(Clone)]
struct Teller {
    to: Sender<News>,
    stage: String,
}

impl Teller {
    fn tell(&self, kind: &'static str, at: &At, metrics: &Scores) {
        let news = News { kind, stage: self.stage.clone(), at: *at, metrics: metrics.clone() };
        let _ = self.to.send(news);
    }
}

impl Progress for Teller {
    fn collecting(&mut self, transitions: usize) -> Box<dyn Fn(usize) + Sync> {
        let teller = Self { stage: "collecting".to_owned(), ..self.clone() };
        let done = std::sync::atomic::AtomicU64::new(0);
        Box::new(move |more| {
            let step = done.fetch_add(more as u64, Ordering::Relaxed) + more as u64;
            let at = At { step, steps: transitions as u64, cpu_seconds: 0.0, wall_seconds: 0.0 };
            teller.tell("collect", &at, &Scores::new());
        })
    }

    fn training(&mut self, what: &str) -> Box<dyn Observer> {
        Box::new(Self { stage: what.to_owned(), ..self.clone() })
    }
}

impl Observer for Teller {
    fn begin(&mut self, at: &At) -> Result<(), LearnError> {
        self.tell("begin", at, &Scores::new());
        Ok(())
    }

    fn logged(&mut self, at: &At, metrics: &Scores) -> Result<(), LearnError> {
        self.tell("train", at, metrics);
        Ok(())
    }

    fn evaluated(&mut self, at: &At, scores: &Scores) -> Result<(), LearnError> {
        self.tell("eval", at, scores);
        Ok(())
    }
}

/// What a training computes with.
struct With {
    device: DeviceName,
    threads: usize,
    scores: bool,
}

/// Trains to the end, as `windvane train` does; `None` if it was interrupted.
fn work(
    request: &Request,
    with: &With,
    to: Sender<News>,
    interrupt: &AtomicBool,
) -> Result<Option<windvane::Agent>, LearnError> {
    let (run, folder) = request.open()?;
    let device = with.device.open()?;
    Threads::new(with.threads)?.run(move || {
        let mut teller = Teller { to, stage: String::new() };
        let world = run.world()?;
        let mut at = RunContext { world: &*world, device: &device, progress: &mut teller, interrupt };
        let Some(agent) = run.agent(&mut at)? else { return Ok(None) };
        if with.scores && run.recorded.is_none() {
            let names = [request.preset.as_str(), REVISION];
            let scores = take_scores(&run, &folder, &*world, &agent, names, interrupt)?;
            return Ok(scores.map(|_| agent));
        }
        Ok(Some(agent))
    })
}

/// Tells `listener` all news until there is no more; what it raises, and Ctrl-C, stop the training.
fn listen(
    py: Python<'_>,
    listener: &Bound<'_, PyAny>,
    news: &mut Receiver<News>,
    interrupt: &AtomicBool,
) -> Option<PyErr> {
    let mut failure: Option<PyErr> = None;
    loop {
        let received = {
            let news = &mut *news;
            py.detach(move || news.recv_timeout(POLL))
        };
        let heard = match (received, &failure) {
            (Err(RecvTimeoutError::Disconnected), _) => return failure,
            (Ok(news), None) => pass_on(py, listener, &news),
            _ => Ok(()),
        };
        if let Err(error) = heard.and_then(|()| py.check_signals())
            && failure.is_none()
        {
            interrupt.store(true, Ordering::Relaxed);
            failure = Some(error);
        }
    }
}

fn pass_on(py: Python<'_>, listener: &Bound<'_, PyAny>, news: &News) -> PyResult<()> {
    let News { kind, stage, at, metrics } = news;
    let numbers = PyDict::new(py);
    for (name, value) in metrics {
        numbers.set_item(name, value)?;
    }
    listener.call1((*kind, stage, at.step, at.steps, at.cpu_seconds, at.wall_seconds, numbers)).map(drop)
}

/// Trains as `windvane train` does and calls `listener` with all news.
#[pyfunction]
#[pyo3(signature = (listener, *, env, data, belief, method, preset, config, set, seed, out, device, threads, scores))]
#[allow(clippy::too_many_arguments)] // Python's keywords, one for each of the command's
pub(crate) fn train(
    py: Python<'_>,
    listener: &Bound<'_, PyAny>,
    env: Option<String>,
    data: Option<PathBuf>,
    belief: Option<PathBuf>,
    method: String,
    preset: String,
    config: Option<PathBuf>,
    set: Vec<String>,
    seed: u64,
    out: PathBuf,
    device: &str,
    threads: usize,
    scores: bool,
) -> PyResult<Agent> {
    let request = Request { env, method, preset, config, set, seed, out, data, belief };
    guarded(|| -> Answer<Agent> {
        let with = With { device: device.parse()?, threads, scores };
        let interrupt = Arc::new(AtomicBool::new(false));
        let (to, mut news) = channel();
        let flag = interrupt.clone();
        let worker = std::thread::Builder::new()
            .name("windvane-train".to_owned())
            .spawn(move || work(&request, &with, to, &flag))
            .map_err(PyErr::from)?;
        let failure = listen(py, listener, &mut news, &interrupt);
        let ended = py.detach(|| worker.join());
        match (ended, failure) {
            (Err(panic), _) => Err(panicked(&*panic).into()),
            (Ok(Err(error)), _) => Err(error.into()),
            (Ok(Ok(_)), Some(failure)) => Err(failure.into()),
            (Ok(Ok(Some(agent))), None) => Ok(Agent::new(agent)),
            (Ok(Ok(None)), None) => Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(()).into()),
        }
    })
}
