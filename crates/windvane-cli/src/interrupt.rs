//! Ctrl-C and SIGTERM: the first asks the work to stop where it can go on later, the next stops at once.

use crate::output;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The exit code of a program that was ended by Ctrl-C, as shells count: 128 and the signal's number.
const BY_CTRL_C: i32 = 130;
/// Signals that come together are one request: a terminal sends Ctrl-C to `reproduce` and to its units, and so does
/// `reproduce` itself.
const TOGETHER: Duration = Duration::from_secs(1);

static ASKED: AtomicBool = AtomicBool::new(false);
static CODE: AtomicI32 = AtomicI32::new(BY_CTRL_C);
static FIRST: Mutex<Option<Instant>> = Mutex::new(None);
/// How many [`AtOnce`] live.
static AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// A flag that Ctrl-C and SIGTERM raise. Call it before threads are started: they must not take the signals.
pub(crate) fn flag() -> anyhow::Result<&'static AtomicBool> {
    listen()?;
    Ok(&ASKED)
}

#[cfg(unix)]
fn listen() -> anyhow::Result<()> {
    use nix::sys::signal::{SigSet, Signal};
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    // A thread of its own waits for what nobody else takes; processes that are started begin with all signals again.
    signals.thread_block()?;
    let wait = move || {
        while let Ok(signal) = signals.wait() {
            ask(128 + signal as i32);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

#[cfg(not(unix))]
fn listen() -> anyhow::Result<()> {
    Ok(ctrlc::set_handler(|| ask(BY_CTRL_C))?)
}

/// Takes in a signal whose exit code is `code`.
fn ask(code: i32) {
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    match *first {
        Some(first) if first.elapsed() < TOGETHER => return,
        Some(_) => std::process::exit(code),
        None => *first = Some(Instant::now()),
    }
    CODE.store(code, Ordering::Relaxed);
    ASKED.store(true, Ordering::Relaxed);
    if AT_ONCE.load(Ordering::Relaxed) > 0 {
        output::note(STOPPED);
        std::process::exit(code);
    }
    output::note("stopping after this step; once more stops at once");
}

/// Whether the work was asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// While this lives nothing has to be saved: a signal ends the program at once.
pub(crate) struct AtOnce(());

/// From here on, as long as the value lives, a signal ends the program at once; also one that came before.
pub(crate) fn at_once() -> anyhow::Result<AtOnce> {
    AT_ONCE.fetch_add(1, Ordering::Relaxed);
    let value = AtOnce(());
    if asked() { Err(Stopped.into()) } else { Ok(value) }
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        AT_ONCE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The work stopped because it was asked to: no error, but not done either.
#[derive(Debug)]
pub(crate) struct Stopped;

impl Stopped {
    /// The exit code that says which signal it was.
    pub(crate) fn code() -> u8 {
        CODE.load(Ordering::Relaxed) as u8
    }
}

/// What to say when the work stopped because it was asked to.
const STOPPED: &str = "stopped and saved; give the same command again to go on from here";

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STOPPED)
    }
}

impl std::error::Error for Stopped {}
