//! The `windvane` command as a library: the program and the console script of the Python wheel are one call of [`run`] each.

mod bounds;
mod choice;
mod commands;
mod found;
mod interrupt;
mod output;
mod program;
mod progress;
mod revision;
mod table;
mod watch;

pub use program::started_as;
pub use revision::{GENERATOR, REVISION};

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use interrupt::Stopped;
use std::ffi::OsString;

/// The exit code of what failed.
const FAILURE: u8 = 1;

/// Behavioural foundation models that sense hidden dynamics and act zero-shot.
#[derive(Parser)]
#[command(name = "windvane", version = revision::SHORT, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

/// The command line as clap knows it.
fn command_line() -> clap::Command {
    Cli::command().long_version(revision::long())
}

/// Runs the command with its arguments, the program's name first, and says with which code the process is to exit.
///
/// Signals belong to it from then on: call it before other threads are started, and once in a process.
pub fn run<A: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = A>) -> u8 {
    let matches = command_line().try_get_matches_from(arguments);
    let ended = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli.command.run(),
        // Wrong use has its own exit code; help and version are results like any other.
        Err(error) if error.use_stderr() => {
            let _ = error.print();
            return error.exit_code() as u8;
        }
        Err(error) => {
            output::written(error.print());
            Ok(())
        }
    };
    match ended.and_then(|()| output::finish()) {
        Ok(()) => 0,
        Err(error) if error.is::<Stopped>() => {
            output::note(&error.to_string());
            Stopped::code()
        }
        Err(error) => {
            output::fail(&error);
            FAILURE
        }
    }
}
