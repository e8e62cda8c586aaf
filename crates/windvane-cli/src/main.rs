//! The `windvane` command.

mod bounds;
mod choice;
mod commands;
mod found;
mod interrupt;
mod output;
mod progress;
mod revision;
mod settings;
mod table;
mod trained;
mod watch;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use interrupt::Stopped;
use std::process::ExitCode;

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

fn main() -> ExitCode {
    let ended = match command_line().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli.command.run(),
        // Wrong use ends here with its own exit code; help and version are results like any other.
        Err(error) if error.use_stderr() => error.exit(),
        Err(error) => {
            output::written(error.print());
            Ok(())
        }
    };
    match ended.and_then(|()| output::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Stopped>() => {
            output::note(&error.to_string());
            ExitCode::from(Stopped::code())
        }
        Err(error) => {
            output::fail(&error);
            ExitCode::FAILURE
        }
    }
}
